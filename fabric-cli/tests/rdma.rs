//! The command over the RDMA device of this host: everything arrives, survivors of killed processes
//! go on, and nothing is left behind on the device.
//!
//! Without a device, each test says so and ends, unless `FABRIC_REQUIRE_VERBS=1` is set: then it
//! fails.

mod carry;
mod common;
mod device;
mod kills;

use std::thread;
use std::time::Duration;

use carry::in_pieces_and_whole;
use common::{fabric, wait_until};
use device::{Device, any};
use kills::Ground;
use msg_patterns::{Context, Pull, Push};

/// Eight times seven roles, which is more than fifty.
const DEVICE: Ground = Ground { any, kills: 8, topics: 500 };

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn the_demo_checks_every_delivery() {
    let Some(device) = Device::get() else { return };
    let done = fabric(["demo", "--addr", &any(), "--timeout", "10m"]).end().ok();
    let text = done.text();
    assert!(text.ends_with("everything arrived\n") && !text.contains('✗'), "{text}");
    assert!(text.contains("12 processes over verbs://"), "{text}");
    device.assert_unchanged();
}

#[test]
fn a_file_arrives_in_eager_pieces_and_by_rendezvous() {
    let Some(device) = Device::get() else { return };
    in_pieces_and_whole(any);
    device.assert_unchanged();
}

/// Pairs of sockets at work at once, so that they do not only wait for the device.
const PAIRS: u64 = 4;
/// Connections of each pair: of one pusher, and of pushers with a domain each.
const OF_ONE: u64 = 450;
const OF_EACH: u64 = 50;

#[test]
fn two_thousand_connections_that_come_talk_and_go_leave_nothing_behind() {
    let Some(device) = Device::get() else { return };
    let context = Context::new();
    thread::scope(|scope| {
        (0..PAIRS).for_each(|_| drop(scope.spawn(|| come_and_go(&context))));
    });
    device.assert_unchanged();
}

fn come_and_go(context: &Context) {
    let pull = Pull::new(context).unwrap();
    let addr = pull.bind(&any()).unwrap().to_string();
    let talk = |push: &Push, number: u64| {
        push.connect(&addr).unwrap();
        push.send_timeout(number.to_string(), LONG).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first(), &number.to_string());
        push.disconnect(&addr).unwrap();
    };
    let push = Push::new(context).unwrap();
    (0..OF_ONE).for_each(|number| talk(&push, number));
    push.close();
    for number in 0..OF_EACH {
        let push = Push::new(context).unwrap();
        talk(&push, number);
        push.close();
    }
    wait_until("the end of all", || pull.counters().disconnects == OF_ONE + OF_EACH);
    assert_eq!(pull.counters().connects, OF_ONE + OF_EACH);
    pull.close();
}

/// Runs a scenario, after which nothing of the killed may be left.
fn killing(scenario: fn(&Ground)) {
    let Some(device) = Device::get() else { return };
    scenario(&DEVICE);
    device.assert_unchanged();
}

#[test]
fn killed_subscribers_disturb_neither_publisher_nor_others() {
    killing(kills::subscribers);
}

#[test]
fn all_subscriptions_are_active_again_after_each_kill_of_the_publisher() {
    killing(kills::publishers);
}

#[test]
fn no_acknowledged_message_is_lost_with_a_killed_worker() {
    killing(kills::workers);
}

#[test]
fn a_killed_pusher_takes_nothing_along_that_others_pushed() {
    killing(kills::pushers);
}

#[test]
fn another_replier_answers_what_a_killed_one_was_asked() {
    killing(kills::repliers);
}

#[test]
fn without_retry_a_killed_replier_is_an_error_in_time() {
    killing(kills::repliers_without_retry);
}

#[test]
fn a_killed_requester_keeps_no_other_from_its_replies() {
    killing(kills::requesters);
}
