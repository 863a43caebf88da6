//! One turn of one contender.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use super::cells::{Cell, Test};
use super::contender::{Contender, Driver, Kind};
use super::metric::Sample;
use super::pair::{Side, play, play_alone};
use super::{driver, ours, pingpong};

/// What turns need.
#[derive(Debug)]
pub(super) struct Ground {
    /// This project's command.
    pub(super) fabric: PathBuf,
    /// Drivers, or why there is none.
    pub(super) drivers: BTreeMap<Driver, Result<PathBuf, String>>,
    /// `fi_pingpong`, or why it cannot be used.
    pub(super) pingpong: Result<(), String>,
    /// Processors of the measuring and of the serving side.
    pub(super) pin: Option<(usize, usize)>,
}

impl Ground {
    /// Plays a turn of `count` messages.
    ///
    /// # Errors
    /// Why there are no figures, in one line.
    pub(super) fn play(
        &self,
        cell: &Cell,
        contender: Contender,
        count: u64,
    ) -> Result<Sample, String> {
        match contender.kind() {
            Kind::Ours(batch) => self.ours(cell, count, batch),
            Kind::Driver(driver, transport) => self.driver(cell, driver, transport, count),
            Kind::Pingpong(provider) => {
                self.pingpong.clone()?;
                pingpong::play(cell, provider, count, free_port()?, self.pin)
            }
        }
    }

    fn ours(&self, cell: &Cell, count: u64, batch: usize) -> Result<Sample, String> {
        let mut args = ours::args(cell, count, self.pin);
        if batch > 1 {
            args.extend(["--batch".into(), batch.to_string()]);
        }
        let side = Side { program: self.fabric.clone(), args, processor: None };
        ours::sample(cell, &play_alone(&side)?)
    }

    fn driver(
        &self,
        cell: &Cell,
        driver: Driver,
        transport: &str,
        count: u64,
    ) -> Result<Sample, String> {
        let program = self.drivers.get(&driver).cloned().unwrap_or_else(|| Err("not built".into()));
        let (program, port) = (program?, free_port()?.to_string());
        let (size, count) = (cell.size.to_string(), count.to_string());
        let side = |part: &str, processor: Option<usize>| {
            let role = format!("{}-{part}", role(cell.test));
            let peers = cell.peers.to_string();
            let args = [&role, transport, &port, &size, &count, &peers].map(str::to_owned);
            Side { program: program.clone(), args: args.into(), processor }
        };
        let server = side("server", self.pin.map(|(_, server)| server));
        let client = side("client", self.pin.map(|(client, _)| client));
        let (server, client) = play(&server, &client)?;
        driver::sample(cell, &server, &client)
    }
}

fn role(test: Test) -> &'static str {
    match test {
        Test::Lat => "lat",
        Test::Bw => "bw",
        Test::Fanout => "fanout",
        Test::Idle => "idle",
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let addr = listener.and_then(|listener| listener.local_addr());
    addr.map(|addr| addr.port()).map_err(|error| format!("no free port: {error}"))
}
