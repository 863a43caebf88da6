//! What stands at the head of each packet. Little-endian; nothing from a peer is taken on trust.

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 16;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first packet of a message of `total` bytes.
    First { total: u32 },
    /// The next packet of the same message.
    More,
    /// A value that follows a remote write.
    Immediate { value: u32 },
    /// Only a grant.
    Grant,
    /// The last packet, with the reason.
    Bye(Reason),
}

/// Why a side says goodbye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its user closed the endpoint.
    Closed,
    /// The peer reached for memory that was not exposed for this.
    Access,
    /// A message was too long for its receive.
    NoReceive,
    /// The peer broke the protocol.
    Protocol,
}

/// A head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Packets that the peer may send, counted since the connection began, wrapping.
    pub(crate) granted: u32,
}

impl Kind {
    /// Whether it takes a place in the window.
    pub(crate) fn is_credited(self) -> bool {
        matches!(self, Self::First { .. } | Self::More | Self::Immediate { .. })
    }
}

impl Head {
    /// `kind` u8, reason u8, 2 bytes zero, `granted` u32, value u32, 4 bytes zero.
    pub(crate) fn encode(self) -> [u8; HEAD_BYTES] {
        let (kind, reason, value) = match self.kind {
            Kind::First { total } => (1, 0, total),
            Kind::More => (2, 0, 0),
            Kind::Immediate { value } => (3, 0, value),
            Kind::Grant => (4, 0, 0),
            Kind::Bye(reason) => (5, reason.code(), 0),
        };
        let mut bytes = [0; HEAD_BYTES];
        (bytes[0], bytes[1]) = (kind, reason);
        bytes[4..8].copy_from_slice(&self.granted.to_le_bytes());
        bytes[8..12].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// The head that `bytes` begin with, or `None` if there is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let kind = match bytes[0] {
            1 => Kind::First { total: word(8) },
            2 => Kind::More,
            3 => Kind::Immediate { value: word(8) },
            4 => Kind::Grant,
            5 => Kind::Bye(Reason::of(bytes[1])?),
            _ => return None,
        };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        let reasons = [Reason::Closed, Reason::Access, Reason::NoReceive, Reason::Protocol];
        prop_oneof![
            any::<u32>().prop_map(|total| Kind::First { total }),
            Just(Kind::More),
            any::<u32>().prop_map(|value| Kind::Immediate { value }),
            Just(Kind::Grant),
            prop::sample::select(reasons.to_vec()).prop_map(Kind::Bye),
        ]
    }

    proptest! {
        #[test]
        fn a_head_survives_the_wire(kind in kinds(), granted in any::<u32>()) {
            let head = Head { kind, granted };
            prop_assert_eq!(Head::decode(&head.encode()), Some(head));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Head::decode(&bytes);
        }
    }

    #[test]
    fn short_and_unknown_heads_are_none() {
        assert_eq!(Head::decode(&[1; HEAD_BYTES - 1]), None);
        assert_eq!(Head::decode(&[9; HEAD_BYTES]), None);
    }
}
