//! What arrived from a peer and waits to be received.
//!
//! Messages of one part stay as they arrived, a whole run of them in one entry, and are made one by
//! one when they are taken: until then they cost nothing each.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use msg_proto::credit::Tally;
use msg_proto::wire::{self, HEAD_BYTES};
use smallvec::{SmallVec, smallvec};

/// Id and envelope of a request or reply.
pub(crate) type Tag = (u64, Bytes);

/// A message on its way in, or waiting to be received.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) parts: SmallVec<[Bytes; 1]>,
    pub(crate) size: u64,
    pub(crate) tag: Option<Tag>,
    /// Parts that are still being read from the peer's memory.
    pub(crate) pending: usize,
    /// Names the message while parts are pending.
    pub(crate) seq: u64,
    /// The connection it came over.
    pub(crate) epoch: u32,
    /// As in [`Taken`].
    pub(crate) filter: u64,
}

/// A message that was taken out of an inbox.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) parts: SmallVec<[Bytes; 1]>,
    pub(crate) size: u64,
    pub(crate) tag: Option<Tag>,
    /// The connection it came over.
    pub(crate) epoch: u32,
    /// The version of the filter that it passed; 0 if it was not whole then.
    pub(crate) filter: u64,
}

/// Messages of one part at the beginning of what arrived, and how many bytes they take there.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) tally: Tally,
    pub(crate) len: usize,
}

impl Found {
    /// Looks for messages of at most `size_max` bytes that `admits` lets in.
    pub(crate) fn find(
        bytes: &[u8],
        size_max: usize,
        mut admits: impl FnMut(&[u8]) -> bool,
    ) -> Self {
        let mut found = Self::default();
        while let Some(body) = bytes.get(found.len..).and_then(wire::lone_part) {
            if body.len() > size_max || !admits(body) {
                break;
            }
            found.tally.add(body.len() as u64);
            found.len += HEAD_BYTES + body.len();
        }
        found
    }
}

/// Messages of one part each, as they arrived.
#[derive(Debug)]
pub(crate) struct Run {
    /// Their frames and nothing else.
    pub(crate) bytes: Bytes,
    pub(crate) messages: u64,
    pub(crate) seq: u64,
    pub(crate) epoch: u32,
    pub(crate) filter: u64,
}

impl Run {
    #[inline(always)]
    fn take_body(&mut self) -> Option<Bytes> {
        let len = wire::lone_part(&self.bytes)?.len();
        self.messages -= 1;
        self.bytes.advance(HEAD_BYTES);
        // The last one takes the handle along.
        Some(self.bytes.split_to(len))
    }

    fn take(&mut self) -> Option<Taken> {
        let body = self.take_body()?;
        Some(Taken {
            size: body.len() as u64,
            parts: smallvec![body],
            tag: None,
            epoch: self.epoch,
            filter: self.filter,
        })
    }
}

#[derive(Debug)]
enum Entry {
    Message(Incoming),
    Run(Run),
}

impl Entry {
    fn seq(&self) -> u64 {
        match self {
            Self::Message(message) => message.seq,
            Self::Run(run) => run.seq,
        }
    }

    fn epoch(&self) -> u32 {
        match self {
            Self::Message(message) => message.epoch,
            Self::Run(run) => run.epoch,
        }
    }

    fn messages(&self) -> u64 {
        match self {
            Self::Message(_) => 1,
            Self::Run(run) => run.messages,
        }
    }
}

/// Messages in the order they arrived in.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    entries: VecDeque<Entry>,
}

impl Inbox {
    pub(crate) fn push(&mut self, message: Incoming) {
        self.entries.push_back(Entry::Message(message));
    }

    /// Adds a run of at least one message.
    pub(crate) fn push_run(&mut self, run: Run) {
        self.entries.push_back(Entry::Run(run));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the oldest message is whole.
    pub(crate) fn is_ready(&self) -> bool {
        match self.entries.front() {
            Some(Entry::Message(message)) => message.pending == 0,
            Some(Entry::Run(_)) => true,
            None => false,
        }
    }

    /// The oldest message if it stands in a run that `may` be taken from, and whether that was the
    /// last one of it.
    #[inline(always)]
    pub(crate) fn take_of_run(&mut self, may: impl FnOnce(&Run) -> bool) -> Option<(Bytes, bool)> {
        let Entry::Run(run) = self.entries.front_mut()? else { return None };
        if !may(run) {
            return None;
        }
        let body = run.take_body()?;
        let last = run.messages == 0;
        if last {
            self.entries.pop_front();
        }
        Some((body, last))
    }

    /// Number and connection of the oldest message, whole or not.
    pub(crate) fn front(&self) -> Option<(u64, u32)> {
        self.entries.front().map(|entry| (entry.seq(), entry.epoch()))
    }

    /// Number of the oldest message, if it is whole.
    pub(crate) fn ready_seq(&self) -> Option<u64> {
        self.entries.front().filter(|_| self.is_ready()).map(Entry::seq)
    }

    /// The oldest message, if it is whole.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        match self.entries.front_mut()? {
            Entry::Run(run) => {
                let taken = run.take();
                if run.messages == 0 {
                    self.entries.pop_front();
                }
                taken
            }
            Entry::Message(message) if message.pending > 0 => None,
            Entry::Message(_) => self.take_message(),
        }
    }

    fn take_message(&mut self) -> Option<Taken> {
        match self.entries.pop_front()? {
            Entry::Message(Incoming { parts, size, tag, epoch, filter, .. }) => {
                Some(Taken { parts, size, tag, epoch, filter })
            }
            Entry::Run(mut run) => run.take(),
        }
    }

    /// The next one to drop, whole or not: connection and size.
    pub(crate) fn drop_next(&mut self) -> Option<(u32, u64)> {
        match self.entries.front()? {
            Entry::Message(message) => {
                let dropped = (message.epoch, message.size);
                self.entries.pop_front();
                Some(dropped)
            }
            Entry::Run(_) => self.take().map(|taken| (taken.epoch, taken.size)),
        }
    }

    /// The message with number `seq`, unless it is whole and in a run.
    pub(crate) fn find_mut(&mut self, seq: u64) -> Option<&mut Incoming> {
        let at = self.entries.binary_search_by_key(&seq, Entry::seq).ok()?;
        match self.entries.get_mut(at)? {
            Entry::Message(message) => Some(message),
            Entry::Run(_) => None,
        }
    }

    /// Drops what is not whole; says how many messages that was.
    pub(crate) fn drop_pending(&mut self) -> u64 {
        let before = self.entries.len();
        self.entries
            .retain(|entry| !matches!(entry, Entry::Message(message) if message.pending > 0));
        (before - self.entries.len()) as u64
    }

    /// How many messages came over connections before the one with number `epoch`.
    pub(crate) fn earlier_than(&self, epoch: u32) -> u64 {
        self.entries.iter().take_while(|entry| entry.epoch() != epoch).map(Entry::messages).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bodies: &[&str]) -> Vec<u8> {
        let frame =
            |body: &&str| [&wire::part_head(false, body.len() as u32), body.as_bytes()].concat();
        bodies.iter().flat_map(frame).collect()
    }

    fn run(bodies: &[&str], seq: u64, epoch: u32) -> Run {
        let (bytes, messages) = (frames(bodies).into(), bodies.len() as u64);
        Run { bytes, messages, seq, epoch, filter: 1 }
    }

    fn message(body: &'static str, pending: usize, seq: u64) -> Incoming {
        let parts = smallvec![Bytes::from(body)];
        Incoming { parts, size: body.len() as u64, tag: None, pending, seq, epoch: 2, filter: 1 }
    }

    fn inbox() -> Inbox {
        let mut inbox = Inbox::default();
        inbox.push_run(run(&["a", "", "ccc"], 0, 1));
        inbox.push(message("dd", 1, 1));
        inbox.push_run(run(&["e"], 2, 2));
        inbox
    }

    fn take_all(inbox: &mut Inbox) -> Vec<Bytes> {
        std::iter::from_fn(|| inbox.take()).map(|taken| taken.parts[0].clone()).collect()
    }

    #[test]
    fn messages_of_runs_come_one_by_one_up_to_one_that_is_not_whole() {
        let mut inbox = inbox();
        assert_eq!(take_all(&mut inbox), ["a", "", "ccc"]);
        assert!(!inbox.is_ready() && !inbox.is_empty());
        inbox.find_mut(1).unwrap().pending = 0;
        assert_eq!(inbox.ready_seq(), Some(1));
        assert_eq!(take_all(&mut inbox), ["dd", "e"]);
        assert!(inbox.is_empty());
    }

    #[test]
    fn what_is_not_whole_is_dropped_alone() {
        let mut inbox = inbox();
        assert_eq!((inbox.drop_pending(), inbox.drop_pending()), (1, 0));
        assert_eq!(take_all(&mut inbox), ["a", "", "ccc", "e"]);
    }

    #[test]
    fn all_can_be_dropped_one_by_one() {
        let mut inbox = inbox();
        let dropped: Vec<_> = std::iter::from_fn(|| inbox.drop_next()).collect();
        assert_eq!(dropped, [(1, 1), (1, 0), (1, 3), (2, 2), (2, 1)]);
    }

    #[test]
    fn messages_of_earlier_connections_are_counted_in_runs_too() {
        let mut inbox = inbox();
        assert_eq!(
            (inbox.earlier_than(1), inbox.earlier_than(2), inbox.earlier_than(3)),
            (0, 3, 5)
        );
        inbox.take();
        assert_eq!(inbox.earlier_than(2), 2);
    }

    #[test]
    fn a_run_ends_before_what_is_too_long_or_not_wanted_or_no_whole_message() {
        let bytes = [frames(&["ab", "c"]), frames(&["no", "ab"])].concat();
        let found = |bytes: &[u8], max| Found::find(bytes, max, |body| body != b"no").tally;
        assert_eq!(found(&bytes, 2), Tally { messages: 2, bytes: 3 });
        assert_eq!(found(&bytes, 1), Tally::default());
        assert_eq!(found(&bytes[..bytes.len() / 2 - 1], 2), Tally { messages: 1, bytes: 2 });
    }
}
