//! The events and spans that sockets give to `tracing`, against the table in the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Pub, Push, Router, Sub};
use tracing::{Event, Metadata, Subscriber, span};
use tracing_subscriber::layer::{Context as Around, Layer, SubscriberExt};

/// What an event or span is like: its level and the names of its fields.
type Shape = (String, BTreeSet<String>);

/// The events and spans of sockets that came so far, by name.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<&'static str, Shape>>>);

impl Seen {
    fn add(&self, what: &Metadata<'static>) {
        if what.target() != "msg_patterns::socket" {
            return;
        }
        let fields = what.fields().iter().map(|field| field.name().to_owned());
        let fields = fields.filter(|name| name != "message").collect();
        let shape = (what.level().to_string().to_lowercase(), fields);
        let before = self.0.lock().unwrap().insert(what.name(), shape.clone());
        assert!(before.is_none_or(|before| before == shape), "{}", what.name());
    }

    fn until(&self, name: &str) {
        for _ in 0..6000 {
            if self.0.lock().unwrap().contains_key(name) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no event {name} among {:?}", self.0.lock().unwrap().keys());
    }
}

impl<S: Subscriber> Layer<S> for Seen {
    fn on_event(&self, event: &Event<'_>, _: Around<'_, S>) {
        self.add(event.metadata());
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, _: &span::Id, _: Around<'_, S>) {
        self.add(attributes.metadata());
    }
}

#[test]
fn the_events_in_the_documentation_come_with_their_fields() {
    let seen = Seen::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(seen.clone()))
        .unwrap();
    let context = Context::new();

    // Too little room for all.
    let ticks = Pub::builder().hwm(1).build(&context).unwrap();
    let addr = ticks.bind("tcp://127.0.0.1:0").unwrap();
    let sub = Sub::builder().hwm(1).build(&context).unwrap();
    sub.subscribe("").unwrap();
    sub.connect(&addr.to_string()).unwrap();
    ticks.wait_matching("", 1, Duration::from_secs(60)).unwrap();
    ticks.send_many(["tick"; 5]).unwrap();
    seen.until("slow_peer");
    sub.recv().unwrap();
    sub.recv().unwrap();
    seen.until("dropped");

    // A name that nobody has.
    Router::new(&context).unwrap().send_to(&"nobody".into(), "lost").unwrap();
    seen.until("undelivered");

    // Another protocol, and a socket of the wrong type.
    let mut stream = TcpStream::connect(("127.0.0.1", addr.port().unwrap())).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    seen.until("accept_failed");
    let wrong = Push::new(&context).unwrap();
    wrong.connect(&addr.to_string()).unwrap();
    seen.until("refused");
    seen.until("connect_stopped");

    // Nobody, and then nobody any more.
    wrong.connect("tcp://127.0.0.1:1").unwrap();
    seen.until("connect_retried");
    ticks.unbind(&addr.to_string()).unwrap();
    sub.close();
    seen.until("disconnected");

    let documented = documented();
    let names = |of: &BTreeMap<&'static str, Shape>| of.keys().map(|n| (*n).to_owned()).collect();
    let mut seen_names: BTreeSet<String> = names(&seen.0.lock().unwrap());
    for span in ["bind", "connect", "close"] {
        assert!(seen_names.remove(span), "no span {span}");
    }
    assert_eq!(seen_names, documented.keys().cloned().collect());
    for (name, shape) in documented {
        assert_eq!(seen.0.lock().unwrap()[&*name], shape, "{name}");
    }
}

/// The rows of the table of events.
fn documented() -> BTreeMap<String, Shape> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| event |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let common = ["socket_type", "socket"].map(str::to_owned);
        let further = cells[3].split(',').map(|name| name.trim().trim_matches('`').to_owned());
        let fields = common.into_iter().chain(further.filter(|name| !name.is_empty())).collect();
        (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), fields))
    })
    .collect()
}
