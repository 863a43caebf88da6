//! What is compared.

use serde::{Deserialize, Serialize};

use super::contender::Contender::{
    self, Fabric, FabricMany, FiPingpongShm, FiPingpongTcp, Iceoryx2, Iceoryx2Loan, Libzmq, Nng,
    RawTcp, RawTcpBatch, RawTcpBusy, Rzmq, Zeromq,
};

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Test {
    /// Round trips.
    Lat,
    /// One-way streams.
    Bw,
    /// One publisher, many subscribers.
    Fanout,
    /// Silent peers.
    Idle,
}

/// How it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Sockets that sleep.
    Sleeping,
    /// Sockets in tasks that sleep.
    Tasks,
    /// Sockets that spin.
    Spinning,
    /// The bare domain, sleeping.
    Domain,
    /// The bare domain, spinning.
    DomainSpinning,
    /// Sockets over libfabric's TCP provider, spinning.
    OfiTcp,
    /// The bare domain over libfabric's TCP provider, spinning.
    OfiTcpDomain,
    /// Sockets over libfabric's shared memory provider, spinning.
    OfiShm,
    /// The bare domain over libfabric's shared memory provider, spinning.
    OfiShmDomain,
    /// Memory shared on one host, spinning; ours is sockets over libfabric's provider.
    SharedMemory,
}

/// One row of figures: everybody in it does the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) test: Test,
    pub(crate) mode: Mode,
    /// Bytes of each message.
    pub(crate) size: usize,
    /// Subscribers or silent peers.
    pub(crate) peers: usize,
    pub(crate) contenders: Vec<Contender>,
}

const SIZES: [usize; 6] = [1, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20];
const FANOUT_SIZES: [usize; 2] = [64, 4 << 10];
const SUBSCRIBERS: [usize; 3] = [1, 8, 64];
const SILENT: [usize; 3] = [1, 100, 1000];
/// What the bare domain of TCP sends at once.
const DOMAIN_SIZES: [usize; 3] = [64, 8 << 10, 64 << 10];

/// Messages of the silent peers' busy neighbour, as in the peers' own figures.
const IDLE_SIZE: usize = 64;

impl Cell {
    fn new(test: Test, mode: Mode, size: usize, peers: usize, contenders: &[Contender]) -> Self {
        Self { test, mode, size, peers, contenders: contenders.to_vec() }
    }

    /// As tables, targets and `--only` name it.
    pub(crate) fn name(&self) -> String {
        let size = shown(self.size);
        let what = match self.test {
            Test::Lat => format!("lat {size}"),
            Test::Bw => format!("bw {size}"),
            Test::Fanout => format!("fanout {size} x {}", self.peers),
            Test::Idle => format!("idle {}", self.peers),
        };
        let how = match self.mode {
            Mode::Sleeping => "",
            Mode::Tasks => ", tasks",
            Mode::Spinning => ", spinning",
            Mode::Domain => ", domain",
            Mode::DomainSpinning => ", domain spinning",
            Mode::OfiTcp => ", ofi+tcp",
            Mode::OfiTcpDomain => ", ofi+tcp domain",
            Mode::OfiShm => ", ofi+shm",
            Mode::OfiShmDomain => ", ofi+shm domain",
            Mode::SharedMemory => ", shared memory",
        };
        format!("{what}{how}")
    }
}

/// A size as people write it.
pub(crate) fn shown(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Everything.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for size in SIZES {
        cells.push(trips(size, &[Fabric, RawTcp, Libzmq, Nng, Zeromq, Rzmq]));
    }
    cells.push(tasks());
    for size in SIZES {
        cells.push(spinning(size));
    }
    for size in DOMAIN_SIZES {
        cells.push(Cell::new(Test::Lat, Mode::Domain, size, 1, &[Fabric, RawTcp]));
        let spinning = [Fabric, RawTcpBusy, FiPingpongTcp];
        cells.push(Cell::new(Test::Lat, Mode::DomainSpinning, size, 1, &spinning));
    }
    for size in SIZES {
        cells.push(stream(
            size,
            &[Fabric, FabricMany, RawTcp, RawTcpBatch, Libzmq, Nng, Zeromq, Rzmq],
        ));
    }
    for size in DOMAIN_SIZES {
        cells.push(Cell::new(Test::Bw, Mode::Domain, size, 1, &[Fabric, RawTcp, RawTcpBatch]));
    }
    for size in FANOUT_SIZES {
        for subscribers in SUBSCRIBERS {
            cells.push(fanout(
                size,
                subscribers,
                &[Fabric, FabricMany, RawTcpBatch, Libzmq, Nng, Zeromq],
            ));
        }
    }
    cells.push(fanout(64, 1000, &[Fabric, RawTcpBatch, Libzmq]));
    for peers in SILENT {
        // A thousand peers take rzmq longer than all others together.
        let rzmq: &[Contender] = if peers < 1000 { &[Rzmq] } else { &[] };
        cells.push(idle(peers, &[&[Fabric, RawTcpBatch, Libzmq, Nng, Zeromq], rzmq].concat()));
    }
    cells.extend(over_libfabric());
    cells
}

/// What ours costs over a provider that somebody else wrote, and memory shared on one host.
fn over_libfabric() -> Vec<Cell> {
    let lat =
        |mode, size, contenders: &[Contender]| Cell::new(Test::Lat, mode, size, 1, contenders);
    let mut cells = vec![
        lat(Mode::OfiTcp, 64, &[Fabric, FiPingpongTcp]),
        lat(Mode::OfiShm, 64, &[Fabric, FiPingpongShm]),
    ];
    for size in [64, 64 << 10] {
        cells.push(lat(Mode::OfiTcpDomain, size, &[Fabric, FiPingpongTcp]));
        cells.push(lat(Mode::OfiShmDomain, size, &[Fabric, FiPingpongShm]));
    }
    for size in [64, 64 << 10, 1 << 20] {
        let contenders = [Fabric, Iceoryx2, Iceoryx2Loan, FiPingpongShm];
        cells.push(lat(Mode::SharedMemory, size, &contenders));
    }
    for size in [64, 64 << 10] {
        let contenders = [Fabric, Iceoryx2, Iceoryx2Loan];
        cells.push(Cell::new(Test::Bw, Mode::SharedMemory, size, 1, &contenders));
    }
    cells
}

/// The most telling ones.
pub(crate) fn quick() -> Vec<Cell> {
    vec![
        trips(64, &[Fabric, RawTcp, Libzmq, Zeromq]),
        trips(64 << 10, &[Fabric, RawTcp, Libzmq]),
        tasks(),
        spinning(64),
        Cell::new(Test::Lat, Mode::Domain, 64, 1, &[Fabric, RawTcp]),
        stream(64, &[Fabric, FabricMany, RawTcpBatch, Libzmq]),
        stream(1 << 10, &[Fabric, RawTcpBatch, Libzmq]),
        stream(64 << 10, &[Fabric, RawTcp, RawTcpBatch, Libzmq]),
        stream(1 << 20, &[Fabric, RawTcp, Libzmq]),
        fanout(64, 8, &[Fabric, RawTcpBatch, Libzmq]),
        fanout(4 << 10, 64, &[Fabric, RawTcpBatch, Libzmq]),
        idle(1000, &[Fabric, RawTcpBatch]),
    ]
}

fn trips(size: usize, contenders: &[Contender]) -> Cell {
    Cell::new(Test::Lat, Mode::Sleeping, size, 1, contenders)
}

/// The zeromq crate has nothing but tasks.
fn tasks() -> Cell {
    Cell::new(Test::Lat, Mode::Tasks, 64, 1, &[Fabric, Zeromq])
}

fn spinning(size: usize) -> Cell {
    Cell::new(Test::Lat, Mode::Spinning, size, 1, &[Fabric, RawTcpBusy, FiPingpongTcp])
}

fn stream(size: usize, contenders: &[Contender]) -> Cell {
    Cell::new(Test::Bw, Mode::Sleeping, size, 1, contenders)
}

fn fanout(size: usize, subscribers: usize, contenders: &[Contender]) -> Cell {
    Cell::new(Test::Fanout, Mode::Sleeping, size, subscribers, contenders)
}

fn idle(peers: usize, contenders: &[Contender]) -> Cell {
    Cell::new(Test::Idle, Mode::Sleeping, IDLE_SIZE, peers, contenders)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let names: BTreeSet<String> = all().iter().map(Cell::name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.contains("lat 64 B, spinning") && names.contains("fanout 4 KiB x 64"));
    }

    #[test]
    fn the_quick_cells_are_among_all() {
        let names: BTreeSet<String> = all().iter().map(Cell::name).collect();
        assert!(quick().iter().all(|cell| names.contains(&cell.name())));
    }
}
