//! Open batches: slots that small messages are encoded into.
//!
//! A batch belongs to a set of peers: a publisher encodes once for all subscribers that get the same
//! run of messages. A peer has at most one open batch, so order holds.
//!
//! What all members of a batch can still take is worked out once, as its [`Allowance`]. Messages
//! within it are appended without another look at any peer, and counted for the members when the
//! batch leaves. Whatever may change the answer revokes all allowances.

use bytes::Bytes;
use fabric_core::Slot;
use msg_proto::credit::Tally;
use msg_proto::wire::HEAD_BYTES;
use smallvec::SmallVec;

use super::Net;
use super::outbound::{append_parts, takes_batches};
use super::peer::Peer;
use crate::Message;
use crate::monitor::PeerId;

/// Who gets a batch.
pub(super) type Members = SmallVec<[PeerId; 1]>;

/// An open slot and who gets it.
#[derive(Debug)]
pub(crate) struct Batch {
    members: Members,
    pub(super) slot: Slot,
    allowance: Allowance,
    /// Messages in it that have not been counted for its members.
    uncounted: Tally,
}

/// What may be appended to a batch without asking its members.
#[derive(Debug, Clone, Copy, Default)]
struct Allowance {
    messages: u64,
    bytes: u64,
    /// Largest message.
    size_max: u64,
    /// Counts revocations; an allowance from before one is void.
    issue: u64,
}

impl Batch {
    /// Appends a message if that is allowed and it fits.
    #[inline(always)]
    fn append(&mut self, parts: &[Bytes], len_max: usize) -> bool {
        let len = match parts {
            [part] => part.len(),
            _ => parts.iter().map(Bytes::len).sum(),
        };
        let size = len as u64;
        let allowed = self.allowance.messages > 0
            && size <= self.allowance.bytes.min(self.allowance.size_max);
        if !allowed || self.slot.len() + HEAD_BYTES * parts.len() + len > len_max {
            return false;
        }
        append_parts(&mut self.slot, parts);
        self.allowance.messages -= 1;
        self.allowance.bytes -= size;
        self.uncounted.add(size);
        true
    }
}

impl Net {
    /// Appends a message to the open batch of exactly `peers`, if that is known to be in order. If
    /// not, nothing happened.
    #[inline(always)]
    pub(crate) fn append(&mut self, peers: &[PeerId], message: &Message) -> bool {
        let first = peers.first().and_then(|first| self.peers.get(first.0 as usize));
        let open = first.and_then(|entry| entry.batch);
        let Some(batch) = open.and_then(|open| self.batches.get_mut(open)) else { return false };
        batch.allowance.issue == self.allowance_issue
            && batch.members[..] == *peers
            && batch.append(message.parts(), self.batch_bytes_max)
    }

    /// Something happened after which a peer may not be able to take what it could before.
    pub(crate) fn revoke_allowances(&mut self) {
        self.allowance_issue += 1;
    }

    /// Messages were encoded into a batch, with room for them at all members.
    pub(super) fn count_in_batch(&mut self, key: usize, tally: Tally) {
        let uncounted = &mut self.batches[key].uncounted;
        uncounted.messages += tally.messages;
        uncounted.bytes += tally.bytes;
        self.batches[key].allowance = self.allowance(&self.batches[key]);
    }

    fn allowance(&self, batch: &Batch) -> Allowance {
        let size_max = self.options.message_bytes_max as u64;
        let issue = self.allowance_issue;
        let most = Allowance { messages: u64::MAX, bytes: u64::MAX, size_max, issue };
        batch.members.iter().fold(most, |all, &member| {
            let one = allowance_of(self.peer(member), batch.uncounted);
            Allowance {
                messages: all.messages.min(one.messages),
                bytes: all.bytes.min(one.bytes),
                size_max: all.size_max.min(one.size_max),
                issue,
            }
        })
    }

    /// Messages on their way to `peer` that have not been counted for it.
    pub(super) fn uncounted(&self, peer: &Peer) -> Tally {
        peer.batch.map_or(Tally::default(), |open| self.batches[open].uncounted)
    }

    /// Counts all messages on their way.
    pub(crate) fn count_all(&mut self) {
        let open: SmallVec<[usize; 4]> = self.batches.iter().map(|(key, _)| key).collect();
        for key in open {
            self.count_members(key);
        }
    }

    fn count_members(&mut self, key: usize) {
        let tally = std::mem::take(&mut self.batches[key].uncounted);
        if tally.messages == 0 {
            return;
        }
        let members = std::mem::take(&mut self.batches[key].members);
        for &member in &members {
            self.count_sent(member, tally);
        }
        self.batches[key].members = members;
    }

    /// An open batch for exactly these peers with room for `need` bytes.
    pub(super) fn batch_for(&mut self, peers: &[PeerId], need: usize) -> Option<usize> {
        let first = peers.first().and_then(|&peer| self.peer(peer).batch);
        let fits = |open: &usize| {
            let batch = &self.batches[*open];
            // What was queued before the peer was there may stand in a smaller slot.
            let bytes_max = self.batch_bytes_max.min(batch.slot.capacity());
            batch.members[..] == *peers && batch.slot.len() + need <= bytes_max
        };
        if let Some(open) = first.filter(fits) {
            return Some(open);
        }
        self.post_batches_of(peers);
        let slot = self.pool.as_ref()?.take().or_else(|| self.first_slot(peers))?;
        Some(self.open_batch(peers, slot))
    }

    /// When peers that do not read hold the whole pool, one that has nothing under way still gets a
    /// slot.
    fn first_slot(&self, peers: &[PeerId]) -> Option<Slot> {
        let is_idle = |peer: &Peer| peer.in_flight == 0 && peer.unposted.is_empty();
        let idle = peers.iter().all(|&peer| is_idle(self.peer(peer)));
        if idle { Slot::alloc(self.batch_bytes_max).ok() } else { None }
    }

    pub(super) fn open_batch(&mut self, peers: &[PeerId], slot: Slot) -> usize {
        self.post_batches_of(peers);
        let mut members = std::mem::take(&mut self.spare_members);
        members.extend_from_slice(peers);
        let key = self.batches.insert(Batch {
            members,
            slot,
            allowance: Allowance::default(),
            uncounted: Tally::default(),
        });
        for &peer in peers {
            self.peer_mut(peer).batch = Some(key);
        }
        key
    }

    pub(super) fn post_batches_of(&mut self, peers: &[PeerId]) {
        for &peer in peers {
            if let Some(open) = self.peer(peer).batch {
                self.post_batch(open);
            }
        }
    }

    /// Takes a peer that is gone out of its open batch.
    pub(crate) fn leave_batch(&mut self, peer: PeerId) {
        let Some(key) = self.peer(peer).batch else { return };
        self.count_members(key);
        self.peer_mut(peer).batch = None;
        let batch = &mut self.batches[key];
        batch.members.retain(|member| *member != peer);
        if batch.members.is_empty() {
            self.batches.remove(key);
        }
    }

    /// Posts an open batch to its members.
    fn post_batch(&mut self, key: usize) {
        self.count_members(key);
        let Batch { mut members, slot, .. } = self.batches.remove(key);
        for &member in &members {
            self.peer_mut(member).batch = None;
        }
        self.posted_since_flush = true;
        if let [only] = members[..] {
            return self.post(only, slot.into());
        }
        let bytes = slot.freeze();
        for &member in &members {
            self.post(member, bytes.clone().into());
        }
        members.clear();
        self.spare_members = members;
    }

    /// Posts all open batches and hands everything to the devices.
    pub(crate) fn flush(&mut self) {
        self.queued_since_flush = false;
        while let Some((key, _)) = self.batches.iter().next() {
            self.post_batch(key);
        }
        if std::mem::take(&mut self.posted_since_flush) {
            for port in &mut self.ports {
                port.domain.flush();
            }
        }
    }

    /// Whether full batches wait for the device.
    pub(crate) fn has_posted(&self) -> bool {
        self.posted_since_flush
    }

    /// Whether something waits for a flush, or was queued and may find room after a look at what
    /// came in.
    pub(crate) fn has_put_off(&self) -> bool {
        self.queued_since_flush || self.has_unflushed()
    }

    /// Whether something waits for a flush.
    pub(crate) fn has_unflushed(&self) -> bool {
        !self.batches.is_empty() || self.posted_since_flush
    }
}

/// What one peer can take behind messages that are not counted yet.
fn allowance_of(peer: &Peer, uncounted: Tally) -> Allowance {
    let free = peer.queue.is_empty()
        && peer.dropped_untold == 0
        && peer.leaving.is_none()
        && takes_batches(peer);
    match (&peer.link, &peer.info) {
        (Some(link), Some(info)) if free => {
            let room = link.free_behind(uncounted);
            let size_max = info.message_bytes_max;
            Allowance { messages: room.messages, bytes: room.bytes, size_max, issue: 0 }
        }
        _ => Allowance::default(),
    }
}
