//! Messages on their way out: queued for a peer, encoded into batches, posted.
//!
//! Small messages are encoded into open batches (`batches.rs`). Large messages leave from the queue
//! of their peer, piece by piece: parts by rendezvous where the fabric can, in fragments where it
//! cannot.

use bytes::Bytes;
use fabric_core::{Access, Exposure, SendBuf, Slot};
use msg_proto::credit::Tally;
use msg_proto::link::LinkState;
use msg_proto::lone::LoneTagged;
use msg_proto::wire::{self, Frame, HEAD_BYTES, TAG_BYTES};

use super::inbound::{OFFER_BYTES_MIN, RESERVED_SLOTS};
use super::peer::{Head, Outgoing, Peer};
use super::queue::Queue;
use super::{Net, SENDING_SLOTS};
use crate::Message;
use crate::monitor::PeerId;
use crate::options::Options;

/// Batches of one peer that may be with the fabric before messages wait in its queue.
const IN_FLIGHT_MAX: usize = 8;

/// Bytes of the first message for a peer that is not there yet, with its frame, if it is small.
const LONE_BYTES_MAX: usize = 256;
/// Slots that stay free when messages are queued encoded.
const UNQUEUED_SLOTS: usize = RESERVED_SLOTS + SENDING_SLOTS / 2;

/// Bytes of an encoded OFFER.
const OFFER_BYTES: usize = HEAD_BYTES + 8 + 8 + wire::KEY_BYTES;

/// Whether a peer can be given another message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// At once, or in its queue.
    Yes,
    /// Its queue is full.
    Full,
    /// The message is over its limit.
    TooLong,
    /// It is not connected, and queueing for it is not wanted.
    Down,
    /// It does not exist, and waiting for it makes no sense.
    Nobody,
}

impl Net {
    /// Whether `peer` can be given a message of `size` bytes.
    pub(crate) fn room(&self, peer: PeerId, size: u64) -> Room {
        let peer = self.peer(peer);
        if peer.leaving.is_some() || (!peer.is_up() && !self.queues_while_down(peer)) {
            return Room::Down;
        }
        if is_too_long(peer, size) {
            return Room::TooLong;
        }
        let fits =
            peer.queue.is_empty() && self.leaves_now(peer, size) || self.queue_fits(peer, size);
        if fits { Room::Yes } else { Room::Full }
    }

    fn queues_while_down(&self, peer: &Peer) -> bool {
        peer.is_connector() && !self.options.immediate
    }

    fn queue_fits(&self, peer: &Peer, size: u64) -> bool {
        let messages = peer.queue.len() < Options::limit(self.options.send_hwm);
        let bytes_max = Options::limit(self.options.send_hwm_bytes);
        messages && (peer.queue.is_empty() || peer.queue.bytes().saturating_add(size) <= bytes_max)
    }

    /// Whether a message could be encoded for `peer` without waiting.
    fn leaves_now(&self, peer: &Peer, size: u64) -> bool {
        let uncounted = self.uncounted(peer);
        let link = peer.link.as_ref();
        link.is_some_and(|link| link.has_room_behind(uncounted, size)) && takes_batches(peer)
    }

    /// Takes a message for one peer: encodes it at once or queues it. Call `room` before.
    pub(crate) fn give(&mut self, peer: PeerId, outgoing: Outgoing) {
        if self.leaves_first(peer, &outgoing) && self.encode_small(&[peer], &outgoing) {
            return;
        }
        self.revoke_allowances();
        self.queued_since_flush = true;
        if !self.queue_encoded(peer, &outgoing) {
            self.peer_mut(peer).queue.push(outgoing);
        }
        self.pump(peer);
    }

    /// As `give`, for a message that no other waits for: if it is small it goes to the fabric as it
    /// is.
    pub(crate) fn give_alone(&mut self, peer: PeerId, outgoing: Outgoing) {
        let alone = self.peer(peer).batch.is_none() && self.leaves_first(peer, &outgoing);
        if !alone || !self.post_small(peer, &outgoing) {
            self.give(peer, outgoing);
        }
    }

    fn post_small(&mut self, peer: PeerId, outgoing: &Outgoing) -> bool {
        let Some(mut slot) = self.take_slot() else { return false };
        append_small(&mut slot, outgoing);
        self.count_sent(peer, Tally { messages: 1, bytes: outgoing.size });
        self.posted_since_flush = true;
        self.post(peer, slot.into());
        true
    }

    fn take_slot(&mut self) -> Option<Slot> {
        self.spare.take().or_else(|| self.pool.as_ref()?.take())
    }

    /// A message has left. Where messages leave one by one, the next leaves in the same slot.
    pub(super) fn reclaim(&mut self, buf: SendBuf, gathers: bool) {
        if gathers || self.spare.is_some() {
            return;
        }
        let whole = |slot: &Slot| slot.capacity() == self.batch_bytes_max;
        if let Some(mut slot) = buf.into_slot().filter(whole) {
            slot.set_len(0);
            self.spare = Some(slot);
        }
    }

    /// Queues a message encoded, if it is of the kind and there is memory for it.
    fn queue_encoded(&mut self, peer: PeerId, outgoing: &Outgoing) -> bool {
        let ([part], Head::None) = (outgoing.message.parts(), &outgoing.head) else { return false };
        if self.options.conflate || !self.is_small(outgoing) {
            return false;
        }
        let len_max = self.batch_bytes_max;
        if self.peer_mut(peer).queue.append(part, len_max) {
            return true;
        }
        let Some(slot) = self.slot_to_queue_in(peer, part.len()) else { return false };
        self.peer_mut(peer).queue.append_in(slot, part);
        true
    }

    /// The first small message for a peer that is not there yet gets memory of its own, as handshakes
    /// do: mostly it stays the only one.
    fn slot_to_queue_in(&self, peer: PeerId, len: usize) -> Option<Slot> {
        let entry = self.peer(peer);
        if !entry.is_up() && entry.queue.is_empty() && HEAD_BYTES + len <= LONE_BYTES_MAX {
            return Slot::alloc(LONE_BYTES_MAX).ok();
        }
        self.pool.as_ref().filter(|pool| pool.free() > UNQUEUED_SLOTS)?.take()
    }

    /// Queues a message behind others that are encoded, if there is room. If not, nothing happened.
    #[inline]
    pub(crate) fn append_to_queue(&mut self, peer: PeerId, message: &Message) -> bool {
        let [part] = message.parts() else { return false };
        let waits = self.peers.get(peer.0 as usize).is_some_and(|entry| !entry.queue.is_empty());
        let (len, len_max) = (part.len(), self.batch_bytes_max);
        let done = waits
            && len <= self.options.message_bytes_max
            && self.room(peer, len as u64) == Room::Yes
            && self.peer_mut(peer).queue.append(part, len_max);
        self.queued_since_flush |= done;
        done
    }

    /// Whether a small message could be encoded for `peer` with nothing to go before it.
    fn leaves_first(&self, peer: PeerId, outgoing: &Outgoing) -> bool {
        let entry = self.peer(peer);
        entry.queue.is_empty()
            && entry.dropped_untold == 0
            && self.is_small(outgoing)
            && self.leaves_now(entry, outgoing.size)
    }

    /// Takes a message for several peers, all with room: those that it can leave for at once share
    /// one encoding; the others queue it.
    pub(crate) fn give_all(&mut self, peers: &[PeerId], outgoing: &Outgoing) {
        if peers.len() == 1 || !self.is_small(outgoing) {
            for &peer in peers {
                self.give(peer, outgoing.clone());
            }
            return;
        }
        let mut now = std::mem::take(&mut self.scratch_peers);
        now.clear();
        for &peer in peers {
            if self.leaves_first(peer, outgoing) {
                now.push(peer);
            } else {
                self.give(peer, outgoing.clone());
            }
        }
        if !now.is_empty() && !self.encode_small(&now, outgoing) {
            for &peer in &now {
                self.give(peer, outgoing.clone());
            }
        }
        self.scratch_peers = now;
    }

    /// Moves what can leave from the queue of `peer` into batches.
    pub(crate) fn pump(&mut self, peer: PeerId) {
        self.tell_drops(peer);
        while !self.peer(peer).queue.is_empty() {
            let moved = match self.peer_mut(peer).queue.pop() {
                Some(outgoing) => self.pump_message(peer, outgoing),
                None => self.pump_run(peer),
            };
            if !moved {
                break;
            }
        }
    }

    fn pump_message(&mut self, peer: PeerId, mut outgoing: Outgoing) -> bool {
        if is_too_long(self.peer(peer), outgoing.size) {
            // It was queued before the peer said what it takes.
            self.count_dropped(peer, 1);
            return true;
        }
        let may = outgoing.begun || self.leaves_now(self.peer(peer), outgoing.size);
        let gone = may && self.encode(peer, &mut outgoing);
        if !gone {
            self.peer_mut(peer).queue.unpop(outgoing);
        }
        gone
    }

    /// Moves what can leave of the encoded messages at the front of the queue of `peer`.
    fn pump_run(&mut self, peer: PeerId) -> bool {
        let entry = self.peer(peer);
        let (Some(link), Some(run)) = (&entry.link, entry.queue.run()) else { return false };
        if is_too_long(entry, run.size_max) {
            self.peer_mut(peer).queue.unpack_run();
            return true;
        }
        if !takes_batches(entry) {
            return false;
        }
        let uncounted = self.uncounted(entry);
        let room = link.free_behind(uncounted);
        if run.is_within(room) {
            return self.pump_whole_run(peer);
        }
        let first = Tally { messages: 1, bytes: run.first_size() };
        match run.within(room) {
            (tally, len) if tally.messages > 0 => self.pump_part_of_run(peer, tally, len),
            // One that is larger than what is left may still go.
            _ if link.has_room_behind(uncounted, first.bytes) => {
                self.pump_part_of_run(peer, first, HEAD_BYTES + first.bytes as usize)
            }
            _ => false,
        }
    }

    fn pump_whole_run(&mut self, peer: PeerId) -> bool {
        let Some((slot, tally)) = self.peer_mut(peer).queue.take_run() else { return false };
        let batch = self.open_batch(&[peer], slot);
        self.count_in_batch(batch, tally);
        true
    }

    fn pump_part_of_run(&mut self, peer: PeerId, tally: Tally, len: usize) -> bool {
        let Some(batch) = self.batch_for(&[peer], len) else { return false };
        let queue = &mut self.peers[peer.0 as usize].queue;
        let fits = self.batches[batch].slot.append(queue.run_bytes(len));
        debug_assert!(fits, "a batch was chosen with too little room");
        queue.advance_run(tally, len);
        self.count_in_batch(batch, tally);
        true
    }

    /// Encodes as much of the message as can leave; says whether that was all.
    fn encode(&mut self, peer: PeerId, outgoing: &mut Outgoing) -> bool {
        if !outgoing.begun && self.is_small(outgoing) {
            self.encode_small(&[peer], outgoing)
        } else {
            self.encode_large(peer, outgoing)
        }
    }

    /// Whether the whole message fits one slot.
    fn is_small(&self, outgoing: &Outgoing) -> bool {
        encoded_bytes(outgoing) <= self.batch_bytes_max
    }

    fn encode_small(&mut self, peers: &[PeerId], outgoing: &Outgoing) -> bool {
        let Some(batch) = self.batch_for(peers, encoded_bytes(outgoing)) else { return false };
        append_small(&mut self.batches[batch].slot, outgoing);
        self.count_in_batch(batch, Tally { messages: 1, bytes: outgoing.size });
        true
    }

    /// Counts messages that left for a peer.
    pub(super) fn count_sent(&mut self, peer: PeerId, tally: Tally) {
        let entry = self.peer_mut(peer);
        entry.sent += tally.messages;
        if let Some(link) = &mut entry.link {
            link.on_sent(tally);
        }
        self.counters.sent += tally.messages;
        self.counters.sent_bytes += tally.bytes;
    }

    fn encode_large(&mut self, peer: PeerId, outgoing: &mut Outgoing) -> bool {
        if !outgoing.begun {
            let need = head_bytes(&outgoing.head);
            if need > 0 {
                let Some(batch) = self.batch_for(&[peer], need) else { return false };
                append_head(&mut self.batches[batch].slot, &outgoing.head);
            }
            outgoing.begun = true;
            self.count_sent(peer, Tally { messages: 1, bytes: outgoing.size });
        }
        while outgoing.parts_done < outgoing.message.parts().len() {
            if !takes_batches(self.peer(peer)) || !self.encode_part(peer, outgoing) {
                return false;
            }
        }
        true
    }

    /// Sends the next piece of the next part; false if it has to wait.
    fn encode_part(&mut self, peer: PeerId, outgoing: &mut Outgoing) -> bool {
        let parts = outgoing.message.parts();
        let part = parts[outgoing.parts_done].clone();
        let more = outgoing.parts_done + 1 < parts.len();
        if outgoing.part_offset == 0 && self.is_offered(peer, &part) {
            let offered = self.offer(peer, more, part);
            outgoing.parts_done += usize::from(offered);
            return offered;
        }
        let whole = HEAD_BYTES + part.len();
        if outgoing.part_offset == 0 && whole <= self.batch_bytes_max {
            let Some(batch) = self.batch_for(&[peer], whole) else { return false };
            append_part(&mut self.batches[batch].slot, more, &part);
            outgoing.parts_done += 1;
            return true;
        }
        self.encode_fragment(peer, outgoing, &part, more)
    }

    fn encode_fragment(
        &mut self,
        peer: PeerId,
        outgoing: &mut Outgoing,
        part: &Bytes,
        more: bool,
    ) -> bool {
        // A fragment fills a slot of its own.
        let Some(batch) = self.batch_for(&[peer], self.batch_bytes_max) else { return false };
        let offset = outgoing.part_offset;
        let room = self.batch_bytes_max - HEAD_BYTES - 8;
        let body = &part[offset..(offset + room).min(part.len())];
        let frame = if offset == 0 {
            Frame::Fragment { more, total: part.len() as u64, body }
        } else {
            Frame::Continue { body }
        };
        append(&mut self.batches[batch].slot, &frame);
        outgoing.part_offset += body.len();
        if outgoing.part_offset == part.len() {
            outgoing.parts_done += 1;
            outgoing.part_offset = 0;
        }
        true
    }

    fn is_offered(&self, peer: PeerId, part: &Bytes) -> bool {
        let entry = self.peer(peer);
        let reads = entry.info.is_some_and(|info| info.abilities & wire::abilities::READS != 0);
        let rma = self.ports[entry.port].domain.caps().rma;
        reads
            && rma.is_some_and(|rma| {
                part.len() >= rma.rendezvous_bytes_min.max(OFFER_BYTES_MIN as usize)
            })
    }

    /// Exposes a part and tells the peer where to read it.
    fn offer(&mut self, peer: PeerId, more: bool, part: Bytes) -> bool {
        let entry = self.peer(peer);
        let (Some(ep), port) = (entry.ep, entry.port) else { return false };
        let Some(batch) = self.batch_for(&[peer], OFFER_BYTES) else { return false };
        let Some(rma) = self.ports[port].domain.rma() else { return false };
        let len = part.len() as u64;
        let Ok(key) = rma.expose(ep, Exposure::Bytes(part), Access::READ) else { return false };
        let entry = self.peer_mut(peer);
        let id = entry.offer_next;
        entry.offer_next += 1;
        entry.offers.insert(id, key);
        let frame = Frame::Offer { more, id, len, key: key.to_bytes() };
        append(&mut self.batches[batch].slot, &frame);
        true
    }

    /// The peer has read what was offered: its memory is free again.
    pub(crate) fn on_done(&mut self, peer: PeerId, id: u64, failed: bool) {
        let port = self.peer(peer).port;
        let Some(key) = self.peer_mut(peer).offers.remove(&id) else { return };
        if let Some(rma) = self.ports[port].domain.rma() {
            drop(rma.revoke(&key));
        }
        if failed {
            self.count_dropped(peer, 1);
        }
    }

    /// Sends a frame that is no message. Always succeeds: when the pool is empty it takes memory of
    /// its own, and the protocol bounds how many there are.
    pub(crate) fn control(&mut self, peer: PeerId, frame: &Frame<'_>) {
        let need = frame.encode().len();
        if !self.peer(peer).is_up() && self.control_alone(peer, frame, need) {
            return;
        }
        let batch = self.batch_for(&[peer], need).or_else(|| {
            let slot = Slot::alloc(need.max(self.batch_bytes_max)).ok()?;
            Some(self.open_batch(&[peer], slot))
        });
        if let Some(batch) = batch {
            append(&mut self.batches[batch].slot, frame);
        }
    }

    /// Sends a frame of a handshake in a piece of memory of its size. Slots of a pool take a page
    /// each, which many idle sockets would keep.
    fn control_alone(&mut self, peer: PeerId, frame: &Frame<'_>, need: usize) -> bool {
        let Ok(mut slot) = Slot::alloc(need) else { return false };
        append(&mut slot, frame);
        self.post_batches_of(&[peer]);
        self.posted_since_flush = true;
        self.post(peer, slot.into());
        true
    }

    /// What is queued for a peer and has not begun to leave, taken out.
    pub(crate) fn take_queue(&mut self, peer: PeerId) -> Queue {
        std::mem::take(&mut self.peer_mut(peer).queue)
    }
}

/// Whether a message is over the limit of the peer, as far as that is known.
fn is_too_long(peer: &Peer, size: u64) -> bool {
    peer.info.is_some_and(|info| size > info.message_bytes_max)
}

/// Whether another batch of the peer may go to the fabric.
pub(super) fn takes_batches(peer: &Peer) -> bool {
    let alive = peer.link.as_ref().is_some_and(|link| link.state() != LinkState::Down);
    alive && peer.in_flight < IN_FLIGHT_MAX
}

fn head_bytes(head: &Head) -> usize {
    match head {
        Head::None => 0,
        Head::Request { envelope, .. } | Head::Reply { envelope, .. } => TAG_BYTES + envelope.len(),
    }
}

fn encoded_bytes(outgoing: &Outgoing) -> usize {
    head_bytes(&outgoing.head)
        + outgoing.message.parts().len() * HEAD_BYTES
        + outgoing.size as usize
}

/// Appends a whole message.
fn append_small(slot: &mut Slot, outgoing: &Outgoing) {
    if let Some(lone) = lone_tagged(outgoing) {
        let fits = slot.append(&lone.head()) && slot.append(lone.body);
        debug_assert!(fits, "a batch was chosen with too little room");
        return;
    }
    append_head(slot, &outgoing.head);
    append_parts(slot, outgoing.message.parts());
}

fn lone_tagged(outgoing: &Outgoing) -> Option<LoneTagged<'_>> {
    let [body] = outgoing.message.parts() else { return None };
    match &outgoing.head {
        Head::Request { id, envelope } if envelope.is_empty() => {
            Some(LoneTagged { is_request: true, id: *id, body })
        }
        Head::Reply { id, envelope } if envelope.is_empty() => {
            Some(LoneTagged { is_request: false, id: *id, body })
        }
        _ => None,
    }
}

fn append_head(slot: &mut Slot, head: &Head) {
    let fits = match head {
        Head::None => true,
        Head::Request { id, envelope } => {
            slot.append(&wire::request_head(*id, envelope.len() as u32)) && slot.append(envelope)
        }
        Head::Reply { id, envelope } => {
            slot.append(&wire::reply_head(*id, envelope.len() as u32)) && slot.append(envelope)
        }
    };
    debug_assert!(fits, "a batch was chosen with too little room");
}

/// Appends a frame that the batch was chosen to have room for.
fn append(slot: &mut Slot, frame: &Frame<'_>) {
    let encoded = frame.encode();
    let fits = slot.append(encoded.head()) && slot.append(encoded.tail);
    debug_assert!(fits, "a batch was chosen with too little room");
}

#[inline]
pub(super) fn append_parts(slot: &mut Slot, parts: &[Bytes]) {
    if let [part] = parts {
        return append_part(slot, false, part);
    }
    let Some((last, parts)) = parts.split_last() else { return };
    for part in parts {
        append_part(slot, true, part);
    }
    append_part(slot, false, last);
}

#[inline]
pub(super) fn append_part(slot: &mut Slot, more: bool, part: &[u8]) {
    let fits = slot.append(&wire::part_head(more, part.len() as u32)) && slot.append(part);
    debug_assert!(fits, "a batch was chosen with too little room");
}
