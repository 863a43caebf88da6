//! What the wrappers of the contract do to a simulated domain.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Side, join, send, two, until};
use fabric_core::wrap::{Fault, FaultPlan, Trace};
use fabric_core::{Access, Armed, Domain, ErrorKind, Event, Exposure, Slot};
use fabric_sim::{SimDomain, SimNet};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// Keeps each event's target, name and fields.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Line>>>);

struct Line {
    target: &'static str,
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let (target, name) = (event.metadata().target(), event.metadata().name());
        let mut line = Line { target, name, fields: BTreeMap::new() };
        event.record(&mut line);
        self.0.lock().expect("no test panicked with it").push(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Records what `job` tells.
fn recorded(job: impl FnOnce()) -> Vec<Line> {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), job);
    std::mem::take(&mut recorder.0.lock().expect("no test panicked with it"))
}

/// A connection with one message, one read, one refused post and a close.
fn traffic() {
    let [mut server, mut client] = two(&SimNet::new(), Trace::new);
    let (at_server, at_client) = join(&mut server, &mut client);
    server.offer(1);
    assert!(send(&mut client, at_client, 1));
    until([&mut server, &mut client], |server, _| !server.messages().is_empty());
    let mem = Exposure::Bytes(bytes::Bytes::from_static(b"exposed"));
    let rma = server.domain.rma().expect("the simulated fabric has it");
    let key = rma.expose(at_server, mem, Access::READ).expect("it can be exposed");
    let into = Slot::alloc(8).expect("memory for a test");
    let rma = client.domain.rma().expect("the simulated fabric has it");
    rma.post_read(at_client, key, 0, into, 7).expect("a read within the limits");
    until([&mut server, &mut client], |_, client| {
        client.seen.iter().any(|event| matches!(event, Event::RmaDone { .. }))
    });
    client.domain.close(at_client);
    assert!(!send(&mut client, at_client, 2));
    until([&mut server, &mut client], |server, client| {
        server.closed().is_some() && client.closed().is_some()
    });
}

#[test]
fn a_trace_tells_calls_and_events_under_stable_names() {
    let lines = recorded(traffic);
    let names = |target| -> BTreeSet<&str> {
        lines.iter().filter(|line| line.target == target).map(|line| line.name).collect()
    };
    let calls = ["listen", "connect", "post_send", "post_recv", "expose", "post_read", "close"];
    assert_eq!(names("fabric::call"), calls.into());
    let events = ["accepted", "connected", "sent", "received", "rmadone", "closed"];
    assert_eq!(names("fabric::event"), events.into());
}

#[test]
fn a_trace_carries_the_fields_that_its_documentation_names() {
    let lines = recorded(traffic);
    let field = |name, field| {
        let of_name = lines.iter().filter(|line| line.name == name);
        of_name.filter_map(|line| line.fields.get(field)).cloned().collect::<Vec<_>>()
    };
    assert!(lines.iter().all(|line| line.fields["domain"].starts_with("\"sim")
        || line.fields["domain"].starts_with("sim")));
    assert_eq!(field("received", "bytes"), ["1"]);
    assert_eq!(field("rmadone", "bytes"), ["7"]);
    assert_eq!(field("post_send", "kind"), ["\"Misuse\""]);
    assert_eq!(field("closed", "kind").len(), 2);
    assert!(field("closed", "kind").contains(&"Flushed".to_owned()));
}

/// A server without faults and a client with them.
fn faulty(plan: &FaultPlan) -> [Side<Fault<SimDomain>>; 2] {
    let mut plans = [FaultPlan::default(), plan.clone()].into_iter();
    two(&SimNet::new(), |domain| Fault::new(domain, plans.next().unwrap_or_default()))
}

#[test]
fn refused_posts_come_back_as_full_and_succeed_when_repeated() {
    let plan = FaultPlan { seed: 1, refused_posts_per_mille: 500, ..FaultPlan::default() };
    let [mut server, mut client] = faulty(&plan);
    let (_, ep) = join(&mut server, &mut client);
    server.offer(50);
    let (mut next, mut refused) = (0, 0);
    until([&mut server, &mut client], |server, client| {
        let buf = bytes::Bytes::copy_from_slice(&[next]).into();
        match client.domain.post_send(ep, buf) {
            Ok(_) => next += 1,
            Err(rejected) => {
                assert_eq!(rejected.error.kind(), ErrorKind::Full);
                assert_eq!(rejected.buf.to_vec(), [next]);
                refused += 1;
            }
        }
        server.messages().len() >= 40
    });
    assert!((15..80).contains(&refused), "about every second post is refused: {refused}");
    let messages = server.messages();
    assert_eq!(messages, (0..messages.len() as u8).collect::<Vec<_>>());
}

#[test]
fn held_events_keep_their_order_and_all_come() {
    let plan = FaultPlan {
        seed: 2,
        held_events_per_mille: 400,
        held_polls_max: 9,
        ..FaultPlan::default()
    };
    let [mut server, mut client] = faulty(&plan);
    let (ep, _) = join(&mut server, &mut client);
    client.offer(40);
    for i in 0..40 {
        assert!(send(&mut server, ep, i));
    }
    let turns = until([&mut server, &mut client], |_, client| client.messages().len() == 40);
    assert_eq!(client.messages(), (0..40).collect::<Vec<_>>());
    let [mut server, mut client] = faulty(&FaultPlan::default());
    let (ep, _) = join(&mut server, &mut client);
    client.offer(40);
    assert!((0..40).all(|i| send(&mut server, ep, i)));
    let unheld = until([&mut server, &mut client], |_, client| client.messages().len() == 40);
    assert!(turns > unheld, "{turns} turns with events held back, {unheld} without");
}

#[test]
fn nobody_sleeps_on_events_that_are_held_back() {
    let plan = FaultPlan {
        seed: 3,
        held_events_per_mille: 1000,
        held_polls_max: 1000,
        ..FaultPlan::default()
    };
    let [mut server, mut client] = faulty(&plan);
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    until([&mut server, &mut client], |server, _| server.accepted().is_some());
    for _ in 0..5 {
        client.turn();
    }
    // No limit: this hangs if the wrapper sleeps on what it holds.
    while client.connected().is_none() {
        assert_eq!(client.domain.arm(), Armed::Ready);
        client.domain.wait(None).expect("it can wait");
        client.turn();
    }
}

#[test]
fn broken_endpoints_close_as_reset_here_and_closed_there_exactly_once() {
    let plan = FaultPlan { seed: 4, breaks_per_mille: 1000, ..FaultPlan::default() };
    let [mut server, mut client] = faulty(&plan);
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    until([&mut server, &mut client], |server, client| {
        server.closed().is_some() && client.closed().is_some()
    });
    assert_eq!(client.closed().map(fabric_core::Error::kind), Some(ErrorKind::Reset));
    assert_eq!(server.closed().map(fabric_core::Error::kind), Some(ErrorKind::Closed));
    assert_eq!(client.seen.len(), 2, "Connected and Closed: {:?}", client.seen);
}

#[test]
fn spurious_wakes_end_wait_for_nothing() {
    let plan = FaultPlan { seed: 5, spurious_wakes_per_mille: 1000, ..FaultPlan::default() };
    let [mut server, mut client] = faulty(&plan);
    // No limit: this hangs if the wake does not come.
    client.domain.wait(None).expect("it can wait");
    assert_eq!(client.domain.arm(), Armed::Ready);
    assert!(matches!(server.domain.arm(), Armed::Idle(None)));
    client.domain.set_plan(FaultPlan::default());
    client.domain.wait(Some(Duration::from_millis(1))).expect("it can wait");
    assert!(matches!(client.domain.arm(), Armed::Idle(None)));
}

#[test]
fn wrappers_stack() {
    let net = SimNet::new();
    let [mut server, mut client] =
        two(&net, |domain| Trace::new(Fault::new(domain, FaultPlan::default())));
    let (_, ep) = join(&mut server, &mut client);
    server.offer(1);
    assert!(send(&mut client, ep, 9));
    until([&mut server, &mut client], |server, _| server.messages() == [9]);
    assert_eq!(server.domain.caps().provider, "sim");
}
