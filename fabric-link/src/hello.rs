//! What both sides tell each other while they connect.

/// Bytes of a hello. The least that any provider carries in a request is 56.
pub const HELLO_BYTES: usize = 32;

/// What hellos begin with, so that peers of another protocol or version are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// Names the protocol.
    pub magic: [u8; 8],
    /// Its version; another one is refused.
    pub version: u16,
}

/// What a side says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Packets that the other side may send at once.
    pub granted: u32,
    /// Bytes of a packet that it takes.
    pub packet_bytes: u32,
    /// Drawn at random. Both sides' tokens together name the connection in keys.
    pub token: u64,
}

/// Why a hello makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Another magic, or too few bytes.
    #[error("it speaks another protocol")]
    Foreign,
    /// The same protocol in another version.
    #[error("it speaks version {theirs} of this protocol, this side version {ours}")]
    Version {
        /// The peer's.
        theirs: u16,
        /// The one of this side.
        ours: u16,
    },
    /// Grants or packets out of range.
    #[error("its limits make no sense")]
    Limits,
}

impl Protocol {
    /// Magic, version u16, 2 bytes zero, `granted` u32, `packet_bytes` u32, 4 bytes zero, token u64.
    pub fn encode(self, hello: Hello) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&hello.granted.to_le_bytes());
        bytes[16..20].copy_from_slice(&hello.packet_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&hello.token.to_le_bytes());
        bytes
    }

    /// The hello that `bytes` begin with; transports add zeros at the end.
    ///
    /// # Errors
    /// Why there is none.
    pub fn decode(self, bytes: &[u8]) -> Result<Hello, HelloError> {
        let bytes: &[u8; HELLO_BYTES] = bytes.first_chunk().ok_or(HelloError::Foreign)?;
        if bytes[..8] != self.magic {
            return Err(HelloError::Foreign);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != self.version {
            return Err(HelloError::Version { theirs: version, ours: self.version });
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let token = u64::from(word(24)) | u64::from(word(28)) << 32;
        let hello = Hello { granted: word(12), packet_bytes: word(16), token };
        // Half the range, so that counts which wrap can be compared.
        let is_sane = hello.packet_bytes >= 64 && hello.granted < 1 << 31;
        is_sane.then_some(hello).ok_or(HelloError::Limits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROTOCOL: Protocol = Protocol { magic: *b"sometest", version: 1 };

    proptest! {
        #[test]
        fn a_hello_survives_the_wire(granted in 0u32..1 << 31, packet_bytes in 64u32.., token: u64) {
            let hello = Hello { granted, packet_bytes, token };
            let mut bytes = PROTOCOL.encode(hello).to_vec();
            bytes.extend([0; 24]);
            prop_assert_eq!(PROTOCOL.decode(&bytes), Ok(hello));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = PROTOCOL.decode(&bytes);
        }
    }

    #[test]
    fn each_mistake_is_told_apart() {
        let good = Hello { granted: 4, packet_bytes: 8192, token: 7 };
        assert_eq!(PROTOCOL.decode(b"GET / HTTP/1.1"), Err(HelloError::Foreign));
        let foreign = Protocol { magic: *b"another1", version: 1 };
        assert_eq!(foreign.decode(&PROTOCOL.encode(good)), Err(HelloError::Foreign));
        let mut other = PROTOCOL.encode(good);
        other[8] = 9;
        assert_eq!(PROTOCOL.decode(&other), Err(HelloError::Version { theirs: 9, ours: 1 }));
        let senseless = PROTOCOL.encode(Hello { packet_bytes: 1, ..good });
        assert_eq!(PROTOCOL.decode(&senseless), Err(HelloError::Limits));
    }
}
