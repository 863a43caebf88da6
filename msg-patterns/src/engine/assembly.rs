//! The message that is arriving from a peer: its parts, whole, in fragments or offered.

use bytes::Bytes;
use msg_proto::fault::Fault;
use smallvec::SmallVec;

use super::Net;
use super::inbound::OFFER_BYTES_MIN;
use super::inbox::Incoming;
use super::peer::{Assembly, Fragments, Peer};
use crate::monitor::PeerId;

/// Most parts of a message: empty parts cost memory too.
const PARTS_MAX: usize = 16_384;
/// Memory set aside for a fragmented part before its bytes arrive.
const FRAGMENT_RESERVE_BYTES_MAX: usize = 1 << 20;

impl Net {
    /// The message that is arriving, begun if need be, with `size` more bytes counted.
    pub(super) fn arriving(&mut self, peer: PeerId, size: u64) -> Result<&mut Incoming, Fault> {
        self.require_up(peer)?;
        let bytes_max = self.options.message_bytes_max as u64;
        let entry = self.peer_mut(peer);
        if entry.assembly.fragments.is_some() {
            return Err(Fault::Protocol);
        }
        if entry.assembly.message.is_none() {
            entry.assembly.message = Some(begun(entry, None));
        }
        let Some(message) = &mut entry.assembly.message else { return Err(Fault::Protocol) };
        message.size = message.size.saturating_add(size);
        if message.size > bytes_max || message.parts.len() >= PARTS_MAX {
            return Err(Fault::TooLong);
        }
        Ok(message)
    }

    pub(super) fn add_part(&mut self, peer: PeerId, part: Bytes) -> Result<(), Fault> {
        let message = self.arriving(peer, part.len() as u64)?;
        message.parts.push(part);
        Ok(())
    }

    /// The beginning of a request or reply, if nothing else is arriving.
    pub(super) fn tagged(
        &mut self,
        peer: PeerId,
        id: u64,
        envelope: &[u8],
    ) -> Result<Incoming, Fault> {
        self.require_between(peer)?;
        Ok(begun(self.peer_mut(peer), Some((id, copy_of(envelope)))))
    }

    /// A message may begin only where none is under way.
    pub(super) fn require_between(&self, peer: PeerId) -> Result<(), Fault> {
        match &self.peer(peer).assembly {
            Assembly { message: None, fragments: None, .. } => Ok(()),
            _ => Err(Fault::Protocol),
        }
    }

    /// The first fragment of a part; the part itself if that was all of it.
    pub(super) fn on_fragment(
        &mut self,
        peer: PeerId,
        more: bool,
        total: u64,
        body: &[u8],
    ) -> Result<Option<Bytes>, Fault> {
        let message = self.arriving(peer, total)?;
        message.size -= total; // `add_part` counts it when it is whole.
        let total = usize::try_from(total).map_err(|_| Fault::TooLong)?;
        if body.len() >= total {
            let whole = body.len() == total;
            return if whole {
                Ok(Some(Bytes::copy_from_slice(body)))
            } else {
                Err(Fault::Protocol)
            };
        }
        let mut bytes = Vec::with_capacity(total.min(FRAGMENT_RESERVE_BYTES_MAX));
        bytes.extend_from_slice(body);
        self.peer_mut(peer).assembly.fragments = Some(Fragments { more, total, bytes });
        Ok(None)
    }

    /// The next fragment; the part and its MORE once it is whole.
    pub(super) fn on_continue(
        &mut self,
        peer: PeerId,
        body: &[u8],
    ) -> Result<Option<(bool, Bytes)>, Fault> {
        let assembly = &mut self.peer_mut(peer).assembly;
        let fragments = assembly.fragments.as_mut().ok_or(Fault::Protocol)?;
        if body.is_empty() || fragments.bytes.len() + body.len() > fragments.total {
            return Err(Fault::Protocol);
        }
        fragments.bytes.extend_from_slice(body);
        if fragments.bytes.len() < fragments.total {
            return Ok(None);
        }
        let whole = assembly.fragments.take();
        Ok(whole.map(|fragments| (fragments.more, Bytes::from(fragments.bytes))))
    }

    pub(super) fn on_offer(
        &mut self,
        peer: PeerId,
        id: u64,
        len: u64,
        key: [u8; 32],
    ) -> Result<(), Fault> {
        if len < OFFER_BYTES_MIN {
            return Err(Fault::Protocol);
        }
        let message = self.arriving(peer, len)?;
        let (seq, part) = (message.seq, message.parts.len());
        message.parts.push(Bytes::new());
        message.pending += 1;
        self.begin_transfer(peer, seq, part, id, len, key)
    }
}

/// Envelopes are short and may be kept for long: they do not hold a slot.
pub(super) fn copy_of(envelope: &[u8]) -> Bytes {
    if envelope.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(envelope) }
}

/// The beginning of a message from this peer.
fn begun(entry: &mut Peer, tag: Option<(u64, Bytes)>) -> Incoming {
    let (seq, epoch) = (entry.seq_next, entry.epoch);
    entry.seq_next += 1;
    Incoming { parts: SmallVec::new(), size: 0, tag, pending: 0, seq, epoch, filter: 0 }
}
