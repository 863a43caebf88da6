//! Remote memory: reading, writing, and everything that is refused.
//!
//! The server exposes, the client reaches.

mod access;
mod owner;
mod posts;
mod transfer;

pub(crate) use access::*;
pub(crate) use owner::*;
pub(crate) use posts::*;
pub(crate) use transfer::*;

use fabric_core::{Access, Domain, EpId, Exposure, OpId, RemoteKey, Returned, Rma, Slot};

use crate::node::{Done, Node};
use crate::pair::{Pair, pattern};

/// No provider counts that far.
const NO_EP: EpId = EpId(u64::MAX - 7);

/// The ability that these cases need, and run only with.
pub(crate) fn rma<D: Domain>(node: &mut Node<D>) -> &mut dyn Rma {
    node.domain.rma().expect("caps().rma says that it is offered")
}

/// A slot of `len` bytes, filled with a pattern.
pub(crate) fn memory(seed: usize, len: usize) -> Slot {
    let mut slot = Slot::alloc(len).expect("memory for a case");
    assert!(slot.append(&pattern(seed, len)));
    slot
}

/// Exposes a slot of the server to the client.
pub(crate) fn expose<D: Domain>(pair: &mut Pair<D>, slot: Slot, access: Access) -> RemoteKey {
    let exposed = rma(&mut pair.server).expose(pair.at_server, Exposure::Slot(slot), access);
    exposed.expect("a slot can be exposed")
}

/// Posts a read of the client, and gives its end.
fn read<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, len: usize) -> Done {
    let op = post_read(pair, key, offset, len);
    let done = pair.done_by_client();
    assert_eq!((done.ep, done.op), (pair.at_client, op), "RmaDone names endpoint and operation");
    done
}

fn post_read<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, len: usize) -> OpId {
    let into = Slot::alloc(len.max(1)).expect("memory for a case");
    let posted = rma(&mut pair.client).post_read(pair.at_client, key, offset, into, len);
    posted.expect("a read within the limits")
}

/// Posts a write of the client, and gives its end.
fn write<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, bytes: &[u8]) -> Done {
    let op = post_write(pair, key, offset, bytes);
    let done = pair.done_by_client();
    assert_eq!((done.ep, done.op), (pair.at_client, op), "RmaDone names endpoint and operation");
    done
}

fn post_write<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, bytes: &[u8]) -> OpId {
    let buf = bytes::Bytes::copy_from_slice(bytes).into();
    let posted = rma(&mut pair.client).post_write(pair.at_client, key, offset, buf);
    posted.expect("a write within the limits")
}

/// The bytes that a read that went well brought.
#[track_caller]
fn bytes_of(done: Done) -> Vec<u8> {
    assert!(done.result.is_ok(), "the read failed: {:?}", done.result);
    match done.returned {
        Returned::Slot(slot) => slot.filled().to_vec(),
        other => panic!("a read gives its slot back, not {other:?}"),
    }
}

/// Checks that a write went well and gave its buffer back.
#[track_caller]
fn check_written(done: &Done) {
    assert!(done.result.is_ok(), "the write failed: {:?}", done.result);
    assert!(matches!(done.returned, Returned::SendBuf(_)), "a write gives its buffer back");
}

/// What the server's exposed memory holds.
pub(crate) fn contents<D: Domain>(pair: &mut Pair<D>, key: &RemoteKey) -> Vec<u8> {
    let mut bytes = vec![0; key.len as usize];
    rma(&mut pair.server).load(key, 0, &mut bytes).expect("its own memory can be read");
    bytes
}
