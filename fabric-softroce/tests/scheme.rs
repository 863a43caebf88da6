//! Whoever writes `softroce://` reads `softroce://`, though the verbs provider does the work.
//!
//! Runs on the interface that `FABRIC_SOFTROCE_INTERFACE` names; without it, each test says so and
//! ends, and with `FABRIC_REQUIRE_RXE=1` that is a failure.

use std::time::{Duration, Instant};

use fabric_core::{Addr, Domain, Event, Fabric};
use fabric_softroce::SoftRoceFabric;
use fabric_verbs::VerbsDomain;

/// Longer than anything here takes on the slowest machine.
const WATCHDOG: Duration = Duration::from_secs(120);

fn interface() -> Option<String> {
    if let Ok(interface) = std::env::var("FABRIC_SOFTROCE_INTERFACE") {
        return Some(interface);
    }
    let required = std::env::var("FABRIC_REQUIRE_RXE").is_ok_and(|value| value == "1");
    assert!(!required, "FABRIC_REQUIRE_RXE=1, but FABRIC_SOFTROCE_INTERFACE names no interface");
    println!("skipped: FABRIC_SOFTROCE_INTERFACE names no interface to make a link on");
    None
}

struct Node {
    domain: VerbsDomain,
    events: Vec<Event>,
}

impl Node {
    fn on(addr: &Addr) -> Self {
        let domain = SoftRoceFabric::default().open_for(addr).unwrap();
        Self { domain, events: Vec::new() }
    }

    fn turn(&mut self) {
        self.domain.wait(Some(Duration::from_millis(1))).unwrap();
        self.domain.poll(&mut self.events, 16);
    }

    /// The peer that it was connected to or that came in.
    fn peer(&self) -> Option<Addr> {
        self.events.iter().find_map(|event| match event {
            Event::Accepted { peer, .. } | Event::Connected { peer, .. } => Some(peer.clone()),
            _ => None,
        })
    }

    /// Why its connection ended.
    fn why(&self) -> Option<String> {
        self.events.iter().find_map(|event| match event {
            Event::Closed { why, .. } => Some(why.to_string()),
            _ => None,
        })
    }
}

#[track_caller]
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < WATCHDOG, "gave up waiting: {what}"); // Watchdog: see there.
    }
}

#[test]
fn addresses_in_events_and_errors_have_the_scheme_that_was_given() {
    let Some(interface) = interface() else { return };
    let addr = Addr::new("softroce", &interface, Some(0));
    let (mut listening, mut connecting) = (Node::on(&addr), Node::on(&addr));
    let at = listening.domain.listen(&addr).unwrap().addr;
    connecting.domain.connect(&at).unwrap();
    let (accepted, connected) = until("both connect", || {
        listening.turn();
        connecting.turn();
        listening.peer().zip(connecting.peer())
    });
    assert_eq!((accepted.scheme(), at.scheme()), ("softroce", "softroce"));
    assert_eq!(connected, at);
    drop(listening);
    let why = until("the end", || {
        connecting.turn();
        connecting.why()
    });
    assert!(why.contains(&at.to_string()) && !why.contains("verbs://"), "{why}");
}

#[test]
fn a_refusal_names_the_address_in_the_scheme_that_was_given() {
    let Some(interface) = interface() else { return };
    // Ports below 1024 are nobody's unless he asks for one.
    let nobody = Addr::new("softroce", &interface, Some(7));
    let mut node = Node::on(&nobody);
    node.domain.connect(&nobody).unwrap();
    let why = until("the refusal", || {
        node.turn();
        node.why()
    });
    assert!(why.contains("softroce://") && !why.contains("verbs://"), "{why}");
}
