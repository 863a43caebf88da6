//! What stands at the head of each packet. Little-endian; nothing from a peer is taken on trust.

use std::convert::Infallible;

/// Bytes of a head.
pub const HEAD_BYTES: usize = 16;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<R> {
    /// Something for a posted receive.
    Part(Part),
    /// Only a grant.
    Grant,
    /// The last packet, with the reason, and the piece of a remote operation that was refused, if
    /// that is it.
    Bye {
        /// Why.
        reason: Reason,
        /// The piece, where pieces have numbers.
        piece: u32,
    },
    /// A step of a remote operation, where these travel in packets.
    Remote(R),
}

/// What takes a place in the window, and is held until there is a posted receive for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first packet of a message.
    First {
        /// Bytes of the whole message.
        total: u32,
    },
    /// The next packet of the same message.
    More,
    /// A value that follows a remote write.
    Immediate {
        /// The value.
        value: u32,
    },
}

/// Why a side says goodbye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its user closed the endpoint.
    Closed,
    /// Somebody reached for memory that was not exposed for this.
    Access,
    /// A message was too long for its receive.
    NoReceive,
    /// The peer broke the protocol.
    Protocol,
}

/// Steps of remote operations. Those of a provider whose device does them alone are [`Infallible`].
pub trait Remote: Copy {
    /// A number from [`REMOTE_MIN`] on, and a value.
    fn code(self) -> (u8, u32);

    /// The step with this number and value, if there is one.
    fn of(number: u8, value: u32) -> Option<Self>;
}

/// The least number of a step of a remote operation; those below are kinds of other packets.
pub const REMOTE_MIN: u8 = 6;

/// A head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<R> {
    /// What the packet is.
    pub kind: Kind<R>,
    /// Packets that the peer may send, counted since the connection began, wrapping.
    pub granted: u32,
}

impl<R> Kind<R> {
    /// Whether it takes a place in the window.
    #[inline]
    pub fn is_credited(&self) -> bool {
        matches!(self, Self::Part(_))
    }
}

impl<R: Remote> Kind<R> {
    /// Number, reason and value.
    #[inline]
    fn code(self) -> (u8, u8, u32) {
        match self {
            Self::Part(Part::First { total }) => (1, 0, total),
            Self::Part(Part::More) => (2, 0, 0),
            Self::Part(Part::Immediate { value }) => (3, 0, value),
            Self::Grant => (4, 0, 0),
            Self::Bye { reason, piece } => (5, reason.code(), piece),
            Self::Remote(step) => {
                let (number, value) = step.code();
                (number, 0, value)
            }
        }
    }

    #[inline]
    fn of(number: u8, reason: u8, value: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Part(Part::First { total: value }),
            2 => Self::Part(Part::More),
            3 => Self::Part(Part::Immediate { value }),
            4 => Self::Grant,
            5 => Self::Bye { reason: Reason::of(reason)?, piece: value },
            _ => Self::Remote(R::of(number, value)?),
        })
    }
}

impl<R: Remote> Head<R> {
    /// `kind` u8, reason u8, 2 bytes zero, `granted` u32, value u32, 4 bytes zero.
    #[inline]
    pub fn encode(self) -> [u8; HEAD_BYTES] {
        let (kind, reason, value) = self.kind.code();
        let mut bytes = [0; HEAD_BYTES];
        (bytes[0], bytes[1]) = (kind, reason);
        bytes[4..8].copy_from_slice(&self.granted.to_le_bytes());
        bytes[8..12].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// The head that `bytes` begin with, or `None` if there is none.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let kind = Kind::of(bytes[0], bytes[1], word(8))?;
        Some(Self { kind, granted: word(4) })
    }
}

impl Reason {
    fn code(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Access => 1,
            Self::NoReceive => 2,
            Self::Protocol => 3,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [Self::Closed, Self::Access, Self::NoReceive, Self::Protocol]
            .into_iter()
            .find(|reason| reason.code() == code)
    }
}

impl Remote for Infallible {
    fn code(self) -> (u8, u32) {
        match self {}
    }

    fn of(_: u8, _: u32) -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Step(u32);

    impl Remote for Step {
        fn code(self) -> (u8, u32) {
            (REMOTE_MIN, self.0)
        }

        fn of(number: u8, value: u32) -> Option<Self> {
            (number == REMOTE_MIN).then_some(Self(value))
        }
    }

    fn kinds() -> impl Strategy<Value = Kind<Step>> {
        let reasons = [Reason::Closed, Reason::Access, Reason::NoReceive, Reason::Protocol];
        let reasons = prop::sample::select(reasons.to_vec());
        prop_oneof![
            any::<u32>().prop_map(|total| Kind::Part(Part::First { total })),
            Just(Kind::Part(Part::More)),
            any::<u32>().prop_map(|value| Kind::Part(Part::Immediate { value })),
            Just(Kind::Grant),
            (reasons, any::<u32>()).prop_map(|(reason, piece)| Kind::Bye { reason, piece }),
            any::<u32>().prop_map(|piece| Kind::Remote(Step(piece))),
        ]
    }

    proptest! {
        #[test]
        fn a_head_survives_the_wire(kind in kinds(), granted: u32) {
            let head = Head { kind, granted };
            prop_assert_eq!(Head::decode(&head.encode()), Some(head));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Head::<Step>::decode(&bytes);
        }
    }

    #[test]
    fn short_and_unknown_heads_are_none() {
        assert_eq!(Head::<Step>::decode(&[1; HEAD_BYTES - 1]), None);
        assert_eq!(Head::<Step>::decode(&[REMOTE_MIN + 1; HEAD_BYTES]), None);
        let unknown_reason = [5, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Head::<Step>::decode(&unknown_reason), None);
    }

    #[test]
    fn steps_of_remote_operations_are_unknown_where_none_travel_in_packets() {
        let step = Head { kind: Kind::Remote(Step(3)), granted: 0 }.encode();
        assert!(Head::<Step>::decode(&step).is_some());
        assert_eq!(Head::<Infallible>::decode(&step), None);
    }
}
