//! Exposing memory through windows: the device holds a key to its connection, so that not even a
//! peer that does not keep to the contract reaches memory over another one.
//!
//! Each window has a registration of its own beneath it, which gives peers no right. Ending both
//! ends the exposure at once, whatever the send queue is doing.
//!
//! A window is bound only when everything before it in the send queue has come back. Linux's
//! soft-RoCE repeats what follows a lost request, too, and binding the same window twice fails: its
//! queue pair then neither sends nor says so.

use std::io;
use std::sync::Arc;

use fabric_core::EpId;
use smallvec::SmallVec;

use crate::driver::Driver;
use crate::endpoint::{Endpoint, Flight, Hold};
use crate::limits::{BIND_LOOKS_EACH, BIND_LOOKS_MAX, SEND_QUEUE, SEND_QUEUE_RESERVE};
use crate::sys::{Op, Rights, Window, Wr};

impl Driver {
    /// Opens `len` bytes from `start` to the peer of `ep` through a window. `None` where the device
    /// has none to give, or the connection is too busy to bind one at once: the key may be used as
    /// soon as this returns, by whatever way it gets to the peer.
    pub(crate) fn open_window(
        &mut self,
        ep: EpId,
        start: *const u8,
        len: usize,
        rights: Rights,
    ) -> Option<Arc<Window>> {
        if !(self.options.memory_windows && self.limits.windows && self.may_bind(ep)) {
            return None;
        }
        if !self.is_at_rest_soon(ep) {
            return None;
        }
        let window = match Window::new(&self.queues, start, len, rights) {
            Ok(window) => Arc::new(window),
            Err(error) => {
                tracing::debug!(%error, "no window: a region has to do");
                return None;
            }
        };
        let (_, endpoint) = self.table.endpoint_of(ep)?;
        if let Err(error) = endpoint.bind(&window) {
            tracing::debug!(%error, "the window is not bound: a region has to do");
            return None;
        }
        self.room -= 1;
        self.regions.binding = Some((ep, window));
        self.bound_soon()
    }

    fn may_bind(&mut self, ep: EpId) -> bool {
        let has_room = self.room > 0;
        let found = self.table.endpoint_of(ep);
        found.is_some_and(|(_, endpoint)| endpoint.may_bind() && has_room)
    }

    /// The window that is being bound, once it is, if that is soon and its endpoint still there.
    fn bound_soon(&mut self) -> Option<Arc<Window>> {
        self.look_until(|driver| {
            // Once its request came back, nobody else has it.
            let binding = driver.regions.binding.as_ref();
            binding.is_none_or(|(_, window)| window.is_bound() || Arc::strong_count(window) == 1)
        });
        let (_, window) = self.regions.binding.take()?;
        window.is_bound().then_some(window)
    }

    /// Whether nothing is in flight on an endpoint, or soon nothing will be.
    fn is_at_rest_soon(&mut self, ep: EpId) -> bool {
        let in_flight = |driver: &mut Self| {
            let found = driver.table.endpoint_of(ep);
            found.map(|(_, endpoint)| endpoint.flights.len())
        };
        if let Some((_, endpoint)) = self.table.endpoint_of(ep) {
            endpoint.mark();
        }
        self.look_until(|driver| in_flight(driver).is_none_or(|count| count == 0));
        in_flight(self) == Some(0)
    }

    /// Takes completions in until `is_done`, but not for long.
    fn look_until(&mut self, is_done: impl Fn(&mut Self) -> bool) {
        for look in 1..=BIND_LOOKS_MAX {
            if is_done(self) {
                return;
            }
            if look.is_multiple_of(BIND_LOOKS_EACH) {
                std::thread::yield_now();
            }
            self.drain_completions(usize::MAX);
        }
    }
}

impl Endpoint {
    fn may_bind(&self) -> bool {
        self.is_usable() && !self.is_cut && self.flights.len() < SEND_QUEUE - SEND_QUEUE_RESERVE
    }

    fn bind(&mut self, window: &Arc<Window>) -> io::Result<()> {
        let (id, op) = (self.next_seq, Op::Bind { window: window.clone() });
        let wr = Wr { id, op, sges: SmallVec::new(), signal: true };
        self.link.post_one(wr)?;
        (self.next_seq, self.unsignalled) = (id + 1, 0);
        self.flights.push_back(Flight { seq: id, hold: Hold::Binding(window.clone()) });
        Ok(())
    }
}

#[cfg(test)]
mod on_device {
    use fabric_core::{Domain, ErrorKind, Event, Exposure, Rma};

    use crate::both::{Both, LEN};

    #[test]
    fn the_device_refuses_a_key_over_another_connection() {
        let Some(mut both) = Both::new(true) else { return };
        let key = both.expose(0);
        assert_eq!(both.domain.driver.regions.windows(), 1, "it is a window");
        let forged = both.forged(key);
        let (result, mut slot) = both.read(1, forged);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Access);
        assert!(slot.buffer_mut().iter().all(|&byte| byte == 0), "bytes moved");
        let (result, slot) = both.read(0, key);
        result.unwrap();
        assert_eq!(slot.filled(), [7; LEN], "over its own connection it opens");
    }

    /// What the test above would see if the window were not what refuses.
    #[test]
    fn without_windows_only_the_peers_provider_refuses() {
        let Some(mut both) = Both::new(false) else { return };
        let key = both.expose(0);
        assert_eq!(both.domain.driver.regions.windows(), 0);
        let forged = both.forged(key);
        let (result, slot) = both.read(1, forged);
        result.unwrap();
        assert_eq!(slot.filled(), [7; LEN]);
    }

    #[test]
    fn a_window_ends_with_revoke_and_with_its_connection() {
        let Some(mut both) = Both::new(true) else { return };
        let (revoked, orphaned) = (both.expose(0), both.expose(1));
        assert_eq!(both.domain.driver.regions.windows(), 2);
        both.domain.revoke(&revoked).unwrap();
        both.domain.close(both.accepted[1]);
        both.until(|events| {
            events.iter().filter(|event| matches!(event, Event::Closed { .. })).count() == 2
        });
        assert_eq!(both.domain.driver.regions.windows(), 0);
        match both.domain.revoke(&orphaned).unwrap() {
            Exposure::Slot(slot) => assert_eq!(slot.filled(), [7; LEN]),
            Exposure::Bytes(_) => panic!("a slot was exposed"),
        }
        // Its own connection still stands, and the key no longer opens anything.
        let (result, _) = both.read(0, revoked);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Access);
    }
}
