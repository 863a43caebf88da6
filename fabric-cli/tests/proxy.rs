//! Proxies between real processes, ended by a signal.

mod common;

use common::{Done, Fabric, fabric, fabric_with};
use rustix::process::Signal;

const ANY: &str = "tcp://127.0.0.1:0";

/// A proxy of this kind, and its addresses in front and behind, and of its capture.
fn proxy(kind: &str, more: &[&str]) -> (Fabric, Vec<String>) {
    let ends = ["proxy", kind, "--front", ANY, "--back", ANY];
    let mut proxy = fabric(ends.iter().chain(more));
    let count = if more.contains(&"--capture") { 3 } else { 2 };
    proxy.wait("addresses", |proxy| proxy.err.text().matches("tcp://").count() == count);
    let said = proxy.err.text();
    let addr = |line: &str| Some(line[line.find("tcp://")?..].trim_end_matches(['"', '}']).into());
    (proxy, said.lines().filter_map(addr).collect())
}

/// Its last line after a signal.
fn ended(proxy: Fabric, signal: Signal) -> String {
    proxy.signal(signal);
    let Done { code, err, .. } = proxy.end();
    assert_eq!(code, Some(130), "{err}");
    err.lines().last().unwrap().to_owned()
}

#[test]
fn a_forwarder_stands_between_publishers_and_subscribers() {
    // Whoever looks later what passed gets to see it all.
    let capture = format!("{ANY}?history=100");
    let (proxy, addrs) = proxy("forwarder", &["--capture", &capture]);
    let sub = fabric(["sub", "--connect", &addrs[1], "a", "-n", "2"]);
    let published = ["pub", "--connect", &addrs[0], "-T", "a", "-w", "1"];
    fabric_with(published, b"1\n2\n").end().ok();
    assert_eq!(sub.end().ok().text(), "a\t1\na\t2\n");
    let spied = fabric(["sub", "--connect", &addrs[2], "-n", "4"]).end().ok();
    assert_eq!(spied.text(), "\u{1}a\na\t1\na\t2\n\u{0}a\n");
    let said = ended(proxy, Signal::INT);
    assert!(said.starts_with("fabric proxy forwarder: 2 messages, 4 B to the back, "), "{said}");
}

#[test]
fn a_streamer_passes_on_what_had_come_before_a_signal() {
    let (proxy, addrs) = proxy("streamer", &["--hwm", "5"]);
    let lines: String = (0..200).map(|n| format!("{n}\n")).collect();
    let push = fabric_with(["push", "--ack", &addrs[0]], lines.as_bytes());
    let pull = fabric(["pull", "--connect", &addrs[1], "--hwm", "2", "-n", "200"]);
    assert_eq!(pull.end().ok().text(), lines);
    push.end().ok();
    let said = ended(proxy, Signal::TERM);
    assert!(said.contains("streamer: 200 messages, 490 B to the back in "), "{said}");
    assert!(!said.contains("dropped"), "{said}");
}

#[test]
fn a_queue_takes_requests_to_repliers_and_replies_back() {
    let (proxy, addrs) = proxy("queue", &["--report", "json"]);
    let [front, back] = [&addrs[0], &addrs[1]];
    let reps =
        [(); 2].map(|()| fabric(["rep", "--connect", back, "-n", "3", "--", "tr", "a-z", "A-Z"]));
    let asked = fabric_with(["req", front], b"a\nb\nc\nd\ne\nf\n").end().ok();
    assert_eq!(asked.text(), "A\nB\nC\nD\nE\nF\n");
    reps.into_iter().for_each(|rep| drop(rep.end().ok()));
    let said: serde_json::Value = serde_json::from_str(&ended(proxy, Signal::INT)).unwrap();
    assert_eq!((&said["event"], &said["kind"]), (&"passage".into(), &"queue".into()));
    assert_eq!((&said["to_back"], &said["to_front"]), (&6.into(), &6.into()));
}

#[test]
fn a_proxy_can_connect_and_wants_both_sides() {
    let mut pull = fabric(["pull", ANY, "-n", "1"]);
    let addr = pull.addr();
    let mut proxy = fabric(["proxy", "streamer", "--front", ANY, "--back-connect", &addr]);
    fabric_with(["push", &proxy.addr()], b"through\n").end().ok();
    assert_eq!(pull.end().ok().text(), "through\n");
    ended(proxy, Signal::INT);
    let done = common::run(&format!("proxy queue --front {ANY}"));
    assert_eq!(done.code, Some(2), "{}", done.err);
}
