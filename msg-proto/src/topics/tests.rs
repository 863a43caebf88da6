use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use std::thread;

use proptest::prelude::*;

use super::*;

const WIDE: TopicLimits = TopicLimits {
    topics_per_peer: usize::MAX,
    topic_bytes_max: usize::MAX,
    bytes_per_peer: usize::MAX,
};

fn table() -> TopicTable<u32> {
    TopicTable::new(WIDE)
}

fn found(table: &TopicTable<u32>, subject: &[u8]) -> Vec<u32> {
    let mut out = vec![99];
    table.matches(subject, &mut out);
    out
}

#[test]
fn pub_09_topics_match_by_binary_prefix() {
    let mut table = table();
    table.subscribe(1, b"a\0").unwrap();
    table.subscribe(2, b"a\0\xff").unwrap();
    assert_eq!(found(&table, b"a\0\xffz"), [1, 2]);
    assert_eq!(found(&table, b"a\0b"), [1]);
    assert_eq!(found(&table, b"a"), []);
}

#[test]
fn sub_02_without_subscriptions_nothing_matches() {
    assert_eq!(found(&table(), b""), []);
    assert!(!table().any_match(b"a") && !table().matches_peer(1, b"a"));
}

#[test]
fn sub_03_the_empty_topic_matches_everything() {
    let mut table = table();
    table.subscribe(1, b"").unwrap();
    assert_eq!((found(&table, b""), found(&table, b"x")), (vec![1], vec![1]));
}

#[test]
fn sub_05_a_peer_is_found_once_however_many_topics_match() {
    let mut table = table();
    for (peer, topic) in [(2, &b""[..]), (2, b"a"), (1, b"a"), (3, b""), (2, b"ab")] {
        table.subscribe(peer, topic).unwrap();
    }
    assert_eq!(found(&table, b"abc"), [1, 2, 3]);
}

#[test]
fn sub_06_two_subscriptions_need_two_cancellations() {
    let mut table = table();
    let first = Subscribed { first_of_peer: true, first_of_topic: true };
    let again = Subscribed { first_of_peer: false, first_of_topic: false };
    assert_eq!((table.subscribe(1, b"a"), table.subscribe(1, b"a")), (Ok(first), Ok(again)));
    let kept = Cancelled { last_of_peer: false, last_of_topic: false, known: true };
    assert_eq!(table.cancel(1, b"a"), kept);
    assert!(table.matches_peer(1, b"a"));
    let last = Cancelled { last_of_peer: true, last_of_topic: true, known: true };
    assert_eq!(table.cancel(1, b"a"), last);
    assert!(!table.matches_peer(1, b"a"));
}

#[test]
fn sub_07_cancelling_the_unknown_is_harmless() {
    let mut table = table();
    table.subscribe(1, b"a").unwrap();
    assert!(!table.cancel(1, b"ab").known && !table.cancel(2, b"a").known);
    assert_eq!(found(&table, b"ab"), [1]);
}

#[test]
fn pub_17_nested_topics_count_separately() {
    let mut table = table();
    for (peer, topic) in [(1, &b""[..]), (1, b"a"), (2, b"a"), (1, b"ab"), (1, b"ab")] {
        table.subscribe(peer, topic).unwrap();
    }
    assert_eq!((table.topics(), table.peers().len()), (3, 2));
    table.remove_peer(1);
    assert_eq!((table.topics(), table.peers().collect::<Vec<_>>()), (1, vec![2]));
}

#[test]
fn only_the_last_subscriber_takes_a_topic_away() {
    let mut table = table();
    table.subscribe(1, b"a").unwrap();
    assert!(!table.subscribe(2, b"a").unwrap().first_of_topic);
    assert!(!table.cancel(1, b"a").last_of_topic);
    assert!(table.cancel(2, b"a").last_of_topic);
}

#[test]
fn b4_each_limit_refuses_with_its_own_reason_and_keeps_the_rest() {
    let limits = TopicLimits { topics_per_peer: 2, topic_bytes_max: 4, bytes_per_peer: 6 };
    let mut table = TopicTable::new(limits);
    assert_eq!(table.subscribe(1, b"12345"), Err(TopicError::TooLong { bytes: 5, bytes_max: 4 }));
    table.subscribe(1, b"1234").unwrap();
    assert_eq!(table.subscribe(1, b"123"), Err(TopicError::TooMuch { bytes_max: 6 }));
    table.subscribe(1, b"12").unwrap();
    assert_eq!(table.subscribe(1, b""), Err(TopicError::TooMany { topics_max: 2 }));
    // The counts of known topics, and other peers, are untouched by the limit.
    table.subscribe(1, b"12").unwrap();
    table.subscribe(2, b"123").unwrap();
    assert_eq!(found(&table, b"1234"), [1, 2]);
}

#[test]
fn b4_room_comes_back_with_a_cancellation() {
    let limits = TopicLimits { topics_per_peer: 1, topic_bytes_max: 4, bytes_per_peer: 4 };
    let mut table = TopicTable::new(limits);
    for topic in [b"1234", b"abcd"] {
        table.subscribe(1, topic).unwrap();
        table.cancel(1, topic);
    }
    table.subscribe(1, b"wxyz").unwrap();
}

#[test]
fn refusals_say_the_limit() {
    let all = [
        TopicError::TooLong { bytes: 5, bytes_max: 4 },
        TopicError::TooMany { topics_max: 2 },
        TopicError::TooMuch { bytes_max: 6 },
    ];
    insta::assert_snapshot!(all.map(|error| error.to_string()).join("\n"));
}

#[test]
fn b4_a_million_subscriptions_need_no_stack() {
    let work = || {
        let mut table = table();
        for i in 0..1_000_000_u32 {
            table.subscribe(i % 10, format!("topic/{i}").as_bytes()).unwrap();
        }
        assert_eq!(table.topics(), 1_000_000);
        assert_eq!(found(&table, b"topic/123456"), [1, 2, 3, 4, 5, 6]);
        (0..10).for_each(|peer| table.remove_peer(peer));
        assert_eq!(table.topics(), 0);
    };
    thread::Builder::new().stack_size(64 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_topic_of_a_mebibyte_under_a_wide_limit_needs_no_stack() {
    let work = || {
        let mut table = table();
        let topic = vec![7; 1 << 20];
        table.subscribe(1, &topic).unwrap();
        assert!(table.any_match(&topic) && !table.any_match(&topic[1..]));
    };
    thread::Builder::new().stack_size(64 << 10).spawn(work).unwrap().join().unwrap();
}

#[derive(Debug, Clone)]
enum Op {
    Subscribe(u32, Vec<u8>),
    Cancel(u32, Vec<u8>),
    Remove(u32),
    Match(Vec<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    let topic = || prop::collection::vec(0u8..3, 0..4);
    prop_oneof![
        6 => (0u32..5, topic()).prop_map(|(peer, topic)| Op::Subscribe(peer, topic)),
        4 => (0u32..5, topic()).prop_map(|(peer, topic)| Op::Cancel(peer, topic)),
        1 => (0u32..5).prop_map(Op::Remove),
        4 => prop::collection::vec(0u8..3, 0..6).prop_map(Op::Match),
    ]
}

/// Subscription counts, searched from end to end.
#[derive(Default)]
struct Model(BTreeMap<(u32, Vec<u8>), u64>);

impl Model {
    fn has_topic(&self, topic: &[u8]) -> bool {
        self.0.keys().any(|(_, t)| t == topic)
    }

    fn subscribe(&mut self, peer: u32, topic: &[u8]) -> Subscribed {
        let first_of_topic = !self.has_topic(topic);
        let count = self.0.entry((peer, topic.to_vec())).or_default();
        *count += 1;
        Subscribed { first_of_peer: *count == 1, first_of_topic }
    }

    fn cancel(&mut self, peer: u32, topic: &[u8]) -> Cancelled {
        let key = (peer, topic.to_vec());
        let Some(count) = self.0.get_mut(&key) else { return Cancelled::UNKNOWN };
        *count -= 1;
        let last_of_peer = *count == 0;
        self.0.retain(|_, count| *count > 0);
        Cancelled { last_of_peer, last_of_topic: !self.has_topic(topic), known: true }
    }

    fn matches(&self, subject: &[u8]) -> Vec<u32> {
        let hits = self.0.keys().filter(|(_, topic)| subject.starts_with(topic));
        let mut peers: Vec<u32> = hits.map(|(peer, _)| *peer).collect();
        peers.dedup();
        peers
    }
}

fn check_match(table: &TopicTable<u32>, model: &Model, subject: &[u8]) {
    let expected = model.matches(subject);
    assert_eq!(found(table, subject), expected);
    assert_eq!(table.any_match(subject), !expected.is_empty());
    for peer in 0..5 {
        assert_eq!(table.matches_peer(peer, subject), expected.contains(&peer));
    }
}

proptest! {
    #[test]
    fn it_behaves_like_a_linear_scan(ops in prop::collection::vec(op(), 0..120)) {
        let (mut table, mut model) = (table(), Model::default());
        for op in ops {
            match op {
                Op::Subscribe(p, t) => prop_assert_eq!(table.subscribe(p, &t), Ok(model.subscribe(p, &t))),
                Op::Cancel(p, t) => prop_assert_eq!(table.cancel(p, &t), model.cancel(p, &t)),
                Op::Remove(p) => { table.remove_peer(p); model.0.retain(|(peer, _), _| *peer != p); }
                Op::Match(subject) => check_match(&table, &model, &subject),
            }
            let mut topics: Vec<_> = model.0.keys().map(|(_, topic)| topic).collect();
            topics.sort_unstable();
            topics.dedup();
            prop_assert_eq!(table.topics(), topics.len());
            let mut peers: Vec<_> = model.0.keys().map(|(peer, _)| *peer).collect();
            peers.dedup();
            prop_assert!(table.peers().eq(peers));
        }
    }

    #[test]
    fn b4_no_sequence_gets_a_peer_over_its_limits(ops in prop::collection::vec(op(), 0..120)) {
        let limits = TopicLimits { topics_per_peer: 3, topic_bytes_max: 3, bytes_per_peer: 5 };
        let mut table = TopicTable::new(limits);
        for op in ops {
            match op {
                Op::Subscribe(p, t) => { let _ = table.subscribe(p, &t); }
                Op::Cancel(p, t) => { table.cancel(p, &t); }
                Op::Remove(p) => table.remove_peer(p),
                Op::Match(_) => {}
            }
            for own in table.peers.values() {
                let bytes: usize = own.counts.topics().map(<[u8]>::len).sum();
                prop_assert!(own.counts.len() <= 3 && bytes <= 5 && bytes == own.bytes);
            }
        }
    }
}

#[test]
fn xpub_05_a_peer_that_leaves_names_what_goes_with_it() {
    let mut table = table();
    for (peer, topic) in [(1, &b"b"[..]), (1, b""), (1, b"b"), (2, b"b")] {
        table.subscribe(peer, topic).unwrap();
    }
    let counts: Vec<_> = table.counts_of(1).map(|(topic, count)| (topic.to_vec(), count)).collect();
    assert_eq!(counts, [(vec![], 1), (b"b".to_vec(), 2)]);
    let mut told = Vec::new();
    table.remove_peer_with(1, |topic, count, last| told.push((topic.to_vec(), count, last)));
    assert_eq!(told, [(vec![], 1, true), (b"b".to_vec(), 2, false)]);
    assert_eq!((table.counts_of(1).count(), found(&table, b"b")), (0, vec![2]));
}

#[test]
fn several_subscriptions_are_taken_back_at_once() {
    let mut table = table();
    (0..3).for_each(|_| assert!(table.subscribe(1, b"a").is_ok()));
    assert!(!table.cancel_times(1, b"a", 2).last_of_peer);
    assert!(table.cancel_times(1, b"a", 9).last_of_topic);
    assert!(!table.cancel_times(1, b"a", 1).known);
}
