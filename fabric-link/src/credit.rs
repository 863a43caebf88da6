//! How many packets may be on their way to a side that has not asked for them yet.
//!
//! Each side grants the other a window of packets, as a count since the connection began. A grant
//! is renewed when packets were used up, along with other packets, or by itself once it is worth
//! half a window. So no packet finds the peer's queue empty, and no more than three grants by
//! themselves are under way.

/// Both directions of one endpoint.
#[derive(Debug)]
pub struct Credit {
    /// Packets sent, of those that count.
    sent: u32,
    /// Packets that the peer allows.
    allowed: u32,
    /// Packets that this side allows and the peer was told of.
    told: u32,
    /// Packets that this side allows.
    granted: u32,
    /// Packets that arrived, of those that count.
    arrived: u32,
    /// Packets that arrived and whose memory is free again.
    used: u32,
}

/// The peer broke the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// More packets than it was granted.
    #[error("it sent more than it may")]
    Overrun,
    /// A total that no sequence of grants leads to.
    #[error("its grants go back or jump")]
    Grant,
}

impl Credit {
    /// Both sides have told each other their first grants.
    #[inline]
    pub fn new(granted: u32, allowed: u32) -> Self {
        Self { sent: 0, allowed, told: granted, granted, arrived: 0, used: 0 }
    }

    /// Packets that may be sent now.
    #[inline]
    pub fn room(&self) -> usize {
        self.allowed.wrapping_sub(self.sent) as usize
    }

    /// A packet that counts was posted.
    #[inline]
    pub fn on_sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// A packet arrived. Says whether it brought room for more.
    ///
    /// # Errors
    /// How the peer broke the rules.
    #[inline]
    pub fn on_arrived(&mut self, is_credited: bool, allowed: u32) -> Result<bool, Breach> {
        if is_credited {
            if self.arrived == self.told {
                return Err(Breach::Overrun);
            }
            self.arrived = self.arrived.wrapping_add(1);
        }
        let more = allowed.wrapping_sub(self.allowed);
        if more >= 1 << 31 || allowed.wrapping_sub(self.sent) >= 1 << 31 {
            return Err(Breach::Grant);
        }
        self.allowed = allowed;
        Ok(more > 0)
    }

    /// The memory of a packet that counted is free again.
    #[inline]
    pub fn on_used(&mut self) {
        self.used = self.used.wrapping_add(1);
    }

    /// Packets that the peer may have on their way or left unread here.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.granted.wrapping_sub(self.used) as usize
    }

    /// Allows as many packets as fill the window, and says how many more that are.
    #[inline]
    pub fn top_up(&mut self, window: usize) -> usize {
        self.top_up_by(window, 1)
    }

    /// The same for a side that is better off posting several at once: only when that are a quarter
    /// of the window or more.
    #[inline]
    pub fn top_up_in_bulk(&mut self, window: usize) -> usize {
        self.top_up_by(window, window.div_ceil(4))
    }

    #[inline]
    fn top_up_by(&mut self, window: usize, more_min: usize) -> usize {
        let more = window.saturating_sub(self.outstanding());
        if more < more_min {
            return 0;
        }
        self.granted = self.granted.wrapping_add(more as u32);
        more
    }

    /// Whether a grant is worth a packet of its own.
    #[inline]
    pub fn owes(&self, window: usize) -> bool {
        let untold = self.granted.wrapping_sub(self.told) as usize;
        untold > 0 && untold >= window.div_ceil(2)
    }

    /// Packets that this side allows.
    #[inline]
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// What to say in the next packet.
    #[inline]
    pub fn tell(&mut self) -> u32 {
        self.told = self.granted;
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_window_fills_and_opens_again() {
        let mut credit = Credit::new(0, 2);
        assert_eq!(credit.room(), 2);
        credit.on_sent();
        credit.on_sent();
        assert_eq!(credit.room(), 0);
        assert_eq!(credit.on_arrived(false, 3), Ok(true));
        assert_eq!(credit.room(), 1);
    }

    #[test]
    fn a_peer_that_breaks_the_rules_is_caught() {
        let mut credit = Credit::new(1, 5);
        assert_eq!(credit.on_arrived(false, 4), Err(Breach::Grant));
        assert_eq!(credit.on_arrived(true, 5), Ok(false));
        assert_eq!(credit.on_arrived(true, 5), Err(Breach::Overrun));
    }

    #[test]
    fn in_bulk_a_window_opens_by_quarters() {
        let mut credit = Credit::new(8, 0);
        credit.on_used();
        assert_eq!(credit.top_up_in_bulk(8), 0);
        credit.on_used();
        assert_eq!(credit.top_up_in_bulk(8), 2);
        credit.on_used();
        assert_eq!(credit.top_up(8), 1);
    }

    #[test]
    fn counts_wrap() {
        let mut credit = Credit::new(0, 4);
        (credit.sent, credit.allowed) = (u32::MAX - 1, u32::MAX);
        assert_eq!(credit.on_arrived(false, 2), Ok(true));
        assert_eq!(credit.room(), 4);
    }

    /// Two sides, packets on their way in order, a receiver that reads when it likes.
    #[derive(Debug)]
    struct Wire {
        from: Credit,
        to: Credit,
        data: usize,
        unread: usize,
        grants: Vec<u32>,
    }

    proptest! {
        #[test]
        fn no_packet_finds_the_window_closed_and_grants_stay_few(
            window in 1usize..17, in_bulk: bool, steps in prop::collection::vec(0u8..4, 0..400),
        ) {
            let to = Credit::new(window as u32, 0);
            let from = Credit::new(0, window as u32);
            let mut wire = Wire { from, to, data: 0, unread: 0, grants: Vec::new() };
            for step in steps {
                match step {
                    0 if wire.from.room() > 0 => { wire.from.on_sent(); wire.data += 1; }
                    1 if wire.data > 0 => {
                        wire.data -= 1;
                        wire.unread += 1;
                        prop_assert_eq!(wire.to.on_arrived(true, 0), Ok(false));
                    }
                    2 if wire.unread > 0 => {
                        wire.unread -= 1;
                        wire.to.on_used();
                        match in_bulk {
                            true => wire.to.top_up_in_bulk(window),
                            false => wire.to.top_up(window),
                        };
                        if wire.to.owes(window) { wire.grants.push(wire.to.tell()); }
                    }
                    3 if !wire.grants.is_empty() => {
                        let granted = wire.grants.remove(0);
                        prop_assert_eq!(wire.from.on_arrived(false, granted), Ok(true));
                    }
                    _ => {}
                }
                prop_assert!(wire.data + wire.unread + wire.from.room() <= window);
                prop_assert!(wire.grants.len() <= 3, "{:?}", wire);
            }
        }
    }
}
