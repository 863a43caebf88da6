//! From batches to the fabric, and what waits for it.

use std::collections::VecDeque;

use fabric_core::{ErrorKind, SendBuf, Slot};

use super::Net;
use super::peer::Peer;
use crate::monitor::PeerId;

/// Fabric messages that may wait for an endpoint that takes no more. A peer that reads nothing and
/// still asks for answers is dropped beyond.
const UNPOSTED_MAX: usize = 1024;

impl Net {
    pub(super) fn post(&mut self, peer: PeerId, buf: SendBuf) {
        if self.peer(peer).unposted.is_empty() {
            if let Some(buf) = self.hand_over(peer, buf) {
                self.peer_mut(peer).unposted.push_back(buf);
            }
            return;
        }
        let bytes_max = self.batch_bytes_max;
        let unposted = &mut self.peer_mut(peer).unposted;
        if !joins_last(unposted, &buf, bytes_max) {
            unposted.push_back(buf);
        }
        self.post_waiting(peer);
        if self.peer(peer).unposted.len() > UNPOSTED_MAX {
            self.close_ep(peer);
        }
    }

    /// Hands waiting batches of a peer to the fabric, as far as it takes them.
    pub(crate) fn post_waiting(&mut self, peer: PeerId) {
        while let Some(buf) = self.peer_mut(peer).unposted.pop_front() {
            if let Some(buf) = self.hand_over(peer, buf) {
                return self.peer_mut(peer).unposted.push_front(buf);
            }
        }
    }

    /// Hands a batch to the fabric, which gives it back if it takes no more now. What is for a
    /// connection that broke is lost with it.
    fn hand_over(&mut self, peer: PeerId, buf: SendBuf) -> Option<SendBuf> {
        let Peer { ep, port, .. } = *self.peer(peer);
        let Some(ep) = ep else { return Some(buf) };
        match self.ports[port].domain.post_send(ep, buf) {
            Ok(_) => {
                self.peer_mut(peer).in_flight += 1;
                self.counters.posts += 1;
                None
            }
            Err(refused) if refused.error.kind() == ErrorKind::Full => Some(refused.buf),
            Err(_) => {
                self.on_broken(peer);
                None
            }
        }
    }

    /// The endpoint of `peer` has closed and its event is on the way: what is queued stays queued.
    pub(crate) fn on_broken(&mut self, peer: PeerId) {
        self.revoke_allowances();
        if let Some(link) = &mut self.peer_mut(peer).link {
            link.on_gone();
        }
    }
}

/// Appends `buf` to the last of those that wait, if there is room: many small ones then take little
/// memory.
fn joins_last(unposted: &mut VecDeque<SendBuf>, buf: &SendBuf, bytes_max: usize) -> bool {
    let last = unposted.back_mut().and_then(SendBuf::as_slot_mut);
    let fits = |slot: &&mut Slot| slot.len() + buf.len() <= bytes_max.min(slot.capacity());
    let Some(slot) = last.filter(fits) else { return false };
    buf.segments().iter().all(|segment| slot.append(segment.filled()))
}
