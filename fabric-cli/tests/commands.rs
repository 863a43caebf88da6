//! Each subcommand, between two or more processes.

mod common;

use std::fs;
use std::io::Write;

use common::{Done, fabric, fabric_open, fabric_with};

const ANY: &str = "tcp://127.0.0.1:0";

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Starts a listener, then the other side with its address in place of `ADDR`; both must end well.
fn both(listener: &str, other: &str, input: &str) -> (Done, Done) {
    let mut first = fabric(words(listener));
    let addr = first.addr();
    let second = fabric_with(words(&other.replace("ADDR", &addr)), input.as_bytes()).end().ok();
    (first.end().ok(), second)
}

#[test]
fn pushed_lines_are_pulled_in_order() {
    let (pulled, pushed) = both(&format!("pull {ANY} -n 3"), "push ADDR", "one\n\nthree");
    assert_eq!(pulled.text(), "one\n\nthree\n");
    assert!(pushed.err.contains("fabric push: 3 messages, 8 B"), "{}", pushed.err);
    assert!(pulled.err.contains("fabric pull: 3 messages, 8 B"), "{}", pulled.err);
}

#[test]
fn a_pusher_waits_for_a_puller_that_comes_later() {
    let mut early = fabric(words("pull tcp://127.0.0.1:0 -n 1"));
    let addr = early.addr();
    drop(early);
    let pusher = fabric_with(words(&format!("push {addr}")), b"patience\n");
    let pulled = fabric(words(&format!("pull {addr} -n 1"))).end().ok();
    assert_eq!(pulled.text(), "patience\n");
    pusher.end().ok();
}

#[test]
fn a_pusher_that_binds_shares_out_to_all_its_pullers() {
    let mut pusher = fabric(words(&format!("push --bind {ANY} --ack -w 2 --repeat 100 --size 9")));
    let addr = pusher.addr();
    let pull = format!("pull --connect {addr} --until-gone --raw");
    let pullers = [fabric(words(&pull)), fabric(words(&pull))];
    let sizes = pullers.map(|puller| puller.end().ok().out.len());
    assert!(sizes[0] > 0 && sizes[1] > 0 && sizes[0] + sizes[1] == 900, "{sizes:?}");
    pusher.end().ok();
}

#[test]
fn one_pusher_serves_several_addresses() {
    let mut pullers =
        [fabric(words(&format!("pull {ANY} -n 5"))), fabric(words(&format!("pull {ANY} -n 5")))];
    let [a, b] = [pullers[0].addr(), pullers[1].addr()];
    let push = format!("push --connect {a} --connect {b} -w 2 --repeat 10 --size 3");
    fabric(words(&push)).end().ok();
    pullers.into_iter().for_each(|puller| drop(puller.end().ok()));
}

#[test]
fn subscribers_get_their_topics_only() {
    let publish = format!("pub {ANY} --topic a.x --topic b.x --topic c -w 1 --when-full block");
    let mut publisher = fabric_with(words(&publish), b"1\n2\n3\n4\n5\n6\n");
    let addr = publisher.addr();
    let first = fabric(words(&format!("sub {addr} a. c -n 4")));
    let second = fabric(words(&format!("sub --connect {addr} b. --body -n 2")));
    assert_eq!(first.end().ok().text(), "a.x\t1\nc\t3\na.x\t4\nc\t6\n");
    assert_eq!(second.end().ok().text(), "2\n5\n");
    publisher.end().ok();
}

#[test]
fn without_a_topic_everything_is_subscribed() {
    let (published, subscribed) =
        both(&format!("pub {ANY} -w 1 --repeat 3 --size 4"), "sub ADDR -n 3 --json", "");
    assert!(published.err.contains("3 messages, 12 B"), "{}", published.err);
    let part = r#""bytes":4,"parts":[{"bytes":4,"text":"\u0000\u0001\u0002\u0003"}]"#;
    let lines: Vec<String> = (1..=3).map(|n| format!("{{\"n\":{n},{part}}}\n")).collect();
    assert_eq!(subscribed.text(), lines.concat());
}

#[test]
fn a_late_subscriber_gets_the_history() {
    let (mut publisher, mut input) = fabric_open(words(&format!("pub {ANY} --history 2 -w 1")));
    let addr = publisher.addr();
    input.write_all(b"1\n2\n3\n").unwrap();
    let early = fabric(words(&format!("sub {addr} -n 3"))).end().ok();
    let late = fabric(words(&format!("sub {addr} -n 2"))).end().ok();
    assert_eq!((early.text(), late.text()), ("1\n2\n3\n", "2\n3\n"));
    drop(input);
    publisher.end().ok();
}

#[test]
fn requests_are_echoed() {
    let (served, asked) = both(&format!("rep {ANY} -n 2"), "req ADDR", "ping\npong\n");
    assert_eq!(asked.text(), "ping\npong\n");
    assert!(served.err.contains("fabric rep: 2 messages, 8 B"), "{}", served.err);
}

#[test]
fn a_command_answers_requests() {
    let (_, asked) =
        both(&format!("rep {ANY} -n 2 -- tr a-z A-Z"), "req ADDR --json", "abc\nx y\n");
    let lines = [
        r#"{"n":1,"bytes":3,"parts":[{"bytes":3,"text":"ABC"}]}"#,
        r#"{"n":2,"bytes":3,"parts":[{"bytes":3,"text":"X Y"}]}"#,
    ];
    assert_eq!(asked.text().lines().collect::<Vec<_>>(), lines);
}

#[test]
fn a_failing_command_answers_with_what_it_complains_about() {
    let mut rep = fabric(["rep", ANY, "-n", "1", "--", "sh", "-c", "cat >&2; echo no; exit 3"]);
    let addr = rep.addr();
    let asked = fabric_with(["req", &addr], b"trouble\n").end().ok();
    assert_eq!(asked.text(), "trouble\n");
    let err = rep.end().ok().err;
    assert!(err.contains("sh: exit status: 3") && err.contains("1 failed commands"), "{err}");
}

#[test]
fn a_command_that_does_not_exist_answers_with_the_error() {
    let (served, asked) =
        both(&format!("rep {ANY} -n 1 -- /no/such/program"), "req ADDR", "anyone?\n");
    assert!(asked.text().contains("No such file"), "{}", asked.text());
    assert!(served.err.contains("/no/such/program: No such file"), "{}", served.err);
}

#[test]
fn a_command_may_answer_more_than_fits_a_pipe() {
    let mut rep =
        fabric(["rep", ANY, "-n", "1", "--", "sh", "-c", "cat; head -c 300000 /dev/zero"]);
    let addr = rep.addr();
    let size = "500000";
    let asked = fabric(["req", &addr, "--repeat", "1", "--size", size, "--raw"]).end().ok();
    assert_eq!(asked.out.len(), 800_000);
    rep.end().ok();
}

#[test]
fn messages_can_go_to_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut pull = fabric(["pull", ANY, "-n", "2", "--out-dir", dir.path().to_str().unwrap()]);
    let addr = pull.addr();
    fabric_with(["push", &addr], b"first\nsecond\n").end().ok();
    pull.end().ok();
    assert_eq!(fs::read(dir.path().join("1")).unwrap(), b"first");
    assert_eq!(fs::read(dir.path().join("2")).unwrap(), b"second");
}

#[test]
fn the_report_can_be_read_by_programs() {
    let (pulled, _) =
        both(&format!("pull {ANY} -n 2 --until-gone"), "push ADDR --report none", "a\nb\n");
    assert_eq!(pulled.text(), "a\nb\n");
    let mut pull = fabric(words(&format!("pull {ANY} -n 1 --report json --checksum")));
    pull.wait("an address", |pull| pull.err.text().contains('\n'));
    let said: serde_json::Value = serde_json::from_str(pull.err.text().trim()).unwrap();
    assert_eq!(said["event"], "listening");
    let pushed = fabric_with(["push", said["addr"].as_str().unwrap(), "--report", "none"], b"x\n");
    assert_eq!(pushed.end().ok().err, "");
    let err = pull.end().ok().err;
    let summary: serde_json::Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["event"], &summary["messages"]), (&"summary".into(), &1.into()));
    assert_eq!(summary["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn checksums_without_order_agree_with_any_number_of_pullers() {
    let mut pull = fabric(words(&format!("pull {ANY} -n 200 --checksum-sum --discard")));
    let addr = pull.addr();
    let lines: String = (0..200).map(|n| format!("{n}\n")).collect();
    let pushed = fabric_with(["push", &addr, "--checksum-sum"], lines.as_bytes()).end().ok();
    let sum = |done: &Done| done.err.lines().last().unwrap().to_owned();
    assert!(sum(&pushed).starts_with("sha256-sum "), "{}", pushed.err);
    assert_eq!(sum(&pull.end().ok()), sum(&pushed));
}
