//! Messages on their way in: frames of received slots become messages in the inbox of their peer.

use bytes::Bytes;
use fabric_core::{EpId, Pool, Slot};
use msg_proto::credit::{Room, Tally};
use msg_proto::fault::Fault;
use msg_proto::link::{Link, PeerInfo};
use msg_proto::lone::LoneTagged;
use msg_proto::wire::{Frame, HEAD_BYTES};
use smallvec::SmallVec;

use super::inbox::{Found, Incoming, Run, Taken};
use super::{Core, Heard, Net};
use crate::monitor::{MonitorEvent, PeerId};
use crate::options::Options;
use crate::roles::Role;

/// Slots with up to this many bytes are copied out, to receive again at once; fuller ones are
/// shared, as long as the pool has slots to spare.
pub(super) const COPY_BYTES_MAX: usize = 4096;
/// Copies of several messages that share one small slot; further ones are allocated.
pub(super) const COPY_SLOTS: usize = 64;
/// Slots that are never lent to the application.
pub(crate) const RESERVED_SLOTS: usize = 64;
/// Smallest part that may be offered: smaller ones would cost more to note than to send.
pub(crate) const OFFER_BYTES_MIN: u64 = 4096;

impl<R: Role> Core<R> {
    /// A fabric message arrived.
    pub(crate) fn on_slot(&mut self, port: usize, ep: EpId, mut slot: Slot, heard: &mut Heard) {
        self.net.ports[port].posted -= 1;
        let lends = self.net.lends(&slot);
        let Some(&peer) = self.net.ports[port].by_ep.get(&ep) else {
            self.net.repost(port, slot);
            return;
        };
        if self.net.peer(peer).link.as_ref().is_some_and(Link::minds_silence) {
            let now = heard.at(&self.net);
            if let Some(link) = &mut self.net.peer_mut(peer).link {
                link.on_traffic(now);
            }
        }
        if lends {
            self.on_frames(peer, ep, &Source::Lent(&slot.freeze()));
        } else {
            let entry = self.net.peer(peer);
            let is_greeted = entry.is_connector() && !entry.is_up();
            self.on_frames(peer, ep, &Source::Copied(slot.filled()));
            if is_greeted {
                // Many sockets are idle from here on, and each would keep the page.
                slot.forget();
            }
            self.net.repost(port, slot);
        }
    }

    fn on_frames(&mut self, peer: PeerId, ep: EpId, source: &Source<'_>) {
        let mut rest = source.bytes();
        while !rest.is_empty() {
            let len = self.on_run(peer, source, rest);
            rest = &rest[len..];
            if len > 0 {
                continue;
            }
            match self.on_next(peer, source, rest) {
                Ok(len) => rest = &rest[len..],
                Err(fault) => {
                    self.net.refuse(peer, fault);
                    break;
                }
            }
            if self.net.peer(peer).ep != Some(ep) {
                return;
            }
        }
        self.drain_link(peer);
    }

    /// Takes what is at the beginning of `rest`; says how many bytes that has.
    fn on_next(&mut self, peer: PeerId, source: &Source<'_>, rest: &[u8]) -> Result<usize, Fault> {
        if let Some(lone) = LoneTagged::decode(rest) {
            self.on_lone_tagged(peer, lone, source)?;
            return Ok(lone.encoded_len());
        }
        let (frame, len) = Frame::decode(rest).map_err(|_| Fault::Protocol)?;
        self.on_frame(peer, &frame, source)?;
        Ok(len)
    }

    /// Takes the messages at the beginning of `rest` that need no more than to be counted and kept;
    /// says how many bytes that were.
    fn on_run(&mut self, peer: PeerId, source: &Source<'_>, rest: &[u8]) -> usize {
        if !self.role.takes_runs(&self.net, peer) || !self.net.takes_runs(peer) {
            return 0;
        }
        let (role, size_max) = (&self.role, self.net.options.message_bytes_max);
        let found = Found::find(rest, size_max, |body| role.admits_lone(body));
        if found.tally.messages == 0 || !self.net.count_received(peer, found.tally) {
            return 0;
        }
        let bytes = self.net.run_bytes(source, &rest[..found.len], found.tally.messages);
        let was_empty = self.net.keep_run(peer, bytes, found.tally.messages);
        if was_empty {
            self.role.on_ready(&mut self.net, peer);
        }
        found.len
    }

    /// A request or reply with its only part.
    fn on_lone_tagged(
        &mut self,
        peer: PeerId,
        LoneTagged { is_request, id, body }: LoneTagged<'_>,
        source: &Source<'_>,
    ) -> Result<(), Fault> {
        self.net.require_up(peer)?;
        R::tagged(is_request)?;
        if body.len() > self.net.options.message_bytes_max {
            return Err(Fault::TooLong);
        }
        self.net.require_between(peer)?;
        if !self.goes_first(peer, id, source) {
            let mut message = self.net.tagged(peer, id, &[])?;
            message.size = body.len() as u64;
            message.parts.push(source.part(body));
            self.on_message(peer, message)?;
        } else if self.net.count_message(peer, body.len() as u64) {
            self.role.on_first(&mut self.net, peer, (id, Bytes::new()), source.part(body));
        }
        Ok(())
    }

    fn goes_first(&self, peer: PeerId, id: u64, source: &Source<'_>) -> bool {
        matches!(source, Source::Copied(_))
            && self.net.peer(peer).leaving.is_none()
            && self.role.goes_first(&self.net, peer, id)
    }

    fn on_frame(
        &mut self,
        peer: PeerId,
        frame: &Frame<'_>,
        source: &Source<'_>,
    ) -> Result<(), Fault> {
        if let Frame::Part { more, body } = *frame {
            return self.on_part(peer, more, source.part(body));
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
                let message = self.net.tagged(peer, id, envelope)?;
                self.net.peer_mut(peer).assembly.message = Some(message);
                Ok(())
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
                link.on_ping(now, ttl_tenths, context);
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
        if !self.net.count_message(peer, message.size) {
            return Ok(());
        }
        let malformed = R::NEEDS_TAG && message.tag.is_none();
        let leaving = self.net.peer(peer).leaving.is_some();
        if !malformed && !leaving && self.role.admits(&mut self.net, peer, &message) {
            self.keep(peer, message);
        } else {
            self.net.discard(peer, message.size);
        }
        Ok(())
    }

    fn keep(&mut self, peer: PeerId, mut message: Incoming) {
        if self.net.options.conflate {
            self.net.drop_inbox(peer);
        }
        message.filter = if message.pending == 0 { self.net.filter } else { 0 };
        let entry = self.net.peer_mut(peer);
        let was_empty = entry.inbox.is_empty();
        entry.inbox.push(message);
        if was_empty && entry.is_ready() {
            self.role.on_ready(&mut self.net, peer);
        }
    }
}

/// What is to be done after a message was taken out of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterRun {
    /// Nothing: others follow.
    Nothing,
    /// Look whether there is another one.
    Look,
    /// The same, and new credit may be due.
    Credit,
}

/// What arrived.
enum Source<'a> {
    /// Its slot is lent to whoever gets a piece of it.
    Lent(&'a Bytes),
    /// Its slot is to receive again: what is kept is copied.
    Copied(&'a [u8]),
}

impl Source<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }

    fn part(&self, body: &[u8]) -> Bytes {
        match self {
            Self::Lent(bytes) => bytes.slice_ref(body),
            Self::Copied(_) => Bytes::copy_from_slice(body),
        }
    }
}

impl Net {
    /// Whether a received slot is lent to whoever gets its messages.
    fn lends(&mut self, slot: &Slot) -> bool {
        if slot.len() <= COPY_BYTES_MAX {
            return false;
        }
        self.pool_short = self.pool.as_ref().is_some_and(|pool| pool.free() <= RESERVED_SLOTS);
        !self.pool_short
    }

    /// Whether messages of `peer` can be kept as they come.
    fn takes_runs(&self, peer: PeerId) -> bool {
        let entry = self.peer(peer);
        let between = entry.assembly.message.is_none() && entry.assembly.fragments.is_none();
        between && entry.is_up() && entry.leaving.is_none() && !self.options.conflate
    }

    /// Counts a message of `peer`; if it may not send any, its link refuses it.
    fn count_message(&mut self, peer: PeerId, size: u64) -> bool {
        let entry = self.peer_mut(peer);
        let granted = entry.link.as_mut().is_some_and(|link| link.on_message(size).is_ok());
        if granted {
            entry.received += 1;
            self.counters.received += 1;
            self.counters.received_bytes += size;
        }
        granted
    }

    /// Counts messages of `peer` if it may send them all; if not, nothing changes.
    fn count_received(&mut self, peer: PeerId, tally: Tally) -> bool {
        let entry = self.peer_mut(peer);
        let granted = entry.link.as_mut().is_some_and(|link| link.on_messages(tally));
        if granted {
            entry.received += tally.messages;
            self.counters.received += tally.messages;
            self.counters.received_bytes += tally.bytes;
        }
        granted
    }

    fn run_bytes(&self, source: &Source<'_>, run: &[u8], messages: u64) -> Bytes {
        match source {
            Source::Lent(bytes) => bytes.slice_ref(run),
            Source::Copied(_) if messages == 1 => Bytes::copy_from_slice(run),
            Source::Copied(_) => self.copy_to_share(run),
        }
    }

    /// A copy that many can share without another allocation.
    fn copy_to_share(&self, run: &[u8]) -> Bytes {
        // Without such slots copies are allocated.
        let copies = self.copies.get_or_init(|| Pool::new(COPY_BYTES_MAX, COPY_SLOTS).ok());
        let slot = copies.as_ref().and_then(Pool::take);
        match slot.and_then(|mut slot| slot.append(run).then_some(slot)) {
            Some(slot) => slot.freeze(),
            None => Bytes::copy_from_slice(run),
        }
    }

    /// Keeps a run of messages; says whether nothing was kept before.
    fn keep_run(&mut self, peer: PeerId, bytes: Bytes, messages: u64) -> bool {
        let filter = self.filter;
        let entry = self.peer_mut(peer);
        let (seq, epoch) = (entry.seq_next, entry.epoch);
        entry.seq_next += 1;
        let was_empty = entry.inbox.is_empty();
        entry.inbox.push_run(Run { bytes, messages, seq, epoch, filter });
        was_empty
    }

    pub(super) fn require_up(&self, peer: PeerId) -> Result<(), Fault> {
        if self.peer(peer).is_up() { Ok(()) } else { Err(Fault::Protocol) }
    }

    /// A message was not wanted.
    pub(crate) fn discard(&mut self, peer: PeerId, size: u64) {
        self.counters.discarded += 1;
        self.consumed(peer, self.peer(peer).epoch, size);
    }

    /// Drops what waits to be received from `peer`; says how many messages that was.
    pub(crate) fn empty_inbox(&mut self, peer: PeerId) -> u64 {
        let mut count = 0;
        while let Some((epoch, size)) = self.peer_mut(peer).inbox.drop_next() {
            self.consumed(peer, epoch, size);
            count += 1;
        }
        count
    }

    /// The oldest message of `peer`, if it is whole.
    pub(crate) fn take(&mut self, peer: PeerId) -> Option<Taken> {
        let mut taken = self.peer_mut(peer).inbox.take()?;
        self.on_delivered(peer, taken.epoch, taken.size);
        if self.pool_short {
            unpin(&mut taken);
        }
        Some(taken)
    }

    /// The oldest message of `peer`, if it stands in a run that `may` be taken from and need not be
    /// copied. The caller does what that brings about.
    #[inline(always)]
    pub(crate) fn take_of_run(
        &mut self,
        peer: PeerId,
        may: impl FnOnce(Option<&PeerInfo>, &Run) -> bool,
    ) -> Option<(Bytes, AfterRun)> {
        let entry = self.peers.get_mut(peer.0 as usize).filter(|_| !self.pool_short)?;
        let (info, epoch) = (entry.info.as_ref(), entry.epoch);
        let may = |run: &Run| run.epoch == epoch && may(info, run);
        let (body, last) = entry.inbox.take_of_run(may)?;
        self.counters.delivered += 1;
        let link = entry.link.as_mut();
        let due = link.is_some_and(|link| link.on_consumed(body.len() as u64));
        let next = match (due, last) {
            (true, _) => AfterRun::Credit,
            (_, true) => AfterRun::Look,
            _ => AfterRun::Nothing,
        };
        Some((body, next))
    }

    /// A message of `size` bytes that came over the connection with number `epoch` leaves the
    /// engine.
    pub(crate) fn on_delivered(&mut self, peer: PeerId, epoch: u32, size: u64) {
        self.counters.delivered += 1;
        self.consumed(peer, epoch, size);
    }

    fn consumed(&mut self, peer: PeerId, epoch: u32, size: u64) {
        let entry = self.peer_mut(peer);
        if entry.epoch != epoch {
            return self.renew_window(peer);
        }
        if entry.link.as_mut().is_some_and(|link| link.on_consumed(size)) {
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
        match Options::limit(self.options.recv_hwm) {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(entry.inbox.earlier_than(entry.epoch)),
        }
    }

    /// Says that the peer refused this side.
    fn on_refused(&mut self, peer: PeerId, fault: Fault) {
        self.counters.refused += 1;
        self.tell(&MonitorEvent::Refused { peer, fault, by_peer: true });
        self.after_refusal(peer, fault);
        self.close_ep(peer);
    }
}

/// When the pool runs short, a message that the application may keep is copied out of its slot.
#[cold]
fn unpin(taken: &mut Taken) {
    if taken.size <= COPY_BYTES_MAX as u64 {
        let copies: SmallVec<[Bytes; 1]> =
            taken.parts.iter().map(|part| Bytes::copy_from_slice(part)).collect();
        taken.parts = copies;
    }
}

// A slot holds at least a frame's head.
const _: () = assert!(COPY_BYTES_MAX > HEAD_BYTES);
