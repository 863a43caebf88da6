//! Posting sends and handing them to the network.

use fabric_core::{Error, Event, OpId, Rejected, SendBuf, Slot};

use crate::Bug;
use crate::endpoint::At;
use crate::net::Net;
use crate::packet::Packet;
use crate::status;

/// Messages on their way to one endpoint; more wait at their sender, which bounds the queue.
const WINDOW: usize = 16;

impl Net {
    pub(crate) fn post_send(&mut self, at: At, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        if let Err(error) = self.check_send(at, &buf) {
            let kept = self.has(Bug::KeepsRefusedBuffer);
            return Err(Rejected::new(if kept { SendBuf::new() } else { buf }, error));
        }
        let op = self.fresh_op();
        if let Some(dom) = self.doms.get_mut(&at.dom) {
            if let Some(ep) = dom.eps.get_mut(&at.ep) {
                ep.sends.push_back((op, buf));
            }
            dom.busy.insert(at.ep);
        }
        Ok(op)
    }

    pub(crate) fn post_recv(&mut self, dom: u64, slot: Slot) -> Result<OpId, Rejected<Slot>> {
        let depth = self.options.limits.recv_depth;
        let unbounded = self.has(Bug::IgnoresRecvDepth);
        let op = self.fresh_op();
        match self.doms.get_mut(&dom) {
            Some(dom) if dom.recvs.len() < depth || unbounded => {
                dom.recvs.push_back((op, slot));
                Ok(op)
            }
            _ => Err(Rejected::new(slot, status::full("receives are posted", depth))),
        }
    }

    /// Hands over everything that `dom` posted, as far as there is room on the way.
    pub(crate) fn flush(&mut self, dom: u64) {
        self.flush_groups(dom);
        let Some(state) = self.doms.get(&dom) else { return };
        let busy: Vec<_> = state.busy.iter().copied().collect();
        for at in busy.into_iter().map(|ep| At { dom, ep }) {
            if let Some(ep) = self.ep_mut(at) {
                ep.flushed = ep.sends.len();
            }
            self.hand_over(at);
            self.ask_all(at);
        }
    }

    /// Hands over the flushed sends of one endpoint.
    pub(crate) fn hand_over(&mut self, from: At) {
        while let Some((to, op, buf)) = self.next_send(from) {
            self.carry(to, &buf);
            if self.has(Bug::ReportsSentTwice) {
                let again = Event::Sent { ep: from.ep, op, buf: SendBuf::new(), result: Ok(()) };
                self.report(from.dom, again);
            }
            self.report(from.dom, Event::Sent { ep: from.ep, op, buf, result: Ok(()) });
        }
    }

    /// Whether `from` could hand over a send now, if it were flushed.
    pub(crate) fn can_hand_over(&self, from: At) -> bool {
        let Some(ep) = self.ep(from) else { return false };
        !ep.sends.is_empty() && ep.peer.is_some_and(|peer| self.has_room(peer))
    }

    /// The checks that all posts of an endpoint share.
    pub(crate) fn check_post(&self, at: At) -> Result<(), Error> {
        let ep = self.ep(at).ok_or_else(|| status::unknown_ep(at.ep))?;
        if !ep.open {
            return Err(status::not_connected(at.ep));
        }
        let depth = self.options.limits.send_depth;
        if ep.in_flight() >= depth && !self.has(Bug::IgnoresSendDepth) {
            return Err(status::full("operations are in flight", depth));
        }
        Ok(())
    }

    fn check_send(&self, at: At, buf: &SendBuf) -> Result<(), Error> {
        let limits = &self.options.limits;
        let (bytes, segments) = (buf.len(), buf.segments().len());
        if bytes > limits.message_bytes_max && !self.has(Bug::IgnoresMessageMax) {
            return Err(status::over_limit("bytes", bytes, limits.message_bytes_max));
        }
        if segments > limits.segments_max && !self.has(Bug::IgnoresSegmentsMax) {
            return Err(status::over_limit("segments", segments, limits.segments_max));
        }
        self.check_post(at)
    }

    fn next_send(&mut self, from: At) -> Option<(At, OpId, SendBuf)> {
        if !self.can_hand_over(from) {
            return None;
        }
        let ep = self.ep_mut(from)?;
        ep.flushed = ep.flushed.checked_sub(1)?;
        let (op, buf) = ep.sends.pop_front()?;
        Some((ep.peer?, op, buf))
    }

    fn has_room(&self, to: At) -> bool {
        self.ep(to).is_none_or(|ep| ep.inbox.len() < WINDOW)
    }

    fn carry(&mut self, to: At, buf: &SendBuf) {
        self.carried += 1;
        let mut bytes = match buf.segments().first() {
            Some(first) if self.has(Bug::SendsFirstSegmentOnly) => first.filled().to_vec(),
            _ => buf.to_vec(),
        };
        if self.has(Bug::CorruptsByte) {
            bytes.last_mut().into_iter().for_each(|byte| *byte ^= 1);
        }
        if self.has(Bug::DropsOne) && self.carried.is_multiple_of(5) {
            return;
        }
        if self.has(Bug::Duplicates) && self.carried.is_multiple_of(3) {
            self.dispatch(to, Packet::Message(bytes.clone()));
        }
        self.dispatch(to, Packet::Message(bytes));
        if self.has(Bug::Reorders) {
            self.swap_last(to);
        }
    }

    fn swap_last(&mut self, to: At) {
        let Some(inbox) = self.ep_mut(to).map(|ep| &mut ep.inbox) else { return };
        if let Some(before) = inbox.len().checked_sub(2) {
            inbox.swap(before, before + 1);
        }
    }
}
