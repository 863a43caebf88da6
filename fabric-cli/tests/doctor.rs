//! `fabric doctor` on whatever host this is: what it says may differ, how it says it may not.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Output};

use serde_json::Value;

fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabric"));
    command.arg("doctor").args(args).output().unwrap()
}

fn json(args: &[&str]) -> (Value, Output) {
    let output = doctor(&[args, &["--json"]].concat());
    (serde_json::from_slice(&output.stdout).unwrap(), output)
}

fn outcome<'a>(report: &'a Value, step: &str) -> &'a str {
    let steps = report["steps"].as_array().unwrap();
    steps.iter().find(|found| found["name"] == step).unwrap()["outcome"].as_str().unwrap()
}

#[test]
fn the_exit_code_is_that_of_the_verdict() {
    let (report, output) = json(&[]);
    let errors = report["verdict"] == "errors";
    assert_eq!(output.status.code(), Some(i32::from(errors)), "{report}");
    assert_eq!(output.stderr.is_empty(), !errors);
    assert_eq!(report["choices"][0]["scheme"], "tcp");
    assert_eq!(report["choices"][0]["usable"], true);
}

#[test]
fn the_text_begins_with_what_would_be_used() {
    let text = String::from_utf8(doctor(&[]).stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("What would be used"));
    let schemes = lines.take(4).map(|line| line.split_whitespace().next());
    assert!(schemes.eq(["tcp", "verbs", "softroce", "ofi"].map(Some)), "{text}");
}

#[test]
fn each_finding_has_a_command_in_the_script() {
    let (report, _) = json(&[]);
    let script = String::from_utf8(doctor(&["--fix-hints"]).stdout).unwrap();
    for finding in report["findings"].as_array().unwrap() {
        let comment = format!("# {}", finding["id"].as_str().unwrap());
        assert!(script.contains(&comment), "{script}");
        assert!(script.contains(finding["command"].as_str().unwrap()), "{script}");
    }
}

#[test]
fn a_peer_that_listens_is_reached() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (report, _) = json(&["--to", &listener.local_addr().unwrap().to_string()]);
    for step in ["name", "route", "tcp"] {
        assert_eq!(outcome(&report, step), "passed", "{report}");
    }
    assert_eq!(outcome(&report, "rdma_cm"), "not-tried");
}

#[test]
fn a_host_without_a_listener_is_reached_and_its_port_is_not() {
    let (report, _) = json(&["--to", "127.0.0.1"]);
    assert_eq!(outcome(&report, "tcp"), "passed", "{report}");
    // Of a service that nobody runs.
    let closed = "127.0.0.1:1";
    let (report, output) = json(&["--to", closed]);
    assert_eq!(outcome(&report, "tcp"), "failed", "{report}");
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.contains("nobody listens there") && !line.contains("os error"), "{line}");
}

#[test]
fn a_name_that_nobody_has_ends_the_way_at_once() {
    let (report, output) = json(&["--to", "no-such-host.invalid:7000"]);
    assert_eq!(outcome(&report, "name"), "failed", "{report}");
    assert_eq!(outcome(&report, "tcp"), "not-tried");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_command_line_without_sense_is_said_before_anything_is_read() {
    for args in [["--to", "a:0"], ["--to", "tcp://a:1"], ["--json", "--fix-hints"]] {
        let output = doctor(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn an_earlier_report_is_read_back_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("before.json");
    let (_, before) = json(&[]);
    std::fs::write(&path, before.stdout).unwrap();
    let since = ["--since", path.to_str().unwrap()];
    let (report, _) = json(&since);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["id"] != "D29"), "{report}");
    std::fs::write(&path, "{}").unwrap();
    let output = doctor(&since);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no report"));
}
