//! The types of sockets, and which of them may talk to each other.

use core::fmt;

use self::SocketType::{Dealer, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, XPub, XSub};

/// What a socket is, as it says so in its hello. The discriminant is the code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SocketType {
    /// Publishes to everybody who subscribed.
    Pub = 1,
    /// Receives what it subscribed to.
    Sub = 2,
    /// Hands each message to one of its peers.
    Push = 3,
    /// Receives from its peers in turn.
    Pull = 4,
    /// Asks.
    Req = 5,
    /// Answers.
    Rep = 6,
    /// A publisher that sees subscriptions.
    XPub = 7,
    /// A subscriber that also sends, and filters nothing.
    XSub = 8,
    /// Asks and answers without waiting.
    Dealer = 9,
    /// Answers whom it chooses.
    Router = 10,
    /// Talks to exactly one peer.
    Pair = 11,
}

impl SocketType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 11] = [Pub, Sub, Push, Pull, Req, Rep, XPub, XSub, Dealer, Router, Pair];

    /// The code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The type with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|socket| socket.code() == code)
    }

    /// The name that people know it by, such as `PUB`.
    pub fn name(self) -> &'static str {
        match self {
            Pub => "PUB",
            Sub => "SUB",
            Push => "PUSH",
            Pull => "PULL",
            Req => "REQ",
            Rep => "REP",
            XPub => "XPUB",
            XSub => "XSUB",
            Dealer => "DEALER",
            Router => "ROUTER",
            Pair => "PAIR",
        }
    }

    /// Whom it may talk to (GEN-11), for the check and for the message when it fails.
    pub fn legal_peers(self) -> &'static [Self] {
        match self {
            Pub | XPub => &[Sub, XSub],
            Sub | XSub => &[Pub, XPub],
            Push => &[Pull],
            Pull => &[Push],
            Req => &[Rep, Router],
            Rep => &[Req, Dealer],
            Dealer => &[Rep, Dealer, Router],
            Router => &[Req, Dealer, Router],
            Pair => &[Pair],
        }
    }

    /// Whether it may talk to a peer of type `other` (GEN-11).
    pub fn legal_peer(self, other: Self) -> bool {
        self.legal_peers().contains(&other)
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn every_code_leads_back_to_its_type_and_no_other_code_to_any() {
        let known = (0..=u8::MAX).filter_map(SocketType::from_code);
        assert!(known.eq(SocketType::ALL));
        assert!(SocketType::ALL.into_iter().map(SocketType::code).eq(1..=11));
    }

    #[test]
    fn legality_is_mutual() {
        for (a, b) in SocketType::ALL.into_iter().flat_map(|a| SocketType::ALL.map(|b| (a, b))) {
            assert_eq!(a.legal_peer(b), b.legal_peer(a), "{a} and {b}");
        }
    }

    #[test]
    fn gen_11_legal_peer_types() {
        let row = |head: &str, cells: [&str; 11]| {
            let cells = cells.map(|cell| format!("{cell:7}")).concat();
            format!("{head:7}{}\n", cells.trim_end())
        };
        let mut table = row("", SocketType::ALL.map(SocketType::name));
        for a in SocketType::ALL {
            let legal = |b| if a.legal_peer(b) { "yes" } else { "-" };
            table += &row(a.name(), SocketType::ALL.map(legal));
        }
        insta::assert_snapshot!(table);
    }
}
