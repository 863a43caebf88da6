//! One vectored read of a connection, before anything is interpreted.

use std::io::{self, IoSliceMut, Read};

use crate::endpoint::{Context, Scratch};
use crate::frame::HEADER_BYTES;
use crate::limits::READ_AHEAD_BYTES;
use crate::reader::{Reader, State};
use crate::recvs::Recvs;

/// How a read went. The stream's next `got` bytes lie in five places, in this order.
#[derive(Debug, Default)]
pub(crate) struct ReadOnce {
    pub(crate) got: usize,
    /// If `got` is less, the kernel has no more for now.
    pub(crate) wanted: usize,
    /// How many fit where the state expects them.
    pub(crate) first: usize,
    /// The header behind that, of which `next_len` bytes were asked for.
    pub(crate) next: [u8; HEADER_BYTES],
    pub(crate) next_len: usize,
    /// How many fit in the next posted slot or else in scratch memory.
    pub(crate) ahead: usize,
    pub(crate) ahead_in_slot: bool,
    /// Behind that. A message that fills its slot would otherwise look as if more had come.
    pub(crate) over: [u8; HEADER_BYTES],
}

impl Reader {
    /// Reads into what the state expects and, unless that is a large chunk, ahead of it.
    pub(crate) fn read_once(
        &mut self,
        from: &mut impl Read,
        cx: &mut Context<'_>,
    ) -> io::Result<ReadOnce> {
        let mut read = ReadOnce::default();
        match &mut self.state {
            State::Head => {
                let head = &mut self.head[self.head_got..self.head_need];
                read.with_ahead(from, head, cx)?;
            }
            State::Message { slot, len, got, .. } => {
                read.next_len = HEADER_BYTES;
                read.with_ahead(from, &mut slot.buffer_mut()[*got..*len], cx)?;
            }
            State::Data { op, left } => match cx.requests.landing(*op, *left) {
                Some(rest) => read.with_header(from, rest)?,
                None => read.alone(from, unwanted(&mut cx.shared.scratch, *left))?,
            },
            State::Write(landing) => match landing.place(&mut cx.shared.regions) {
                Some(rest) => read.with_header(from, rest)?,
                None => read.alone(from, unwanted(&mut cx.shared.scratch, landing.left))?,
            },
            // The turn ends before anything is read in this state.
            State::Starved(_) => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(read)
    }
}

impl ReadOnce {
    /// Reads `first`, the header behind it if `next_len` says so, and ahead.
    fn with_ahead(
        &mut self,
        from: &mut impl Read,
        first: &mut [u8],
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let len_max = ahead_max(cx);
        let (ahead, in_slot) = ahead(&mut cx.shared.recvs, &mut cx.shared.scratch, len_max);
        (self.first, self.ahead, self.ahead_in_slot) = (first.len(), ahead.len(), in_slot);
        let next = &mut self.next[..self.next_len];
        (self.got, self.wanted) = read_pieces(from, [first, next, ahead, &mut self.over])?;
        Ok(())
    }

    /// Reads `first` and the header behind it.
    fn with_header(&mut self, from: &mut impl Read, first: &mut [u8]) -> io::Result<()> {
        (self.first, self.next_len) = (first.len(), HEADER_BYTES);
        (self.got, self.wanted) = read_pieces(from, [first, &mut self.next])?;
        Ok(())
    }

    /// Reads `first` only.
    fn alone(&mut self, from: &mut impl Read, first: &mut [u8]) -> io::Result<()> {
        self.first = first.len();
        (self.got, self.wanted) = read_pieces(from, [first])?;
        Ok(())
    }
}

/// How much may be read ahead. Little where a large chunk is expected, which is better read straight
/// into its place.
fn ahead_max(cx: &Context<'_>) -> usize {
    if cx.requests.expects_data() { READ_AHEAD_BYTES } else { cx.shared.message_bytes_max }
}

/// Memory to read ahead into: the next posted slot, or a little scratch memory.
fn ahead<'a>(
    recvs: &'a mut Recvs,
    scratch: &'a mut Scratch,
    len_max: usize,
) -> (&'a mut [u8], bool) {
    match recvs.next_buffer() {
        Some(slot) => {
            let len = slot.len().min(len_max);
            (&mut slot[..len], true)
        }
        None => (unwanted(scratch, READ_AHEAD_BYTES), false),
    }
}

fn unwanted(scratch: &mut Scratch, len: usize) -> &mut [u8] {
    let bytes = scratch.bytes();
    let len = bytes.len().min(len);
    &mut bytes[..len]
}

/// Reads into all pieces; gives bytes read and bytes wanted.
fn read_pieces<const N: usize>(
    from: &mut impl Read,
    pieces: [&mut [u8]; N],
) -> io::Result<(usize, usize)> {
    let wanted = pieces.iter().map(|piece| piece.len()).sum();
    let got = from.read_vectored(&mut pieces.map(IoSliceMut::new))?;
    Ok((got, wanted))
}
