//! A process without descriptors. Alone in its file, because the limit holds for the process.

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use fabric_core::{Armed, Domain, ErrorKind, Event, Fabric};
use fabric_tcp::{TcpDomain, TcpFabric};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const GREETING: [u8; 8] = [0xF5, b'f', b'a', b'b', b't', b'c', 1, 0];

/// Takes all descriptors of a process that may have 200.
fn take_all() -> Vec<File> {
    let limits = Rlimit { current: Some(200), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limits).unwrap();
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

fn poll(domain: &mut TcpDomain) -> Vec<Event> {
    let mut events = Vec::new();
    domain.wait(Some(Duration::from_millis(10))).unwrap();
    domain.poll(&mut events, 64);
    events
}

#[test]
fn a_listener_outlives_a_time_without_descriptors() {
    let mut domain = TcpFabric::default().open().unwrap();
    let addr = domain.listen(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap().addr;
    let mut peer = TcpStream::connect((addr.host(), addr.port().unwrap())).unwrap();
    let taken = take_all();
    let error = loop {
        if let Some(Event::AcceptFailed { error, .. }) = poll(&mut domain).pop() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Host);
    assert!(error.message().contains("200 descriptors"), "{error}");
    // It rests, instead of failing again and again.
    assert!(matches!(domain.arm(), Armed::Idle(Some(_))));
    let error = domain.connect(&addr).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host, "{error}");
    drop(taken);
    peer.write_all(&GREETING).unwrap();
    while !poll(&mut domain).iter().any(|event| matches!(event, Event::Accepted { .. })) {}
}
