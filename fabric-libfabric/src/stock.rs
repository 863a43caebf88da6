//! Packets: memory of the provider's own, registered where a provider needs that.

use std::sync::Arc;

use fabric_core::{Error, ErrorKind, Pool, Slot};

use crate::limits::{CHUNK_PACKETS, PACKET_BYTES};
use crate::status;
use crate::sys::{Desc, Opened, Region};

/// A packet, with what the provider knows its memory by.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) slot: Slot,
    pub(crate) desc: Desc,
}

/// A pool with its registration. The registration ends first.
struct Chunk {
    _region: Option<Region>,
    _pool: Pool,
}

/// Packets that are free, in chunks that grow in number as needed.
pub(crate) struct Stock {
    free: Vec<Packet>,
    needs_registration: bool,
    chunks: Vec<Chunk>,
}

impl Stock {
    pub(crate) fn new(needs_registration: bool) -> Self {
        Self { free: Vec::new(), needs_registration, chunks: Vec::new() }
    }

    /// Packets for the receives of one endpoint.
    ///
    /// # Errors
    /// `Host` when there is no memory or it cannot be registered.
    pub(crate) fn take_many(
        &mut self,
        count: usize,
        opened: &Arc<Opened>,
    ) -> Result<Vec<Packet>, Error> {
        while self.free.len() < count {
            self.grow(opened)?;
        }
        Ok(self.free.split_off(self.free.len() - count))
    }

    /// A packet to send, if there is memory.
    pub(crate) fn take(&mut self, opened: &Arc<Opened>) -> Option<Packet> {
        if self.free.is_empty()
            && let Err(error) = self.grow(opened)
        {
            tracing::debug!(%error, "no packet to send");
        }
        self.free.pop()
    }

    /// A packet is free again.
    pub(crate) fn give_back(&mut self, packet: Packet) {
        self.free.push(packet);
    }

    fn grow(&mut self, opened: &Arc<Opened>) -> Result<(), Error> {
        let pool = Pool::new(PACKET_BYTES, CHUNK_PACKETS)
            .map_err(|error| Error::new(ErrorKind::Host, "no memory").with_source(error))?;
        let number = self.chunks.len() as u64;
        let region = match self.needs_registration {
            true => Some(
                Region::new(opened, pool.as_ptr(), pool.bytes(), number)
                    .map_err(|error| status::register_error(error, pool.bytes()))?,
            ),
            false => None,
        };
        let desc = region.as_ref().map_or(Desc::NONE, Region::desc);
        self.free.extend(std::iter::from_fn(|| pool.take()).map(|slot| Packet { slot, desc }));
        self.chunks.push(Chunk { _region: region, _pool: pool });
        Ok(())
    }
}
