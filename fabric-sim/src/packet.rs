//! What travels between endpoints.

use fabric_core::{ErrorKind, OpId, RemoteKey};

/// A moment at the receiving domain: its count of polls or, in virtual time, nanoseconds.
pub(crate) type Due = u64;

/// What arrives in the order it was sent.
#[derive(Debug)]
pub(crate) enum Packet {
    /// The other domain accepted.
    Hello,
    Message(Vec<u8>),
    /// The bytes of a write are there; its immediate value waits for a receive.
    Imm {
        op: OpId,
        imm: u32,
    },
    /// The endpoint is over, for this reason.
    Bye(ErrorKind, &'static str),
}

impl Packet {
    /// Whether it consumes a receive.
    pub(crate) fn needs_recv(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Imm { .. })
    }
}

/// Remote memory traffic, which waits for no receive and passes messages that do.
#[derive(Debug)]
pub(crate) enum Side {
    Ask(OpId, Ask),
    Answer(OpId, Answer),
}

/// A piece of a remote operation, for the side that exposed the memory.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) key: RemoteKey,
    /// The range of the whole operation, checked with every piece before a byte moves.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Where this piece starts within the range.
    pub(crate) at: u64,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Read { piece: usize },
    Write { bytes: Vec<u8>, imm: Option<u32> },
    Swap { compare: u64, swap: u64 },
    Add { add: u64 },
}

/// What the side that exposed the memory says.
#[derive(Debug)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Written,
    Value(u64),
    Denied(&'static str),
}
