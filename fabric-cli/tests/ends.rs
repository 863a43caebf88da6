//! Signals and closed outputs end a run cleanly.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::{fabric, fabric_open, fabric_with};
use rustix::process::Signal;

const ANY: &str = "tcp://127.0.0.1:0";

#[test]
fn a_signal_ends_every_waiting_command_with_130() {
    for signal in [Signal::INT, Signal::TERM] {
        for command in
            ["pull", "rep", "sub --bind", "push --repeat 5 --bind", "req --repeat 5 --bind"]
        {
            let mut waiting = fabric(command.split_whitespace().chain([ANY]));
            waiting.addr();
            waiting.signal(signal);
            let done = waiting.end();
            assert_eq!(done.code, Some(130), "{command}: {}", done.err);
            assert!(done.err.contains(" messages, "), "{command}: no summary: {}", done.err);
        }
    }
}

#[test]
fn a_signal_ends_a_wait_for_input() {
    let (mut waiting, input) = fabric_open(["push", "--bind", ANY]);
    waiting.addr();
    waiting.signal(Signal::INT);
    assert_eq!(waiting.end().code, Some(130));
    drop(input);
}

#[test]
fn what_was_accepted_still_leaves_after_a_signal() {
    let (mut push, mut input) = fabric_open(["push", "--bind", ANY, "-w", "1"]);
    let addr = push.addr();
    input.write_all(&b"x\n".repeat(500)).unwrap();
    // It reads slowly: two messages are granted at a time.
    let mut pull = fabric(["pull", "--connect", &addr, "--hwm", "2", "--until-gone"]);
    pull.wait("a message", |pull| pull.out.len() > 0);
    push.signal(Signal::TERM);
    let pushed = push.end();
    assert_eq!(pushed.code, Some(130));
    let arrived = pull.end().ok().text().lines().count();
    let said = format!("fabric push: {arrived} message");
    assert!(pushed.err.contains(&said), "{arrived} arrived: {}", pushed.err);
    drop(input);
}

#[test]
fn a_closed_output_is_a_quiet_end() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabric"));
    command.args(["pull", ANY]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut pull = command.spawn().unwrap();
    drop(pull.stdout.take());
    let mut lines = BufReader::new(pull.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let addr = line.split("listening on ").nth(1).unwrap();
    let push = fabric_with(["push", addr, "-t", "5s"], b"nobody\nreads\nthis\n");
    assert_eq!(pull.wait().unwrap().code(), Some(0));
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(!rest.iter().any(|line| line.contains("panicked")), "{rest:?}");
    drop(push);
}

#[test]
fn closed_standard_streams_are_no_reason_to_panic() {
    for args in ["--help", "demo --input /no/such/file", "pull"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fabric"));
        command.args(args.split_whitespace()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        // A panic would be 101.
        assert!(matches!(child.wait().unwrap().code(), Some(0..=2)), "{args}");
    }
}
