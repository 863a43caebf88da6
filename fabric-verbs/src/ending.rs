//! How endpoints end: what is in flight comes back first, `Closed` last.

use fabric_core::{Error, ErrorKind, Event};
use fabric_link::{Reason, Stage};

use crate::driver::Driver;
use crate::endpoint::Hold;
use crate::status;
use crate::table::Phase;

impl Driver {
    /// Ends an endpoint from this side. With a `farewell` the peer first gets what was posted and
    /// then the reason; without one the connection is cut.
    pub(crate) fn end(&mut self, index: usize, why: Error, farewell: Option<Reason>) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage == Stage::Closing {
            return;
        }
        tracing::debug!(ep = endpoint.id.0, %why, "endpoint closes");
        let is_healthy = endpoint.stage == Stage::Open;
        endpoint.stage = Stage::Closing;
        endpoint.why = Some(why);
        endpoint.drop_inbox(&mut self.stock, &mut self.recvs);
        endpoint.return_unposted(&mut self.events);
        let now = std::time::Instant::now();
        self.deadlines.lingers.push(endpoint.id, now);
        match farewell.filter(|_| is_healthy) {
            Some(reason) => {
                endpoint.bye = Some(reason);
                self.table.mark_dirty(index);
            }
            None => {
                endpoint.cut();
                if is_healthy {
                    self.stock.on_broken();
                }
            }
        }
        self.settle_end(index);
    }

    /// The connection manager says that the peer is gone.
    pub(crate) fn on_disconnected(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        match endpoint.stage {
            Stage::Open => {
                endpoint.why = Some(status::vanished(&endpoint.peer));
                endpoint.stage = Stage::PeerEnded;
                self.stock.on_broken();
                self.serve(index);
                // Nobody knows when a slot is posted, and the peer is gone without a goodbye.
                self.conclude(index);
            }
            // What it sent before is still to be read; nothing can be sent.
            Stage::PeerEnded => endpoint.cut(),
            Stage::Closing => {
                endpoint.bye = None;
                endpoint.cut();
                self.settle_end(index);
            }
        }
    }

    /// The peer ended, and what it sent before was read.
    pub(crate) fn conclude(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage != Stage::PeerEnded {
            return;
        }
        endpoint.stage = Stage::Closing;
        endpoint.drop_inbox(&mut self.stock, &mut self.recvs);
        endpoint.return_unposted(&mut self.events);
        endpoint.cut();
        self.deadlines.lingers.push(endpoint.id, std::time::Instant::now());
        self.settle_end(index);
    }

    /// Reports the end of an endpoint that closes, once nothing of it is in flight.
    pub(crate) fn settle_end(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        let is_over = endpoint.stage == Stage::Closing
            && endpoint.bye.is_none()
            && endpoint.flights.is_empty();
        if is_over {
            self.bury(index);
        }
    }

    fn bury(&mut self, index: usize) {
        let Some(conn) = self.table.remove(index) else { return };
        let Phase::Open(mut endpoint) = conn.phase else { return };
        // They are to go before their queue pair.
        self.regions.end_windows(endpoint.id);
        endpoint.return_all(&mut self.events);
        endpoint.cut();
        self.table.forget(endpoint.qp.into());
        self.release_window(endpoint.credit.outstanding());
        let why = endpoint.why.take().unwrap_or_else(|| status::flushed(None));
        self.events.push_back(Event::Closed { ep: endpoint.id, why });
        self.graves.push(endpoint.link);
    }

    /// A closed endpoint did not come to rest in time: first the connection is cut, then its queue
    /// pair destroyed.
    pub(crate) fn on_linger_timeout(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.stage != Stage::Closing {
            return;
        }
        if endpoint.bye.take().is_some() || !endpoint.is_cut {
            endpoint.cut();
            self.deadlines.lingers.push(endpoint.id, std::time::Instant::now());
            return self.settle_end(index);
        }
        self.regions.end_windows(endpoint.id);
        match endpoint.link.destroy_qp() {
            Ok(()) => self.recall_all(index),
            Err(error) => {
                let held = (
                    std::mem::take(&mut endpoint.flights),
                    std::mem::take(&mut endpoint.works),
                    std::mem::take(&mut endpoint.out),
                );
                self.keep_for_ever(held, &error);
            }
        }
        self.settle_end(index);
    }

    /// The device touches nothing any more that was in flight.
    fn recall_all(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        for flight in std::mem::take(&mut endpoint.flights) {
            self.room += usize::from(!matches!(flight.hold, Hold::Marker));
            if let Hold::Message { op, buf, .. } = flight.hold {
                let why = Error::new(ErrorKind::Flushed, "the endpoint closed first");
                endpoint.sent(op, buf, Err(why), &mut self.events);
            }
        }
    }
}
