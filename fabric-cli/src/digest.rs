//! Checksums of what passed.

use std::fmt::Write as _;

use msg_patterns::Bytes;
use sha2::{Digest as _, Sha256};

/// SHA-256 over everything in order, and a sum that does not depend on the order of the messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digest {
    ordered: Option<Sha256>,
    unordered: Option<[u64; 4]>,
}

impl Digest {
    /// Keeps the checksums that are asked for; the others cost nothing.
    pub(crate) fn new(ordered: bool, unordered: bool) -> Self {
        Self { ordered: ordered.then(Sha256::new), unordered: unordered.then_some([0; 4]) }
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, parts: &[Bytes]) {
        if let Some(hash) = &mut self.ordered {
            parts.iter().for_each(|part| hash.update(part));
        }
        if let Some(sum) = &mut self.unordered {
            add_words(sum, parts);
        }
    }

    /// SHA-256 of all bytes in order, in hex.
    pub(crate) fn ordered(&self) -> Option<String> {
        self.ordered.clone().map(|hash| hex(&hash.finalize()))
    }

    /// The sum of the SHA-256 of each message, in four 64-bit words, in hex.
    pub(crate) fn unordered(&self) -> Option<String> {
        let sum = self.unordered?;
        Some(sum.iter().map(|word| format!("{word:016x}")).collect())
    }
}

fn add_words(sum: &mut [u64; 4], parts: &[Bytes]) {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    for (sum, word) in sum.iter_mut().zip(hash.finalize().chunks_exact(8)) {
        let word = word.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        *sum = sum.wrapping_add(word);
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(messages: &[&'static str]) -> Digest {
        let mut digest = Digest::new(true, true);
        messages.iter().for_each(|text| digest.add(&[Bytes::from_static(text.as_bytes())]));
        digest
    }

    #[test]
    fn the_ordered_one_is_sha_256_of_the_bytes() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&["a", "bc"]).ordered().as_deref(), Some(known));
    }

    #[test]
    fn the_unordered_one_knows_each_message_and_no_order() {
        let (a, b) = (digest(&["a", "bc"]), digest(&["bc", "a"]));
        assert_eq!(a.unordered(), b.unordered());
        assert_ne!(a.ordered(), b.ordered());
        for other in [&["ab", "c"][..], &["a"], &["a", "bc", "bc"]] {
            assert_ne!(digest(other).unordered(), a.unordered());
        }
    }
}
