//! Remote operations on the side that posts them: one piece at a time, so that other traffic passes
//! between the pieces.

use fabric_core::{Error, Event, OpId, RemoteKey, Returned, SendBuf, Slot};

use crate::Bug;
use crate::endpoint::At;
use crate::net::Net;
use crate::packet::{Answer, Ask, Side, What};
use crate::status;

/// Bytes that travel at once.
const PIECE_BYTES: usize = 256 << 10;

/// A remote operation that has not ended.
pub(crate) struct Transfer {
    pub(crate) key: RemoteKey,
    pub(crate) offset: u64,
    /// Bytes read, or written and under way.
    pub(crate) done: usize,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Read { into: Slot, len: usize },
    Write { buf: SendBuf, imm: Option<u32> },
    Swap { compare: u64, swap: u64 },
    Add { add: u64 },
}

impl Transfer {
    pub(crate) fn new(key: RemoteKey, offset: u64, kind: Kind) -> Self {
        Self { key, offset, done: 0, kind }
    }

    /// What comes back when it did not end well.
    pub(crate) fn give_back(self) -> Returned {
        match self.kind {
            Kind::Read { into, .. } => Returned::Slot(into),
            Kind::Write { buf, .. } => Returned::SendBuf(buf),
            Kind::Swap { .. } | Kind::Add { .. } => Returned::Value(0),
        }
    }

    fn len(&self) -> usize {
        match &self.kind {
            Kind::Read { len, .. } => *len,
            Kind::Write { buf, .. } => buf.len(),
            Kind::Swap { .. } | Kind::Add { .. } => 8,
        }
    }

    /// The next piece.
    fn ask(&mut self) -> Ask {
        let (len, at) = (self.len(), self.done);
        let piece = PIECE_BYTES.min(len - at);
        let what = match &self.kind {
            Kind::Read { .. } => What::Read { piece },
            Kind::Write { buf, imm } => {
                self.done += piece;
                let imm = imm.filter(|_| self.done == len);
                What::Write { bytes: gather(buf, at, piece), imm }
            }
            Kind::Swap { compare, swap } => What::Swap { compare: *compare, swap: *swap },
            Kind::Add { add } => What::Add { add: *add },
        };
        Ask { key: self.key, offset: self.offset, len: len as u64, at: at as u64, what }
    }

    /// Takes what came back and says whether this was the last piece.
    fn take(&mut self, answer: &Answer) -> bool {
        if let (Kind::Read { into, .. }, Answer::Bytes(bytes)) = (&mut self.kind, answer) {
            into.buffer_mut()[self.done..self.done + bytes.len()].copy_from_slice(bytes);
            self.done += bytes.len();
        }
        matches!(self.kind, Kind::Swap { .. } | Kind::Add { .. }) || self.done == self.len()
    }

    fn finished(self, answer: &Answer) -> Returned {
        match (self.kind, answer) {
            (Kind::Read { mut into, len }, _) => {
                into.set_len(len);
                Returned::Slot(into)
            }
            (Kind::Write { buf, .. }, _) => Returned::SendBuf(buf),
            (_, Answer::Value(value)) => Returned::Value(*value),
            _ => Returned::Value(0),
        }
    }
}

impl Net {
    /// Whether an operation of `len` bytes may be posted now.
    pub(crate) fn check_transfer(&self, at: At, len: usize) -> Result<(), Error> {
        let max = self.options.limits.rma_bytes_max;
        if len > max {
            return Err(status::over_limit("bytes", len, max));
        }
        self.check_post(at)
    }

    /// Posts an operation that was checked.
    pub(crate) fn start_transfer(&mut self, at: At, transfer: Transfer) -> OpId {
        let op = self.fresh_op();
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            if let Some(ep) = dom.eps.get_mut(&at.ep) {
                ep.transfers.insert(op, transfer);
                ep.unasked.push_back(op);
            }
            dom.busy.insert(at.ep);
        }
        op
    }

    /// Sends the first piece of each operation posted to an endpoint.
    pub(crate) fn ask_all(&mut self, at: At) {
        while let Some(op) = self.ep_mut(at).and_then(|ep| ep.unasked.pop_front()) {
            self.ask(at, op);
        }
    }

    pub(crate) fn on_answer(&mut self, at: At, op: OpId, answer: &Answer) {
        if let Answer::Denied(why) = answer {
            self.on_denied(at, op, why);
            return;
        }
        let Some(transfer) = self.ep_mut(at).and_then(|ep| ep.transfers.get_mut(&op)) else {
            return;
        };
        if transfer.take(answer) {
            let returned = |transfer: Transfer| transfer.finished(answer);
            self.end_transfer(at, op, returned, Ok(()));
        } else {
            self.ask(at, op);
        }
    }

    fn ask(&mut self, at: At, op: OpId) {
        let Some(ep) = self.ep_mut(at) else { return };
        let (Some(peer), Some(transfer)) = (ep.peer, ep.transfers.get_mut(&op)) else { return };
        let ask = transfer.ask();
        self.dispatch_side(peer, Side::Ask(op, ask));
    }

    fn on_denied(&mut self, at: At, op: OpId, why: &'static str) {
        self.end_transfer(at, op, Transfer::give_back, Err(status::access(why)));
        if !self.has(Bug::AccessKeepsEndpoint) {
            self.finish(at, status::access(why));
        }
    }

    fn end_transfer(
        &mut self,
        at: At,
        op: OpId,
        returned: impl FnOnce(Transfer) -> Returned,
        result: Result<(), Error>,
    ) {
        let Some(transfer) = self.ep_mut(at).and_then(|ep| ep.transfers.remove(&op)) else {
            return;
        };
        let event = Event::RmaDone { ep: at.ep, op, returned: returned(transfer), result };
        self.report(at.dom, event);
    }
}

/// `len` bytes of a message from byte `at` on.
fn gather(buf: &SendBuf, at: usize, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    let mut skip = at;
    for segment in buf.segments() {
        let bytes = segment.filled();
        let from = skip.min(bytes.len());
        let to = bytes.len().min(from + len - out.len());
        out.extend_from_slice(&bytes[from..to]);
        skip -= from;
    }
    out
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fabric_core::Segment;

    use super::*;

    #[test]
    fn gathering_any_range_across_segments_gives_the_bytes_of_the_whole() {
        let mut buf = SendBuf::new();
        for piece in [&b"ab"[..], b"", b"cdefg", b"h"] {
            buf.push(Segment::Bytes(Bytes::from_static(piece)));
        }
        let whole = buf.to_vec();
        for at in 0..=whole.len() {
            for len in 0..=whole.len() - at {
                assert_eq!(gather(&buf, at, len), whole[at..at + len], "{at} {len}");
            }
        }
    }
}
