//! What both sides tell each other while they connect.

/// Bytes of a hello. The least that any provider carries in a request is 56.
pub(crate) const HELLO_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"FAB__ofi";
const VERSION: u16 = 1;

/// What a side says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Packets that the other side may send at once.
    pub(crate) granted: u32,
    /// Bytes of a packet that it takes.
    pub(crate) packet_bytes: u32,
    /// Drawn at random. Both sides' tokens together name the connection in keys.
    pub(crate) token: u64,
}

/// Why a hello makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelloError {
    #[error("it speaks another protocol")]
    Foreign,
    #[error("it speaks version {0} of this protocol, this side version {VERSION}")]
    Version(u16),
    #[error("its limits make no sense")]
    Limits,
}

impl Hello {
    /// Magic, version u16, 2 bytes zero, `granted` u32, `packet_bytes` u32, 4 bytes zero, token u64.
    pub(crate) fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.granted.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.packet_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }

    /// The hello that `bytes` begin with; transports add zeros at the end.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        let bytes: &[u8; HELLO_BYTES] = bytes.first_chunk().ok_or(HelloError::Foreign)?;
        if bytes[..8] != MAGIC {
            return Err(HelloError::Foreign);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(HelloError::Version(version));
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let token = u64::from(word(24)) | u64::from(word(28)) << 32;
        let hello = Self { granted: word(12), packet_bytes: word(16), token };
        // Half the range, so that counts which wrap can be compared.
        let is_sane = hello.packet_bytes >= 64 && hello.granted < 1 << 31;
        is_sane.then_some(hello).ok_or(HelloError::Limits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_hello_survives_the_wire(granted in 0u32..1 << 31, packet_bytes in 64u32.., token: u64) {
            let hello = Hello { granted, packet_bytes, token };
            let mut bytes = hello.encode().to_vec();
            bytes.extend([0; 24]);
            prop_assert_eq!(Hello::decode(&bytes), Ok(hello));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Hello::decode(&bytes);
        }
    }

    #[test]
    fn each_mistake_is_told_apart() {
        let good = Hello { granted: 4, packet_bytes: 8192, token: 7 };
        assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(HelloError::Foreign));
        let mut other = good.encode();
        other[8] = 9;
        assert_eq!(Hello::decode(&other), Err(HelloError::Version(9)));
        let senseless = Hello { packet_bytes: 1, ..good }.encode();
        assert_eq!(Hello::decode(&senseless), Err(HelloError::Limits));
    }
}
