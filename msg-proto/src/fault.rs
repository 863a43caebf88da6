//! Why a link ends, as both sides say it.

/// Why a link ends. The codes travel in ERROR frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Fault {
    /// The two versions have nothing in common.
    Version = 1,
    /// The socket types do not talk to each other.
    SocketType = 2,
    /// The peer lacks an ability that this side asks for.
    Ability = 3,
    /// The peer broke the protocol.
    Protocol = 4,
    /// A message was longer than the receiver's limit.
    TooLong = 5,
    /// The greeting did not come in time.
    Handshake = 6,
    /// No sign of life in time.
    Silent = 7,
    /// Too many or too long subscriptions, or too much of what others told before waits to be received.
    Limit = 8,
    /// The socket talks to one peer only, and has one.
    Occupied = 9,
    /// Another peer has this identity.
    Identity = 10,
    /// Another peer took this identity over.
    Replaced = 11,
    /// Something this version does not know.
    Unknown = 0,
}

impl Fault {
    /// The code on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The fault of a code on the wire.
    pub fn from_code(code: u16) -> Self {
        let known = [
            Self::Version,
            Self::SocketType,
            Self::Ability,
            Self::Protocol,
            Self::TooLong,
            Self::Handshake,
            Self::Silent,
            Self::Limit,
            Self::Occupied,
            Self::Identity,
            Self::Replaced,
        ];
        known.into_iter().find(|fault| fault.code() == code).unwrap_or(Self::Unknown)
    }

    /// Whether trying again with the same settings is pointless (ZMTP 3.1: after ERROR a peer shall
    /// not reconnect with the same credentials).
    pub fn is_fatal(self) -> bool {
        matches!(self, Self::Version | Self::SocketType | Self::Ability | Self::Replaced)
    }

    /// What it says to a person.
    pub fn text(self) -> &'static str {
        match self {
            Self::Version => "the versions of the wire format have nothing in common",
            Self::SocketType => "these socket types do not talk to each other",
            Self::Ability => "the peer lacks an ability that is asked for, such as acknowledgement",
            Self::Protocol => "the peer broke the protocol",
            Self::TooLong => "a message was longer than the receiver's limit",
            Self::Handshake => "the greeting did not come in time",
            Self::Silent => "the peer gave no sign of life in time",
            Self::Limit => {
                "too many or too long subscriptions, or too many that nobody heard of yet"
            }
            Self::Occupied => "the socket talks to one peer only, and has one",
            Self::Identity => "another peer has this identity: choose another one",
            Self::Replaced => "another peer took this identity over",
            Self::Unknown => "an error this version does not know",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_fault_comes_back() {
        for code in 0..=9 {
            let fault = Fault::from_code(code);
            assert!(fault.code() == code || fault == Fault::Unknown);
        }
    }
}
