//! `kill -9` in the middle of traffic, twenty times for each role: survivors go on.

mod common;
mod kills;

use std::sync::atomic::{AtomicU16, Ordering};

use kills::Ground;

const LOOPBACK: Ground = Ground { any, kills: 20, topics: 5000 };

/// A free port at a host that nothing else uses: a process that comes back finds it free, since the
/// kernel picks ports of outgoing connections at 127.0.0.1 only.
fn any() -> String {
    static HOSTS: AtomicU16 = AtomicU16::new(1);
    let [high, low] = HOSTS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let [.., a, b] = std::process::id().to_be_bytes();
    format!("tcp://127.{}.{}.{}:0", a % 250 + 2, b, low.wrapping_add(high))
}

#[test]
fn killed_subscribers_disturb_neither_publisher_nor_others() {
    kills::subscribers(&LOOPBACK);
}

#[test]
fn all_subscriptions_are_active_again_after_each_kill_of_the_publisher() {
    kills::publishers(&LOOPBACK);
}

#[test]
fn no_acknowledged_message_is_lost_with_a_killed_worker() {
    kills::workers(&LOOPBACK);
}

#[test]
fn a_killed_pusher_takes_nothing_along_that_others_pushed() {
    kills::pushers(&LOOPBACK);
}

#[test]
fn another_replier_answers_what_a_killed_one_was_asked() {
    kills::repliers(&LOOPBACK);
}

#[test]
fn without_retry_a_killed_replier_is_an_error_in_time() {
    kills::repliers_without_retry(&LOOPBACK);
}

#[test]
fn a_killed_requester_keeps_no_other_from_its_replies() {
    kills::requesters(&LOOPBACK);
}
