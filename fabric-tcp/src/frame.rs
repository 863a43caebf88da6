//! What goes over a connection after the greeting. All numbers are little-endian.
//!
//! A frame is a header of 16 bytes, `words` further 64-bit words, and `len` bytes of payload where
//! the table has a `+`:
//!
//! ```text
//! header   kind u8 | code u8 | zero u16 | len u32 | id u64
//!
//! kind  name          words                                    len                  id
//!    1  Message       -                                        + message            0
//!    2  Read          key[4] offset rest                       bytes asked for      operation
//!    3  ReadData      -                                        + bytes read         operation
//!    4  Write         key[4] offset rest                       + bytes to write     operation
//!    5  WriteImm      key[4] offset rest imm                   + bytes to write     operation
//!    6  WriteDone     -                                        0                    operation
//!    7  CompareSwap   key[4] offset compare swap               0                    operation
//!    8  FetchAdd      key[4] offset add                        0                    operation
//!    9  AtomicDone    value before                             0                    operation
//!   10  Nak           - (code: 1 access, 2 no receive,         0                    operation or 0
//!                        3 protocol)
//!   11  Bye           -                                        0                    0
//! ```
//!
//! `Bye` says that nothing follows by intention; a stream that ends without it broke. `code` is 0
//! but in `Nak`. Reads and writes move in chunks of at most [`CHUNK_BYTES`]; `rest` is
//! the length from this chunk's beginning to the end of the whole operation, so that the first
//! chunk already shows whether all of it is in bounds. The chunk with `len == rest` is the last.
//! Operations are numbered by who asks, from 1. At most [`ANSWERS_MAX`] answers (kinds 3, 6, 9 and
//! 10) are owed to a peer at a time.

use fabric_core::RemoteKey;

/// Length of the fixed part of a frame.
pub(crate) const HEADER_BYTES: usize = 16;

/// Longest frame without its payload.
pub(crate) const HEAD_BYTES_MAX: usize = HEADER_BYTES + 7 * 8;

/// Largest piece of a read or write.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Answers owed to one peer at most.
pub(crate) const ANSWERS_MAX: usize = 64;

/// Where in remote memory a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) key: RemoteKey,
    pub(crate) offset: u64,
    /// Bytes from `offset` to the end of the whole operation.
    pub(crate) rest: u64,
}

/// Why a peer refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Access = 1,
    NoReceive = 2,
    Protocol = 3,
}

/// One frame without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    Message { len: u32 },
    Read { id: u64, len: u32, at: Place },
    ReadData { id: u64, len: u32 },
    Write { id: u64, len: u32, at: Place },
    WriteImm { id: u64, len: u32, at: Place, imm: u32 },
    WriteDone { id: u64 },
    CompareSwap { id: u64, key: RemoteKey, offset: u64, compare: u64, swap: u64 },
    FetchAdd { id: u64, key: RemoteKey, offset: u64, add: u64 },
    AtomicDone { id: u64, before: u64 },
    Nak { id: u64, reason: Reason },
    Bye,
}

/// How a peer broke the table above.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("frame kind {0} does not exist")]
    Kind(u8),
    #[error("bytes of a frame header that must be zero are not")]
    Reserved,
    #[error("a frame of kind {kind} cannot have length {len}")]
    Length { kind: u8, len: u32 },
    #[error("operation number {id} is not allowed in a frame of kind {kind}")]
    Id { kind: u8, id: u64 },
    #[error("{0} is no immediate value of 32 bits")]
    Imm(u64),
    #[error("reason {0} does not exist")]
    Reason(u8),
    #[error("a frame was cut short")]
    Short,
}

/// An encoded frame without its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    len: u8,
}

impl Head {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn new(kind: u8, code: u8, len: u32, id: u64) -> Self {
        let mut bytes = [0; HEAD_BYTES_MAX];
        bytes[0] = kind;
        bytes[1] = code;
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        bytes[8..16].copy_from_slice(&id.to_le_bytes());
        Self { bytes, len: HEADER_BYTES as u8 }
    }

    fn word(mut self, word: u64) -> Self {
        let at = usize::from(self.len);
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        self.len += 8;
        self
    }

    fn key(self, key: RemoteKey) -> Self {
        [key.addr, key.len, key.key, key.nonce].into_iter().fold(self, Self::word)
    }

    fn place(self, at: &Place) -> Self {
        self.key(at.key).word(at.offset).word(at.rest)
    }
}

impl Frame {
    /// The frame as bytes, payload excluded.
    pub(crate) fn encode(&self) -> Head {
        match *self {
            Self::Message { len } => Head::new(1, 0, len, 0),
            Self::Read { id, len, ref at } => Head::new(2, 0, len, id).place(at),
            Self::ReadData { id, len } => Head::new(3, 0, len, id),
            Self::Write { id, len, ref at } => Head::new(4, 0, len, id).place(at),
            Self::WriteImm { id, len, ref at, imm } => {
                Head::new(5, 0, len, id).place(at).word(imm.into())
            }
            Self::WriteDone { id } => Head::new(6, 0, 0, id),
            Self::CompareSwap { id, key, offset, compare, swap } => {
                Head::new(7, 0, 0, id).key(key).word(offset).word(compare).word(swap)
            }
            Self::FetchAdd { id, key, offset, add } => {
                Head::new(8, 0, 0, id).key(key).word(offset).word(add)
            }
            Self::AtomicDone { id, before } => Head::new(9, 0, 0, id).word(before),
            Self::Nak { id, reason } => Head::new(10, reason as u8, 0, id),
            Self::Bye => Head::new(11, 0, 0, 0),
        }
    }

    /// Decodes a whole head, which is as long as [`head_bytes`] says.
    pub(crate) fn decode(head: &[u8]) -> Result<Self, Violation> {
        let mut words = Words { head, at: HEADER_BYTES };
        let (kind, len, id) = check_header(head)?;
        Ok(match kind {
            1 => Self::Message { len },
            2 => Self::Read { id, len, at: words.place()? },
            3 => Self::ReadData { id, len },
            4 => Self::Write { id, len, at: words.place()? },
            5 => Self::WriteImm { id, len, at: words.place()?, imm: words.imm()? },
            6 => Self::WriteDone { id },
            7 => Self::CompareSwap {
                id,
                key: words.key()?,
                offset: words.next()?,
                compare: words.next()?,
                swap: words.next()?,
            },
            8 => {
                Self::FetchAdd { id, key: words.key()?, offset: words.next()?, add: words.next()? }
            }
            9 => Self::AtomicDone { id, before: words.next()? },
            10 => Self::Nak { id, reason: Reason::decode(head[1])? },
            11 => Self::Bye,
            _ => return Err(Violation::Kind(kind)),
        })
    }
}

impl Reason {
    fn decode(code: u8) -> Result<Self, Violation> {
        match code {
            1 => Ok(Self::Access),
            2 => Ok(Self::NoReceive),
            3 => Ok(Self::Protocol),
            _ => Err(Violation::Reason(code)),
        }
    }
}

/// How long the head of a frame of this kind is.
pub(crate) fn head_bytes(kind: u8) -> Result<usize, Violation> {
    let words = match kind {
        1 | 3 | 6 | 10 | 11 => 0,
        9 => 1,
        2 | 4 | 8 => 6,
        5 | 7 => 7,
        _ => return Err(Violation::Kind(kind)),
    };
    Ok(HEADER_BYTES + words * 8)
}

/// Kind, length and number, each allowed for the kind.
fn check_header(head: &[u8]) -> Result<(u8, u32, u64), Violation> {
    let header = head.first_chunk::<HEADER_BYTES>().ok_or(Violation::Short)?;
    let [kind, code, zero, zero2, l0, l1, l2, l3, id @ ..] = *header;
    let (len, id) = (u32::from_le_bytes([l0, l1, l2, l3]), u64::from_le_bytes(id));
    if (zero, zero2) != (0, 0) || (code != 0 && kind != 10) {
        return Err(Violation::Reserved);
    }
    check_len(kind, len)?;
    check_id(kind, id)?;
    Ok((kind, len, id))
}

fn check_len(kind: u8, len: u32) -> Result<(), Violation> {
    let len_max = match kind {
        1 => u32::MAX,
        2..=5 => CHUNK_BYTES as u32,
        _ => 0,
    };
    if len > len_max { Err(Violation::Length { kind, len }) } else { Ok(()) }
}

fn check_id(kind: u8, id: u64) -> Result<(), Violation> {
    let allowed = match kind {
        1 | 11 => id == 0,
        10 => true,
        _ => id != 0,
    };
    if allowed { Ok(()) } else { Err(Violation::Id { kind, id }) }
}

struct Words<'a> {
    head: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<u64, Violation> {
        let rest = self.head.get(self.at..).ok_or(Violation::Short)?;
        let word = rest.first_chunk::<8>().ok_or(Violation::Short)?;
        self.at += 8;
        Ok(u64::from_le_bytes(*word))
    }

    fn key(&mut self) -> Result<RemoteKey, Violation> {
        let [addr, len, key, nonce] = [self.next()?, self.next()?, self.next()?, self.next()?];
        Ok(RemoteKey { addr, len, key, nonce })
    }

    /// A place whose chunk does not reach beyond the operation it belongs to.
    fn place(&mut self) -> Result<Place, Violation> {
        let place = Place { key: self.key()?, offset: self.next()?, rest: self.next()? };
        let (kind, len, _) = check_header(self.head)?;
        if u64::from(len) > place.rest {
            return Err(Violation::Length { kind, len });
        }
        Ok(place)
    }

    fn imm(&mut self) -> Result<u32, Violation> {
        let word = self.next()?;
        u32::try_from(word).map_err(|_| Violation::Imm(word))
    }
}

#[cfg(test)]
mod tests;
