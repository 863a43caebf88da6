//! The demo shows that everything arrives, and its data is what its generator writes.

mod common;

#[path = "../examples/telemetry.rs"]
#[allow(dead_code)]
mod telemetry;

use std::fs;

use common::{fabric, run, wait_until};
use rustix::process::Signal;

#[test]
fn the_demo_checks_every_delivery() {
    let done = run("demo").ok();
    let text = done.text();
    for process in ["publisher", "subscriber 3", "pusher", "worker 3", "sink", "server", "client 2"]
    {
        let line = text.lines().find(|line| line.contains(process));
        assert!(line.is_some_and(|line| line.contains('✓')), "{process}:\n{text}");
    }
    assert!(text.ends_with("everything arrived\n") && !text.contains('✗'), "{text}");
}

#[test]
fn the_demo_runs_where_it_is_told_to() {
    for addr in ["tcp://127.77.0.1", "tcp://[::1]:0"] {
        let done = fabric(["demo", "--addr", addr]).end().ok();
        let place = format!("12 processes over {},", addr.trim_end_matches(":0"));
        assert!(done.text().contains(&place), "{}", done.text());
    }
    assert_eq!(run("demo --addr tcp://127.0.0.1:80").code, Some(2));
    let done = run("demo --addr tcp://no.such.host.invalid");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.error_line().contains("check the spelling"), "{}", done.err);
}

#[test]
fn a_demo_that_takes_too_long_says_what_to_do() {
    let done = run("demo --timeout 1ms");
    assert_eq!(done.code, Some(1));
    assert!(done.error_line().contains("--timeout"), "{}", done.err);
}

#[test]
fn the_demo_takes_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("input");
    for input in [&b"one line"[..], b"\n\n\n", b"\xff\x00\xfe\nno text\n", &[b'x'; 300_000]] {
        fs::write(&path, input).unwrap();
        let done = fabric(["demo", "--input", path.to_str().unwrap()]).end().ok();
        assert!(done.text().ends_with("everything arrived\n"), "{}", done.text());
    }
}

#[test]
fn a_signal_ends_the_demo_and_its_processes() {
    let demo = fabric(["demo"]);
    wait_until("a process of the demo", || !children(demo.id()).is_empty());
    let started = children(demo.id());
    demo.signal(Signal::TERM);
    assert_eq!(demo.end().code, Some(130));
    let left: Vec<u32> = started.into_iter().filter(|id| parent(*id).is_some()).collect();
    assert!(left.is_empty(), "{left:?} live on");
}

#[test]
fn the_processes_of_a_killed_demo_end_with_it() {
    let demo = fabric(["demo"]);
    wait_until("several processes", || children(demo.id()).len() > 1);
    let started = children(demo.id());
    demo.kill();
    wait_until("their end", || started.iter().all(|id| !is_fabric(*id)));
}

fn children(id: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|child| parent(*child) == Some(id)).collect()
}

/// The parent of a living process.
fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next() == Some("Z") { None } else { fields.next()?.parse().ok() }
}

/// Whether such a process lives; its number may have gone to another one.
fn is_fabric(id: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim() == "fabric" && parent(id).is_some()
}

#[test]
fn the_data_is_what_the_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/telemetry.csv");
    assert!(fs::read_to_string(path).unwrap() == telemetry::telemetry(), "run the example again");
}
