//! `fabric perf`: tiny runs of every measurement, whose counts must be exact.

mod common;

use common::{Done, fabric, run, wait_until};
use serde_json::Value;

/// More context switches than it takes to start: from then on there is traffic.
const SWITCHES_MIN: u64 = 300;

/// Runs `fabric perf` and reads its JSON.
fn report(args: &str) -> Value {
    read(&run(&format!("perf {args} --json")).ok())
}

fn read(done: &Done) -> Value {
    assert_eq!(done.text().lines().count(), 1, "one object: {}", done.text());
    serde_json::from_str(done.text()).unwrap()
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn is_positive(value: &Value) {
    assert!(number(value) > 0.0, "{value}");
}

/// Either a number, or the report says why there is none.
#[track_caller]
fn is_counted_or_explained(report: &Value, value: &Value, name: &str) {
    let reasons = report["not_available"].as_array().unwrap();
    let explained = reasons.iter().any(|reason| reason.as_str().unwrap().contains(name));
    assert!(value.is_number() != explained, "{name}: {value}, {reasons:?}");
}

#[track_caller]
fn check_lat(report: &Value, sizes: &[u64], count: u64) {
    assert_eq!((&report["test"], &report["version"]), (&"lat".into(), &1.into()));
    assert_eq!(rows(report).len(), sizes.len());
    for (row, size) in rows(report).iter().zip(sizes) {
        assert_eq!((&row["size_bytes"], &row["count"]), (&(*size).into(), &count.into()));
        let buckets = row["histogram"].as_array().unwrap();
        let in_buckets: u64 = buckets.iter().map(|b| b["count"].as_u64().unwrap()).sum();
        assert_eq!(in_buckets, count, "{buckets:?}");
        let times = ["min", "p50", "p90", "p99", "p99_9", "max"];
        let times = times.map(|name| number(&row["round_trip_us"][name]));
        assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
        is_positive(&row["seconds"]);
        for side in ["client", "server"] {
            is_positive(&row[side]["cpu_seconds_per_million"]);
            is_counted_or_explained(report, &row[side]["syscalls_per_message"], "system calls");
            is_counted_or_explained(report, &row[side]["instructions_per_message"], "instructions");
        }
    }
}

#[track_caller]
fn check_bw(report: &Value, sizes: &[u64], count: u64) {
    assert_eq!(report["test"], "bw");
    assert_eq!(rows(report).len(), sizes.len());
    for (row, size) in rows(report).iter().zip(sizes) {
        assert_eq!((&row["size_bytes"], &row["count"]), (&(*size).into(), &count.into()));
        let (rate, seconds) = (number(&row["messages_per_second"]), number(&row["seconds"]));
        assert!((rate * seconds / count as f64 - 1.0).abs() < 1e-6, "{row}");
        let bytes = number(&row["gigabytes_per_second"]) * 1e9;
        assert!((bytes / rate / *size as f64 - 1.0).abs() < 1e-6, "{row}");
        is_positive(&row["client"]["cpu_seconds_per_million"]);
    }
}

#[test]
fn every_round_trip_is_counted() {
    let report = report("lat --size 1 --size 64KiB --size 1MiB --count 30");
    check_lat(&report, &[1, 64 << 10, 1 << 20], 30);
    is_positive(&rows(&report)[0]["first_reply_us"]);
    assert_eq!(report["settings"]["level"], "socket");
}

#[test]
fn round_trips_can_spin_on_a_processor_of_their_own() {
    let report = report("lat --size 64 --count 50 --busy-poll --pin 0,0");
    check_lat(&report, &[64], 50);
    assert_eq!(report["settings"]["pin"], serde_json::json!([0, 0]));
}

#[test]
fn a_time_limit_becomes_a_count() {
    let report = report("lat --size 64 --duration 20ms");
    check_lat(&report, &[64], rows(&report)[0]["count"].as_u64().unwrap());
    assert!(number(&rows(&report)[0]["seconds"]) >= 0.01);
}

#[test]
fn every_message_of_a_stream_arrives() {
    check_bw(&report("bw --size 1,1KiB,1MiB --count 200"), &[1, 1 << 10, 1 << 20], 200);
}

#[test]
fn every_message_of_a_batch_arrives() {
    check_bw(&report("bw --size 64,64KiB --count 200 --batch 17"), &[64, 64 << 10], 200);
    let report = report("fanout --subscribers 3 --size 64 --count 300 --batch 17");
    assert_eq!(rows(&report)[0]["delivered"], 3 * 331);
}

#[test]
fn a_domain_sends_back_and_forth() {
    let report = report("lat --level domain --size 1,64KiB --count 40");
    check_lat(&report, &[1, 64 << 10], 40);
    assert!(rows(&report)[0]["first_reply_us"].is_null());
}

#[test]
fn a_domain_streams() {
    check_bw(&report("bw --level domain --size 1,1KiB --count 2000"), &[1, 1 << 10], 2000);
}

#[test]
fn a_domain_reads_and_writes_far_memory() {
    for op in ["read", "write"] {
        let report = |test| report(&format!("{test} --level domain --op {op} -s 1,1MiB -n 20"));
        check_lat(&report("lat"), &[1, 1 << 20], 20);
        check_bw(&report("bw"), &[1, 1 << 20], 20);
    }
}

/// The serving side compares the word with the number of operations.
#[test]
fn every_atomic_takes_place() {
    for op in ["cas", "add"] {
        check_lat(&report(&format!("lat --level domain --op {op} -n 50")), &[8], 50);
        check_bw(&report(&format!("bw --level domain --op {op} -n 500 --busy-poll")), &[8], 500);
    }
}

#[test]
fn every_subscriber_gets_everything() {
    let report = report("fanout --subscribers 1,5 --size 64 --count 300");
    assert_eq!(report["test"], "fanout");
    for (row, subscribers) in rows(&report).iter().zip([1_u64, 5]) {
        // 300, and 31 before the clock runs.
        assert_eq!(row["delivered"], subscribers * 331, "{row}");
        assert_eq!((&row["lost"], &row["dropped"]), (&0.into(), &0.into()));
        is_positive(&row["delivered_per_second"]);
    }
}

#[test]
fn what_a_publisher_drops_is_counted_as_lost() {
    let report = report("fanout --subscribers 2 -s 64KiB -n 300 --when-full drop --hwm 2");
    let row = &rows(&report)[0];
    let (delivered, lost) = (row["delivered"].as_u64().unwrap(), row["lost"].as_u64().unwrap());
    assert_eq!(delivered + lost, 2 * 331, "{row}");
    assert_eq!(row["dropped"], lost, "{row}");
}

#[test]
fn silent_peers_hold_memory_and_descriptors() {
    let report = report("idle --peers 1,20 --size 64 --count 200");
    assert_eq!((&report["test"], rows(&report).len()), (&"idle".into(), 2));
    let row = &rows(&report)[1];
    assert_eq!((&row["peers"], &row["count"]), (&20.into(), &200.into()));
    is_positive(&row["set_ups_per_second"]);
    is_positive(&row["messages_per_second"]);
    for side in ["client", "server"] {
        assert!(number(&row["descriptors_per_peer"][side]) >= 1.0, "{row}");
        is_positive(&row["memory_bytes_per_peer"]["client"]);
    }
    assert!(rows(&report)[0]["set_ups_per_second"].is_null());
}

#[test]
fn people_get_a_table() {
    let done = run("perf lat --size 64 --count 20").ok();
    assert!(done.text().contains("p99.9 µs") && done.text().contains("64 B"), "{}", done.text());
    assert!(done.err.is_empty(), "{}", done.err);
}

#[test]
fn one_serving_process_serves_many_runs() {
    let mut server = fabric(["perf", "serve", "tcp://127.0.0.1:0"]);
    let addr = server.addr();
    check_lat(&report(&format!("lat --connect {addr} --size 64 -n 20")), &[64], 20);
    check_bw(&report(&format!("bw --connect {addr} --size 64 -n 20")), &[64], 20);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.end().code, Some(130));
}

#[test]
fn a_client_that_is_killed_leaves_the_server_to_others() {
    let mut server = fabric(["perf", "serve", "tcp://127.0.0.1:0"]);
    let addr = server.addr();
    for level in ["socket", "domain"] {
        let args = ["perf", "lat", "--connect", &addr, "--level", level, "-n", "100000000"];
        let victim = fabric(args.iter().chain(&["--size", "64"]));
        wait_until("traffic", || switches(victim.id()) > SWITCHES_MIN);
        victim.kill();
        check_lat(&report(&format!("lat --connect {addr} --size 64 -n 20")), &[64], 20);
    }
}

fn switches(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_serving_process_does_not_outlive_who_started_it() {
    let client = fabric(["perf", "lat", "--size", "64", "-n", "100000000"]);
    let children = format!("/proc/{0}/task/{0}/children", client.id());
    let mut child = String::new();
    wait_until("a child", || {
        child = std::fs::read_to_string(&children).unwrap().trim().to_owned();
        !child.is_empty()
    });
    client.kill();
    let stat = format!("/proc/{child}/stat");
    // Gone, or a zombie that nobody waits for.
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    wait_until("the end of the child", is_gone);
}

#[test]
fn a_serving_process_that_is_killed_is_an_error() {
    let mut server = fabric(["perf", "serve", "tcp://127.0.0.1:0"]);
    let addr = server.addr();
    let client = fabric(["perf", "lat", "--connect", &addr, "--size", "64", "-n", "100000000"]);
    wait_until("traffic", || switches(client.id()) > SWITCHES_MIN);
    server.kill();
    let done = client.end();
    assert_eq!((done.code, done.err.lines().count()), (Some(1), 1), "{}", done.err);
}

#[test]
fn what_makes_no_sense_is_one_line_that_says_what_to_do() {
    let cases = [
        ("lat --op read", "--level domain", 1),
        ("lat --level domain --op add --size 64", "--size", 1),
        ("bw --level domain --size 1MiB -n 1", "--op read or write", 1),
        ("fanout --subscribers 0", "at least 1", 1),
        ("lat --pin 0,99999 --size 1 -n 1", "99999", 1),
        ("lat --addr nonsense", "tcp://", 1),
        ("lat --addr pigeon://loft", "pigeon", 1),
        ("lat --count 1 --duration 1s", "--duration", 2),
        ("lat --size 0", "at least 1", 2),
    ];
    for (args, word, code) in cases {
        let done = run(&format!("perf {args}"));
        assert_eq!(done.code, Some(code), "{args}: {}", done.err);
        assert!(done.err.contains(word), "{args}: {}", done.err);
        assert!(code == 2 || done.err.lines().count() == 1, "{args}: {}", done.err);
    }
}
