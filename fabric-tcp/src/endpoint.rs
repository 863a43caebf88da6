//! One connection after its greeting: both halves and what was asked of the peer.

use std::io::{self, Read, Write};

use fabric_core::{Addr, EpId, Error, ErrorKind, Event, OpId};

use crate::events::Events;
use crate::frame::Frame;
use crate::limits::SCRATCH_BYTES;
use crate::reader::{Reader, Turn};
use crate::recvs::Recvs;
use crate::region::Regions;
use crate::requests::Requests;
use crate::writer::{Flushed, Memory, Writer};

/// What all endpoints of a domain share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) recvs: Recvs,
    pub(crate) regions: Regions,
    pub(crate) events: Events,
    pub(crate) scratch: Scratch,
    pub(crate) message_bytes_max: usize,
}

/// Memory for bytes that nobody wants or has a place for yet. Taken when first needed: most domains
/// never do.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        if self.0.is_empty() {
            self.0.resize(SCRATCH_BYTES, 0);
        }
        &mut self.0
    }
}

/// Why an endpoint ends, and what the peer is told about it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) why: Error,
    pub(crate) farewell: Farewell,
    /// The operation that the peer refused, which ends with the same reason.
    pub(crate) refused: Option<OpId>,
}

/// What the peer still gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Nothing: the connection is gone.
    Gone,
    /// What was accepted, then that this is the end.
    Orderly,
    /// What was accepted, then why this is the end.
    Nak(Frame),
}

impl End {
    pub(crate) fn new(why: Error, farewell: Farewell) -> Self {
        Self { why, farewell, refused: None }
    }
}

/// An open connection without its socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EpId,
    pub(crate) peer: Addr,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) requests: Requests,
    /// Why writing failed. Reading goes on to get what the peer sent before.
    pub(crate) broken: Option<io::Error>,
}

impl Endpoint {
    pub(crate) fn new(id: EpId, peer: Addr) -> Self {
        Self {
            id,
            peer,
            reader: Reader::default(),
            writer: Writer::default(),
            requests: Requests::default(),
            broken: None,
        }
    }

    /// Operations in flight, for the depth limit.
    pub(crate) fn in_flight(&self) -> usize {
        self.writer.sends() + self.requests.len()
    }

    /// Hands queued frames to the kernel.
    pub(crate) fn flush(
        &mut self,
        out: &mut impl Write,
        shared: &mut Shared,
    ) -> io::Result<Flushed> {
        let mut memory = Memory { requests: &mut self.requests, regions: &shared.regions };
        self.writer.flush(self.id, out, &mut memory, &mut shared.events)
    }

    /// Reads a bounded amount.
    ///
    /// # Errors
    /// Why the endpoint ends.
    pub(crate) fn read(
        &mut self,
        from: &mut impl Read,
        shared: &mut Shared,
        turn: Turn,
    ) -> Result<Turn, End> {
        let mut cx = Context {
            ep: self.id,
            peer: &self.peer,
            requests: &mut self.requests,
            writer: &mut self.writer,
            shared,
        };
        self.reader.turn(from, &mut cx, turn)
    }

    /// Gives everything back in events, `Closed` last. Returns what the peer still has to get, or
    /// `None` if the connection should be dropped.
    pub(crate) fn finish(
        self,
        end: End,
        keep_bytes_max: usize,
        shared: &mut Shared,
    ) -> Option<Vec<u8>> {
        let Self { id, reader, writer, mut requests, .. } = self;
        let keep_bytes_max = if end.farewell == Farewell::Gone { 0 } else { keep_bytes_max };
        let flushed = || flushed(&end.why);
        let mut memory = Memory { requests: &mut requests, regions: &shared.regions };
        let kept = writer.finish(id, keep_bytes_max, &mut memory, &mut shared.events, flushed);
        if let Some(op) = end.refused {
            let error = Error::new(end.why.kind(), end.why.message());
            requests.finish(id, op, Err(error), &mut shared.events);
        }
        requests.flush(id, flushed, &mut shared.events);
        reader.finish(&mut shared.recvs);
        shared.events.push(Event::Closed { ep: id, why: end.why });
        farewell_bytes(end.farewell, kept)
    }
}

/// What reading needs besides the reader.
pub(crate) struct Context<'a> {
    pub(crate) ep: EpId,
    pub(crate) peer: &'a Addr,
    pub(crate) requests: &'a mut Requests,
    pub(crate) writer: &'a mut Writer,
    pub(crate) shared: &'a mut Shared,
}

fn flushed(why: &Error) -> Error {
    Error::new(ErrorKind::Flushed, format!("the endpoint closed first: {}", why.message()))
}

fn farewell_bytes(farewell: Farewell, kept: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let last = match farewell {
        Farewell::Gone => return None,
        Farewell::Orderly => Frame::Bye,
        Farewell::Nak(frame) => frame,
    };
    let mut bytes = kept?;
    bytes.extend_from_slice(last.encode().bytes());
    Some(bytes)
}
