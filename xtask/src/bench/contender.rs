//! Who is compared.

use serde::{Deserialize, Serialize};

/// Somebody who is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// This project, a message a call.
    Fabric,
    /// This project, many messages a call.
    FabricMany,
    /// Plain sockets that sleep, one call a message.
    RawTcp,
    /// Plain sockets that spin.
    RawTcpBusy,
    /// Plain sockets, frames gathered.
    RawTcpBatch,
    /// libzmq.
    Libzmq,
    /// nng.
    Nng,
    /// The zeromq crate.
    Zeromq,
    /// The rzmq crate.
    Rzmq,
    /// libfabric's own ping-pong over its TCP provider.
    FiPingpongTcp,
    /// The same over its shared memory provider.
    FiPingpongShm,
    /// iceoryx2, copying in and out.
    Iceoryx2,
    /// iceoryx2, read in place.
    Iceoryx2Loan,
}

/// Messages of one call where there are many.
const MANY: usize = 256;

/// How a contender is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `fabric perf`, with so many messages a call.
    Ours(usize),
    /// A driver of `bench/peers`, with a transport.
    Driver(Driver, &'static str),
    /// `fi_pingpong`, with a provider.
    Pingpong(&'static str),
}

/// A program of `bench/peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Driver {
    /// Plain sockets.
    Raw,
    /// The zeromq crate.
    Zeromq,
    /// The rzmq crate.
    Rzmq,
    /// iceoryx2.
    Iceoryx2,
    /// libzmq, in C.
    Libzmq,
    /// nng, in C.
    Nng,
}

impl Contender {
    const ALL: [Self; 13] = [
        Self::Fabric,
        Self::FabricMany,
        Self::RawTcp,
        Self::RawTcpBusy,
        Self::RawTcpBatch,
        Self::Libzmq,
        Self::Nng,
        Self::Zeromq,
        Self::Rzmq,
        Self::FiPingpongTcp,
        Self::FiPingpongShm,
        Self::Iceoryx2,
        Self::Iceoryx2Loan,
    ];

    /// As tables and targets name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fabric => "fabric",
            Self::FabricMany => "fabric-many",
            Self::RawTcp => "raw-tcp",
            Self::RawTcpBusy => "raw-tcp-busy",
            Self::RawTcpBatch => "raw-tcp-batch",
            Self::Libzmq => "libzmq",
            Self::Nng => "nng",
            Self::Zeromq => "zeromq",
            Self::Rzmq => "rzmq",
            Self::FiPingpongTcp => "fi_pingpong-tcp",
            Self::FiPingpongShm => "fi_pingpong-shm",
            Self::Iceoryx2 => "iceoryx2",
            Self::Iceoryx2Loan => "iceoryx2-loan",
        }
    }

    /// The contender of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contender| contender.name() == name)
    }

    /// Whether it is the limit rather than a peer.
    pub(crate) fn is_raw(self) -> bool {
        matches!(self, Self::RawTcp | Self::RawTcpBusy | Self::RawTcpBatch)
    }

    /// How it is started.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Fabric => Kind::Ours(1),
            Self::FabricMany => Kind::Ours(MANY),
            Self::RawTcp => Kind::Driver(Driver::Raw, "tcp"),
            Self::RawTcpBusy => Kind::Driver(Driver::Raw, "tcp-busy"),
            Self::RawTcpBatch => Kind::Driver(Driver::Raw, "tcp-batch"),
            Self::Libzmq => Kind::Driver(Driver::Libzmq, "tcp"),
            Self::Nng => Kind::Driver(Driver::Nng, "tcp"),
            Self::Zeromq => Kind::Driver(Driver::Zeromq, "tcp"),
            Self::Rzmq => Kind::Driver(Driver::Rzmq, "tcp"),
            Self::FiPingpongTcp => Kind::Pingpong("tcp"),
            Self::FiPingpongShm => Kind::Pingpong("shm"),
            Self::Iceoryx2 => Kind::Driver(Driver::Iceoryx2, "shm"),
            Self::Iceoryx2Loan => Kind::Driver(Driver::Iceoryx2, "shm-loan"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_has_a_name_of_its_own() {
        for contender in Contender::ALL {
            assert_eq!(Contender::named(contender.name()), Some(contender));
        }
        assert_eq!(Contender::named("nobody"), None);
    }
}
