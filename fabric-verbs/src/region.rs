//! Memory exposed to peers.
//!
//! Key, bounds and rights are checked by the device that owns the memory, and the endpoint, too,
//! where it has memory windows and could bind one. A checksum in the key over all of it and both
//! sides' tokens is checked by the peer's provider before it asks: so a key is good for one endpoint
//! and cannot be changed on devices without windows, too. Each exposure is a registration of its
//! own, which ends with it.

use std::collections::HashMap;
use std::sync::Arc;

use fabric_core::{Access, EpId, Error, Exposure, RemoteKey, Slot};
use fabric_link::posts::{beyond, check_store, unknown_key};

use crate::sys::{Mapped, Region, Rights, Window};

/// How a device lets a peer in, until it is dropped.
pub(crate) enum Opened {
    /// By a registration with rights for peers.
    Region(Region),
    /// By a window that is bound to the connection.
    Window(Arc<Window>),
    /// Not any more: the connection ended.
    Closed,
}

impl Opened {
    /// The key for the peer's requests.
    pub(crate) fn remote_key(&self) -> u32 {
        match self {
            Self::Region(region) => region.remote_key(),
            Self::Window(window) => window.remote_key(),
            Self::Closed => 0,
        }
    }
}

struct Exposed {
    /// First, so that no peer reaches the memory when it goes.
    opened: Opened,
    ep: EpId,
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
    /// How many of them are windows.
    windows: usize,
    /// The window that is about to become one.
    pub(crate) binding: Option<(EpId, Arc<Window>)>,
}

impl Regions {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
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
        (ep, key): (EpId, RemoteKey),
        opened: Opened,
        mapped: Mapped,
        (memory, copy): (Exposure, Option<Slot>),
    ) {
        self.windows += usize::from(matches!(opened, Opened::Window(_)));
        let exposed = Exposed { opened, ep, key, mapped, memory, _copy: copy };
        self.open.insert(key.nonce, exposed);
    }

    /// How many exposures are windows.
    #[cfg(test)]
    pub(crate) fn windows(&self) -> usize {
        self.windows
    }

    /// Ends the windows of an endpoint; what they were over stays to be revoked.
    pub(crate) fn end_windows(&mut self, of: EpId) {
        self.end_windows_if(|ep| ep == of);
    }

    /// Ends all windows.
    pub(crate) fn end_all_windows(&mut self) {
        self.end_windows_if(|_| true);
    }

    fn end_windows_if(&mut self, ends: impl Fn(EpId) -> bool) {
        self.binding.take_if(|(ep, _)| ends(*ep));
        if self.windows == 0 {
            return;
        }
        for exposed in self.open.values_mut().filter(|exposed| ends(exposed.ep)) {
            if matches!(exposed.opened, Opened::Window(_)) {
                exposed.opened = Opened::Closed;
                self.windows -= 1;
            }
        }
    }

    /// Ends an exposure. When this returns, the device lets nobody reach the memory.
    pub(crate) fn remove(&mut self, key: &RemoteKey) -> Option<Exposure> {
        self.find(key)?;
        let Exposed { opened, memory, .. } = self.open.remove(&key.nonce)?;
        self.windows -= usize::from(matches!(opened, Opened::Window(_)));
        drop(opened);
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
        check_store(&exposed.memory)?;
        exposed.mapped.store(offset, from).ok_or_else(beyond)
    }
}

/// The device's name for what a peer may do.
pub(crate) fn rights(access: Access) -> Rights {
    Rights {
        local_write: access.mutates(),
        remote_read: access.read,
        remote_write: access.write,
        remote_atomic: access.atomic,
        windows: false,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
