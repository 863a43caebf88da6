//! The real thread, and how much it does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Background;
use crate::{Context, Pull, Push};

const ANYWHERE: &str = "tcp://127.0.0.1:0";
/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
/// Pauses that are waited through before giving up.
const PAUSES_MAX: usize = 12_000;
/// Pauses in which nothing happens at a thread that has nothing to do.
const QUIET_PAUSES: usize = 10;

fn background_of(context: &Context) -> Arc<Background> {
    context.lease().unwrap().background.clone()
}

/// Sockets looked at and rounds made until now.
fn effort(background: &Background) -> (u64, u64) {
    let effort = &background.effort;
    (effort.looks.load(Ordering::Relaxed), effort.rounds.load(Ordering::Relaxed))
}

fn wait_until(mut reached: impl FnMut() -> bool) {
    let found = (0..PAUSES_MAX).any(|_| {
        let found = reached();
        if !found {
            thread::sleep(PAUSE);
        }
        found
    });
    assert!(found, "it never happened");
}

/// Until the thread only sleeps.
fn settle(background: &Background) {
    let (mut before, mut quiet) = (effort(background), 0);
    wait_until(|| {
        let now = effort(background);
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        quiet == QUIET_PAUSES
    });
}

/// Sockets looked at and rounds made while sockets come, send and go beside `idle` others.
fn effort_beside(idle: usize) -> (u64, u64) {
    let context = Context::new();
    let background = background_of(&context);
    let idle: Vec<Pull> = (0..idle).map(|_| Pull::new(&context).unwrap()).collect();
    idle.iter().for_each(|socket| drop(socket.bind(ANYWHERE).unwrap()));
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind(ANYWHERE).unwrap().to_string();
    settle(&background);
    let (looks, rounds) = effort(&background);
    for _ in 0..20 {
        let push = Push::new(&context).unwrap();
        push.connect(&addr).unwrap();
        push.send("here").unwrap();
        pull.recv_timeout(LONG).unwrap();
        push.close();
    }
    settle(&background);
    let (looks_now, rounds_now) = effort(&background);
    (looks_now - looks, rounds_now - rounds)
}

#[test]
fn idle_sockets_are_not_looked_at() {
    for idle in [1, 200] {
        let (looks, rounds) = effort_beside(idle);
        assert!(rounds > 0 && looks <= 4 * rounds, "{looks} looks in {rounds} rounds");
    }
}

#[test]
fn a_thread_with_nothing_to_do_sleeps_until_something_comes_up() {
    let context = Context::new();
    let background = background_of(&context);
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind(ANYWHERE).unwrap().to_string();
    let push = Push::new(&context).unwrap();
    push.connect(&addr).unwrap();
    settle(&background);
    // Nobody calls: what comes in is taken by the thread alone.
    push.send("one").unwrap();
    wait_until(|| pull.counters().received == 1);
}

#[test]
fn sockets_that_go_while_they_are_on_the_list_are_forgotten() {
    let context = Context::new();
    let background = background_of(&context);
    let make_and_drop = || {
        for _ in 0..100 {
            let pull = Pull::new(&context).unwrap();
            // Each command puts it on the list.
            pull.set_recv_hwm(1).unwrap();
            pull.set_recv_hwm(2).unwrap();
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(make_and_drop))));
    wait_until(|| background.news.lock().is_empty() && held(&background) == 0);
}

#[test]
fn a_socket_is_on_the_list_once_until_it_was_looked_at() {
    let (_poll, background) = asleep();
    let flags = super::Flags::new(background.new_key());
    (0..3).for_each(|_| background.nudge(&flags));
    assert_eq!(background.news.lock().listed, [flags.key]);
    assert!(flags.listed.swap(false, Ordering::SeqCst));
    background.news.lock().listed.clear();
    background.nudge(&flags);
    assert_eq!(background.news.lock().listed, [flags.key]);
}

#[test]
fn a_thread_about_to_wake_up_is_not_woken_for_what_can_wait() {
    let (_poll, background) = asleep();
    let flags = super::Flags::new(background.new_key());
    background.nudge(&flags);
    assert!(background.asleep.load(Ordering::SeqCst), "it wakes up by itself");
    flags.defer(&background);
    assert!(!background.asleep.load(Ordering::SeqCst), "a tail cannot wait");
    flags.listed.store(false, Ordering::SeqCst);
    background.fall_asleep(None);
    background.nudge(&flags);
    assert!(!background.asleep.load(Ordering::SeqCst), "it would sleep forever");
}

/// The handle to a thread that sleeps for less than a millisecond, for all anybody knows.
fn asleep() -> (mio::Poll, Background) {
    let poll = mio::Poll::new().unwrap();
    let background = Background::new();
    let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
    background.waker.set(waker).unwrap();
    background.fall_asleep(Some(std::time::Instant::now()));
    (poll, background)
}

fn held(background: &Background) -> u64 {
    background.effort.held.load(Ordering::Relaxed)
}
