//! Bytes move as asked.

use bytes::Bytes;
use fabric_core::{Access, Domain, EpId, Exposure, RemoteKey, Segment, SendBuf, Slot};

use super::{bytes_of, check_written, contents, expose, memory, post_read, read, rma, write};
use crate::Harness;
use crate::node::{Node, SLOT_BYTES};
use crate::pair::{Pair, pattern};

/// Several pieces of any provider, and not a multiple of any.
const LARGE_BYTES: usize = (5 << 20) + 123;

pub(crate) fn a_read_brings_the_bytes<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(1, 1000), Access::READ);
    assert_eq!(key.len, 1000, "the key says how long the memory is");
    assert_eq!(bytes_of(read(&mut pair, key, 0, 1000)), pattern(1, 1000));
    assert_eq!(bytes_of(read(&mut pair, key, 0, 10)), pattern(1, 1000)[..10]);
}

pub(crate) fn a_read_starts_at_its_offset<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(2, 1000), Access::READ);
    assert_eq!(bytes_of(read(&mut pair, key, 123, 500)), pattern(2, 1000)[123..623]);
    assert_eq!(bytes_of(read(&mut pair, key, 999, 1)), pattern(2, 1000)[999..]);
}

pub(crate) fn a_write_puts_the_bytes_there<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(3, 1000), Access::WRITE);
    check_written(&write(&mut pair, key, 0, &pattern(4, 1000)));
    assert_eq!(contents(&mut pair, &key), pattern(4, 1000), "the bytes are there with RmaDone");
}

pub(crate) fn a_write_changes_only_its_range<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(3, 1000), Access::WRITE);
    check_written(&write(&mut pair, key, 77, b"here"));
    let mut expected = pattern(3, 1000);
    expected[77..81].copy_from_slice(b"here");
    assert_eq!(contents(&mut pair, &key), expected);
}

pub(crate) fn segments_are_written_as_one<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(3, 100), Access::WRITE);
    let mut buf = SendBuf::new();
    let pieces = [&b"one "[..], b"", b"write"];
    for piece in pieces.into_iter().take(pair.client.domain.caps().segments_max) {
        buf.push(Segment::Bytes(Bytes::from_static(piece)));
    }
    let whole = buf.to_vec();
    let posted = rma(&mut pair.client).post_write(pair.at_client, key, 10, buf);
    posted.expect("a write within the limits");
    check_written(&pair.done_by_client());
    assert_eq!(contents(&mut pair, &key)[10..10 + whole.len()], whole);
}

pub(crate) fn the_whole_capacity_is_exposed<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let slot = pair.server.filled(b"little");
    let key = expose(&mut pair, slot, Access::ALL);
    assert_eq!(key.len, SLOT_BYTES as u64, "filled or not");
    let end = SLOT_BYTES as u64 - 3;
    check_written(&write(&mut pair, key, end, b"end"));
    assert_eq!(bytes_of(read(&mut pair, key, end, 3)), b"end");
    assert_eq!(bytes_of(read(&mut pair, key, 0, 6)), b"little");
}

pub(crate) fn shared_bytes_can_be_read<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let mem = Exposure::Bytes(pattern(5, 3000).into());
    let exposed = rma(&mut pair.server).expose(pair.at_server, mem, Access::READ);
    let key = exposed.expect("shared bytes can be exposed for reading");
    assert_eq!(bytes_of(read(&mut pair, key, 1000, 2000)), pattern(5, 3000)[1000..]);
}

pub(crate) fn reading_nothing_works<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(6, 64), Access::READ);
    for offset in [0, 32, 64] {
        assert_eq!(bytes_of(read(&mut pair, key, offset, 0)), b"");
    }
    pair.check_alive();
}

pub(crate) fn writing_nothing_works<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(6, 64), Access::WRITE);
    for offset in [0, 32, 64] {
        check_written(&write(&mut pair, key, offset, b""));
    }
    assert_eq!(contents(&mut pair, &key), pattern(6, 64));
    pair.check_alive();
}

/// What fits both the provider and the name of the case.
fn large<D: Domain>(pair: &Pair<D>) -> usize {
    let max = pair.client.domain.caps().rma.map_or(0, |rma| rma.bytes_max);
    LARGE_BYTES.min(max)
}

pub(crate) fn a_large_read_arrives_whole<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let len = large(&pair);
    let key = expose(&mut pair, memory(7, len), Access::READ);
    assert!(bytes_of(read(&mut pair, key, 0, len)) == pattern(7, len), "bytes changed");
}

pub(crate) fn a_large_write_arrives_whole<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let len = large(&pair);
    let key = expose(&mut pair, memory(8, len), Access::WRITE);
    check_written(&write(&mut pair, key, 0, &pattern(9, len)));
    assert!(contents(&mut pair, &key) == pattern(9, len), "bytes changed");
}

pub(crate) fn messages_pass_a_large_read<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let len = large(&pair);
    let key = expose(&mut pair, memory(7, len), Access::READ);
    pair.server.offer(20);
    pair.client.offer(20);
    post_read(&mut pair, key, 0, len);
    for i in 0..20 {
        pair.client.send(pair.at_client, &[i]);
        pair.server.send(pair.at_server, &[i]);
        assert_eq!(pair.received_by_server().slot.filled(), [i]);
        assert_eq!(pair.received_by_client().slot.filled(), [i]);
    }
    let done = pair.done_by_client();
    assert!(bytes_of(done) == pattern(7, len), "bytes changed");
}

pub(crate) fn both_sides_read_at_once<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let len = large(&pair) / 2;
    let key = expose(&mut pair, memory(10, len), Access::READ);
    let mem = Exposure::Slot(memory(11, len));
    let exposed = rma(&mut pair.client).expose(pair.at_client, mem, Access::READ);
    let other_key = exposed.expect("a slot can be exposed");
    post_read(&mut pair, key, 0, len);
    post_read_of(&mut pair.server, pair.at_server, other_key, len);
    let of_server = pair.until("the server's read ends", |server, _| server.done());
    let of_client = pair.done_by_client();
    assert!(bytes_of(of_client) == pattern(10, len), "the client's bytes changed");
    assert!(bytes_of(of_server) == pattern(11, len), "the server's bytes changed");
}

fn post_read_of<D: Domain>(node: &mut Node<D>, ep: EpId, key: RemoteKey, len: usize) {
    let into = Slot::alloc(len).expect("memory for a case");
    rma(node).post_read(ep, key, 0, into, len).expect("a read within the limits");
}

pub(crate) fn many_reads_end_once_each<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let count = pair.client.domain.caps().send_depth.min(16);
    let key = expose(&mut pair, memory(12, 4096), Access::READ);
    let mut posted: Vec<_> =
        (0..count).map(|i| (post_read(&mut pair, key, i as u64 * 100, 100), i)).collect();
    for _ in 0..count {
        let done = pair.done_by_client();
        let at = posted.iter().position(|(op, _)| *op == done.op);
        let (_, i) = posted.swap_remove(at.expect("each read ends once"));
        assert_eq!(bytes_of(done), pattern(12, 4096)[i * 100..i * 100 + 100], "read {i}");
    }
    pair.settle();
    assert!(pair.client.done().is_none(), "a read ended twice");
}

fn post_write_imm<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, bytes: &[u8], imm: u32) {
    let buf = Bytes::copy_from_slice(bytes).into();
    let posted = rma(&mut pair.client).post_write_imm(pair.at_client, key, 0, buf, imm);
    posted.expect("a write within the limits");
}

pub(crate) fn an_immediate_value_follows_the_bytes<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    for (len, imm) in [(1000, 0xdead_beef), (0, 0), (large(&pair), u32::MAX)] {
        let key = expose(&mut pair, memory(13, len.max(1)), Access::WRITE);
        let posted = pair.server.offer(1);
        post_write_imm(&mut pair, key, &pattern(14, len), imm);
        let received = pair.received_by_server();
        assert_eq!(received.imm, Some(imm), "{len} bytes");
        assert_eq!((received.ep, received.op), (pair.at_server, posted[0]));
        assert!(received.slot.is_empty(), "the slot stays empty");
        assert!(contents(&mut pair, &key)[..len] == pattern(14, len), "the bytes are there");
        check_written(&pair.done_by_client());
    }
}

pub(crate) fn an_immediate_value_waits_for_a_receive<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(13, 100), Access::WRITE);
    post_write_imm(&mut pair, key, b"bytes", 5);
    pair.settle();
    assert!(pair.server.received().is_none(), "there was no receive to report it with");
    pair.server.offer(1);
    assert_eq!(pair.received_by_server().imm, Some(5));
    check_written(&pair.done_by_client());
}

pub(crate) fn a_key_survives_the_wire<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let key = expose(&mut pair, memory(15, 500), Access::READ);
    pair.client.offer(1);
    pair.server.send(pair.at_server, &key.to_bytes());
    let received = pair.received_by_client();
    let bytes = received.slot.filled().try_into().expect("an encoded key");
    let arrived = RemoteKey::from_bytes(bytes);
    assert_eq!(bytes_of(read(&mut pair, arrived, 0, 500)), pattern(15, 500));
}
