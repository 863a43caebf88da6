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
        free(self.granted.messages, self.sent.messages) > 0
            && fits(bytes, free(self.granted.bytes, self.sent.bytes), self.window_bytes)
    }

    /// Counts a message of `bytes` as sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent.messages += 1;
        self.sent.bytes = self.sent.bytes.saturating_add(bytes);
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
    grown: bool,
}

impl Grant {
    /// A grant of `window` to start with, as said in HELLO.
    pub fn new(window: Room) -> Self {
        let none = Room { messages: 0, bytes: 0 };
        Self { window, granted: window, received: none, consumed: none, grown: false }
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

    /// Counts a message that the application took, or that was dropped here.
    pub fn on_consumed(&mut self, bytes: u64) {
        self.consumed.messages += 1;
        self.consumed.bytes = self.consumed.bytes.saturating_add(bytes);
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
        let due = gained(self.granted.messages, target.messages, self.window.messages)
            || gained(self.granted.bytes, target.bytes, self.window.bytes);
        let due = due || (self.grown && target != self.granted);
        self.grown = false;
        due.then(|| {
            self.granted = target;
            target
        })
    }

    /// Changes how many messages a living link has room for. A larger window is announced at once;
    /// a smaller one takes nothing back that was granted.
    pub fn set_messages(&mut self, messages: u64) {
        self.grown = messages > self.window.messages;
        self.window.messages = messages;
    }
}

fn total(window: u64, consumed: u64, granted: u64) -> u64 {
    window.saturating_add(consumed).max(granted)
}

/// Whether the step from `granted` to `target` is at least half a window.
fn gained(granted: u64, target: u64, window: u64) -> bool {
    target > granted && target - granted >= (window / 2).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_over_the_window_goes_alone() {
        let mut window = Window::new(Room { messages: 10, bytes: 100 });
        assert!(window.has_room(1_000));
        window.on_sent(1_000);
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

    proptest! {
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
                sender.on_sent(size);
                prop_assert_eq!(receiver.on_message(size), Ok(()));
                unread.push_back(size);
                prop_assert!(unread.len() as u64 <= window.0);
            }
        }
    }
}
