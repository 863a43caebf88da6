//! Datagrams to groups: who hears them, what is too long, and what becomes of those nobody takes.

use std::collections::BTreeSet;

use bytes::Bytes;
use fabric_core::{Domain, ErrorKind, GroupId, OpId, Segment, SendBuf};

use crate::Harness;
use crate::club::{Club, Member, fresh_group};
use crate::node::{SLOTS, Sent};
use crate::pair::{check_error, pattern};
use crate::wake::{arm_until_idle, becomes_readable};

/// Longer than the packets of any network.
const OVER_ANY_MTU: usize = 64 << 10;
/// More datagrams than any provider queues.
const OVER_ANY_DEPTH: usize = 100_000;
/// No provider counts that far.
const NO_GROUP: GroupId = GroupId(u64::MAX - 7);

pub(crate) fn all_other_members_hear_a_message<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 4);
    club.tell(0, &[1, 2, 3], b"from the first");
    club.tell(3, &[0, 1, 2], b"from the last");
    for member in &club.members {
        assert!(member.heard.iter().all(|(group, _)| *group == member.group), "its own name");
    }
}

pub(crate) fn a_member_does_not_hear_itself<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    club.tell(0, &[1], b"first");
    club.tell(1, &[0], b"second");
    club.settle();
    assert!(!club.members[0].has_heard(b"first"), "a member heard itself");
    assert!(!club.members[1].has_heard(b"second"), "a member heard itself");
}

pub(crate) fn groups_do_not_mix<H: Harness>(harness: &H) {
    let (mut one, mut two) = (Club::ready(harness, 2), Club::ready(harness, 2));
    // One member is in both.
    let both = &mut one.members[1];
    let (first, second) = (both.group, both.groups().join(&two.addr).expect("a second group"));
    assert_ne!(first, second, "each group has a name of its own");
    one.tell(0, &[1], b"to the first");
    let mut rounds = 0..harness.polls_max();
    while !one.members[1].has_heard(b"to the second") {
        rounds.next().expect("the second group is heard");
        two.tell(0, &[1], b"to the second");
        two.members[1].heard.clear();
        one.settle();
    }
    one.tell(0, &[1], b"to the first");
    two.settle();
    for (group, text) in &one.members[1].heard {
        let expected: &[u8] = if *group == first { b"to the first" } else { b"to the second" };
        assert_eq!(text, expected, "groups mix");
        assert!([first, second].contains(group), "a group that was not joined");
    }
    assert!(!two.members[1].has_heard(b"to the first"), "groups mix");
}

pub(crate) fn a_member_that_left_hears_nothing<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 3);
    club.tell(0, &[1, 2], b"before");
    leave(&mut club.members[2]);
    club.settle();
    club.tell(0, &[1], b"after");
    club.settle();
    assert!(!club.members[2].has_heard(b"after"), "heard after leaving");
}

pub(crate) fn a_group_can_be_joined_again<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    club.tell(0, &[1], b"before");
    let (addr, member) = (club.addr.clone(), &mut club.members[1]);
    let left = member.group;
    leave(member);
    member.group = member.groups().join(&addr).expect("a group that was left can be joined");
    assert_ne!(member.group, left, "groups are never named twice");
    club.tell(0, &[1], b"again");
    club.tell(1, &[0], b"and back");
}

pub(crate) fn the_largest_datagram_arrives_whole<H: Harness>(harness: &H) {
    let mut club = Club::new(harness, 2);
    let largest = largest(&mut club);
    let text = pattern(7, largest);
    club.members[1].slot_bytes = largest;
    club.members[1].offer(8);
    club.tell(0, &[1], &text);
    assert!(club.members[1].heard.iter().all(|(_, heard)| {
        // Those that were sent to find the limit are all zeros.
        *heard == text || heard.iter().all(|&byte| byte == 0)
    }));
}

/// Bytes of the longest datagram that is taken.
fn largest<D: Domain>(club: &mut Club<D>) -> usize {
    let (mut taken, mut refused) = (0, OVER_ANY_MTU);
    while taken + 1 < refused {
        let len = taken.midpoint(refused);
        match club.members[0].post(Bytes::from(vec![0; len]).into()) {
            Ok(_) => taken = len,
            Err(rejected) if rejected.error.kind() == ErrorKind::Misuse => refused = len,
            Err(_) => club.settle(),
        }
    }
    assert!(taken > 0, "no datagram is short enough");
    taken
}

pub(crate) fn a_datagram_over_the_limit_is_misuse<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    let long = Bytes::from(vec![1; OVER_ANY_MTU]);
    let rejected = club.members[0].post(long.clone().into()).expect_err("over any limit");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), long, "the buffer comes back untouched");
    club.tell(0, &[1], b"short");
    assert!(club.members[1].heard.iter().all(|(_, text)| text == b"short"));
}

pub(crate) fn segments_arrive_as_one_datagram<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    let mut rounds = 0..harness.polls_max();
    while !club.members[1].has_heard(b"in two pieces") {
        rounds.next().expect("the datagram arrives");
        let mut buf = SendBuf::new();
        for piece in [&b"in two "[..], b"pieces"] {
            buf.push(Segment::Bytes(Bytes::from_static(piece)));
        }
        club.members[0].post(buf).expect("two short segments");
        club.settle();
    }
    assert!(club.members[1].heard.iter().all(|(_, text)| text == b"in two pieces"));
}

pub(crate) fn a_datagram_names_its_receive<H: Harness>(harness: &H) {
    let mut club = Club::new(harness, 2);
    club.members[1].offer(3);
    club.members[1].slot_bytes = 0;
    // Each that comes is checked against those that were posted.
    club.cast_until("each receive is used", 0, b"one each", |members| {
        members[1].offered.is_empty()
    });
    club.settle();
    assert_eq!(club.members[1].heard.len(), 3, "one receive for each datagram");
}

pub(crate) fn a_datagram_without_a_receive_is_counted<H: Harness>(harness: &H) {
    let mut club = Club::new(harness, 2);
    assert_eq!(dropped(&mut club.members[1]), 0);
    club.cast_until("a datagram is counted", 0, b"lost", |members| dropped(&mut members[1]) > 0);
    club.settle();
    let lost = dropped(&mut club.members[1]);
    assert!(club.members[1].heard.is_empty(), "there was no receive");
    assert!(lost <= club.members[0].sent.len() as u64, "more were lost than sent");
    assert_eq!(dropped(&mut club.members[0]), 0, "its own do not count");
    club.members[1].offer(8);
    club.tell(0, &[1], b"heard");
    club.settle();
    assert_eq!(dropped(&mut club.members[1]), lost, "what was heard was not lost");
}

pub(crate) fn a_datagram_too_long_for_its_receive_is_counted<H: Harness>(harness: &H) {
    let mut club = Club::new(harness, 2);
    club.members[1].slot_bytes = 8;
    club.members[1].offer(1);
    club.members[1].slot_bytes = 0;
    let long = b"longer than eight bytes";
    club.cast_until("a datagram is counted", 0, long, |members| dropped(&mut members[1]) > 0);
    club.settle();
    assert!(club.members[1].heard.is_empty(), "it did not fit");
    // The receive is still posted.
    club.tell(0, &[1], b"short");
}

pub(crate) fn every_datagram_comes_back_once_with_its_buffer<H: Harness>(harness: &H) {
    const COUNT: usize = 20;
    let mut club = Club::ready(harness, 2);
    let posted: Vec<OpId> = (0..COUNT).map(|i| post_slot(&mut club.members[0], i)).collect();
    club.until("all datagrams come back", |members| members[0].sent.len() >= COUNT);
    club.settle();
    let sent = &club.members[0].sent;
    check_each_once(&posted, sent);
    for (i, op) in posted.iter().enumerate() {
        let of = sent.iter().find(|sent| sent.op == *op).expect("each came back");
        assert!(of.result.is_ok(), "{:?}", of.result);
        assert_eq!(of.buf.to_vec(), pattern(i, 16), "its own buffer");
    }
}

pub(crate) fn a_group_without_other_members_takes_datagrams<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 1);
    post_slot(&mut club.members[0], 1);
    club.until("the datagram comes back", |members| !members[0].sent.is_empty());
    club.settle();
    assert!(club.members[0].sent[0].result.is_ok(), "{:?}", club.members[0].sent[0].result);
    assert!(club.members[0].heard.is_empty(), "there is nobody to hear from");
}

pub(crate) fn a_full_group_hands_the_buffer_back_and_recovers<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    let small = || SendBuf::from(Bytes::from_static(b"one more"));
    let (mut count, mut full) = (0, None);
    while full.is_none() && count < OVER_ANY_DEPTH {
        match club.members[0].post(small()) {
            Ok(_) => count += 1,
            Err(rejected) => full = Some(rejected),
        }
    }
    let rejected = full.expect("without a poll there is an end to it");
    check_error(&rejected.error, ErrorKind::Full);
    assert_eq!(rejected.buf.to_vec(), b"one more", "the buffer comes back untouched");
    club.until("all datagrams come back", |members| members[0].sent.len() == count);
    club.tell(0, &[1], b"room again");
}

pub(crate) fn leaving_returns_every_posted_datagram<H: Harness>(harness: &H) {
    const COUNT: usize = 10;
    let mut club = Club::ready(harness, 2);
    let posted: Vec<OpId> = (0..COUNT).map(|i| post_slot(&mut club.members[0], i)).collect();
    leave(&mut club.members[0]);
    club.until("all datagrams come back", |members| members[0].sent.len() >= COUNT);
    club.settle();
    check_each_once(&posted, &club.members[0].sent);
    for sent in &club.members[0].sent {
        let kind = sent.result.as_ref().err().map(fabric_core::Error::kind);
        assert!(matches!(kind, None | Some(ErrorKind::Flushed)), "{:?}", sent.result);
    }
}

pub(crate) fn dropping_a_domain_returns_slots_of_datagrams<H: Harness>(harness: &H) {
    let mut club = Club::new(harness, 2);
    club.members[1].node.offer(5);
    for i in 0..10 {
        post_slot(&mut club.members[0], i);
        if i == 5 {
            club.members[0].node.domain.flush();
        }
    }
    for Member { node, sent, .. } in club.members {
        drop((node.domain, node.seen, sent));
        assert_eq!(node.pool.free(), SLOTS, "every slot came home");
    }
}

pub(crate) fn posting_after_leaving_is_misuse<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    club.tell(0, &[1], b"before");
    leave(&mut club.members[0]);
    for group in [club.members[0].group, NO_GROUP] {
        club.members[0].group = group;
        let late = Bytes::from_static(b"late");
        let rejected = club.members[0].post(late.into()).expect_err("it is no member");
        check_error(&rejected.error, ErrorKind::Misuse);
        assert_eq!(rejected.buf.to_vec(), b"late", "the buffer comes back untouched");
    }
}

pub(crate) fn leaving_twice_is_misuse<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 1);
    let member = &mut club.members[0];
    leave(member);
    for group in [member.group, NO_GROUP] {
        check_error(&member.groups().leave(group).expect_err("not joined"), ErrorKind::Misuse);
        check_error(&member.groups().dropped(group).expect_err("not joined"), ErrorKind::Misuse);
    }
}

pub(crate) fn what_is_no_group_cannot_be_joined<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 1);
    let groups = club.members[0].groups();
    let host = groups.join(&harness.listen_addr()).expect_err("a host is no group");
    check_error(&host, ErrorKind::Address);
    let foreign = fresh_group(harness).with_scheme("nonesuch");
    check_error(&groups.join(&foreign).expect_err("another fabric's"), ErrorKind::Unsupported);
}

pub(crate) fn the_descriptor_tells_of_a_datagram<H: Harness>(harness: &H) {
    let mut club = Club::ready(harness, 2);
    club.tell(0, &[1], b"both are in");
    club.settle();
    let naps_max = harness.polls_max();
    arm_until_idle(naps_max, &mut club.members[1].node);
    let (mut readable, mut casts) = (false, 0);
    while !readable && casts < naps_max {
        club.members[0].post(Bytes::from_static(b"wake up").into()).expect("one at a time");
        while club.members[0].node.turn() {}
        readable = becomes_readable(10, club.members[1].node.domain.wait_fd());
        casts += 1;
    }
    assert!(readable, "the descriptor stays silent though datagrams came");
    club.until("the datagram is there", |members| members[1].has_heard(b"wake up"));
}

fn post_slot<D: Domain>(member: &mut Member<D>, seed: usize) -> OpId {
    let slot = member.node.filled(&pattern(seed, 16));
    member.post(slot.into()).expect("a short datagram")
}

fn dropped<D: Domain>(member: &mut Member<D>) -> u64 {
    member.dropped().expect("it is a member")
}

fn leave<D: Domain>(member: &mut Member<D>) {
    let group = member.group;
    member.groups().leave(group).expect("a group that was joined can be left");
}

#[track_caller]
fn check_each_once(posted: &[OpId], sent: &[Sent]) {
    let back: BTreeSet<OpId> = sent.iter().map(|sent| sent.op).collect();
    assert_eq!(sent.len(), posted.len(), "each comes back once");
    assert_eq!(back, posted.iter().copied().collect(), "those that were posted");
}
