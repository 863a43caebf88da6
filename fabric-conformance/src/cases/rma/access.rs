//! What a peer may not reach it does not reach: not one byte moves.

use fabric_core::{Access, Domain, ErrorKind, RemoteKey, Returned};

use super::{contents, expose, memory, read, rma, write};
use crate::Harness;
use crate::node::Done;
use crate::pair::{Pair, check_error, pattern};

const LEN: usize = 256;

/// Checks that the peer refused and that the buffer came back all the same.
#[track_caller]
pub(crate) fn check_denied(done: &Done) {
    let error = done.result.as_ref().expect_err("the peer must refuse this");
    check_error(error, ErrorKind::Access);
}

fn check_read_denied<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, len: usize) {
    let done = read(pair, key, offset, len);
    check_denied(&done);
    match done.returned {
        Returned::Slot(mut slot) => {
            assert!(slot.buffer_mut().iter().all(|&byte| byte == 0), "bytes moved");
        }
        other => panic!("a read gives its slot back, not {other:?}"),
    }
    pair.until_both_closed();
}

fn check_write_denied<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, len: usize) {
    let done = write(pair, key, offset, &vec![0xff; len]);
    check_denied(&done);
    assert!(matches!(done.returned, Returned::SendBuf(ref buf) if buf.len() == len));
    pair.until_both_closed();
}

/// A pair whose server exposes `LEN` patterned bytes.
fn exposed<H: Harness>(harness: &H, access: Access) -> (Pair<H::Domain>, RemoteKey) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, LEN), access);
    (pair, key)
}

#[track_caller]
fn check_untouched<D: Domain>(pair: &mut Pair<D>, key: &RemoteKey) {
    assert_eq!(contents(pair, key), pattern(1, LEN), "the memory was written");
}

pub(crate) fn a_wrong_key_is_refused<H: Harness>(harness: &H) {
    let wrong: [fn(&mut RemoteKey); 3] =
        [|key| key.nonce ^= 1, |key| key.key ^= 1 << 40, |key| key.nonce = 0];
    for spoil in wrong {
        let (mut pair, key) = exposed(harness, Access::ALL);
        let mut spoiled = key;
        spoil(&mut spoiled);
        check_read_denied(&mut pair, spoiled, 0, 16);
        let (mut pair, key) = exposed(harness, Access::ALL);
        let mut spoiled = key;
        spoil(&mut spoiled);
        check_write_denied(&mut pair, spoiled, 0, 16);
        check_untouched(&mut pair, &key);
    }
}

pub(crate) fn a_range_beyond_the_memory_is_refused<H: Harness>(harness: &H) {
    for (offset, len) in [(0, LEN + 1), (LEN as u64 - 8, 9), (LEN as u64, 1), (LEN as u64 + 1, 0)] {
        let (mut pair, key) = exposed(harness, Access::ALL);
        check_read_denied(&mut pair, key, offset, len);
        let (mut pair, key) = exposed(harness, Access::ALL);
        check_write_denied(&mut pair, key, offset, len);
        check_untouched(&mut pair, &key);
    }
}

pub(crate) fn an_overflowing_range_is_refused<H: Harness>(harness: &H) {
    for offset in [u64::MAX, u64::MAX - 15, u64::MAX - 16] {
        let (mut pair, key) = exposed(harness, Access::ALL);
        check_read_denied(&mut pair, key, offset, 16);
        let (mut pair, key) = exposed(harness, Access::ALL);
        check_write_denied(&mut pair, key, offset, 16);
        check_untouched(&mut pair, &key);
    }
}

/// A range inside what a key claims, though not inside what is exposed.
pub(crate) fn a_key_that_claims_more_is_refused<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, Access::ALL);
    let longer = RemoteKey { len: key.len * 2, ..key };
    check_read_denied(&mut pair, longer, LEN as u64, 16);
    let (mut pair, key) = exposed(harness, Access::ALL);
    let longer = RemoteKey { len: key.len * 2, ..key };
    check_write_denied(&mut pair, longer, LEN as u64, 16);
    check_untouched(&mut pair, &key);
}

pub(crate) fn reading_without_the_right_is_refused<H: Harness>(harness: &H) {
    for access in [Access::WRITE, Access::ATOMIC] {
        let (mut pair, key) = exposed(harness, access);
        check_read_denied(&mut pair, key, 0, 16);
    }
}

pub(crate) fn writing_without_the_right_is_refused<H: Harness>(harness: &H) {
    for access in [Access::READ, Access::ATOMIC] {
        let (mut pair, key) = exposed(harness, access);
        check_write_denied(&mut pair, key, 0, 16);
        check_untouched(&mut pair, &key);
    }
}

pub(crate) fn a_revoked_key_is_refused<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, Access::ALL);
    rma(&mut pair.server).revoke(&key).expect("it is exposed");
    check_read_denied(&mut pair, key, 0, 16);
    let (mut pair, key) = exposed(harness, Access::ALL);
    let memory = rma(&mut pair.server).revoke(&key).expect("it is exposed");
    check_write_denied(&mut pair, key, 0, 16);
    match memory {
        fabric_core::Exposure::Slot(slot) => assert_eq!(slot.filled(), pattern(1, LEN)),
        other => panic!("revoke gives back what was exposed, not {other:?}"),
    }
}

pub(crate) fn a_foreign_endpoint_is_refused<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, Access::ALL);
    let first = (pair.at_server, pair.at_client);
    (pair.at_server, pair.at_client) = pair.connect();
    check_write_denied(&mut pair, key, 0, 16);
    check_untouched(&mut pair, &key);
    (pair.at_server, pair.at_client) = pair.connect();
    check_read_denied(&mut pair, key, 0, 16);
    (pair.at_server, pair.at_client) = first;
    let done = read(&mut pair, key, 0, 16);
    assert!(done.result.is_ok(), "the endpoint it was exposed to still reaches it");
}

pub(crate) fn a_refused_access_closes_the_endpoint<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, Access::READ);
    let (other_at_server, other_at_client) = pair.connect();
    let done = write(&mut pair, key, 0, b"no");
    check_denied(&done);
    pair.client_closed();
    pair.server_closed();
    (pair.at_server, pair.at_client) = (other_at_server, other_at_client);
    pair.check_alive();
}
