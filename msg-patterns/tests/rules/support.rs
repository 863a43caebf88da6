//! What the rules' tests share: fabrics to run over, patience, and a peer that can misbehave.

use std::collections::VecDeque;
#[cfg(any(feature = "verbs", feature = "libfabric"))]
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use fabric_core::{Addr, Domain, DynFabric, EpId, Event, Pool};
use fabric_sim::{SimFabric, SimNet};
use fabric_tcp::TcpFabric;
use msg_patterns::Context;
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Frames, Hello, VERSION};

/// Watchdog: longer than anything here takes on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// How long to look for something that must not come.
pub(crate) const NEVER: Duration = Duration::from_millis(100);

/// Writes each rule once and runs it over every fabric.
macro_rules! rules {
    ($( $(#[$meta:meta])* fn $name:ident($net:ident) $body:block )*) => {
        $( $(#[$meta])* fn $name($net: &$crate::support::Net) $body )*
        mod sim {
            $( #[test] fn $name() { super::$name(&$crate::support::Net::sim()); } )*
        }
        mod tcp {
            $( #[test] fn $name() { super::$name(&$crate::support::Net::tcp()); } )*
        }
        #[cfg(feature = "verbs")]
        mod verbs {
            $( #[test] fn $name() { $crate::support::Net::on_verbs(super::$name); } )*
        }
        #[cfg(feature = "softroce")]
        mod softroce {
            $( #[test] fn $name() { $crate::support::Net::on_softroce(super::$name); } )*
        }
        #[cfg(feature = "libfabric")]
        mod ofi_tcp {
            $( #[test] fn $name() { $crate::support::Net::on_libfabric("tcp", super::$name); } )*
        }
        #[cfg(feature = "libfabric")]
        mod ofi_shm {
            $( #[test] fn $name() { $crate::support::Net::on_libfabric("shm", super::$name); } )*
        }
        #[cfg(feature = "libfabric")]
        mod ofi_verbs {
            $( #[test] fn $name() { $crate::support::Net::on_libfabric("verbs", super::$name); } )*
        }
    };
}

/// A fabric to run a rule over.
pub(crate) struct Net {
    context: Context,
    over: Over,
}

/// The fabrics there are.
enum Over {
    Sim(SimFabric),
    Tcp,
    /// With an address to listen at, which names the device.
    #[cfg(feature = "verbs")]
    Rdma(Arc<dyn DynFabric>, String),
    /// With the provider, and an address to listen at.
    #[cfg(feature = "libfabric")]
    Libfabric(Arc<dyn DynFabric>, &'static str, String),
}

impl Net {
    pub(crate) fn sim() -> Self {
        let fabric = SimFabric::new(SimNet::new());
        Self { context: Context::new().with_fabric(fabric.clone()), over: Over::Sim(fabric) }
    }

    pub(crate) fn tcp() -> Self {
        Self { context: Context::new(), over: Over::Tcp }
    }

    /// Runs a rule on the RDMA device that `FABRIC_VERBS_DEVICE` names, else on this host's first
    /// one, or says that there is none; with `FABRIC_REQUIRE_VERBS=1` there must be one.
    #[cfg(feature = "verbs")]
    pub(crate) fn on_verbs(rule: fn(&Self)) {
        let fabric = fabric_verbs::VerbsFabric::default();
        let named = std::env::var("FABRIC_VERBS_DEVICE").map_err(drop);
        match named.or_else(|()| Ok(fabric.open_boxed()?.caps().device.clone())) {
            Ok(device) => Self::on_rdma(fabric, format!("verbs://{device}:0"), rule),
            Err::<_, fabric_core::Error>(error) => skip("FABRIC_REQUIRE_VERBS", &error.to_string()),
        }
    }

    /// Runs a rule on the soft-RoCE link of the interface that `FABRIC_SOFTROCE_INTERFACE` names, or
    /// says that it names none; with `FABRIC_REQUIRE_RXE=1` it must.
    #[cfg(feature = "softroce")]
    pub(crate) fn on_softroce(rule: fn(&Self)) {
        let fabric = fabric_softroce::SoftRoceFabric::default();
        match std::env::var("FABRIC_SOFTROCE_INTERFACE") {
            Ok(interface) => Self::on_rdma(fabric, format!("softroce://{interface}:0"), rule),
            Err(error) => skip("FABRIC_REQUIRE_RXE", &format!("its interface: {error}")),
        }
    }

    #[cfg(feature = "verbs")]
    fn on_rdma(fabric: impl DynFabric + 'static, addr: String, rule: fn(&Self)) {
        rule(&Self { context: Context::new(), over: Over::Rdma(Arc::new(fabric), addr) });
    }

    /// Runs a rule over a provider of libfabric, or says that there is none; with
    /// `FABRIC_REQUIRE_LIBFABRIC=1` there must be one. verbs runs where `FABRIC_LIBFABRIC_VERBS` names
    /// an address of an RDMA device.
    #[cfg(feature = "libfabric")]
    pub(crate) fn on_libfabric(provider: &'static str, rule: fn(&Self)) {
        let fabric = fabric_libfabric::LibfabricFabric::default();
        let addr = match provider {
            "shm" => format!("ofi+shm://rules-{}:0", std::process::id()),
            "verbs" => match std::env::var("FABRIC_LIBFABRIC_VERBS") {
                Ok(host) => format!("ofi+verbs://{host}:0"),
                Err(_) => return println!("skipped: FABRIC_LIBFABRIC_VERBS names no address"),
            },
            _ => format!("ofi+{provider}://127.0.0.1:0"),
        };
        match fabric.open_boxed_for(&addr.parse().unwrap()) {
            Ok(_) => {
                let over = Over::Libfabric(Arc::new(fabric), provider, addr);
                rule(&Self { context: Context::new(), over });
            }
            Err(error) => skip("FABRIC_REQUIRE_LIBFABRIC", &error.to_string()),
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// A context of its own on the same fabric.
    pub(crate) fn another_context(&self) -> Context {
        match &self.over {
            Over::Sim(fabric) => Context::new().with_fabric(fabric.clone()),
            _ => Context::new(),
        }
    }

    /// An address to bind to that picks a free port.
    pub(crate) fn any(&self) -> &str {
        match &self.over {
            Over::Sim(_) => "sim://host:0",
            Over::Tcp => "tcp://127.0.0.1:0",
            #[cfg(feature = "verbs")]
            Over::Rdma(_, addr) => addr,
            #[cfg(feature = "libfabric")]
            Over::Libfabric(_, _, addr) => addr,
        }
    }

    /// An address where nobody listens, and that can be bound later: nothing else uses its host.
    pub(crate) fn nobody(&self) -> String {
        let mut domain = self.domain();
        let addr: Addr = self.own_host().parse().unwrap();
        let listener = domain.listen(&addr).unwrap();
        domain.unlisten(listener.id).unwrap();
        listener.addr.to_string()
    }

    /// A free port at a host that no other test listens at.
    fn own_host(&self) -> String {
        static HOSTS: AtomicU16 = AtomicU16::new(1);
        let [high, low] = HOSTS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let process = std::process::id() % 250 + 2;
        match &self.over {
            Over::Sim(_) => format!("sim://host-{high}-{low}:0"),
            Over::Tcp => format!("tcp://127.{process}.{high}.{low}:0"),
            // There is one host only, and its free ports are drawn from many.
            #[cfg(feature = "verbs")]
            Over::Rdma(_, addr) => addr.clone(),
            #[cfg(feature = "libfabric")]
            Over::Libfabric(_, "shm", _) => format!("ofi+shm://rules-{process}-{high}-{low}:0"),
            #[cfg(feature = "libfabric")]
            Over::Libfabric(_, "verbs", addr) => addr.clone(),
            #[cfg(feature = "libfabric")]
            Over::Libfabric(_, provider, _) => {
                format!("ofi+{provider}://127.{process}.{high}.{low}:0")
            }
        }
    }

    /// A bare domain of the fabric.
    pub(crate) fn domain(&self) -> Box<dyn Domain> {
        match &self.over {
            Over::Sim(fabric) => fabric.open_boxed().unwrap(),
            Over::Tcp => TcpFabric::default().open_boxed().unwrap(),
            #[cfg(feature = "verbs")]
            Over::Rdma(fabric, addr) => fabric.open_boxed_for(&addr.parse().unwrap()).unwrap(),
            #[cfg(feature = "libfabric")]
            Over::Libfabric(fabric, _, addr) => {
                fabric.open_boxed_for(&addr.parse().unwrap()).unwrap()
            }
        }
    }
}

/// Says that there is no device for a rule, which is a failure if `required` is set to 1.
#[cfg(any(feature = "verbs", feature = "libfabric"))]
fn skip(required: &str, why: &str) {
    let is_required = std::env::var(required).is_ok_and(|value| value == "1");
    assert!(!is_required, "{required}=1, but: {why}");
    println!("skipped, no device: {why}");
}

/// Waits until `done`, with a generous watchdog.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "gave up waiting: {what}"); // Watchdog: see LONG.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A peer without manners: speaks frames over a bare endpoint.
pub(crate) struct Raw {
    domain: Box<dyn Domain>,
    pool: Pool,
    ep: Option<EpId>,
    /// Connections that came in and were not looked at yet.
    waiting: VecDeque<EpId>,
    frames: VecDeque<Vec<u8>>,
    closed: Option<String>,
}

impl Raw {
    fn new(net: &Net) -> Self {
        let pool = Pool::new(66_560, 64).unwrap();
        let mut domain = net.domain();
        for _ in 0..16 {
            domain.post_recv(pool.take().unwrap()).unwrap();
        }
        let (waiting, frames) = (VecDeque::new(), VecDeque::new());
        Self { domain, pool, ep: None, waiting, frames, closed: None }
    }

    /// Connects to `addr` and says nothing.
    pub(crate) fn connect(net: &Net, addr: &str) -> Self {
        let mut raw = Self::new(net);
        raw.domain.connect(&addr.parse().unwrap()).unwrap();
        raw.until("connected", |raw| raw.ep.is_some());
        raw
    }

    /// Connects and greets as a socket of `kind`, up to the peer's greeting.
    pub(crate) fn greet(net: &Net, addr: &str, kind: SocketType) -> Self {
        Self::greet_with(net, addr, hello(kind))
    }

    /// Connects and greets with `hello`, up to the peer's greeting.
    pub(crate) fn greet_with(net: &Net, addr: &str, hello: Hello<'_>) -> Self {
        let mut raw = Self::connect(net, addr);
        raw.exchange_hello(hello);
        raw
    }

    /// Listens at a free port: the peer and its address.
    pub(crate) fn listen(net: &Net) -> (Self, String) {
        Self::listen_at(net, net.any())
    }

    /// Listens at `addr`: the peer and its address with its real port.
    pub(crate) fn listen_at(net: &Net, addr: &str) -> (Self, String) {
        let mut raw = Self::new(net);
        let listener = raw.domain.listen(&addr.parse().unwrap()).unwrap();
        let addr = listener.addr.to_string();
        (raw, addr)
    }

    /// Waits for the next connection and greets it as a socket of `kind`.
    pub(crate) fn accept(&mut self, kind: SocketType) {
        self.accept_silently();
        self.exchange_hello(hello(kind));
    }

    /// Waits for the next connection and says nothing.
    pub(crate) fn accept_silently(&mut self) {
        self.until("accepted", |raw| !raw.waiting.is_empty());
        self.ep = self.waiting.pop_front();
        self.closed = None;
    }

    /// Whether somebody connected who was not accepted yet.
    pub(crate) fn has_visitor(&mut self) -> bool {
        self.pump();
        !self.waiting.is_empty()
    }

    /// Whether it has a connection that neither side has closed.
    pub(crate) fn is_connected(&self) -> bool {
        self.ep.is_some() && self.closed.is_none()
    }

    pub(crate) fn exchange_hello(&mut self, hello: Hello<'_>) {
        self.send(&[Frame::Hello(hello)]);
        self.expect("a greeting", |frame| matches!(frame, Frame::Hello(_)));
    }

    /// Sends frames in one fabric message.
    pub(crate) fn send(&mut self, frames: &[Frame<'_>]) {
        let mut bytes = Vec::new();
        for frame in frames {
            let encoded = frame.encode();
            bytes.extend_from_slice(encoded.head());
            bytes.extend_from_slice(encoded.tail);
        }
        self.send_bytes(&bytes);
    }

    /// Sends any bytes as one fabric message.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let mut slot = self.pool.take().unwrap();
        assert!(slot.append(bytes));
        let ep = self.ep.unwrap();
        // An endpoint that the other side has closed refuses; its close is seen elsewhere.
        let _ = self.domain.post_send(ep, slot.into());
        self.domain.flush();
    }

    /// The first frame that `wanted` accepts; earlier ones are dropped. Gives its bytes.
    pub(crate) fn expect(&mut self, what: &str, wanted: impl Fn(&Frame<'_>) -> bool) -> Vec<u8> {
        let start = Instant::now();
        loop {
            while let Some(bytes) = self.frames.pop_front() {
                if wanted(&Frame::decode(&bytes).unwrap().0) {
                    return bytes;
                }
            }
            assert!(self.closed.is_none(), "closed while waiting for {what}: {:?}", self.closed);
            assert!(start.elapsed() < LONG, "gave up waiting for {what}"); // Watchdog: see LONG.
            self.pump();
        }
    }

    /// Waits until the other side closed the connection; gives the reason.
    pub(crate) fn expect_closed(&mut self) -> String {
        self.until("closed", |raw| raw.closed.is_some());
        self.closed.clone().unwrap()
    }

    /// Everything that came so far, frame by frame.
    pub(crate) fn received(&mut self) -> Vec<Vec<u8>> {
        self.pump();
        self.frames.drain(..).collect()
    }

    /// Closes the connection without goodbye.
    pub(crate) fn vanish(&mut self) {
        if let Some(ep) = self.ep {
            self.domain.close(ep);
            self.until("closed here", |raw| raw.closed.is_some());
            self.ep = None;
        }
    }

    /// Polls until `done`.
    pub(crate) fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < LONG, "gave up waiting: {what}"); // Watchdog: see LONG.
            self.pump();
        }
    }

    fn pump(&mut self) {
        self.domain.wait(Some(Duration::from_millis(1))).unwrap();
        let mut events = Vec::new();
        self.domain.poll(&mut events, 64);
        for event in events {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected { ep, .. } => self.ep = Some(ep),
            Event::Accepted { ep, .. } => self.waiting.push_back(ep),
            Event::Received { mut slot, .. } => {
                for frame in Frames::new(slot.filled()) {
                    let encoded = frame.unwrap().encode();
                    self.frames.push_back([encoded.head(), encoded.tail].concat());
                }
                slot.set_len(0);
                self.domain.post_recv(slot).unwrap();
            }
            Event::Closed { ep, why } if self.ep.is_none_or(|own| own == ep) => {
                self.closed = Some(why.to_string());
            }
            _ => {}
        }
    }
}

/// A greeting as a socket of `kind` with plenty of credit.
pub(crate) fn hello(kind: SocketType) -> Hello<'static> {
    Hello {
        version: VERSION,
        version_min: VERSION,
        socket_type: kind.code(),
        abilities: 0,
        ttl_tenths: 0,
        instance: 7,
        message_bytes_max: 1 << 30,
        credit_messages: 1 << 20,
        credit_bytes: 1 << 30,
        identity: b"",
    }
}
