use alloc::format;
use alloc::string::String;
use alloc::vec;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const T0: Duration = Duration::ZERO;
const A: u32 = 1;
const B: u32 = 2;

fn requests() -> Requests<u32> {
    Requests::new(None)
}

fn sent(requests: &mut Requests<u32>, peer: u32, retry: bool) -> RequestId {
    let id = requests.start(None, retry);
    assert!(requests.assign(id, peer, T0));
    id
}

fn gone(requests: &mut Requests<u32>, peer: u32) -> Vec<(RequestId, Lost)> {
    let mut out = vec![];
    requests.on_gone(peer, &mut out);
    out
}

fn timed_out(requests: &mut Requests<u32>, now: Duration) -> Vec<(RequestId, Lost)> {
    let mut out = vec![];
    requests.on_timeout(now, &mut out);
    out
}

#[test]
fn req_06_only_the_peer_that_was_asked_is_heard_and_once() {
    let mut requests = requests();
    let id = sent(&mut requests, A, false);
    assert_eq!(requests.on_reply(B, id), Reply::Stale);
    assert!(requests.is_open(id));
    assert_eq!(requests.on_reply(A, id), Reply::Accept);
    assert_eq!((requests.on_reply(A, id), requests.len()), (Reply::Stale, 0));
    assert!(!requests.is_open(id));
}

#[test]
fn req_06_an_unsent_or_invented_request_has_no_reply() {
    let mut requests = requests();
    let id = requests.start(None, true);
    assert_eq!(requests.on_reply(A, id), Reply::Stale);
    assert_eq!(requests.on_reply(A, RequestId(u64::MAX)), Reply::Stale);
    assert_eq!(requests.len(), 1);
}

#[test]
fn req_11_the_late_reply_to_a_cancelled_request_is_not_given_to_the_next() {
    let mut requests = requests();
    let old = sent(&mut requests, A, false);
    assert!(requests.cancel(old) && !requests.cancel(old));
    let new = sent(&mut requests, A, false);
    assert_eq!(requests.on_reply(A, old), Reply::Stale);
    assert_eq!(requests.on_reply(A, new), Reply::Accept);
}

#[test]
fn req_12_a_dead_peer_fails_its_requests_and_no_others() {
    let mut requests = requests();
    let mine = sent(&mut requests, A, false);
    let other = sent(&mut requests, B, false);
    assert_eq!(gone(&mut requests, A), [(mine, Lost::Failed)]);
    assert_eq!(requests.on_reply(B, other), Reply::Accept);
}

#[test]
fn req_10_with_retry_the_next_peer_is_heard_and_the_old_one_no_longer() {
    let mut requests = requests();
    let id = sent(&mut requests, A, true);
    assert_eq!(gone(&mut requests, A), [(id, Lost::Retry)]);
    assert_eq!(gone(&mut requests, A), []);
    assert!(requests.assign(id, B, T0));
    assert_eq!(requests.on_reply(A, id), Reply::Stale);
    assert_eq!(requests.on_reply(B, id), Reply::Accept);
}

#[test]
fn req_n1_a_request_without_answer_is_sent_again_after_a_while() {
    let mut requests = Requests::new(Some(10 * MS));
    let id = sent(&mut requests, A, true);
    assert_eq!(requests.poll_timeout(), Some(10 * MS));
    assert_eq!(timed_out(&mut requests, 9 * MS), []);
    assert_eq!(timed_out(&mut requests, 10 * MS), [(id, Lost::Retry)]);
    assert_eq!((requests.holder(id), requests.poll_timeout()), (Some(A), None));
    assert!(requests.assign(id, B, 12 * MS));
    assert_eq!((requests.holder(id), requests.poll_timeout()), (Some(B), Some(22 * MS)));
}

#[test]
fn req_n1_the_slow_peer_is_heard_until_another_one_was_asked() {
    let mut requests = Requests::new(Some(10 * MS));
    let id = sent(&mut requests, A, true);
    timed_out(&mut requests, 10 * MS);
    assert_eq!(requests.on_reply(A, id), Reply::Accept);
    assert!(!requests.assign(id, B, 11 * MS));
}

#[test]
fn req_n1_the_end_of_a_slow_peer_asks_for_no_second_retry() {
    let mut requests = Requests::new(Some(10 * MS));
    let id = sent(&mut requests, A, true);
    assert_eq!(timed_out(&mut requests, 10 * MS), [(id, Lost::Retry)]);
    assert_eq!((gone(&mut requests, A), requests.len()), (vec![], 1));
}

#[test]
fn without_retry_nothing_is_sent_again() {
    let mut requests = Requests::new(Some(10 * MS));
    sent(&mut requests, A, false);
    assert_eq!((requests.poll_timeout(), timed_out(&mut requests, 99 * MS)), (None, vec![]));
}

#[test]
fn a_deadline_ends_a_request_sent_or_not() {
    let mut requests = requests();
    let waiting = requests.start(Some(5 * MS), true);
    let asked = requests.start(Some(3 * MS), true);
    requests.assign(asked, A, T0);
    assert_eq!(requests.poll_timeout(), Some(3 * MS));
    assert_eq!(
        timed_out(&mut requests, 5 * MS),
        [(asked, Lost::Expired), (waiting, Lost::Expired)]
    );
    assert_eq!((requests.poll_timeout(), requests.on_reply(A, asked)), (None, Reply::Stale));
    assert!(!requests.assign(waiting, A, 6 * MS));
}

#[test]
fn the_timeout_of_what_is_done_wakes_nobody() {
    let mut requests = requests();
    let first = requests.start(Some(5 * MS), false);
    requests.start(Some(9 * MS), false);
    requests.cancel(first);
    assert_eq!(requests.poll_timeout(), Some(9 * MS));
}

#[test]
fn a_time_beyond_all_clocks_is_never_reached() {
    let mut requests = Requests::new(Some(Duration::MAX));
    let id = requests.start(Some(Duration::MAX), true);
    requests.assign(id, A, MS);
    assert_eq!(timed_out(&mut requests, Duration::MAX - MS), []);
}

/// A request in each state, with everything it may wait for.
fn in_state(state: &str, retry: bool) -> (Requests<u32>, RequestId) {
    let mut requests = Requests::new(Some(10 * MS));
    let id = requests.start(Some(50 * MS), retry);
    if state != "waiting" {
        requests.assign(id, A, T0);
    }
    if state == "overdue" {
        assert_eq!(timed_out(&mut requests, 10 * MS), [(id, Lost::Retry)]);
    }
    (requests, id)
}

type Input = (&'static str, fn(&mut Requests<u32>, RequestId) -> String);

const INPUTS: [Input; 8] = [
    ("assign B", |r, id| format!("{}", r.assign(id, B, 20 * MS))),
    ("reply of A", |r, id| format!("{:?}", r.on_reply(A, id))),
    ("reply of B", |r, id| format!("{:?}", r.on_reply(B, id))),
    ("A gone", |r, _| format!("{:?}", gone(r, A).pop().map(|(_, lost)| lost))),
    ("B gone", |r, _| format!("{:?}", gone(r, B).pop().map(|(_, lost)| lost))),
    ("20 ms", |r, _| format!("{:?}", timed_out(r, 20 * MS).pop().map(|(_, lost)| lost))),
    ("50 ms", |r, _| format!("{:?}", timed_out(r, 50 * MS).pop().map(|(_, lost)| lost))),
    ("cancel", |r, id| format!("{}", r.cancel(id))),
];

#[test]
fn every_state_against_every_input() {
    let mut table = String::new();
    for (state, retry) in
        [("waiting", false), ("waiting", true), ("sent", false), ("sent", true), ("overdue", true)]
    {
        for (name, input) in INPUTS {
            let (mut requests, id) = in_state(state, retry);
            let said = input(&mut requests, id);
            let now = requests.open.get(id.0).map(|request| request.state);
            let state = format!("{state}{}", if retry { ", retry" } else { "" });
            table += &format!("{state:15} {name:11} -> {said:13} {now:?}\n");
        }
    }
    insta::assert_snapshot!(table);
}

#[derive(Debug, Clone, Copy)]
struct Model {
    deadline: Option<Duration>,
    retry: bool,
    holder: Option<u32>,
    resend_at: Option<Duration>,
}

/// One run against a map that is searched from end to end.
#[derive(Default)]
struct Run {
    model: BTreeMap<RequestId, Model>,
    now: Duration,
}

impl Run {
    fn gone(&mut self, peer: u32) -> Vec<(RequestId, Lost)> {
        let mut lost = vec![];
        for (id, request) in &mut self.model {
            if request.holder != Some(peer) {
                continue;
            }
            let told = request.retry && request.resend_at.is_none();
            if !told {
                lost.push((*id, if request.retry { Lost::Retry } else { Lost::Failed }));
            }
            (request.holder, request.resend_at) = (None, None);
        }
        lost.iter().filter(|(_, l)| *l == Lost::Failed).for_each(|(id, _)| {
            self.model.remove(id);
        });
        lost
    }

    fn timed_out(&mut self) -> Vec<(RequestId, Lost)> {
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= self.now);
        let mut lost = vec![];
        for (id, request) in &mut self.model {
            if due(request.deadline) {
                lost.push((*id, Lost::Expired));
            } else if due(request.resend_at) {
                request.resend_at = None;
                lost.push((*id, Lost::Retry));
            }
        }
        self.model.retain(|_, request| !due(request.deadline));
        lost
    }

    fn next(&self) -> Option<Duration> {
        self.model.values().flat_map(|r| [r.deadline, r.resend_at]).flatten().min()
    }
}

proptest! {
    #[test]
    fn it_behaves_like_a_map_searched_from_end_to_end(
        ops in prop::collection::vec((0u8..10, 0u32..3, 1u64..40, any::<bool>()), 0..200),
    ) {
        let (mut requests, mut run) = (Requests::new(Some(7 * MS)), Run::default());
        for (op, peer, number, flag) in ops {
            let id = RequestId(number);
            match op {
                0..3 => {
                    let deadline = (number > 5).then(|| run.now + number as u32 * MS);
                    let id = requests.start(deadline, flag);
                    let fresh = Model { deadline, retry: flag, holder: None, resend_at: None };
                    prop_assert!(run.model.insert(id, fresh).is_none());
                }
                3..6 => {
                    let known = run.model.get_mut(&id);
                    prop_assert_eq!(requests.assign(id, peer, run.now), known.is_some());
                    if let Some(request) = known {
                        request.holder = Some(peer);
                        request.resend_at = request.retry.then_some(run.now + 7 * MS);
                    }
                }
                6 => {
                    let mine = run.model.get(&id).is_some_and(|r| r.holder == Some(peer));
                    let expected = if mine { Reply::Accept } else { Reply::Stale };
                    prop_assert_eq!(requests.on_reply(peer, id), expected);
                    if mine { run.model.remove(&id); }
                }
                7 => prop_assert_eq!(gone(&mut requests, peer), run.gone(peer)),
                8 => prop_assert_eq!(requests.cancel(id), run.model.remove(&id).is_some()),
                _ => {
                    run.now += number as u32 % 10 * MS;
                    let mut lost = timed_out(&mut requests, run.now);
                    lost.sort_unstable_by_key(|(id, _)| *id);
                    prop_assert_eq!(lost, run.timed_out());
                }
            }
            prop_assert_eq!((requests.len(), requests.poll_timeout()), (run.model.len(), run.next()));
        }
    }
}
