//! Whether a domain has a reason to poll.

use std::time::Duration;

use crate::dom::Dom;
use crate::endpoint::At;
use crate::net::Net;
use crate::packet::Due;

impl Net {
    /// Whether a poll of `dom` may have something, now or, in real time, a few polls later.
    pub(crate) fn has_work(&self, dom: u64) -> bool {
        let Some(state) = self.doms.get(&dom) else { return false };
        !state.ready.is_empty()
            || self.knocks(dom, state)
            || self.has_datagrams(dom, state)
            || state.busy.iter().any(|&ep| self.is_pending(At { dom, ep }))
            || self.time_to_deadline(dom) == Some(Duration::ZERO)
    }

    /// How long until a connection attempt of `dom` is over.
    pub(crate) fn time_to_deadline(&self, dom: u64) -> Option<Duration> {
        let first = self.doms.get(&dom)?.dialing.values().min()?;
        Some(first.saturating_duration_since(self.now()))
    }

    fn knocks(&self, dom: u64, state: &Dom) -> bool {
        state.syns.front().is_some_and(|(due, syn)| {
            self.counts(dom, *due) && !self.cut.contains(&(syn.from().dom, dom))
        })
    }

    fn is_pending(&self, at: At) -> bool {
        let Some(ep) = self.ep(at) else { return false };
        let can_go = self.can_hand_over(at) || (!ep.unasked.is_empty() && ep.peer.is_some());
        can_go || (!self.is_cut_off(at) && (self.side_pending(at) || self.inbox_pending(at)))
    }

    fn side_pending(&self, at: At) -> bool {
        let front = self.ep(at).and_then(|ep| ep.side.front());
        front.is_some_and(|(due, _)| self.counts(at.dom, *due))
    }

    fn inbox_pending(&self, at: At) -> bool {
        let front = self.ep(at).and_then(|ep| ep.inbox.front());
        front.is_some_and(|(due, packet)| {
            self.counts(at.dom, *due) && (!packet.needs_recv() || self.has_recv(at.dom))
        })
    }

    /// Delays in polls pass only by polling, so what is under way is a reason to poll.
    pub(crate) fn counts(&self, dom: u64, due: Due) -> bool {
        !self.options.virtual_time || self.is_due(dom, due)
    }
}
