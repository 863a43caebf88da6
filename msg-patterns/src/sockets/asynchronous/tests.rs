//! What futures that are dropped under load leave behind: nothing.

use std::pin::pin;
use std::task::{Context as Task, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::*;
use crate::{Context, Pull, Push, Rep, Req};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const MESSAGES: u32 = 2000;
/// Every so many messages are so large that they take a slot each.
const LARGE_EVERY: u32 = 10;
const LARGE_BYTES: usize = 40_000;

fn rng() -> Rng {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    Rng::with_seed(seed)
}

/// Polls a few times at most, then drops the future.
fn poll_some<F: Future>(future: F, rng: &mut Rng) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..rng.usize(1..6) {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Task::from_waker(Waker::noop())) {
            return Some(value);
        }
        thread::yield_now();
    }
    None
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < LONG, "{what}"); // Watchdog: see LONG.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Nothing of the socket is left with anybody: slots, places of tasks.
fn check_settled<R: Role>(handle: &Handle<R>) {
    let out = || handle.shared.look(|core| core.net.slots_out());
    wait_until("a slot is missing", || out() == 0);
    assert_eq!(handle.shared.tasks(), 0, "a task still has a place");
}

fn message(i: u32) -> Vec<u8> {
    let len = if i.is_multiple_of(LARGE_EVERY) { LARGE_BYTES } else { 4 };
    let mut body = i.to_le_bytes().to_vec();
    body.resize(len, 0);
    body
}

#[test]
fn every_message_and_every_slot_is_accounted_for() {
    let context = Context::new();
    let pull = Pull::builder().recv_hwm(8).build(&context).unwrap();
    let push = Push::builder().send_hwm(8).build(&context).unwrap();
    push.connect(&pull.bind("tcp://127.0.0.1:0").unwrap().to_string()).unwrap();
    let (mut rng, mut sent, mut received) = (rng(), 0, 0);
    let (mut sends_dropped, mut receives_dropped) = (0, 0);
    while received < MESSAGES {
        if sent < MESSAGES && rng.bool() {
            match poll_some(push.send_async(message(sent)), &mut rng) {
                Some(done) => {
                    done.unwrap();
                    sent += 1;
                }
                None => sends_dropped += 1,
            }
        } else {
            match poll_some(pull.recv_async(), &mut rng) {
                Some(got) => {
                    assert_eq!(got.unwrap().first(), &message(received)[..]);
                    received += 1;
                }
                None => receives_dropped += 1,
            }
        }
    }
    println!("{sends_dropped} sends and {receives_dropped} receives were dropped");
    assert!(receives_dropped > 0);
    let (of_push, of_pull) = (push.counters(), pull.counters());
    assert_eq!((of_push.accepted, of_push.dropped), (u64::from(MESSAGES), 0));
    assert_eq!((of_pull.received, of_pull.delivered), (u64::from(MESSAGES), u64::from(MESSAGES)));
    check_settled(&push.handle);
    check_settled(&pull.handle);
}

#[test]
fn a_dropped_request_leaves_no_reply_and_no_slot_behind() {
    let context = Context::new();
    let rep = Rep::new(&context).unwrap();
    let req = Req::new(&context).unwrap();
    req.connect(&rep.bind("tcp://127.0.0.1:0").unwrap().to_string()).unwrap();
    let server = thread::spawn({
        let rep = rep.clone();
        move || {
            // A request that was dropped may still come while the socket is closed.
            while let Ok(request) = rep.recv()
                && rep.send(request).is_ok()
            {}
        }
    });
    let (mut rng, mut answered, mut dropped) = (rng(), 0, 0);
    for i in 0.. {
        match poll_some(req.request_async(message(i)), &mut rng) {
            Some(reply) => {
                assert_eq!(reply.unwrap().first(), &message(i)[..], "its own reply");
                answered += 1;
            }
            None => dropped += 1,
        }
        if answered >= 20 && dropped >= 200 {
            break;
        }
        thread::sleep(Duration::from_micros(u64::from(rng.u8(..))));
    }
    check_settled(&req.handle);
    wait_until("a reply is kept for nobody", || {
        req.handle.shared.look(|core| !core.role.has_incoming() && !core.role.is_pending())
    });
    rep.clone().close();
    server.join().unwrap();
}

#[test]
fn futures_are_small_and_can_be_sent_to_other_threads() {
    fn check<F: Future + Send>(_: &F) -> usize {
        size_of::<F>()
    }
    let context = Context::new();
    let (req, pull) = (Req::new(&context).unwrap(), Pull::new(&context).unwrap());
    assert!(check(&pull.recv_async()) <= 64);
    assert!(check(&req.request_async("x")) <= 512);
    assert!(check(&pull.close_async()) <= 256);
}
