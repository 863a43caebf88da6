//! What goes wrong ends with the right code and one line that says what to do.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use common::{fabric, fabric_with, run};

const ANY: &str = "tcp://127.0.0.1:0";

#[test]
fn each_bad_address_says_what_to_write_instead() {
    let cases = [
        ("foo://h:1", "use one of tcp://"),
        ("tcp://h:99999", "use a number from 0 to 65535"),
        ("tcp://h:http", "use a number from 0 to 65535"),
        ("h:5555", "write it like tcp://127.0.0.1:5555"),
        ("tcp://:5555", "use a name, an IP address, an interface or *"),
        ("tcp://[::1:5", "write IPv6 addresses like tcp://[::1]:5555"),
        ("tcp://no.such.host.invalid:5", "check the spelling"),
    ];
    for (addr, says) in cases {
        for command in ["pub", "sub", "push", "pull", "req", "rep"] {
            let done = run(&format!("{command} {addr} -t 30s"));
            assert_eq!(done.code, Some(1), "{command} {addr}: {}", done.err);
            assert!(done.error_line().contains(says), "{command} {addr}: {}", done.err);
        }
    }
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let done = run(&format!("pull tcp://{} -t 30s", taken.local_addr().unwrap()));
    assert_eq!(done.code, Some(1));
    assert!(done.error_line().contains("already"), "{}", done.err);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let cases = [
        format!("push {ANY} --file /no/such/file"),
        format!("push {ANY} --lines /no/such/file"),
        format!("push {ANY} --chunk 4K --file /no/such/file"),
        format!("pull {ANY} --output /no/such/dir/file"),
        format!("pull {ANY} --out-dir /dev/null/x"),
        "demo --input /no/such/file".to_owned(),
        "demo --input /dev/null".to_owned(),
    ];
    for args in cases {
        let done = run(&args);
        assert_eq!(done.code, Some(1), "{args}: {}", done.err);
        assert!(
            done.error_line().contains("/dev/null") || done.error_line().contains("/no/such"),
            "{args}"
        );
    }
}

#[test]
fn a_message_over_the_own_limit_is_refused_before_it_is_sent() {
    let file = env!("CARGO_BIN_EXE_fabric");
    let by_file = run(&format!("push --bind {ANY} --max-size 1K --file {file}"));
    let by_line = fabric_with(["push", "--bind", ANY, "--max-size", "4"], b"12345\n").end();
    for done in [by_file, by_line] {
        assert_eq!(done.code, Some(1), "{}", done.err);
        assert!(done.error_line().contains("raise --max-size"), "{}", done.err);
    }
}

#[test]
fn a_message_over_the_limit_of_the_peer_is_refused() {
    let mut pull = fabric(["pull", ANY, "--max-size", "100"]);
    let addr = pull.addr();
    let done = run(&format!("push {addr} -w 1 --repeat 1 --size 101"));
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.error_line().contains("more than the peer takes"), "{}", done.err);
}

#[test]
fn a_bad_command_line_is_a_usage_error() {
    let cases = [
        "",
        "pull",
        "nonsense",
        "push tcp://127.0.0.1:1 --chunk 4K",
        "push tcp://127.0.0.1:1 --file a --lines b",
        "push tcp://127.0.0.1:1 --repeat 1 --size lots",
        "push tcp://127.0.0.1:1 --timeout never",
        "pull tcp://127.0.0.1:1 --raw --json",
        "pull tcp://127.0.0.1:1 --count -1",
        "pull tcp://127.0.0.1:1 --max-size 0",
        "req tcp://127.0.0.1:1 --report loud",
    ];
    for args in cases {
        let done = run(args);
        assert_eq!(done.code, Some(2), "{args}: {}", done.err);
        assert!(done.out.is_empty() && !done.err.is_empty(), "{args}");
    }
}

#[test]
fn a_time_limit_has_a_code_of_its_own() {
    let cases = [
        format!("pull {ANY}"),
        format!("sub --bind {ANY}"),
        format!("rep {ANY}"),
        format!("push --bind {ANY} --repeat 1"),
        format!("push --bind {ANY} --repeat 1 -w 1"),
        format!("pub {ANY} --repeat 1 -w 1"),
        format!("req --bind {ANY} --repeat 1"),
    ];
    for args in cases {
        let done = run(&format!("{args} -t 50ms"));
        assert_eq!(done.code, Some(3), "{args}: {}", done.err);
        done.error_line();
    }
}

#[test]
fn too_few_messages_are_a_time_out() {
    let mut pull = fabric(["pull", ANY, "-n", "3", "-t", "300ms"]);
    let addr = pull.addr();
    fabric_with(["push", &addr], b"1\n2\n").end().ok();
    let done = pull.end();
    assert_eq!((done.code, done.text()), (Some(3), "1\n2\n"));
    assert!(done.error_line().contains("2 of 3 messages came"), "{}", done.err);
}

#[test]
fn a_foreign_protocol_is_turned_away_and_the_port_serves_on() {
    let mut pull = fabric(["pull", ANY, "-n", "1"]);
    let addr = pull.addr();
    let mut stranger = TcpStream::connect(addr.strip_prefix("tcp://").unwrap()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n").unwrap();
    // Its end, or a reset: the connection is over either way.
    drop(stranger.read(&mut [0; 64]));
    pull.wait("a note", |pull| pull.err.text().contains("turned a connection away"));
    fabric_with(["push", &addr], b"still here\n").end().ok();
    assert_eq!(pull.end().ok().text(), "still here\n");
}

#[test]
fn a_peer_of_the_wrong_type_is_named() {
    let mut rep = fabric(["rep", ANY]);
    let addr = rep.addr();
    let done = run(&format!("push {addr} --repeat 1 -t 2s"));
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("these socket types do not talk to each other"), "{}", done.err);
    rep.wait("a note", |rep| rep.err.text().contains("do not talk to each other"));
}

#[test]
fn help_names_every_exit_code() {
    let done = run("--help").ok();
    for code in ["0 ", "1 ", "2 ", "3 ", "130 "] {
        assert!(done.text().lines().any(|line| line.trim_start().starts_with(code)), "{code}");
    }
}
