//! Flow control by credit: a receiver grants what it has room for, in messages and in bytes.
//!
//! Credits are totals since the link came up, so that a lost or repeated update cannot add up. The
//! receiver announces new credit once half of its window was consumed. A message larger than what
//! is left may go out while at least half of the window's bytes are free; so a window never blocks
//! a message for ever, and the receiver holds at most one message more than its window.

use core::fmt;

/// How much a receiver has room for. `u64::MAX` is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Whole messages.
    pub messages: u64,
    /// Bytes over all parts.
    pub bytes: u64,
}

impl Room {
    /// No limit at all.
    pub const UNLIMITED: Self = Self { messages: u64::MAX, bytes: u64::MAX };
}

/// A peer broke the rules of credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditError {
    /// Credit went back or was repeated.
    NotNew,
    /// More was sent than was granted.
    Overdrawn,
}

impl fmt::Display for CreditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNew => "credit that is not new was granted",
            Self::Overdrawn => "more was sent than was granted",
        })
    }
}

impl core::error::Error for CreditError {}

/// Whether a message of `bytes` may go while `free` of `window` bytes are free.
fn fits(bytes: u64, free: u64, window: u64) -> bool {
    bytes <= free || free >= window / 2 + window % 2
}

fn free(granted: u64, used: u64) -> u64 {
    if granted == u64::MAX { u64::MAX } else { granted.saturating_sub(used) }
}

/// Some messages and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Whole messages.
    pub messages: u64,
    /// Bytes over all their parts.
    pub bytes: u64,
}

impl Tally {
    /// Counts one more message of `bytes`.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The sender's view: what it may still send.
#[derive(Debug, Clone)]
pub struct Window {
    window_bytes: u64,
    granted: Room,
    sent: Room,
}

impl Window {
    /// A window as the peer's HELLO opened it.
    pub fn new(opened: Room) -> Self {
        Self { window_bytes: opened.bytes, granted: opened, sent: Room { messages: 0, bytes: 0 } }
    }

    /// Whether a message of `bytes` may be sent now.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.has_room_behind(Tally::default(), bytes)
    }

    /// Whether a message of `bytes` may be sent once those of `tally` were, which are not counted
    /// yet.
    pub fn has_room_behind(&self, tally: Tally, bytes: u64) -> bool {
        let free = self.free_behind(tally);
        free.messages > 0 && fits(bytes, free.bytes, self.window_bytes)
    }

    /// What is left once the messages of `tally` were sent: messages that fit together in both
    /// counts may all go.
    pub fn free_behind(&self, tally: Tally) -> Room {
        Room {
            messages: free(self.granted.messages, self.sent.messages + tally.messages),
            bytes: free(self.granted.bytes, self.sent.bytes.saturating_add(tally.bytes)),
        }
    }

    /// Counts messages as sent.
    pub fn on_sent(&mut self, tally: Tally) {
        self.sent.messages += tally.messages;
        self.sent.bytes = self.sent.bytes.saturating_add(tally.bytes);
    }

    /// Messages sent since the link came up.
    pub fn sent_messages(&self) -> u64 {
        self.sent.messages
    }

    /// Takes the peer's new totals.
    ///
    /// # Errors
    /// [`CreditError::NotNew`] if they do not advance: a protocol violation.
    pub fn on_credit(&mut self, total: Room) -> Result<(), CreditError> {
        let back = total.messages < self.granted.messages || total.bytes < self.granted.bytes;
        if back || total == self.granted {
            return Err(CreditError::NotNew);
        }
        self.granted = total;
        Ok(())
    }
}

/// The receiver's view: what it granted and what of it was consumed.
#[derive(Debug, Clone)]
pub struct Grant {
    window: Room,
    granted: Room,
    received: Room,
    consumed: Room,
    /// From this much consumed on, new credit is due.
    due: Room,
    grown: bool,
}

impl Grant {
    /// A grant of `window` to start with, as said in HELLO.
    pub fn new(window: Room) -> Self {
        let none = Room { messages: 0, bytes: 0 };
        let due = due(window, window);
        Self { window, granted: window, received: none, consumed: none, due, grown: false }
    }

    /// Counts a message that arrived.
    ///
    /// # Errors
    /// [`CreditError::Overdrawn`] if it was not granted: a protocol violation.
    pub fn on_message(&mut self, bytes: u64) -> Result<(), CreditError> {
        let room = free(self.granted.messages, self.received.messages) > 0
            && fits(bytes, free(self.granted.bytes, self.received.bytes), self.window.bytes);
        if !room {
            return Err(CreditError::Overdrawn);
        }
        self.received.messages += 1;
        self.received.bytes = self.received.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Counts messages that arrived together, if they were all granted without an exception for
    /// large ones; says whether. If not nothing changed: count one by one.
    #[must_use]
    pub fn on_messages(&mut self, tally: Tally) -> bool {
        let granted = tally.messages <= free(self.granted.messages, self.received.messages)
            && tally.bytes <= free(self.granted.bytes, self.received.bytes);
        if granted {
            self.received.messages += tally.messages;
            self.received.bytes = self.received.bytes.saturating_add(tally.bytes);
        }
        granted
    }

    /// Counts a message that the application took, or that was dropped here. Says whether new
    /// credit may be due.
    #[inline]
    pub fn on_consumed(&mut self, bytes: u64) -> bool {
        self.consumed.messages += 1;
        self.consumed.bytes = self.consumed.bytes.saturating_add(bytes);
        self.consumed.messages >= self.due.messages || self.consumed.bytes >= self.due.bytes
    }

    /// Messages received since the link came up.
    pub fn received_messages(&self) -> u64 {
        self.received.messages
    }

    /// The totals to announce, when it is time to. Counts them as announced.
    pub fn poll_due(&mut self) -> Option<Room> {
        let target = Room {
            messages: total(self.window.messages, self.consumed.messages, self.granted.messages),
            bytes: total(self.window.bytes, self.consumed.bytes, self.granted.bytes),
        };
        let is_due = gained(self.granted.messages, target.messages, self.window.messages)
            || gained(self.granted.bytes, target.bytes, self.window.bytes);
        let is_due = is_due || (self.grown && target != self.granted);
        self.grown = false;
        is_due.then(|| {
            self.granted = target;
            self.due = due(self.granted, self.window);
            target
        })
    }

    /// Changes how many messages a living link has room for. A larger window is announced at once;
    /// a smaller one takes nothing back that was granted.
    pub fn set_messages(&mut self, messages: u64) {
        self.grown = messages > self.window.messages;
        self.window.messages = messages;
        self.due = due(self.granted, self.window);
    }
}

fn total(window: u64, consumed: u64, granted: u64) -> u64 {
    window.saturating_add(consumed).max(granted)
}

/// Whether the step from `granted` to `target` is at least half a window.
fn gained(granted: u64, target: u64, window: u64) -> bool {
    target > granted && target - granted >= step(window)
}

fn step(window: u64) -> u64 {
    (window / 2).max(1)
}

/// How much must have been consumed until the next step is due.
fn due(granted: Room, window: Room) -> Room {
    let due = |granted: u64, window: u64| match granted {
        u64::MAX => u64::MAX,
        _ => granted.saturating_add(step(window)).saturating_sub(window),
    };
    Room {
        messages: due(granted.messages, window.messages),
        bytes: due(granted.bytes, window.bytes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(bytes: u64) -> Tally {
        Tally { messages: 1, bytes }
    }

    #[test]
    fn a_message_over_the_window_goes_alone() {
        let mut window = Window::new(Room { messages: 10, bytes: 100 });
        assert!(window.has_room(1_000));
        window.on_sent(one(1_000));
        assert!(!window.has_room(1));
    }

    #[test]
    fn credit_that_is_not_new_is_an_error() {
        let mut window = Window::new(Room { messages: 10, bytes: 100 });
        for (messages, bytes) in [(10, 100), (9, 200), (20, 99)] {
            assert_eq!(window.on_credit(Room { messages, bytes }), Err(CreditError::NotNew));
        }
        assert_eq!(window.on_credit(Room { messages: 10, bytes: 101 }), Ok(()));
    }

    #[test]
    fn without_limit_nothing_is_ever_due() {
        let mut grant = Grant::new(Room::UNLIMITED);
        for _ in 0..1_000 {
            grant.on_message(1 << 30).unwrap();
            grant.on_consumed(1 << 30);
        }
        assert_eq!(grant.poll_due(), None);
    }

    #[test]
    fn sending_without_credit_is_noticed() {
        let mut grant = Grant::new(Room { messages: 1, bytes: 100 });
        grant.on_message(1).unwrap();
        assert_eq!(grant.on_message(1), Err(CreditError::Overdrawn));
    }

    #[test]
    fn messages_that_came_together_are_all_granted_or_counted_one_by_one() {
        let mut grant = Grant::new(Room { messages: 3, bytes: 100 });
        assert!(grant.on_messages(Tally { messages: 2, bytes: 90 }));
        assert!(!grant.on_messages(Tally { messages: 2, bytes: 2 }));
        assert!(!grant.on_messages(Tally { messages: 1, bytes: 11 }));
        assert_eq!(grant.received_messages(), 2);
        assert!(grant.on_messages(Tally { messages: 1, bytes: 10 }));
        assert_eq!(grant.on_message(0), Err(CreditError::Overdrawn));
    }

    #[test]
    fn what_is_free_behind_messages_is_free_once_they_were_sent() {
        let mut window = Window::new(Room { messages: 5, bytes: 100 });
        let tally = Tally { messages: 4, bytes: 60 };
        let behind = window.free_behind(tally);
        assert_eq!((window.has_room_behind(tally, 50), window.has_room(50)), (false, true));
        window.on_sent(tally);
        assert_eq!((window.free_behind(Tally::default()), behind.messages), (behind, 1));
    }

    proptest! {
        /// The cheap answer of `on_consumed` never misses credit that is due.
        #[test]
        fn consuming_tells_when_credit_is_due(
            window in (0..20_u64, 1..200_u64),
            steps in prop::collection::vec((0..60_u64, 0..40_u64, any::<bool>()), 1..200),
        ) {
            let mut grant = Grant::new(Room { messages: window.0, bytes: window.1 });
            for (bytes, messages, resize) in steps {
                if resize {
                    grant.set_messages(messages);
                    grant.poll_due();
                }
                let told = grant.on_consumed(bytes);
                prop_assert_eq!(told, grant.poll_due().is_some());
            }
        }

        #[test]
        fn a_consumer_that_keeps_consuming_never_leaves_its_sender_stuck(
            window in (1..20_u64, 1..200_u64),
            sizes in prop::collection::vec(0..500_u64, 1..200),
        ) {
            let room = Room { messages: window.0, bytes: window.1 };
            let (mut sender, mut receiver) = (Window::new(room), Grant::new(room));
            let mut unread = std::collections::VecDeque::new();
            for size in sizes {
                while !sender.has_room(size) {
                    let read = unread.pop_front();
                    prop_assert!(read.is_some(), "stuck with everything consumed");
                    receiver.on_consumed(read.unwrap());
                    if let Some(total) = receiver.poll_due() {
                        prop_assert_eq!(sender.on_credit(total), Ok(()));
                    }
                }
                sender.on_sent(one(size));
                prop_assert_eq!(receiver.on_message(size), Ok(()));
                unread.push_back(size);
                prop_assert!(unread.len() as u64 <= window.0);
            }
        }
    }
}
