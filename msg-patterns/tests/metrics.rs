//! What Prometheus scrapes after a scripted run.

#[path = "../examples/prometheus.rs"]
mod prometheus;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use msg_patterns::{
    Context, Counters, Linger, Metric, MetricKind, MonitorEvent, Pub, Pull, Push, Rep, Req, Sub,
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

/// Starts what the example starts; says where.
fn start(context: &Context) -> SocketAddr {
    let recorder = PrometheusBuilder::new().install_recorder().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let context = context.clone();
    thread::spawn(move || prometheus::serve(&listener, &context, &recorder));
    at
}

fn scrape(at: SocketAddr) -> Scrape {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    Scrape(text)
}

struct Scrape(String);

impl Scrape {
    /// The sum of all values of `name` with all of these labels, if there is one.
    fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{v}\"")).collect();
        let values = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, rest) = series.split_once('{')?;
            let matches = found == name && labels.iter().all(|label| rest.contains(label));
            matches.then(|| value.parse::<f64>().unwrap())
        });
        values.reduce(|a, b| a + b)
    }

    fn of(&self, socket: &str, name: &str) -> f64 {
        let found = self.get(name, &[("socket", socket)]);
        found.unwrap_or_else(|| panic!("no {name} of {socket} in:\n{}", self.0))
    }

    /// Every counter of the socket is what the socket says.
    fn agrees(&self, socket: &str, counters: Counters) {
        let values = [
            ("messages_accepted", counters.accepted),
            ("messages_sent", counters.sent),
            ("sent_bytes", counters.sent_bytes),
            ("messages_received", counters.received),
            ("received_bytes", counters.received_bytes),
            ("messages_delivered", counters.delivered),
            ("messages_dropped", counters.dropped),
            ("messages_lost", counters.lost),
            ("messages_redelivered", counters.redelivered),
            ("messages_discarded", counters.discarded),
            ("posts", counters.posts),
            ("connects", counters.connects),
            ("disconnects", counters.disconnects),
            ("refused", counters.refused),
        ];
        for (name, value) in values {
            let name = format!("fabric_socket_{name}_total");
            assert_eq!(self.of(socket, &name), value as f64, "{name} of {socket}");
        }
    }
}

/// Waits for something without a call of its own.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came: {what}");
}

// One test: the recorder is the process's.
#[test]
fn every_metric_of_the_table_is_scraped_with_its_right_value() {
    let context = Context::new();
    let at = start(&context);

    // Five of ten find room.
    let slow = Sub::builder().name("slow").recv_hwm(2).build(&context).unwrap();
    slow.subscribe("").unwrap();
    let ticks = Pub::builder().name("ticks").send_hwm(3).build(&context).unwrap();
    slow.connect(&ticks.bind("tcp://127.0.0.1:0").unwrap().to_string()).unwrap();
    ticks.wait_matching("", 1, LONG).unwrap();
    for _ in 0..10 {
        ticks.send("0123456789").unwrap();
    }
    let full = scrape(at);
    assert_eq!(full.of("ticks", "fabric_socket_messages_dropped_total"), 5.0);
    assert_eq!(full.of("ticks", "fabric_socket_messages_queued"), 3.0);
    assert_eq!(full.of("ticks", "fabric_peer_messages_queued"), 3.0);
    for _ in 0..5 {
        slow.recv_timeout(LONG).unwrap();
    }
    until("the word of what was lost", || slow.try_recv().is_err() && slow.lost() == 5);

    // One is given to another puller; one peer refuses.
    let push =
        Push::builder().name("tasks").acknowledge(true).linger(Linger::No).build(&context).unwrap();
    let addr = push.bind("tcp://127.0.0.1:0").unwrap().to_string();
    let first = Pull::builder().name("first").build(&context).unwrap();
    first.connect(&addr).unwrap();
    push.send("task").unwrap();
    first.recv_timeout(LONG).unwrap();
    drop(first);
    let second = Pull::builder().name("second").build(&context).unwrap();
    second.connect(&addr).unwrap();
    second.recv_timeout(LONG).unwrap();
    second.ack().unwrap();
    let wrong = Sub::builder().name("wrong").build(&context).unwrap();
    let monitor = wrong.monitor();
    wrong.connect(&addr).unwrap();
    while !matches!(monitor.next_timeout(LONG).unwrap(), MonitorEvent::ConnectStopped { .. }) {}
    until("the end of the one that was refused", || push.peers().len() == 1);

    // One reply comes too late.
    let rep = Rep::builder().name("rep").build(&context).unwrap();
    let req = Req::builder().name("req").build(&context).unwrap();
    req.connect(&rep.bind("tcp://127.0.0.1:0").unwrap().to_string()).unwrap();
    let pong = || {
        let rep = rep.clone();
        thread::spawn(move || rep.next_request(LONG).unwrap().reply("pong").unwrap())
    };
    let before = pong();
    req.request("ping", LONG).unwrap();
    before.join().unwrap();
    assert!(req.request("late", Duration::from_millis(1)).is_err());
    rep.next_request(LONG).unwrap().reply("too late").unwrap();
    let behind = pong();
    req.request("ping", LONG).unwrap();
    behind.join().unwrap();

    // Nobody is there, and the next attempt comes in an hour.
    let hour = Duration::from_secs(3600);
    let alone =
        Push::builder().name("alone").reconnect_interval(Some(hour)).build(&context).unwrap();
    let monitor = alone.monitor();
    alone.connect("tcp://127.0.0.1:1").unwrap();
    while !matches!(monitor.next_timeout(LONG).unwrap(), MonitorEvent::ConnectRetried { .. }) {}

    let found = scrape(at);
    for metric in Metric::all() {
        let name = match metric.kind {
            MetricKind::Histogram => format!("{}_count", metric.name),
            _ => metric.name.to_owned(),
        };
        assert!(found.get(&name, &[]).is_some(), "{name} is not in:\n{}", found.0);
        assert!(found.0.contains(&format!("# HELP {} ", metric.name)), "{name} is not described");
    }
    // Whether both refuse depends on who is first.
    assert!(push.counters().refused > 0 && wrong.counters().refused > 0);
    found.agrees("ticks", ticks.counters());
    found.agrees("slow", slow.counters());
    found.agrees("tasks", push.counters());
    found.agrees("second", second.counters());
    found.agrees("wrong", wrong.counters());
    found.agrees("req", req.counters());
    found.agrees("rep", rep.counters());
    found.agrees("alone", alone.counters());
    let expected = [
        ("ticks", "fabric_socket_messages_accepted_total", 10.0),
        ("ticks", "fabric_socket_messages_sent_total", 5.0),
        ("ticks", "fabric_socket_sent_bytes_total", 50.0),
        ("ticks", "fabric_peer_messages_sent_total", 5.0),
        ("ticks", "fabric_peer_messages_dropped_total", 5.0),
        ("ticks", "fabric_peer_messages_queued", 0.0),
        ("ticks", "fabric_socket_messages_queued", 0.0),
        ("ticks", "fabric_socket_peers_up", 1.0),
        ("ticks", "fabric_peer_up", 1.0),
        ("ticks", "fabric_handshake_seconds_count", 1.0),
        ("slow", "fabric_socket_messages_delivered_total", 5.0),
        ("slow", "fabric_socket_received_bytes_total", 50.0),
        ("slow", "fabric_socket_messages_lost_total", 5.0),
        ("slow", "fabric_peer_messages_received_total", 5.0),
        ("slow", "fabric_peer_messages_lost_total", 5.0),
        ("tasks", "fabric_socket_messages_redelivered_total", 1.0),
        ("tasks", "fabric_socket_connects_total", 2.0),
        ("tasks", "fabric_socket_disconnects_total", 1.0),
        ("tasks", "fabric_connection_seconds_count", 1.0),
        // The first has gone, and what it got stays counted.
        ("tasks", "fabric_peer_messages_sent_total", 2.0),
        ("tasks", "fabric_peer_up", 1.0),
        ("first", "fabric_socket_messages_delivered_total", 1.0),
        ("first", "fabric_socket_peers", 0.0),
        ("first", "fabric_peer_up", 0.0),
        ("req", "fabric_socket_messages_discarded_total", 1.0),
        ("alone", "fabric_socket_connect_failures_total", 1.0),
        ("alone", "fabric_socket_connect_retries_total", 1.0),
        ("alone", "fabric_socket_peers", 1.0),
        ("alone", "fabric_socket_peers_up", 0.0),
    ];
    for (socket, name, value) in expected {
        assert_eq!(found.of(socket, name), value, "{name} of {socket}");
    }
    let device = slow.peers()[0].device.clone();
    let path = [
        ("socket_type", "SUB"),
        ("socket", "slow"),
        ("fabric", "tcp"),
        ("provider", "tcp"),
        ("device", device.as_str()),
    ];
    assert_eq!(found.get("fabric_peer_messages_received_total", &path), Some(5.0));

    // What was not asked for before a socket closed is there all the same.
    ticks.send("0123456789").unwrap();
    slow.recv_timeout(LONG).unwrap();
    slow.close();
    ticks.close();
    push.close();
    let closed = scrape(at);
    assert_eq!(closed.of("ticks", "fabric_socket_messages_accepted_total"), 11.0);
    assert_eq!(closed.of("slow", "fabric_peer_messages_received_total"), 6.0);
    assert_eq!(closed.of("ticks", "fabric_socket_peers"), 0.0);
    assert_eq!(closed.of("ticks", "fabric_peer_up"), 0.0);
    assert_eq!(closed.of("tasks", "fabric_peer_up"), 0.0);
}

#[test]
fn the_table_in_the_documentation_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let is_row = |line: &&str| line.starts_with("| `fabric_");
    let documented: Vec<&str> = text.lines().filter(is_row).collect();
    let rows: Vec<String> = Metric::all().map(row).collect();
    assert_eq!(documented, rows, "docs/metrics.md should have:\n{}\n", rows.join("\n"));
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    format!("| `{}` | {kind} | {} | {} |", metric.name, metric.unit, metric.about)
}
