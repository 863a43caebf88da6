//! Settings in addresses, over a simulated network.

use std::time::Duration;

use fabric_core::{Device, Fabric};
use fabric_sim::{SimDomain, SimFabric, SimNet};
use msg_patterns::{
    Addr, Context, Error, ErrorKind, Message, MonitorEvent, Pub, Pull, Push, Rep, Req, Setting, Sub,
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

fn context() -> Context {
    Context::new().with_fabric(SimFabric::new(SimNet::new()))
}

fn refusal(result: Result<impl std::fmt::Debug, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    error.to_string()
}

#[test]
fn a_query_sets_the_socket_and_is_shown_nowhere() {
    let context = context();
    let pull = Pull::new(&context).unwrap();
    let monitor = pull.monitor();
    let addr = pull.bind("sim://here:0?recv_hwm=2&linger=0s").unwrap();
    assert_eq!(addr.queries().count(), 0, "{addr}");
    assert_eq!(pull.last_endpoint(), Some(addr.clone()));
    assert_eq!(monitor.next_timeout(LONG), Some(MonitorEvent::Listening { addr: addr.clone() }));
    let push = Push::new(&context).unwrap();
    push.connect(&format!("{addr}?send_hwm=3&immediate=true")).unwrap();
    assert_eq!(push.last_endpoint(), Some(addr));
    // Two are granted, three are queued beyond.
    for n in 0..5 {
        push.send_timeout(n.to_string(), LONG).unwrap();
    }
    assert_eq!(push.try_send("6").unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_largest_message_is_that_of_the_query() {
    let context = context();
    let push = Push::new(&context).unwrap();
    push.connect("sim://nobody:1?message_bytes_max=10").unwrap();
    assert_eq!(push.try_send("eleven bytes").unwrap_err().kind(), ErrorKind::TooLong);
    push.try_send("ten  bytes").unwrap();
}

#[test]
fn roles_act_by_the_query_too() {
    let context = context();
    let publisher = Pub::new(&context).unwrap();
    let addr = publisher.bind("sim://here:0?history=2").unwrap();
    publisher.send_many(["1", "2", "3"]).unwrap();
    let sub = Sub::new(&context).unwrap();
    sub.subscribe("").unwrap();
    sub.connect(&addr.to_string()).unwrap();
    let came = [0, 1].map(|_| sub.recv_timeout(LONG).unwrap());
    assert_eq!(came, ["2", "3"].map(Message::from));
}

#[test]
fn what_was_published_before_the_first_address_stays_in_the_history() {
    let context = context();
    let publisher = Pub::builder().history(3).build(&context).unwrap();
    publisher.send_many(["1", "2", "3"]).unwrap();
    let addr = publisher.bind("sim://here:0?history=2").unwrap();
    let sub = Sub::new(&context).unwrap();
    sub.subscribe("").unwrap();
    sub.connect(&addr.to_string()).unwrap();
    assert_eq!(sub.recv_timeout(LONG).unwrap(), Message::from("2"));
}

#[test]
fn a_pusher_acknowledges_by_the_query() {
    let context = context();
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind("sim://here:0").unwrap();
    let push = Push::new(&context).unwrap();
    push.connect(&format!("{addr}?acknowledge=true")).unwrap();
    push.send("work").unwrap();
    assert_eq!(pull.recv_timeout(LONG).unwrap(), Message::from("work"));
    drop(pull);
    let second = Pull::new(&context).unwrap();
    second.bind(&addr.to_string()).unwrap();
    assert_eq!(second.recv_timeout(LONG).unwrap(), Message::from("work"), "given to another one");
    // Acknowledges it.
    second.close();
    let third = Pull::new(&context).unwrap();
    third.bind(&addr.to_string()).unwrap();
    push.send("more work").unwrap();
    assert_eq!(third.recv_timeout(LONG).unwrap(), Message::from("more work"));
}

#[test]
fn a_requester_is_relaxed_by_the_query() {
    let context = context();
    let rep = Rep::new(&context).unwrap();
    let addr = rep.bind("sim://here:0").unwrap();
    let req = Req::new(&context).unwrap();
    req.connect(&format!("{addr}?relaxed=true")).unwrap();
    req.send("first").unwrap();
    req.send("second").unwrap();
}

#[test]
fn a_mistake_names_the_place_without_its_query() {
    let sub = Sub::new(&context()).unwrap();
    assert_eq!(
        refusal(sub.connect("sim://there:1?lingr=5s&hwm=1")),
        "sim://there:1: unknown setting `lingr`: did you mean `linger`?"
    );
    assert_eq!(
        refusal(sub.connect("sim://there:1?history=5")),
        "sim://there:1: SUB has no setting `history`: PUB and XPUB have it"
    );
    assert_eq!(
        refusal(sub.bind("sim://there:1?hwm=1&hwm=2")),
        "sim://there:1: `hwm` is given twice"
    );
    assert_eq!(sub.last_endpoint(), None);
}

#[test]
fn settings_that_make_no_sense_together_are_refused() {
    let publisher = Pub::builder().history(1).build(&context()).unwrap();
    let text = refusal(publisher.bind("sim://here:0?conflate=true"));
    assert!(text.starts_with("sim://here:0: conflate keeps one message only"), "{text}");
}

#[test]
fn later_addresses_may_repeat_settings_but_not_change_them() {
    let push = Push::new(&context()).unwrap();
    push.connect("sim://one:1?hwm=5").unwrap();
    push.connect("sim://two:1?hwm=5").unwrap();
    push.connect("sim://three:1?send_hwm=5").unwrap();
    push.connect("sim://four:1").unwrap();
    assert_eq!(
        refusal(push.connect("sim://five:1?hwm=6")),
        "sim://five:1: settings are the socket's and fixed by its first address, here send_hwm=5: \
         set send_hwm there or in the builder, or make another socket"
    );
}

#[test]
fn an_address_that_fails_leaves_the_settings_as_they_were() {
    let context = context();
    let taken = Pull::new(&context).unwrap().bind("sim://here:7").unwrap();
    let holder = Pull::new(&context).unwrap();
    let addr = holder.bind("sim://here:8").unwrap();
    let pull = Pull::new(&context).unwrap();
    assert!(pull.bind(&format!("{addr}?recv_hwm=1&message_bytes_max=1")).is_err(), "{taken}");
    // Were they still set, these would be others.
    pull.bind("sim://here:9?recv_hwm=2").unwrap();
    let push = Push::new(&context).unwrap();
    push.connect("sim://here:9").unwrap();
    push.send("more than a byte").unwrap();
    assert_eq!(pull.recv_timeout(LONG).unwrap(), Message::from("more than a byte"));
}

#[test]
fn an_address_is_left_by_its_place_or_as_it_was_given() {
    let pull = Pull::new(&context()).unwrap();
    let addr = pull.bind("sim://here:0?hwm=5").unwrap();
    pull.unbind(&addr.to_string()).unwrap();
    let given = "sim://there:1?hwm=5";
    pull.connect(given).unwrap();
    pull.disconnect(given).unwrap();
    pull.connect(given).unwrap();
    pull.disconnect("sim://there:1").unwrap();
}

/// A simulated network with a query parameter of its own.
struct WithDevice(SimFabric);

impl Fabric for WithDevice {
    type Domain = SimDomain;

    fn schemes(&self) -> &'static [&'static str] {
        self.0.schemes()
    }

    fn devices(&self) -> Result<Vec<Device>, fabric_core::Error> {
        self.0.devices()
    }

    fn open(&self) -> Result<SimDomain, fabric_core::Error> {
        self.0.open()
    }

    fn open_for(&self, addr: &Addr) -> Result<SimDomain, fabric_core::Error> {
        assert_eq!((addr.query("device"), addr.queries().count()), (Some("left"), 1));
        self.0.open()
    }

    fn queries(&self) -> &'static [&'static str] {
        &["device"]
    }
}

#[test]
fn what_the_fabric_understands_stays_in_the_address() {
    let context = Context::new().with_fabric(WithDevice(SimFabric::new(SimNet::new())));
    let push = Push::new(&context).unwrap();
    push.connect("sim://there:1?send_hwm=1&device=left").unwrap();
    assert_eq!(push.last_endpoint().unwrap().to_string(), "sim://there:1?device=left");
    push.send("one").unwrap();
    assert_eq!(push.try_send("two").unwrap_err().kind(), ErrorKind::WouldBlock);
    // Elsewhere it is no parameter.
    let other = Push::new(&self::context()).unwrap();
    let text = refusal(other.connect("sim://there:1?device=left"));
    assert!(text.starts_with("sim://there:1: unknown setting `device`"), "{text}");
}

#[test]
fn an_identity_of_any_bytes_can_stand_in_an_address() {
    let context = context();
    let pull = Pull::new(&context).unwrap();
    let addr: Addr = pull.bind("sim://here:0").unwrap();
    let push = Push::new(&context).unwrap();
    push.connect(&format!("{addr}?identity=a%26%5Cxff%20b")).unwrap();
    push.send("").unwrap();
    pull.recv_timeout(LONG).unwrap();
    assert_eq!(pull.peers()[0].identity, &b"a&\xff b"[..]);
}

#[test]
fn the_table_in_the_documentation_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let documented: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("| name |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let rows: Vec<String> = Setting::all().iter().map(row).collect();
    assert_eq!(documented, rows, "docs/configuration.md should have:\n{}\n", rows.join("\n"));
}

fn row(setting: &Setting) -> String {
    let sockets: Vec<&str> = setting.sockets().collect();
    let every = Setting::all().iter().map(|setting| setting.sockets().count()).max();
    let sockets = if Some(sockets.len()) == every { "all".into() } else { sockets.join(", ") };
    format!(
        "| `{}` | {} | `{}` | {sockets} | {} |",
        setting.name(),
        setting.written(),
        setting.default(),
        setting.about()
    )
    .replace("| `` |", "| |")
}
