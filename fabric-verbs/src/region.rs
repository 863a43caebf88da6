//! Memory exposed to peers.
//!
//! Key, bounds and rights are checked by the device that owns the memory. The rest of the contract,
//! that a key is good for one endpoint and cannot be changed, is a checksum in the key over all of
//! it and both sides' tokens, which the peer's provider checks before it asks. Each exposure is a
//! registration of its own, which ends with it. (Memory windows would have the device hold to the
//! endpoint as well, at the price of two more objects for each exposure.)

use std::collections::HashMap;

use fabric_core::{Access, Error, Exposure, RemoteKey, Slot};

use crate::limits::REGIONS_MAX;
use crate::sys::{Mapped, Region, Rights};

struct Exposed {
    /// First, so that no peer reaches the memory when it goes.
    region: Region,
    key: RemoteKey,
    mapped: Mapped,
    memory: Exposure,
    /// What is exposed instead of shared bytes that the host does not let a device read.
    _copy: Option<Slot>,
}

/// All exposures of a domain, by nonce.
#[derive(Default)]
pub(crate) struct Regions {
    open: HashMap<u64, Exposed>,
}

impl Regions {
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= REGIONS_MAX
    }

    /// A nonce that names nothing yet.
    pub(crate) fn new_nonce(&self) -> u64 {
        loop {
            let nonce = fastrand::u64(..);
            if !self.open.contains_key(&nonce) {
                return nonce;
            }
        }
    }

    pub(crate) fn insert(
        &mut self,
        key: RemoteKey,
        region: Region,
        mapped: Mapped,
        (memory, copy): (Exposure, Option<Slot>),
    ) {
        let exposed = Exposed { region, key, mapped, memory, _copy: copy };
        self.open.insert(key.nonce, exposed);
    }

    /// Ends an exposure. When this returns, the device lets nobody reach the memory.
    pub(crate) fn remove(&mut self, key: &RemoteKey) -> Option<Exposure> {
        self.find(key)?;
        let Exposed { region, memory, .. } = self.open.remove(&key.nonce)?;
        drop(region);
        Some(memory)
    }

    /// The exposure under `key`.
    fn find(&self, key: &RemoteKey) -> Option<&Exposed> {
        self.open.get(&key.nonce).filter(|exposed| exposed.key == *key)
    }

    /// Copies bytes out of an exposure.
    ///
    /// # Errors
    /// `Misuse` for an unknown key or a range beyond the memory.
    pub(crate) fn load(&self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let exposed = self.find(key).ok_or_else(unknown_key)?;
        exposed.mapped.load(offset, to).ok_or_else(beyond)
    }

    /// Copies bytes into an exposure.
    ///
    /// # Errors
    /// `Misuse` for an unknown key, a range beyond the memory or shared bytes.
    pub(crate) fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        let exposed = self.find(key).ok_or_else(unknown_key)?;
        if matches!(exposed.memory, Exposure::Bytes(_)) {
            return Err(Error::misuse("shared bytes cannot be changed: expose a slot"));
        }
        exposed.mapped.store(offset, from).ok_or_else(beyond)
    }
}

/// Why memory cannot be exposed like this, if so.
pub(crate) fn check_exposure(memory: &Exposure, access: Access) -> Result<(), Error> {
    let shared = matches!(memory, Exposure::Bytes(_));
    let refused = if memory.is_empty() {
        "there is nothing to expose: the memory has no bytes"
    } else if !access.read && !access.mutates() {
        "an exposure needs at least one of reading, writing and atomics"
    } else if shared && access.mutates() {
        "shared bytes can be exposed for reading only: expose a slot"
    } else {
        return Ok(());
    };
    Err(Error::misuse(refused))
}

/// The device's name for what a peer may do.
pub(crate) fn rights(access: Access) -> Rights {
    Rights {
        local_write: access.mutates(),
        remote_read: access.read,
        remote_write: access.write,
        remote_atomic: access.atomic,
    }
}

/// A key whose parts belong together on one connection.
pub(crate) fn seal(addr: u64, len: u64, device_key: u32, nonce: u64, salt: u64) -> RemoteKey {
    let check = checksum(addr, len, device_key, nonce, salt);
    RemoteKey { addr, len, key: u64::from(check) << 32 | u64::from(device_key), nonce }
}

/// The device's key in a key that was sealed for this connection and not changed since.
pub(crate) fn unseal(key: &RemoteKey, salt: u64) -> Option<u32> {
    let device_key = key.key as u32;
    let sealed = seal(key.addr, key.len, device_key, key.nonce, salt);
    (sealed == *key).then_some(device_key)
}

/// Mixes all words well enough that a changed bit changes half of the result. No secret.
fn checksum(addr: u64, len: u64, device_key: u32, nonce: u64, salt: u64) -> u32 {
    let words = [addr, len, u64::from(device_key), nonce, salt];
    let mixed = words.into_iter().fold(0x243f_6a88_85a3_08d3_u64, |state, word| {
        let state = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    (mixed ^ mixed >> 32) as u32
}

pub(crate) fn beyond() -> Error {
    Error::misuse("the range lies beyond the exposed memory")
}

pub(crate) fn unknown_key() -> Error {
    Error::misuse("nothing is exposed under this key: it was revoked already")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn senseless_exposures_are_refused() {
        let slot = || Exposure::Slot(Slot::alloc(1).unwrap());
        let shared = Exposure::Bytes(Bytes::from_static(b"x"));
        assert!(check_exposure(&shared, Access::READ).is_ok());
        assert!(check_exposure(&shared, Access::WRITE).is_err());
        assert!(check_exposure(&Exposure::Bytes(Bytes::new()), Access::READ).is_err());
        let none = Access { read: false, write: false, atomic: false };
        assert!(check_exposure(&slot(), none).is_err());
    }

    proptest! {
        #[test]
        fn a_key_opens_unchanged_on_its_own_connection_only(
            addr: u64, len: u64, device_key: u32, nonce: u64, salt: u64, bit in 0usize..256,
        ) {
            let key = seal(addr, len, device_key, nonce, salt);
            prop_assert_eq!(unseal(&key, salt), Some(device_key));
            prop_assert_eq!(unseal(&key, salt ^ 1), None);
            let mut bytes = key.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(unseal(&RemoteKey::from_bytes(bytes), salt), None);
        }
    }
}
