//! What is dropped: every message is counted, and subscribers are told what they missed.

use msg_proto::wire::Frame;

use super::Net;
use super::outbound::takes_batches;
use crate::monitor::PeerId;

impl Net {
    /// Counts messages dropped for a peer.
    pub(crate) fn count_dropped(&mut self, peer: PeerId, count: u64) {
        self.counters.dropped += count;
        self.peer_mut(peer).dropped += count;
    }

    /// Counts messages that a subscriber misses, and that it is told of.
    pub(crate) fn miss(&mut self, peer: PeerId, count: u64) {
        if count > 0 && self.peer(peer).dropped_untold == 0 && !self.options.conflate {
            self.trace_slow(peer);
        }
        self.revoke_allowances();
        self.count_dropped(peer, count);
        self.peer_mut(peer).dropped_untold += count;
    }

    /// A peer says how many messages this side missed.
    pub(crate) fn on_lost(&mut self, peer: PeerId, count: u64) {
        let entry = self.peer_mut(peer);
        entry.lost = entry.lost.saturating_add(count);
        self.counters.lost = self.counters.lost.saturating_add(count);
    }

    /// Drops what is queued for a subscriber and has not begun to leave.
    pub(crate) fn drop_unbegun(&mut self, peer: PeerId) {
        let dropped = self.peer_mut(peer).queue.drop_unbegun();
        self.miss(peer, dropped);
    }

    /// Drops what is queued for a peer, and counts it.
    pub(crate) fn drop_queue(&mut self, peer: PeerId) {
        let count = self.peer_mut(peer).queue.clear();
        if count > 0 {
            self.trace_dropped(peer, count, "it was left with messages in its queue");
        }
        self.count_dropped(peer, count);
    }

    /// Drops what waits to be received from `peer`, and counts it.
    pub(crate) fn drop_inbox(&mut self, peer: PeerId) {
        let unread = self.empty_inbox(peer);
        if unread > 0 && !self.options.conflate {
            self.trace_dropped(peer, unread, "nobody received them");
        }
        self.count_dropped(peer, unread);
    }

    /// Tells a subscriber what it missed, as soon as it takes anything.
    pub(super) fn tell_drops(&mut self, peer: PeerId) {
        let entry = self.peer_mut(peer);
        if entry.dropped_untold > 0 && entry.is_up() && takes_batches(entry) {
            let count = std::mem::take(&mut entry.dropped_untold);
            if !self.options.conflate {
                self.trace_dropped(peer, count, "it had no room");
            }
            self.control(peer, &Frame::Dropped { count });
        }
    }
}
