//! The end of endpoints and domains.

use fabric_core::{Error, ErrorKind, Event};

use crate::Bug;
use crate::dom::Dom;
use crate::endpoint::{At, Endpoint};
use crate::net::Net;
use crate::status;

impl Net {
    /// `Domain::close`.
    pub(crate) fn close(&mut self, at: At) {
        let Some(peer) = self.ep(at).map(|ep| ep.peer) else { return };
        self.finish(at, status::closed_here());
        if let Some(peer) = peer.filter(|_| !self.has(Bug::NeverCloses)) {
            self.forget_handed_over(peer);
            self.dismiss(peer, ErrorKind::Closed, "the peer closed the connection");
        }
    }

    /// Ends an endpoint on this side only: everything posted comes back, then `Closed`.
    pub(crate) fn finish(&mut self, at: At, why: Error) {
        let Some(dom) = self.doms.get_mut(&at.dom) else { return };
        let Some(ep) = dom.eps.remove(&at.ep) else { return };
        dom.busy.remove(&at.ep);
        dom.dialing.remove(&at.ep);
        let mut flushed = flushed_events(at, ep);
        if self.has(Bug::LosesBufferOnClose) {
            flushed.pop();
        }
        let closed = Event::Closed { ep: at.ep, why };
        let place = if self.has(Bug::EventAfterClosed) { 0 } else { flushed.len() };
        flushed.insert(place, closed);
        flushed.into_iter().for_each(|event| self.report(at.dom, event));
    }

    /// Ends an endpoint on both sides for the same reason.
    pub(crate) fn fail(&mut self, at: At, kind: ErrorKind, why: &'static str) {
        let peer = self.ep(at).and_then(|ep| ep.peer);
        self.finish(at, Error::new(kind, why));
        if let Some(peer) = peer {
            self.dismiss(peer, kind, why);
        }
    }

    /// Breaks a connection: what is under way is lost, and both sides are reset.
    pub(crate) fn break_link(&mut self, at: At) {
        if let Some(peer) = self.ep(at).and_then(|ep| ep.peer) {
            self.lose_inbound(peer);
        }
        self.fail(at, ErrorKind::Reset, "the connection broke");
    }

    /// Takes a domain off the network and leaves an empty one that is dead. The caller drops what
    /// it gets, without the lock if it has the choice.
    pub(crate) fn kill(&mut self, id: u64) -> Option<Dom> {
        let bell = self.doms.get(&id)?.bell.clone();
        let mut empty = Dom::new(bell);
        empty.dead = true;
        let gone = self.doms.insert(id, empty)?;
        self.tell_of_death(&gone);
        Some(gone)
    }

    /// Takes a domain off the network for good.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Dom> {
        let mut gone = self.kill(id)?;
        self.doms.remove(&id);
        if self.has(Bug::LeaksSlotOnDrop) {
            std::mem::forget(gone.recvs.pop_front());
        }
        if self.has(Bug::LeaksCastsOnDrop) {
            std::mem::forget(std::mem::take(&mut gone.groups));
        }
        Some(gone)
    }

    fn tell_of_death(&mut self, gone: &Dom) {
        for place in gone.listeners.values() {
            self.places.remove(place);
        }
        for peer in gone.eps.values().filter_map(|ep| ep.peer) {
            self.dismiss(peer, ErrorKind::Reset, "the peer is gone without a word");
        }
        for (_, syn) in &gone.syns {
            self.dismiss(syn.from(), ErrorKind::Refused, "the listener is gone");
        }
    }

    fn lose_inbound(&mut self, at: At) {
        if let Some(ep) = self.ep_mut(at) {
            ep.inbox.clear();
            ep.side.clear();
        }
    }

    fn forget_handed_over(&mut self, peer: At) {
        if self.has(Bug::CloseDropsHandedOver) {
            self.lose_inbound(peer);
        }
    }
}

fn flushed_events(at: At, endpoint: Endpoint) -> Vec<Event> {
    let ep = at.ep;
    let sends = endpoint.sends.into_iter().map(|(op, buf)| {
        let result = Err(status::flushed());
        Event::Sent { ep, op, buf, result }
    });
    let transfers = endpoint.transfers.into_iter().map(|(op, transfer)| {
        let result = Err(status::flushed());
        Event::RmaDone { ep, op, returned: transfer.give_back(), result }
    });
    sends.chain(transfers).collect()
}
