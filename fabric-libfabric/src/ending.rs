//! How endpoints end: what was posted comes back first, `Closed` last.

use std::time::Instant;

use fabric_core::Event;
use fabric_core::{EpId, Error};
use fabric_link::Stage;

use crate::driver::Driver;
use crate::endpoint::Farewell;
use crate::litter;
use crate::status;
use crate::sys::Code;
use crate::table::Phase;

impl Driver {
    /// Ends an endpoint from this side. With a `farewell` the peer first gets what was sent and then
    /// the reason; without one the connection is cut.
    pub(crate) fn end(&mut self, index: usize, why: Error, farewell: Option<Farewell>) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage == Stage::Closing {
            return;
        }
        tracing::debug!(ep = endpoint.id.0, %why, "endpoint closes");
        let is_healthy = endpoint.stage == Stage::Open;
        endpoint.stage = Stage::Closing;
        endpoint.why = Some(why);
        endpoint.drop_inbox(&mut self.wires.stock, &mut self.recvs);
        endpoint.return_all(&mut self.events);
        match farewell.filter(|_| is_healthy) {
            Some(farewell) => {
                endpoint.bye = Some(farewell);
                self.deadlines.lingers.push(endpoint.id, Instant::now());
                self.table.mark_dirty(index);
            }
            None => self.bury(index),
        }
    }

    /// The connection broke, or the peer's end of it was closed.
    pub(crate) fn on_lost(&mut self, index: usize, code: Option<Code>) {
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Dialing(_)) => self.on_dial_lost(index, code),
            Some(Phase::Accepting(_)) => self.on_accept_lost(index),
            Some(Phase::Open(_)) => self.on_endpoint_lost(index, code),
            Some(Phase::Parting(_)) => self.entomb(index),
            Some(Phase::Gone) | None => {}
        }
    }

    fn on_endpoint_lost(&mut self, index: usize, code: Option<Code>) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        match endpoint.stage {
            Stage::Open => {
                endpoint.why = Some(status::vanished(&endpoint.peer, code));
                endpoint.stage = Stage::PeerEnded;
                litter::sweep_after(endpoint.link.endpoint.peer_name());
                self.serve(index);
                // Nobody knows when a slot is posted, and the peer is gone without a goodbye.
                self.conclude(index);
            }
            // What it sent before is still to be read.
            Stage::PeerEnded => {}
            Stage::Closing => self.bury(index),
        }
    }

    /// The peer ended, and what it sent before was read.
    pub(crate) fn conclude(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage != Stage::PeerEnded {
            return;
        }
        endpoint.stage = Stage::Closing;
        endpoint.drop_inbox(&mut self.wires.stock, &mut self.recvs);
        endpoint.return_all(&mut self.events);
        self.bury(index);
    }

    /// Reports the end of an endpoint that closes, once all that was sent has left.
    pub(crate) fn settle_end(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage == Stage::Closing && endpoint.is_at_rest() {
            let is_answered = endpoint.peer_said_bye;
            let id = endpoint.id;
            self.report_closed(index);
            if is_answered { self.entomb(index) } else { self.part(index, id) }
        }
    }

    /// The way stays open until the peer has heard the goodbye and closed its end: closing it
    /// earlier, with something unread in it, could take the goodbye away.
    fn part(&mut self, index: usize, id: EpId) {
        let Some(conn) = self.table.get(index) else { return };
        let Some(link) = conn.phase.take_link() else { return };
        conn.phase = Phase::Parting(Box::new(link));
        self.deadlines.lingers.push(id, Instant::now());
    }

    /// Reports the end of an endpoint at once; what is still with the provider comes back unseen.
    fn bury(&mut self, index: usize) {
        self.report_closed(index);
        self.entomb(index);
    }

    fn report_closed(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        let why = endpoint.why.take().unwrap_or_else(|| status::flushed(None));
        if let Some(packet) = endpoint.stalled.take() {
            self.wires.stock.give_back(packet);
        }
        self.events.push_back(Event::Closed { ep: endpoint.id, why });
    }

    /// Lets go of the way to a peer.
    pub(crate) fn entomb(&mut self, index: usize) {
        let Some(mut conn) = self.table.remove(index) else { return };
        if let Some(link) = conn.phase.take_link() {
            self.table.forget(link.endpoint.object());
            self.graves.push((conn.id, link));
        }
    }

    /// A closed endpoint did not come to rest, or its peer did not answer, in time.
    pub(crate) fn on_linger_timeout(&mut self, index: usize) {
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Open(endpoint)) if endpoint.stage == Stage::Closing => self.bury(index),
            Some(Phase::Parting(_)) => self.entomb(index),
            _ => {}
        }
    }

    /// Closes what was let go of, and takes back what the provider had of it.
    pub(crate) fn close_graves(&mut self) {
        if self.graves.is_empty() {
            return;
        }
        let mut closed = Vec::new();
        for (id, mut link) in std::mem::take(&mut self.graves) {
            link.endpoint.part();
            if link.endpoint.may_close() {
                link.endpoint.shutdown();
                closed.push(id);
            } else {
                // The peer, which is in this process, hears that this end is gone, and lets go too.
                link.side = None;
                self.graves.push((id, link));
            }
        }
        if !closed.is_empty() {
            // What the provider still had to say about them goes by first.
            self.drain_completions(usize::MAX);
            self.wires.recall(|ep| closed.contains(&ep));
        }
    }
}
