//! The command over libfabric: everything arrives, survivors of killed processes go on, and nothing
//! is left in /dev/shm.
//!
//! Without libfabric, each test says so and ends, unless `FABRIC_REQUIRE_LIBFABRIC=1` is set: then it
//! fails.

mod carry;
mod common;
mod kills;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use carry::in_pieces_and_whole;
use common::{fabric, wait_until};
use kills::Ground;
use msg_patterns::{Context, Pull};

const TCP: Ground = Ground { any: any_tcp, kills: KILLS, topics: 500 };
const SHM: Ground = Ground { any: any_shm, kills: KILLS, topics: 500 };

/// Eight times seven roles, which is more than fifty.
const KILLS: usize = 8;

/// A port at a host that nothing else uses: a process that comes back finds it free.
fn any_tcp() -> String {
    static HOSTS: AtomicU8 = AtomicU8::new(1);
    let [.., a, b] = std::process::id().to_be_bytes();
    format!("ofi+tcp://127.{}.{b}.{}:0", a % 250 + 2, HOSTS.fetch_add(1, Ordering::Relaxed))
}

fn any_shm() -> String {
    format!("ofi+shm://cli-{}:0", std::process::id())
}

/// Whether there is the library; with `FABRIC_REQUIRE_LIBFABRIC=1` it must be.
fn is_there() -> bool {
    let Err(error) = Pull::new(&Context::new()).unwrap().bind(&any_shm()) else { return true };
    let required = std::env::var("FABRIC_REQUIRE_LIBFABRIC").is_ok_and(|value| value == "1");
    assert!(!required, "FABRIC_REQUIRE_LIBFABRIC=1, but: {error}");
    println!("skipped: {error}");
    false
}

/// Waits until nothing is left of processes that are gone. Who opens shared memory looks for it.
fn assert_tidy() {
    wait_until("nothing is left in /dev/shm", || {
        let sweeper = Pull::new(&Context::new()).unwrap();
        sweeper.bind(&any_shm()).unwrap();
        left_behind().is_empty()
    });
}

/// Files of endpoints whose process is gone.
fn left_behind() -> Vec<String> {
    let entries = fs::read_dir("/dev/shm").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_dead = |name: &String| {
        let owner = name.strip_prefix("fabric-ofi-").and_then(|rest| rest.split('-').next());
        owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    names.filter(is_dead).collect()
}

fn demo(over: [&str; 2], at: &str) {
    if is_there() {
        let [option, value] = over;
        let done = fabric(["demo", option, value, "--timeout", "10m"]).end().ok();
        let text = done.text();
        assert!(text.ends_with("everything arrived\n") && !text.contains('✗'), "{text}");
        assert!(text.contains(&format!("12 processes over {at}")), "{text}");
    }
}

#[test]
fn the_demo_checks_every_delivery_over_tcp() {
    demo(["--fabric", "ofi+tcp"], "ofi+tcp://127.0.0.1");
}

#[test]
fn the_demo_checks_every_delivery_over_shared_memory() {
    demo(["--addr", "ofi+shm://demo"], "ofi+shm://demo");
    if is_there() {
        assert_tidy();
    }
}

fn carries_a_file(any: fn() -> String) {
    if !is_there() {
        return;
    }
    in_pieces_and_whole(any);
}

#[test]
fn a_file_arrives_over_tcp_in_eager_pieces_and_by_rendezvous() {
    carries_a_file(any_tcp);
}

#[test]
fn a_file_arrives_over_shared_memory_in_eager_pieces_and_by_rendezvous() {
    carries_a_file(any_shm);
}

/// The line by which a command that was to listen there ended, begun by a shell that has `set` before.
fn refusal(set: &str, addr: &str) -> String {
    let script = format!("{set} exec '{}' pull --bind {addr} -t 20s", env!("CARGO_BIN_EXE_fabric"));
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && line.lines().count() == 1, "{line}");
    assert!(line.contains('`'), "{line}");
    line
}

#[test]
fn errors_have_their_finding_and_a_command() {
    if !is_there() {
        return;
    }
    let left_out = refusal("FI_PROVIDER=efa", "ofi+tcp://127.0.0.1:0");
    assert!(
        left_out.starts_with("fabric: D44: ") && left_out.contains("FI_PROVIDER=efa"),
        "{left_out}"
    );
    let without_device = refusal("", "ofi+efa://127.0.0.1:0");
    assert!(without_device.starts_with("fabric: D44: "), "{without_device}");
    let few = refusal("ulimit -n 12;", "ofi+tcp://127.0.0.1:0");
    assert!(few.starts_with("fabric: D16: ") && few.contains("ulimit -n"), "{few}");
}

/// Kills of one role over both providers.
macro_rules! kills {
    ($($role:ident: $name:ident;)*) => {
        mod tcp {
            $(#[test]
            fn $name() {
                if crate::is_there() {
                    crate::kills::$role(&crate::TCP);
                }
            })*
        }

        mod shm {
            $(#[test]
            fn $name() {
                if crate::is_there() {
                    crate::kills::$role(&crate::SHM);
                    crate::assert_tidy();
                }
            })*
        }
    };
}

kills! {
    subscribers: killed_subscribers_disturb_neither_publisher_nor_others;
    publishers: all_subscriptions_are_active_again_after_each_kill_of_the_publisher;
    workers: no_acknowledged_message_is_lost_with_a_killed_worker;
    pushers: a_killed_pusher_takes_nothing_along_that_others_pushed;
    repliers: another_replier_answers_what_a_killed_one_was_asked;
    repliers_without_retry: without_retry_a_killed_replier_is_an_error_in_time;
    requesters: a_killed_requester_keeps_no_other_from_its_replies;
}
