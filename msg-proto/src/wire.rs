//! The wire format: what stands in the messages of a fabric.
//!
//! A fabric message is a run of frames. All numbers are little-endian. A frame is a head of 8 bytes
//! and a body:
//!
//! ```text
//! offset  size  field
//!      0     1  kind
//!      1     1  flags; unknown bits are a protocol error
//!      2     2  zero
//!      4     4  length of the body in bytes
//!      8     …  body
//! ```
//!
//! | kind | name      | flags     | body                                                           |
//! |------|-----------|-----------|----------------------------------------------------------------|
//! | 0x01 | HELLO     | –         | magic `MPAT`, version u16, oldest version u16, socket type u8, abilities u8, heartbeat ttl u16 (tenths of a second), instance u64, largest message u64, credit: messages u64, bytes u64, identity (0 to 255 bytes) |
//! | 0x02 | ERROR     | –         | code u16, text (UTF-8, up to 512 bytes); the sender then closes |
//! | 0x03 | PING      | –         | ttl u16 (tenths of a second), context (0 to 16 bytes)          |
//! | 0x04 | PONG      | –         | the context of the ping                                        |
//! | 0x05 | CREDIT    | –         | messages u64, bytes u64: what may be sent in all since HELLO   |
//! | 0x06 | BYE       | –         | –; nothing follows, the receiver closes                        |
//! | 0x10 | PART      | MORE      | a whole part of a message                                      |
//! | 0x11 | FRAGMENT  | MORE      | length of the whole part u64, its first bytes                  |
//! | 0x12 | CONTINUE  | –         | the next bytes of the part                                     |
//! | 0x13 | OFFER     | MORE      | id u64, length u64, remote key (32 bytes): a part to be read by the receiver |
//! | 0x14 | DONE      | FAILED    | id u64 of the offer: its memory is no longer needed            |
//! | 0x20 | SUBSCRIBE | HISTORY   | topic                                                          |
//! | 0x21 | CANCEL    | –         | topic                                                          |
//! | 0x22 | DROPPED   | –         | u64: how many messages were dropped for this subscriber here   |
//! | 0x23 | SETTLED   | –         | –; every topic that was wanted when the link came up was named |
//! | 0x30 | REQUEST   | –         | id u64, envelope; the parts of the request follow              |
//! | 0x31 | REPLY     | –         | id u64, envelope of the request; the parts of the reply follow |
//! | 0x32 | ACK       | –         | u64: how many messages were processed in all since HELLO       |
//!
//! MORE on a part says that another part of the same message follows; parts of one message stand
//! together on their link. Lengths are checked before anything is allocated.

use core::fmt;

/// Version of the format spoken here.
pub const VERSION: u16 = 1;
/// Oldest version understood.
pub const VERSION_MIN: u16 = 1;
/// Length of a frame's head in bytes.
pub const HEAD_BYTES: usize = 8;
/// Bytes of a REQUEST or REPLY before its envelope.
pub const TAG_BYTES: usize = HEAD_BYTES + 8;
/// Longest identity in bytes (ZMTP 3.1: 255).
pub const IDENTITY_BYTES_MAX: usize = 255;
/// Longest context of a ping in bytes (ZMTP 3.1: 16).
pub const CONTEXT_BYTES_MAX: usize = 16;
/// Longest text of an error in bytes.
pub const TEXT_BYTES_MAX: usize = 512;
/// Longest envelope of a request in bytes.
pub const ENVELOPE_BYTES_MAX: usize = 4096;
/// Length of an encoded remote key in bytes.
pub const KEY_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"MPAT";
const HELLO_BYTES: usize = 44;

const FLAG: u8 = 1;

pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 0x01;
    pub(crate) const ERROR: u8 = 0x02;
    pub(crate) const PING: u8 = 0x03;
    pub(crate) const PONG: u8 = 0x04;
    pub(crate) const CREDIT: u8 = 0x05;
    pub(crate) const BYE: u8 = 0x06;
    pub(crate) const PART: u8 = 0x10;
    pub(crate) const FRAGMENT: u8 = 0x11;
    pub(crate) const CONTINUE: u8 = 0x12;
    pub(crate) const OFFER: u8 = 0x13;
    pub(crate) const DONE: u8 = 0x14;
    pub(crate) const SUBSCRIBE: u8 = 0x20;
    pub(crate) const CANCEL: u8 = 0x21;
    pub(crate) const DROPPED: u8 = 0x22;
    pub(crate) const SETTLED: u8 = 0x23;
    pub(crate) const REQUEST: u8 = 0x30;
    pub(crate) const REPLY: u8 = 0x31;
    pub(crate) const ACK: u8 = 0x32;
}

/// What a peer says of itself first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Version it speaks.
    pub version: u16,
    /// Oldest version it understands.
    pub version_min: u16,
    /// Code of its socket type.
    pub socket_type: u8,
    /// Bits of [`abilities`].
    pub abilities: u8,
    /// It is to be held dead when silent for so long, in tenths of a second; 0: never.
    pub ttl_tenths: u16,
    /// Drawn at random for each socket: the same after a reconnect, another after a restart.
    pub instance: u64,
    /// Largest message it takes, in bytes over all parts.
    pub message_bytes_max: u64,
    /// Messages it has room for; `u64::MAX`: no limit.
    pub credit_messages: u64,
    /// Bytes it has room for; `u64::MAX`: no limit.
    pub credit_bytes: u64,
    /// A name chosen by its owner, empty or not beginning with a zero byte.
    pub identity: &'a [u8],
}

/// Bits of [`Hello::abilities`].
pub mod abilities {
    /// A pusher wants, or a puller gives, acknowledgements.
    pub const ACKS: u8 = 1;
    /// It can read offered memory.
    pub const READS: u8 = 2;
}

/// One frame; borrowed from what was received or is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The table above says what the fields are.
pub enum Frame<'a> {
    Hello(Hello<'a>),
    Error { code: u16, text: &'a str },
    Ping { ttl_tenths: u16, context: &'a [u8] },
    Pong { context: &'a [u8] },
    Credit { messages: u64, bytes: u64 },
    Bye,
    Part { more: bool, body: &'a [u8] },
    Fragment { more: bool, total: u64, body: &'a [u8] },
    Continue { body: &'a [u8] },
    Offer { more: bool, id: u64, len: u64, key: [u8; KEY_BYTES] },
    Done { id: u64, failed: bool },
    Subscribe { history: bool, topic: &'a [u8] },
    Cancel { topic: &'a [u8] },
    Dropped { count: u64 },
    Settled,
    Request { id: u64, envelope: &'a [u8] },
    Reply { id: u64, envelope: &'a [u8] },
    Ack { count: u64 },
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The message ends inside a frame.
    Truncated,
    /// No frame has this kind.
    Kind(u8),
    /// The kind has no such flag, or reserved bytes are set.
    Flags(u8),
    /// The body is too short or too long for its kind.
    Length,
    /// A HELLO without its magic.
    Magic,
    /// An error's text is not UTF-8.
    Text,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("a frame is cut short"),
            Self::Kind(kind) => write!(f, "no frame has kind {kind:#04x}"),
            Self::Flags(kind) => write!(f, "unknown flags on a frame of kind {kind:#04x}"),
            Self::Length => f.write_str("a frame's length does not fit its kind"),
            Self::Magic => f.write_str("the greeting lacks its magic"),
            Self::Text => f.write_str("an error's text is not UTF-8"),
        }
    }
}

impl core::error::Error for WireError {}

/// An encoded frame: a short head to copy and a tail to copy or to send from where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    head: [u8; HEAD_BYTES + HELLO_BYTES + 4],
    head_len: usize,
    /// What follows the head.
    pub tail: &'a [u8],
}

impl<'a> Encoded<'a> {
    fn new(kind: u8, flag: bool, tail: &'a [u8]) -> Self {
        let mut head = [0; HEAD_BYTES + HELLO_BYTES + 4];
        head[0] = kind;
        head[1] = if flag { FLAG } else { 0 };
        Self { head, head_len: HEAD_BYTES, tail }
    }

    /// With a head that says how long the body is.
    fn of(head: &[u8], tail: &'a [u8]) -> Self {
        Self { head: [0; HEAD_BYTES + HELLO_BYTES + 4], head_len: 0, tail }.put(head)
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.head[self.head_len..self.head_len + bytes.len()].copy_from_slice(bytes);
        self.head_len += bytes.len();
        self
    }

    fn finish(mut self) -> Self {
        let body = self.head_len - HEAD_BYTES + self.tail.len();
        self.head[4..8].copy_from_slice(&(body as u32).to_le_bytes());
        self
    }

    /// The head, with everything of the body that has a fixed length.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }

    /// Length of the whole frame in bytes.
    pub fn len(&self) -> usize {
        self.head_len + self.tail.len()
    }

    /// A frame always has a head.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The head of a PART whose body has `len` bytes.
#[inline]
pub fn part_head(more: bool, len: u32) -> [u8; HEAD_BYTES] {
    let [a, b, c, d] = len.to_le_bytes();
    [kind::PART, if more { FLAG } else { 0 }, 0, 0, a, b, c, d]
}

/// A REQUEST up to its envelope of `len` bytes.
#[inline]
pub fn request_head(id: u64, len: u32) -> [u8; TAG_BYTES] {
    tag_head(kind::REQUEST, id, len)
}

/// A REPLY up to its envelope of `len` bytes.
#[inline]
pub fn reply_head(id: u64, len: u32) -> [u8; TAG_BYTES] {
    tag_head(kind::REPLY, id, len)
}

#[inline]
fn tag_head(kind: u8, id: u64, len: u32) -> [u8; TAG_BYTES] {
    let mut head = [0; TAG_BYTES];
    head[0] = kind;
    head[4..8].copy_from_slice(&(8 + len).to_le_bytes());
    head[8..].copy_from_slice(&id.to_le_bytes());
    head
}

/// The body of the PART at the beginning of `bytes` if it is a whole message, as most are.
#[inline]
pub fn lone_part(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let head = u64::from_le_bytes(*head);
    // Kind without flags or reserved bytes, all in one comparison.
    if head as u32 != u32::from(kind::PART) {
        return None;
    }
    rest.get(..(head >> 32) as usize)
}

impl<'a> Frame<'a> {
    /// The frame's bytes. Bodies are at most `u32::MAX` bytes long; a fabric message is far shorter.
    pub fn encode(&self) -> Encoded<'a> {
        match *self {
            Self::Hello(hello) => encode_hello(hello),
            Self::Error { code, text } => {
                Encoded::new(kind::ERROR, false, text.as_bytes()).put(&code.to_le_bytes())
            }
            Self::Ping { ttl_tenths, context } => {
                Encoded::new(kind::PING, false, context).put(&ttl_tenths.to_le_bytes())
            }
            Self::Pong { context } => Encoded::new(kind::PONG, false, context),
            Self::Credit { messages, bytes } => {
                words(kind::CREDIT, false).put(&messages.to_le_bytes()).put(&bytes.to_le_bytes())
            }
            Self::Bye => words(kind::BYE, false),
            Self::Part { more, body } => Encoded::new(kind::PART, more, body),
            Self::Fragment { more, total, body } => {
                Encoded::new(kind::FRAGMENT, more, body).put(&total.to_le_bytes())
            }
            Self::Continue { body } => Encoded::new(kind::CONTINUE, false, body),
            Self::Offer { more, id, len, key } => {
                words(kind::OFFER, more).put(&id.to_le_bytes()).put(&len.to_le_bytes()).put(&key)
            }
            Self::Done { id, failed } => words(kind::DONE, failed).put(&id.to_le_bytes()),
            Self::Subscribe { history, topic } => Encoded::new(kind::SUBSCRIBE, history, topic),
            Self::Cancel { topic } => Encoded::new(kind::CANCEL, false, topic),
            Self::Dropped { count } => words(kind::DROPPED, false).put(&count.to_le_bytes()),
            Self::Settled => words(kind::SETTLED, false),
            Self::Request { id, envelope } => {
                Encoded::of(&request_head(id, envelope.len() as u32), envelope)
            }
            Self::Reply { id, envelope } => {
                Encoded::of(&reply_head(id, envelope.len() as u32), envelope)
            }
            Self::Ack { count } => words(kind::ACK, false).put(&count.to_le_bytes()),
        }
        .finish()
    }

    /// The frame at the beginning of `bytes`, and how many bytes it takes.
    ///
    /// # Errors
    /// [`WireError`], whatever the bytes are; nothing is allocated.
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, usize), WireError> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(WireError::Truncated)?;
        let [kind, flags, r0, r1, l0, l1, l2, l3] = *head;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let body = rest.get(..len).ok_or(WireError::Truncated)?;
        if flags & !allowed_flags(kind)? != 0 || (r0, r1) != (0, 0) {
            return Err(WireError::Flags(kind));
        }
        let frame = decode_body(kind, flags == FLAG, Body(body))?;
        Ok((frame, HEAD_BYTES + len))
    }
}

fn words(kind: u8, flag: bool) -> Encoded<'static> {
    Encoded::new(kind, flag, &[])
}

fn encode_hello(hello: Hello<'_>) -> Encoded<'_> {
    Encoded::new(kind::HELLO, false, hello.identity)
        .put(&MAGIC)
        .put(&hello.version.to_le_bytes())
        .put(&hello.version_min.to_le_bytes())
        .put(&[hello.socket_type, hello.abilities])
        .put(&hello.ttl_tenths.to_le_bytes())
        .put(&hello.instance.to_le_bytes())
        .put(&hello.message_bytes_max.to_le_bytes())
        .put(&hello.credit_messages.to_le_bytes())
        .put(&hello.credit_bytes.to_le_bytes())
}

fn allowed_flags(kind: u8) -> Result<u8, WireError> {
    match kind {
        kind::PART | kind::FRAGMENT | kind::OFFER | kind::DONE | kind::SUBSCRIBE => Ok(FLAG),
        kind::HELLO..=kind::BYE
        | kind::CONTINUE
        | kind::CANCEL
        | kind::DROPPED
        | kind::SETTLED
        | kind::REQUEST..=kind::ACK => Ok(0),
        unknown => Err(WireError::Kind(unknown)),
    }
}

fn decode_body(kind: u8, flag: bool, mut body: Body<'_>) -> Result<Frame<'_>, WireError> {
    Ok(match kind {
        kind::HELLO => Frame::Hello(decode_hello(body)?),
        kind::ERROR => {
            let code = body.u16()?;
            let text = core::str::from_utf8(body.rest(TEXT_BYTES_MAX)?);
            Frame::Error { code, text: text.map_err(|_| WireError::Text)? }
        }
        kind::PING => Frame::Ping { ttl_tenths: body.u16()?, context: body.rest(usize::MAX)? },
        kind::PONG => Frame::Pong { context: body.rest(usize::MAX)? },
        kind::CREDIT => {
            body.end(|body| Ok(Frame::Credit { messages: body.u64()?, bytes: body.u64()? }))?
        }
        kind::BYE => body.end(|_| Ok(Frame::Bye))?,
        kind::PART => Frame::Part { more: flag, body: body.0 },
        kind::FRAGMENT => Frame::Fragment { more: flag, total: body.u64()?, body: body.0 },
        kind::CONTINUE => Frame::Continue { body: body.0 },
        kind::OFFER => body.end(|body| {
            Ok(Frame::Offer { more: flag, id: body.u64()?, len: body.u64()?, key: body.array()? })
        })?,
        kind::DONE => body.end(|body| Ok(Frame::Done { id: body.u64()?, failed: flag }))?,
        kind::SUBSCRIBE => Frame::Subscribe { history: flag, topic: body.0 },
        kind::CANCEL => Frame::Cancel { topic: body.0 },
        kind::DROPPED => body.end(|body| Ok(Frame::Dropped { count: body.u64()? }))?,
        kind::SETTLED => body.end(|_| Ok(Frame::Settled))?,
        kind::REQUEST => {
            Frame::Request { id: body.u64()?, envelope: body.rest(ENVELOPE_BYTES_MAX)? }
        }
        kind::REPLY => Frame::Reply { id: body.u64()?, envelope: body.rest(ENVELOPE_BYTES_MAX)? },
        kind::ACK => body.end(|body| Ok(Frame::Ack { count: body.u64()? }))?,
        unknown => return Err(WireError::Kind(unknown)),
    })
}

fn decode_hello(mut body: Body<'_>) -> Result<Hello<'_>, WireError> {
    if body.array()? != MAGIC {
        return Err(WireError::Magic);
    }
    let (version, version_min) = (body.u16()?, body.u16()?);
    let [socket_type, abilities] = body.array()?;
    Ok(Hello {
        version,
        version_min,
        socket_type,
        abilities,
        ttl_tenths: body.u16()?,
        instance: body.u64()?,
        message_bytes_max: body.u64()?,
        credit_messages: body.u64()?,
        credit_bytes: body.u64()?,
        identity: body.rest(IDENTITY_BYTES_MAX)?,
    })
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(WireError::Length)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    fn rest(&self, bytes_max: usize) -> Result<&'a [u8], WireError> {
        if self.0.len() > bytes_max { Err(WireError::Length) } else { Ok(self.0) }
    }

    /// What `read` makes of the body, if it leaves nothing behind.
    fn end<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        let value = read(self)?;
        if self.0.is_empty() { Ok(value) } else { Err(WireError::Length) }
    }
}

/// The frames of a fabric message, up to the first fault.
#[derive(Debug, Clone)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// The frames of `message`.
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let found = Frame::decode(self.0);
        self.0 = match &found {
            Ok((_, used)) => &self.0[*used..],
            Err(_) => &[],
        };
        Some(found.map(|(frame, _)| frame))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn encode(frame: &Frame<'_>) -> Vec<u8> {
        let encoded = frame.encode();
        [encoded.head(), encoded.tail].concat()
    }

    #[test]
    fn a_run_of_frames_decodes_in_order_and_stops_at_the_first_fault() {
        let frames = [Frame::Part { more: true, body: b"a" }, Frame::Bye, Frame::Ack { count: 7 }];
        let mut bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
        bytes.extend([0xee; 9]);
        let found: Vec<_> = Frames::new(&bytes).collect();
        assert_eq!(found.len(), 4);
        assert!(frames.iter().zip(&found).all(|(a, b)| Ok(*a) == *b));
        assert!(found[3].is_err());
    }

    #[test]
    fn the_short_head_of_a_part_is_the_same_as_the_long_one() {
        let part = Frame::Part { more: true, body: b"xyz" };
        assert_eq!(part.encode().head(), part_head(true, 3));
    }

    #[test]
    fn a_lone_part_is_seen_without_decoding() {
        let lone = encode(&Frame::Part { more: false, body: b"xyz" });
        assert_eq!(lone_part(&[&lone[..], b"next"].concat()), Some(&b"xyz"[..]));
        assert_eq!(lone_part(&lone[..lone.len() - 1]), None);
        assert_eq!(lone_part(&lone[..HEAD_BYTES - 1]), None);
        for other in [Frame::Part { more: true, body: b"x" }, Frame::Bye, Frame::Settled] {
            assert_eq!(lone_part(&encode(&other)), None);
        }
        for at in 0..4 {
            let mut bad = lone.clone();
            bad[at] ^= 2;
            assert_eq!(lone_part(&bad), None);
        }
    }

    #[test]
    fn flags_kinds_and_lengths_are_checked() {
        let bye = encode(&Frame::Bye);
        for (at, value, error) in [
            (0, 0x77, WireError::Kind(0x77)),
            (1, 1, WireError::Flags(kind::BYE)),
            (2, 1, WireError::Flags(kind::BYE)),
            (4, 1, WireError::Truncated),
        ] {
            let mut bad = bye.clone();
            bad[at] = value;
            assert_eq!(Frame::decode(&bad), Err(error));
        }
        let mut long = bye;
        long[4] = 1;
        long.push(0);
        assert_eq!(Frame::decode(&long), Err(WireError::Length));
    }
}
