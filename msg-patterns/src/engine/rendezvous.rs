//! Large parts are read from the memory that their sender exposes.

use fabric_core::{EpId, Error, OpId, RemoteKey, Returned, Slot};
use msg_proto::fault::Fault;
use msg_proto::wire::Frame;

use super::{Core, Net};
use crate::monitor::PeerId;
use crate::roles::Role;

/// Reads under way at a time; memory for a part is taken when its read begins.
const READS_MAX: usize = 4;

/// A part that is to be read, or is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    peer: PeerId,
    epoch: u32,
    seq: u64,
    part: usize,
    id: u64,
    len: u64,
    key: RemoteKey,
}

impl Net {
    /// Notes an offered part, and begins to read it if few others are being read.
    pub(crate) fn begin_transfer(
        &mut self,
        peer: PeerId,
        seq: u64,
        part: usize,
        id: u64,
        len: u64,
        key: [u8; 32],
    ) -> Result<(), Fault> {
        let rma = self.ports[self.peer(peer).port].domain.caps().rma.ok_or(Fault::Protocol)?;
        if len > rma.bytes_max as u64 {
            return Err(Fault::TooLong);
        }
        let (epoch, key) = (self.peer(peer).epoch, RemoteKey::from_bytes(key));
        self.transfers_waiting.push_back(Transfer { peer, epoch, seq, part, id, len, key });
        self.start_reads();
        Ok(())
    }

    /// Begins waiting reads as far as there is room for them.
    pub(crate) fn start_reads(&mut self) {
        while self.transfers.len() < READS_MAX {
            let Some(transfer) = self.transfers_waiting.pop_front() else { return };
            if self.is_current(&transfer) && !self.start_read(transfer) {
                self.transfers_waiting.push_front(transfer);
                return;
            }
        }
    }

    fn is_current(&self, transfer: &Transfer) -> bool {
        let peer = self.peers.get(transfer.peer.0 as usize);
        peer.is_some_and(|peer| peer.epoch == transfer.epoch && peer.ep.is_some())
    }

    /// False if the fabric has no room for another read now.
    fn start_read(&mut self, transfer: Transfer) -> bool {
        let peer = self.peer(transfer.peer);
        let (Some(ep), port) = (peer.ep, peer.port) else { return true };
        // The length was compared with the largest message taken here.
        let Ok(slot) = Slot::alloc(transfer.len as usize) else {
            self.refuse(transfer.peer, Fault::Limit);
            return true;
        };
        let Some(rma) = self.ports[port].domain.rma() else { return true };
        match rma.post_read(ep, transfer.key, 0, slot, transfer.len as usize) {
            Ok(op) => {
                self.transfers.insert((port, op), transfer);
                self.posted_since_flush = true;
                true
            }
            Err(refused) => refused.error.kind() != fabric_core::ErrorKind::Full,
        }
    }

    fn place(&mut self, transfer: &Transfer, slot: Slot) {
        let entry = self.peer_mut(transfer.peer);
        let arriving =
            entry.assembly.message.as_mut().filter(|message| message.seq == transfer.seq);
        let found = match arriving {
            Some(message) => Some(message),
            None => entry.inbox.find_mut(transfer.seq),
        };
        if let Some(message) = found {
            message.parts[transfer.part] = slot.freeze();
            message.pending -= 1;
        }
    }
}

impl<R: Role> Core<R> {
    /// A read ended.
    pub(crate) fn on_read(
        &mut self,
        port: usize,
        _ep: EpId,
        op: OpId,
        returned: Returned,
        result: Result<(), Error>,
    ) {
        let Some(transfer) = self.net.transfers.remove(&(port, op)) else { return };
        self.net.start_reads();
        if !self.net.is_current(&transfer) {
            return;
        }
        let peer = transfer.peer;
        match (result, returned) {
            (Ok(()), Returned::Slot(slot)) => {
                self.net.control(peer, &Frame::Done { id: transfer.id, failed: false });
                self.net.place(&transfer, slot);
                if self.net.peer(peer).inbox.ready_seq() == Some(transfer.seq) {
                    self.role.on_ready(&mut self.net, peer);
                }
            }
            // The fabric closes the endpoint of a failed read; the message is dropped with it.
            _ => self.net.close_ep(peer),
        }
    }
}
