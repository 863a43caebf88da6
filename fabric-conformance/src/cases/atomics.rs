//! Atomics on a word of the peer's memory.

use fabric_core::{Access, Atomics, Domain, EpId, ErrorKind, OpId, RemoteKey, Returned};

use super::rma::{check_denied, contents, expose, memory, rma};
use crate::Harness;
use crate::node::Node;
use crate::pair::{Pair, check_error, join, listen, pattern};

/// The ability that these cases need, and run only with.
fn atomics<D: Domain>(node: &mut Node<D>) -> &mut dyn Atomics {
    node.domain.atomics().expect("caps().atomics says that it is offered")
}

/// A pair whose server exposes the words.
fn exposed<H: Harness>(harness: &H, words: &[u64]) -> (Pair<H::Domain>, RemoteKey) {
    let mut pair = Pair::new(harness);
    let mut slot = memory(0, words.len() * 8);
    slot.set_len(0);
    for word in words {
        assert!(slot.append(&word.to_le_bytes()));
    }
    let key = expose(&mut pair, slot, Access::ATOMIC);
    (pair, key)
}

fn word<D: Domain>(pair: &mut Pair<D>, key: &RemoteKey, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    rma(&mut pair.server).load(key, offset, &mut bytes).expect("its own memory can be read");
    u64::from_le_bytes(bytes)
}

/// The value before that an atomic of the client ended with.
#[track_caller]
fn value<D: Domain>(pair: &mut Pair<D>, op: OpId) -> u64 {
    let done = pair.done_by_client();
    assert!(done.result.is_ok(), "the atomic failed: {:?}", done.result);
    assert_eq!((done.ep, done.op), (pair.at_client, op), "RmaDone names endpoint and operation");
    match done.returned {
        Returned::Value(value) => value,
        other => panic!("an atomic gives a value, not {other:?}"),
    }
}

fn add<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, offset: u64, add: u64) -> u64 {
    let posted = atomics(&mut pair.client).fetch_add(pair.at_client, key, offset, add);
    value(pair, posted.expect("an aligned atomic"))
}

fn swap<D: Domain>(pair: &mut Pair<D>, key: RemoteKey, compare: u64, swap: u64) -> u64 {
    let posted = atomics(&mut pair.client).compare_swap(pair.at_client, key, 0, compare, swap);
    value(pair, posted.expect("an aligned atomic"))
}

pub(crate) fn an_add_gives_the_value_before<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[100]);
    assert_eq!(add(&mut pair, key, 0, 5), 100);
    assert_eq!(add(&mut pair, key, 0, 7), 105);
    assert_eq!(add(&mut pair, key, 0, 0), 112);
    assert_eq!(word(&mut pair, &key, 0), 112);
}

pub(crate) fn an_add_wraps<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[u64::MAX - 1]);
    assert_eq!(add(&mut pair, key, 0, 3), u64::MAX - 1);
    assert_eq!(word(&mut pair, &key, 0), 1);
}

pub(crate) fn a_swap_happens_when_the_word_matches<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[7]);
    assert_eq!(swap(&mut pair, key, 7, u64::MAX), 7);
    assert_eq!(word(&mut pair, &key, 0), u64::MAX);
}

pub(crate) fn a_swap_does_not_happen_otherwise<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[7]);
    assert_eq!(swap(&mut pair, key, 8, 9), 7);
    assert_eq!(word(&mut pair, &key, 0), 7);
}

pub(crate) fn words_are_little_endian<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[0x00ff]);
    assert_eq!(add(&mut pair, key, 0, 1), 0x00ff);
    assert_eq!(contents(&mut pair, &key), [0, 1, 0, 0, 0, 0, 0, 0]);
}

pub(crate) fn an_atomic_changes_only_its_word<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[1, u64::MAX, 3]);
    assert_eq!(add(&mut pair, key, 8, 1), u64::MAX);
    let words = [0, 8, 16].map(|offset| word(&mut pair, &key, offset));
    assert_eq!(words, [1, 0, 3]);
}

pub(crate) fn adds_in_flight_at_once_all_count<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[0]);
    let count = pair.client.domain.caps().send_depth.min(32);
    for _ in 0..count {
        let posted = atomics(&mut pair.client).fetch_add(pair.at_client, key, 0, 1);
        posted.expect("an atomic within the depth");
    }
    let mut before: Vec<u64> = (0..count)
        .map(|_| match pair.done_by_client().returned {
            Returned::Value(value) => value,
            other => panic!("an atomic gives a value, not {other:?}"),
        })
        .collect();
    before.sort_unstable();
    assert_eq!(before, (0..count as u64).collect::<Vec<_>>(), "each saw a value of its own");
    assert_eq!(word(&mut pair, &key, 0), count as u64);
}

/// A client that adds one to a word, again and again.
struct Adder<D> {
    node: Node<D>,
    ep: EpId,
    key: RemoteKey,
    before: Vec<u64>,
}

impl<D: Domain> Adder<D> {
    fn post(&mut self) {
        let posted = atomics(&mut self.node).fetch_add(self.ep, self.key, 0, 1);
        posted.expect("one atomic at a time");
    }

    /// Takes an end, if there is one, and posts the next.
    fn step(&mut self, count: usize) {
        let Some(done) = self.node.done() else { return };
        match done.returned {
            Returned::Value(value) if done.result.is_ok() => self.before.push(value),
            other => panic!("an atomic gives a value, not {other:?}: {:?}", done.result),
        }
        if self.before.len() < count {
            self.post();
        }
    }
}

pub(crate) fn adds_of_two_peers_all_count<H: Harness>(harness: &H) {
    const COUNT: usize = 100;
    let mut server = Node::new(harness.domain());
    let listener = listen(&mut server, harness);
    let (mut one, mut two) =
        (adder(harness, &mut server, &listener), adder(harness, &mut server, &listener));
    // Memory is exposed to one endpoint, so each peer has a word of its own.
    one.post();
    two.post();
    let done = |adder: &Adder<H::Domain>| adder.before.len() == COUNT;
    let (mut idle, polls_max) = (0, harness.polls_max());
    while !(done(&one) && done(&two)) {
        let came = server.turn() | one.node.turn() | two.node.turn();
        one.step(COUNT);
        two.step(COUNT);
        idle = if came { 0 } else { idle + 1 };
        assert!(idle <= polls_max, "waited for {polls_max} polls in vain: all adds end");
        if !came {
            server.nap();
        }
    }
    for adder in [&one, &two] {
        assert_eq!(adder.before, (0..COUNT as u64).collect::<Vec<_>>(), "an add was lost");
    }
}

fn adder<H: Harness>(
    harness: &H,
    server: &mut Node<H::Domain>,
    listener: &fabric_core::Listener,
) -> Adder<H::Domain> {
    let mut node = Node::new(harness.domain());
    let (at_server, ep) = join(harness.polls_max(), server, &mut node, listener);
    let mut slot = memory(0, 8);
    slot.buffer_mut().fill(0);
    let exposed = rma(server).expose(at_server, fabric_core::Exposure::Slot(slot), Access::ATOMIC);
    Adder { node, ep, key: exposed.expect("a slot can be exposed"), before: Vec::new() }
}

pub(crate) fn a_misaligned_atomic_is_misuse<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[1, 2]);
    for offset in [1, 4, 7, 9, u64::MAX] {
        let client = atomics(&mut pair.client);
        let added = client.fetch_add(pair.at_client, key, offset, 1).expect_err("misaligned");
        check_error(&added, ErrorKind::Misuse);
        let swapped = client.compare_swap(pair.at_client, key, offset, 1, 2);
        check_error(&swapped.expect_err("misaligned"), ErrorKind::Misuse);
    }
    assert_eq!(word(&mut pair, &key, 0), 1);
    pair.check_alive();
}

pub(crate) fn an_atomic_to_an_unknown_endpoint_is_misuse<H: Harness>(harness: &H) {
    let (mut pair, key) = exposed(harness, &[1]);
    let nobody = EpId(u64::MAX - 7);
    let client = atomics(&mut pair.client);
    let added = client.fetch_add(nobody, key, 0, 1).expect_err("no endpoint");
    check_error(&added, ErrorKind::Misuse);
    let swapped = client.compare_swap(nobody, key, 0, 1, 2).expect_err("no endpoint");
    check_error(&swapped, ErrorKind::Misuse);
    pair.check_alive();
}

pub(crate) fn an_atomic_without_the_right_is_refused<H: Harness>(harness: &H) {
    for access in [Access::READ, Access::WRITE] {
        let mut pair = Pair::new(harness);
        let key = expose(&mut pair, memory(1, 64), access);
        let posted = atomics(&mut pair.client).fetch_add(pair.at_client, key, 0, 1);
        posted.expect("an aligned atomic");
        check_denied(&pair.done_by_client());
        pair.until_both_closed();
        assert_eq!(contents(&mut pair, &key), pattern(1, 64), "the memory was changed");
    }
}

pub(crate) fn an_atomic_beyond_the_memory_is_refused<H: Harness>(harness: &H) {
    for offset in [16, 24, u64::MAX - 7] {
        let (mut pair, key) = exposed(harness, &[1, 2]);
        let posted = atomics(&mut pair.client).fetch_add(pair.at_client, key, offset, 1);
        posted.expect("an aligned atomic");
        check_denied(&pair.done_by_client());
        pair.until_both_closed();
    }
}
