//! Messages on their way in: frames of received slots become messages in the inbox of their peer.

use bytes::Bytes;
use fabric_core::{EpId, Slot};
use msg_proto::credit::Room;
use msg_proto::fault::Fault;
use msg_proto::wire::{Frame, Frames, HEAD_BYTES};
use smallvec::{SmallVec, smallvec};

use super::peer::{Fragments, Incoming};
use super::{Core, Net};
use crate::monitor::{MonitorEvent, PeerId};
use crate::options::Options;
use crate::roles::Role;

/// Received messages up to this many bytes are copied out of their slot, which then receives again
/// at once; larger ones are shared, as long as the pool has slots to spare.
const COPY_BYTES_MAX: usize = 4096;
/// Slots that are never lent to the application.
pub(crate) const RESERVED_SLOTS: usize = 64;
/// Most parts of a message: empty parts cost memory too.
const PARTS_MAX: usize = 16_384;
/// Smallest part that may be offered: smaller ones would cost more to note than to send.
pub(crate) const OFFER_BYTES_MIN: u64 = 4096;
/// Memory set aside for a fragmented part before its bytes arrive.
const FRAGMENT_RESERVE_BYTES_MAX: usize = 1 << 20;

impl<R: Role> Core<R> {
    /// A fabric message arrived.
    pub(crate) fn on_slot(&mut self, port: usize, ep: EpId, slot: Slot) {
        let bytes = self.net.share_or_copy(port, slot);
        let Some(&peer) = self.net.ports[port].by_ep.get(&ep) else { return };
        let now = self.net.now();
        if let Some(link) = &mut self.net.peer_mut(peer).link {
            link.on_traffic(now);
        }
        for frame in Frames::new(&bytes) {
            let handled = match frame {
                Ok(frame) => self.on_frame(peer, &frame, &bytes),
                Err(_) => Err(Fault::Protocol),
            };
            if let Err(fault) = handled {
                self.net.refuse(peer, fault);
                break;
            }
            if self.net.peer(peer).ep != Some(ep) {
                return;
            }
        }
        self.drain_link(peer);
    }

    fn on_frame(&mut self, peer: PeerId, frame: &Frame<'_>, slot: &Bytes) -> Result<(), Fault> {
        if let Frame::Part { more, body } = *frame {
            let part = slot.slice_ref(body);
            return self.on_part(peer, more, part);
        }
        match *frame {
            Frame::Part { .. } => Ok(()),
            Frame::Fragment { more, total, body } => {
                let part = self.net.on_fragment(peer, more, total, body)?;
                part.map_or(Ok(()), |part| self.on_part(peer, more, part))
            }
            Frame::Continue { body } => match self.net.on_continue(peer, body)? {
                Some((more, part)) => self.on_part(peer, more, part),
                None => Ok(()),
            },
            Frame::Offer { more, id, len, key } => {
                self.net.on_offer(peer, id, len, key)?;
                self.on_part_counted(peer, more)
            }
            Frame::Request { id, envelope } | Frame::Reply { id, envelope } => {
                self.net.require_up(peer)?;
                R::tagged(matches!(frame, Frame::Request { .. }))?;
                self.net.begin_tagged(peer, id, envelope)
            }
            Frame::Subscribe { .. }
            | Frame::Cancel { .. }
            | Frame::Dropped { .. }
            | Frame::Settled
            | Frame::Ack { .. } => {
                self.net.require_up(peer)?;
                // The role has forgotten a peer that this side is leaving.
                if self.net.peer(peer).leaving.is_some() {
                    return Ok(());
                }
                self.role.on_frame(&mut self.net, peer, frame)
            }
            _ => self.on_link_frame(peer, frame),
        }
    }

    fn on_link_frame(&mut self, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        let now = self.net.now();
        let entry = self.net.peer_mut(peer);
        let Some(link) = &mut entry.link else { return Ok(()) };
        match *frame {
            Frame::Hello(hello) => {
                entry.identity = Bytes::copy_from_slice(hello.identity);
                link.on_hello(now, &hello);
                self.drain_link(peer);
            }
            Frame::Ping { ttl_tenths, context } => {
                link.on_ping(ttl_tenths, context);
                self.net.note_deadline(peer);
            }
            Frame::Pong { .. } => {}
            Frame::Credit { messages, bytes } => {
                link.on_credit(Room { messages, bytes });
                self.on_writable(peer);
            }
            Frame::Bye => {
                entry.said_bye = true;
                link.on_bye();
            }
            Frame::Done { id, failed } => self.net.on_done(peer, id, failed),
            Frame::Error { code, .. } => self.net.on_refused(peer, Fault::from_code(code)),
            _ => return Err(Fault::Protocol),
        }
        Ok(())
    }

    /// A whole part is there.
    fn on_part(&mut self, peer: PeerId, more: bool, part: Bytes) -> Result<(), Fault> {
        self.net.add_part(peer, part)?;
        self.on_part_counted(peer, more)
    }

    fn on_part_counted(&mut self, peer: PeerId, more: bool) -> Result<(), Fault> {
        if more {
            return Ok(());
        }
        let Some(message) = self.net.peer_mut(peer).assembly.message.take() else { return Ok(()) };
        self.on_message(peer, message)
    }

    /// A message is complete, but for parts that are still being read.
    fn on_message(&mut self, peer: PeerId, message: Incoming) -> Result<(), Fault> {
        let entry = self.net.peer_mut(peer);
        let Some(link) = &mut entry.link else { return Ok(()) };
        if link.on_message(message.size).is_err() {
            return Ok(()); // The link has refused the peer.
        }
        entry.received += 1;
        self.net.counters.received += 1;
        self.net.counters.received_bytes += message.size;
        let malformed = R::NEEDS_TAG && message.tag.is_none();
        let leaving = self.net.peer(peer).leaving.is_some();
        if !malformed && !leaving && self.role.admits(&mut self.net, peer, &message) {
            self.keep(peer, message);
        } else {
            self.net.discard(peer, message.size);
        }
        Ok(())
    }

    fn keep(&mut self, peer: PeerId, message: Incoming) {
        if self.net.options.conflate {
            self.net.drop_inbox(peer);
        }
        let entry = self.net.peer_mut(peer);
        entry.inbox.push_back(message);
        if entry.inbox.len() == 1 && entry.is_ready() {
            self.role.on_ready(&mut self.net, peer);
        }
    }
}

impl Net {
    /// The received bytes, and the slot back at work as soon as possible.
    fn share_or_copy(&mut self, port: usize, slot: Slot) -> Bytes {
        self.ports[port].posted -= 1;
        self.pool_short = self.pool.as_ref().is_some_and(|pool| pool.free() <= RESERVED_SLOTS);
        if slot.len() > COPY_BYTES_MAX && !self.pool_short {
            return slot.freeze();
        }
        let bytes = Bytes::copy_from_slice(slot.filled());
        self.repost(port, slot);
        bytes
    }

    fn require_up(&self, peer: PeerId) -> Result<(), Fault> {
        if self.peer(peer).is_up() { Ok(()) } else { Err(Fault::Protocol) }
    }

    /// The message that is arriving, begun if need be, with `size` more bytes counted.
    fn arriving(&mut self, peer: PeerId, size: u64) -> Result<&mut Incoming, Fault> {
        self.require_up(peer)?;
        let bytes_max = self.options.message_bytes_max as u64;
        let entry = self.peer_mut(peer);
        if entry.assembly.fragments.is_some() {
            return Err(Fault::Protocol);
        }
        if entry.assembly.message.is_none() {
            begin(entry, None);
        }
        let Some(message) = &mut entry.assembly.message else { return Err(Fault::Protocol) };
        message.size = message.size.saturating_add(size);
        if message.size > bytes_max || message.parts.len() >= PARTS_MAX {
            return Err(Fault::TooLong);
        }
        Ok(message)
    }

    fn add_part(&mut self, peer: PeerId, part: Bytes) -> Result<(), Fault> {
        let message = self.arriving(peer, part.len() as u64)?;
        message.parts.push(part);
        Ok(())
    }

    fn begin_tagged(&mut self, peer: PeerId, id: u64, envelope: &[u8]) -> Result<(), Fault> {
        let entry = self.peer_mut(peer);
        if entry.assembly.message.is_some() || entry.assembly.fragments.is_some() {
            return Err(Fault::Protocol);
        }
        // Envelopes are short and may be kept for long: they do not hold a slot.
        begin(entry, Some((id, Bytes::copy_from_slice(envelope))));
        Ok(())
    }

    /// The first fragment of a part; the part itself if that was all of it.
    fn on_fragment(
        &mut self,
        peer: PeerId,
        more: bool,
        total: u64,
        body: &[u8],
    ) -> Result<Option<Bytes>, Fault> {
        let message = self.arriving(peer, total)?;
        message.size -= total; // `add_part` counts it when it is whole.
        let total = usize::try_from(total).map_err(|_| Fault::TooLong)?;
        if body.len() >= total {
            let whole = body.len() == total;
            return if whole {
                Ok(Some(Bytes::copy_from_slice(body)))
            } else {
                Err(Fault::Protocol)
            };
        }
        let mut bytes = Vec::with_capacity(total.min(FRAGMENT_RESERVE_BYTES_MAX));
        bytes.extend_from_slice(body);
        self.peer_mut(peer).assembly.fragments = Some(Fragments { more, total, bytes });
        Ok(None)
    }

    /// The next fragment; the part and its MORE once it is whole.
    fn on_continue(&mut self, peer: PeerId, body: &[u8]) -> Result<Option<(bool, Bytes)>, Fault> {
        let assembly = &mut self.peer_mut(peer).assembly;
        let fragments = assembly.fragments.as_mut().ok_or(Fault::Protocol)?;
        if body.is_empty() || fragments.bytes.len() + body.len() > fragments.total {
            return Err(Fault::Protocol);
        }
        fragments.bytes.extend_from_slice(body);
        if fragments.bytes.len() < fragments.total {
            return Ok(None);
        }
        let whole = assembly.fragments.take();
        Ok(whole.map(|fragments| (fragments.more, Bytes::from(fragments.bytes))))
    }

    fn on_offer(&mut self, peer: PeerId, id: u64, len: u64, key: [u8; 32]) -> Result<(), Fault> {
        if len < OFFER_BYTES_MIN {
            return Err(Fault::Protocol);
        }
        let message = self.arriving(peer, len)?;
        let (seq, part) = (message.seq, message.parts.len());
        message.parts.push(Bytes::new());
        message.pending += 1;
        self.begin_transfer(peer, seq, part, id, len, key)
    }

    /// A message was not wanted.
    pub(crate) fn discard(&mut self, peer: PeerId, size: u64) {
        self.counters.discarded += 1;
        self.consumed(peer, self.peer(peer).epoch, size);
    }

    /// Drops what waits to be received from `peer`; says how many messages that was.
    pub(crate) fn empty_inbox(&mut self, peer: PeerId) -> u64 {
        let mut count = 0;
        while let Some(message) = self.peer_mut(peer).inbox.pop_front() {
            self.consumed(peer, message.epoch, message.size);
            count += 1;
        }
        count
    }

    /// The oldest message of `peer`, if it is whole.
    pub(crate) fn take(&mut self, peer: PeerId) -> Option<Incoming> {
        let entry = self.peer_mut(peer);
        if !entry.is_ready() {
            return None;
        }
        let message = entry.inbox.pop_front()?;
        self.counters.delivered += 1;
        self.consumed(peer, message.epoch, message.size);
        Some(self.unpin(message))
    }

    /// When the pool runs short, a message that the application may keep is copied out of its slot.
    fn unpin(&self, mut message: Incoming) -> Incoming {
        if self.pool_short && message.size <= COPY_BYTES_MAX as u64 {
            let copies: SmallVec<[Bytes; 1]> =
                message.parts.iter().map(|part| Bytes::copy_from_slice(part)).collect();
            message.parts = copies;
        }
        message
    }

    fn consumed(&mut self, peer: PeerId, epoch: u32, size: u64) {
        if self.peer(peer).epoch != epoch {
            return self.renew_window(peer);
        }
        if let Some(link) = &mut self.peer_mut(peer).link {
            link.on_consumed(size);
            self.send_credit(peer);
        }
    }

    /// Grants `peer` what there is room for now.
    pub(crate) fn renew_window(&mut self, peer: PeerId) {
        let window = self.window_messages(peer);
        if let Some(link) = &mut self.peer_mut(peer).link {
            link.set_window_messages(window);
            self.send_credit(peer);
        }
    }

    /// Messages that the connection of `peer` has room for: what an earlier one left unread takes
    /// its part until it is read.
    pub(crate) fn window_messages(&self, peer: PeerId) -> u64 {
        let entry = self.peer(peer);
        let earlier = entry.inbox.partition_point(|message| message.epoch != entry.epoch);
        match Options::limit(self.options.recv_hwm) {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(earlier as u64),
        }
    }

    /// Says that the peer refused this side.
    fn on_refused(&mut self, peer: PeerId, fault: Fault) {
        self.counters.refused += 1;
        self.monitors.tell(&MonitorEvent::Refused { peer, fault, by_peer: true });
        self.after_refusal(peer, fault);
        self.close_ep(peer);
    }
}

fn begin(entry: &mut super::peer::Peer, tag: Option<(u64, Bytes)>) {
    let (seq, epoch) = (entry.seq_next, entry.epoch);
    entry.seq_next += 1;
    entry.assembly.message =
        Some(Incoming { parts: smallvec![], size: 0, tag, pending: 0, seq, epoch });
}

// A slot holds at least a frame's head.
const _: () = assert!(COPY_BYTES_MAX > HEAD_BYTES);
