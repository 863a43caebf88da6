//! What is queued for a peer.
//!
//! Small messages of one part are encoded while they wait, many into one slot: once there is credit
//! they leave as they stand.

use std::collections::VecDeque;

use bytes::Bytes;
use fabric_core::Slot;
use msg_proto::credit::{Room, Tally};
use msg_proto::wire::{self, HEAD_BYTES};

use super::outbound::append_part;
use super::peer::{Head, Outgoing};
use crate::Message;

#[derive(Debug)]
enum Queued {
    Message(Outgoing),
    Run(Encoded),
}

/// Messages of one part each, as they will be sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    slot: Slot,
    /// Bytes of it that have left.
    left: usize,
    tally: Tally,
    /// Bytes of the largest message.
    pub(crate) size_max: u64,
}

impl Encoded {
    fn append(&mut self, part: &[u8]) {
        append_part(&mut self.slot, false, part);
        self.tally.add(part.len() as u64);
        self.size_max = self.size_max.max(part.len() as u64);
    }

    /// The messages that have not left.
    fn rest(&self) -> &[u8] {
        &self.slot.filled()[self.left..]
    }

    /// Whether all its messages may leave together where there is `room`.
    pub(crate) fn is_within(&self, room: Room) -> bool {
        self.left == 0 && self.tally.messages <= room.messages && self.tally.bytes <= room.bytes
    }

    /// The messages at its beginning that there is `room` for, and how many bytes they take.
    pub(crate) fn within(&self, room: Room) -> (Tally, usize) {
        let (mut tally, mut len) = (Tally::default(), 0);
        while let Some(body) = wire::lone_part(&self.rest()[len..]) {
            let size = body.len() as u64;
            if tally.messages == room.messages || tally.bytes.saturating_add(size) > room.bytes {
                break;
            }
            tally.add(size);
            len += HEAD_BYTES + body.len();
        }
        (tally, len)
    }

    /// Bytes of its first message.
    pub(crate) fn first_size(&self) -> u64 {
        wire::lone_part(self.rest()).map_or(0, |body| body.len() as u64)
    }

    fn unpack(&self) -> Vec<Outgoing> {
        let mut rest = self.rest();
        let mut messages = Vec::new();
        while let Some(body) = wire::lone_part(rest) {
            rest = &rest[HEAD_BYTES + body.len()..];
            let message = Message::single(Bytes::copy_from_slice(body));
            messages.push(Outgoing::new(message, Head::None));
        }
        messages
    }
}

/// Messages in the order they leave in.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Queued>,
    all: Tally,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of messages.
    pub(crate) fn len(&self) -> u64 {
        self.all.messages
    }

    /// Bytes over all of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.bytes
    }

    pub(crate) fn push(&mut self, outgoing: Outgoing) {
        self.all.add(outgoing.size);
        self.put(Queued::Message(outgoing));
    }

    fn put(&mut self, queued: Queued) {
        if self.entries.capacity() == 0 {
            // A queue grows by four at least, and mostly one entry is all.
            self.entries.reserve_exact(1);
        }
        self.entries.push_back(queued);
    }

    /// Encodes a message behind the last one, if that is encoded and its slot has room.
    pub(crate) fn append(&mut self, part: &[u8], len_max: usize) -> bool {
        let Some(Queued::Run(run)) = self.entries.back_mut() else { return false };
        let need = HEAD_BYTES + part.len();
        if run.slot.len() + need > len_max || run.slot.room() < need {
            return false;
        }
        run.append(part);
        self.all.add(part.len() as u64);
        true
    }

    /// Encodes a message into an empty slot that has room for it.
    pub(crate) fn append_in(&mut self, slot: Slot, part: &[u8]) {
        let mut run = Encoded { slot, left: 0, tally: Tally::default(), size_max: 0 };
        run.append(part);
        self.all.add(part.len() as u64);
        self.put(Queued::Run(run));
    }

    /// Whether no message has anything before its parts.
    pub(crate) fn is_plain(&self) -> bool {
        self.entries.iter().all(|queued| match queued {
            Queued::Message(outgoing) => matches!(outgoing.head, Head::None),
            Queued::Run(_) => true,
        })
    }

    /// Takes the first message, unless it is encoded.
    pub(crate) fn pop(&mut self) -> Option<Outgoing> {
        match self.entries.pop_front()? {
            Queued::Message(outgoing) => {
                self.subtract(Tally { messages: 1, bytes: outgoing.size });
                Some(outgoing)
            }
            run @ Queued::Run(_) => {
                self.entries.push_front(run);
                None
            }
        }
    }

    /// Puts a message back that `pop` gave.
    pub(crate) fn unpop(&mut self, outgoing: Outgoing) {
        self.all.add(outgoing.size);
        self.entries.push_front(Queued::Message(outgoing));
    }

    /// The encoded messages at the front, if such are there.
    pub(crate) fn run(&self) -> Option<&Encoded> {
        match self.entries.front()? {
            Queued::Run(run) => Some(run),
            Queued::Message(_) => None,
        }
    }

    /// Takes the whole run at the front.
    pub(crate) fn take_run(&mut self) -> Option<(Slot, Tally)> {
        self.run()?;
        let Queued::Run(Encoded { slot, tally, .. }) = self.entries.pop_front()? else {
            return None;
        };
        self.subtract(tally);
        Some((slot, tally))
    }

    /// The bytes of the first messages of the run at the front.
    pub(crate) fn run_bytes(&self, len: usize) -> &[u8] {
        self.run().map_or(&[], |run| &run.rest()[..len])
    }

    /// The first messages of the run at the front have left.
    pub(crate) fn advance_run(&mut self, tally: Tally, len: usize) {
        let Some(Queued::Run(run)) = self.entries.front_mut() else { return };
        run.left += len;
        run.tally.messages -= tally.messages;
        run.tally.bytes -= tally.bytes;
        if run.tally.messages == 0 {
            self.entries.pop_front();
        }
        self.subtract(tally);
    }

    /// Makes messages of the run at the front again.
    pub(crate) fn unpack_run(&mut self) {
        let Some(messages) = self.run().map(Encoded::unpack) else { return };
        self.entries.pop_front();
        for outgoing in messages.into_iter().rev() {
            self.entries.push_front(Queued::Message(outgoing));
        }
    }

    /// Drops the first message if it has partly left; says whether.
    pub(crate) fn drop_begun(&mut self) -> bool {
        let begun = self.has_begun();
        if begun {
            self.pop();
        }
        begun
    }

    /// Drops what has not begun to leave; says how many messages that was.
    pub(crate) fn drop_unbegun(&mut self) -> u64 {
        let begun = if self.has_begun() { self.pop() } else { None };
        let dropped = self.clear();
        if let Some(outgoing) = begun {
            self.unpop(outgoing);
        }
        dropped
    }

    /// Drops everything; says how many messages that was.
    pub(crate) fn clear(&mut self) -> u64 {
        let dropped = self.all.messages;
        *self = Self::default();
        dropped
    }

    pub(crate) fn into_messages(self) -> impl Iterator<Item = Outgoing> {
        self.entries.into_iter().flat_map(|queued| match queued {
            Queued::Message(outgoing) => vec![outgoing],
            Queued::Run(run) => run.unpack(),
        })
    }

    fn has_begun(&self) -> bool {
        matches!(self.entries.front(), Some(Queued::Message(outgoing)) if outgoing.begun)
    }

    fn subtract(&mut self, tally: Tally) {
        self.all.messages -= tally.messages;
        self.all.bytes -= tally.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN_MAX: usize = 100;

    fn slot() -> Slot {
        Slot::alloc(LEN_MAX).unwrap()
    }

    fn outgoing(body: &'static str) -> Outgoing {
        Outgoing::new(Message::from(body), Head::None)
    }

    /// A message, a run of three, a message.
    fn queue() -> Queue {
        let mut queue = Queue::default();
        queue.push(outgoing("first"));
        assert!(!queue.append(b"a", LEN_MAX), "the last one is not encoded");
        queue.append_in(slot(), b"a");
        assert!(queue.append(b"", LEN_MAX) && queue.append(b"ccc", LEN_MAX));
        assert!(!queue.append(&[0; LEN_MAX], LEN_MAX), "the slot is full");
        assert!(!queue.append(&[0; LEN_MAX], 9 * LEN_MAX), "it is smaller than others");
        queue.push(outgoing("last"));
        queue
    }

    fn bodies(queue: Queue) -> Vec<String> {
        let text = |outgoing: Outgoing| String::from_utf8(outgoing.message.first().to_vec());
        queue.into_messages().map(|outgoing| text(outgoing).unwrap()).collect()
    }

    #[test]
    fn messages_and_their_bytes_are_counted_encoded_or_not() {
        let mut queue = queue();
        assert_eq!((queue.len(), queue.bytes()), (5, 13));
        assert_eq!(queue.pop().map(|outgoing| outgoing.size), Some(5));
        assert!(queue.pop().is_none(), "the next ones are encoded");
        let (slot, tally) = queue.take_run().unwrap();
        assert_eq!((slot.len(), tally), (3 * HEAD_BYTES + 4, Tally { messages: 3, bytes: 4 }));
        assert_eq!((queue.len(), queue.bytes(), queue.clear()), (1, 4, 1));
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_run_leaves_as_far_as_there_is_room() {
        let mut queue = queue();
        let first = queue.pop();
        let room = |messages, bytes| Room { messages, bytes };
        let run = queue.run().unwrap();
        assert!(run.is_within(room(3, 4)) && !run.is_within(room(2, 4)));
        assert_eq!(run.within(room(9, 3)), (Tally { messages: 2, bytes: 1 }, 2 * HEAD_BYTES + 1));
        let (tally, len) = run.within(room(1, 9));
        assert_eq!(wire::lone_part(queue.run_bytes(len)), Some(&b"a"[..]));
        queue.advance_run(tally, len);
        let run = queue.run().unwrap();
        assert!(!run.is_within(Room::UNLIMITED), "its slot has what has left already");
        assert_eq!((run.first_size(), run.within(Room::UNLIMITED).0.messages), (0, 2));
        queue.unpop(first.unwrap());
        assert_eq!(bodies(queue), ["first", "", "ccc", "last"]);
    }

    #[test]
    fn a_run_can_be_taken_apart() {
        let mut queue = queue();
        queue.pop();
        queue.unpack_run();
        assert_eq!((queue.len(), queue.run().is_none()), (4, true));
        assert_eq!(bodies(queue), ["a", "", "ccc", "last"]);
    }

    #[test]
    fn what_has_begun_to_leave_is_told_apart() {
        let mut queue = queue();
        assert!(!queue.drop_begun());
        let mut first = queue.pop().unwrap();
        first.begun = true;
        queue.unpop(first);
        assert_eq!((queue.drop_unbegun(), queue.len()), (4, 1));
        assert!(queue.drop_begun() && queue.is_empty());
    }
}
