//! The demo shows that everything arrives, and its data is what its generator writes.

mod common;

#[path = "../examples/telemetry.rs"]
#[allow(dead_code)]
mod telemetry;

use std::fs;

use common::{fabric, run};
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
    demo.signal(Signal::TERM);
    // The signal may come before it is listened for.
    assert!(matches!(demo.end().code, Some(130) | None));
}

#[test]
fn the_data_is_what_the_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/telemetry.csv");
    assert!(fs::read_to_string(path).unwrap() == telemetry::telemetry(), "run the example again");
}
