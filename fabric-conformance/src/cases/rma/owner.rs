//! What the owner of exposed memory can do with it.

use bytes::Bytes;
use fabric_core::{Access, Domain, EpId, ErrorKind, Exposure, RemoteKey, Returned, Slot};

use super::{
    NO_EP, bytes_of, check_written, expose, memory, post_read, post_write, read, rma, write,
};
use crate::Harness;
use crate::node::{Node, SLOTS};
use crate::pair::{Pair, check_error, pattern};

fn slot_of(mem: Exposure) -> Slot {
    match mem {
        Exposure::Slot(slot) => slot,
        other => panic!("revoke gives back what was exposed, not {other:?}"),
    }
}

pub(crate) fn revoke_gives_the_memory_back_as_it_was<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let slot = pair.server.filled(b"half filled");
    let key = expose(&mut pair, slot, Access::ALL);
    check_written(&write(&mut pair, key, 0, b"HALF"));
    let slot = slot_of(rma(&mut pair.server).revoke(&key).expect("it is exposed"));
    assert_eq!(slot.filled(), b"HALF filled", "its length is what it was");
    drop(slot);
    assert_eq!(pair.server.pool.free(), SLOTS);
    let mem = Exposure::Bytes(Bytes::from_static(b"shared"));
    let exposed = rma(&mut pair.server).expose(pair.at_server, mem, Access::READ);
    let key = exposed.expect("shared bytes can be exposed for reading");
    let back = rma(&mut pair.server).revoke(&key).expect("it is exposed");
    assert!(matches!(back, Exposure::Bytes(bytes) if bytes == b"shared"[..]));
}

pub(crate) fn revoke_works_after_the_endpoint_closed<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::ALL);
    pair.client.domain.close(pair.at_client);
    pair.server_closed();
    let slot = slot_of(rma(&mut pair.server).revoke(&key).expect("it is still exposed"));
    assert_eq!(slot.filled(), pattern(1, 100));
}

pub(crate) fn revoke_stops_a_write_under_way<H: Harness>(harness: &H) {
    const LEN: usize = 4 << 20;
    for turns in 0..6 {
        let mut pair = Pair::new(harness);
        let key = expose(&mut pair, memory(1, LEN), Access::WRITE);
        let bytes = vec![0xee; LEN.min(pair.client.domain.caps().rma.map_or(0, |r| r.bytes_max))];
        post_write(&mut pair, key, 0, &bytes);
        for _ in 0..turns {
            pair.client.turn();
            pair.server.turn();
        }
        let slot = slot_of(rma(&mut pair.server).revoke(&key).expect("it is exposed"));
        let then = slot.filled().to_vec();
        let done = pair.done_by_client();
        if let Err(error) = &done.result {
            check_error(error, ErrorKind::Access);
        }
        pair.settle();
        assert!(slot.filled() == then, "the memory was written after revoke");
    }
}

/// What the owner puts there after `revoke` is nobody else's to read.
pub(crate) fn revoke_stops_a_read_under_way<H: Harness>(harness: &H) {
    const LEN: usize = 2 << 20;
    for turns in [0, 1, 2, 4] {
        let mut pair = Pair::new(harness);
        let mut exposed = memory(1, LEN);
        exposed.buffer_mut().fill(0x11);
        let key = expose(&mut pair, exposed, Access::READ);
        post_read(&mut pair, key, 0, LEN);
        for _ in 0..turns {
            pair.client.turn();
            pair.server.turn();
        }
        let mut slot = slot_of(rma(&mut pair.server).revoke(&key).expect("it is exposed"));
        slot.buffer_mut().fill(0xee);
        let done = pair.done_by_client();
        let mut read = match done.returned {
            Returned::Slot(slot) => slot,
            other => panic!("a read gives its slot back, not {other:?}"),
        };
        assert!(!read.buffer_mut().contains(&0xee), "the memory was read after revoke");
        match done.result {
            Ok(()) => assert!(read.filled().iter().all(|&byte| byte == 0x11), "not what was there"),
            Err(error) => check_error(&error, ErrorKind::Access),
        }
    }
}

pub(crate) fn revoking_twice_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::ALL);
    rma(&mut pair.server).revoke(&key).expect("it is exposed");
    let error = rma(&mut pair.server).revoke(&key).expect_err("it is not any more");
    check_error(&error, ErrorKind::Misuse);
    let unknown = RemoteKey { addr: 1, len: 2, key: 3, nonce: 4 };
    let error = rma(&mut pair.server).revoke(&unknown).expect_err("it never was");
    check_error(&error, ErrorKind::Misuse);
    pair.check_alive();
}

pub(crate) fn load_and_store_reach_exposed_memory<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::READ);
    rma(&mut pair.server).store(&key, 40, b"stored").expect("its own memory can be written");
    assert_eq!(bytes_of(read(&mut pair, key, 38, 10))[2..8], *b"stored", "the peer reads it");
    let mut loaded = [0; 6];
    rma(&mut pair.server).load(&key, 40, &mut loaded).expect("its own memory can be read");
    assert_eq!(&loaded, b"stored");
    let slot = slot_of(rma(&mut pair.server).revoke(&key).expect("it is exposed"));
    let mut expected = pattern(1, 100);
    expected[40..46].copy_from_slice(b"stored");
    assert_eq!(slot.filled(), expected);
}

pub(crate) fn load_and_store_beyond_it_are_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 100), Access::ALL);
    let server = rma(&mut pair.server);
    for offset in [93, 100, 101, u64::MAX, u64::MAX - 7] {
        let loaded = server.load(&key, offset, &mut [0; 8]).expect_err("beyond the memory");
        check_error(&loaded, ErrorKind::Misuse);
        let stored = server.store(&key, offset, &[0; 8]).expect_err("beyond the memory");
        check_error(&stored, ErrorKind::Misuse);
    }
    let unknown = RemoteKey { nonce: !key.nonce, ..key };
    check_error(&server.load(&unknown, 0, &mut [0]).expect_err("no such key"), ErrorKind::Misuse);
    check_error(&server.store(&unknown, 0, &[0]).expect_err("no such key"), ErrorKind::Misuse);
    let mem = Exposure::Bytes(Bytes::from_static(b"shared"));
    let shared = server.expose(pair.at_server, mem, Access::READ).expect("it can be exposed");
    check_error(&server.store(&shared, 0, b"x").expect_err("shared"), ErrorKind::Misuse);
    let slot = slot_of(server.revoke(&key).expect("it is exposed"));
    assert_eq!(slot.filled(), pattern(1, 100), "nothing was written");
}

pub(crate) fn exposing_wrongly_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let ep = pair.at_server;
    let none = Access { read: false, write: false, atomic: false };
    check_refused(&mut pair.server, NO_EP, b"bytes", Access::READ);
    check_refused(&mut pair.server, ep, b"bytes", none);
    check_refused(&mut pair.server, ep, b"bytes", Access::WRITE);
    check_refused(&mut pair.server, ep, b"bytes", Access::ATOMIC);
    check_refused(&mut pair.server, ep, b"bytes", Access::ALL);
    check_refused(&mut pair.server, ep, b"", Access::READ);
    let slot = Exposure::Slot(memory(1, 10));
    let rejected = rma(&mut pair.server).expose(ep, slot, none).expect_err("no access");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(slot_of(rejected.buf).filled(), pattern(1, 10), "the memory comes back");
    pair.client.domain.close(pair.at_client);
    pair.server_closed();
    check_refused(&mut pair.server, ep, b"bytes", Access::READ);
}

fn check_refused<D: Domain>(node: &mut Node<D>, ep: EpId, bytes: &'static [u8], access: Access) {
    let mem = Exposure::Bytes(Bytes::from_static(bytes));
    let rejected = rma(node).expose(ep, mem, access).expect_err("this cannot be exposed");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert!(matches!(rejected.buf, Exposure::Bytes(back) if back == bytes), "it comes back");
}

pub(crate) fn dropping_a_domain_returns_exposed_memory<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let slot = pair.server.filled(b"exposed");
    expose(&mut pair, slot, Access::ALL);
    let Pair { server: Node { domain, pool, .. }, .. } = pair;
    assert_eq!(pool.free(), SLOTS - 1);
    drop(domain);
    assert_eq!(pool.free(), SLOTS);
}
