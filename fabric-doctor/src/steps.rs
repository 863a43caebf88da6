//! The way to a peer, step by step: which step fails says where to look.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde::Serialize;
use socket2::SockRef;

use crate::facts::Host;
use crate::probe::{Probe, Reached};
use crate::root::Root;
use crate::size::Size;
use crate::target::Target;

/// A step on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was tried.
    pub name: &'static str,
    /// What became of it.
    pub outcome: Outcome,
    /// What was seen, or why it was not tried.
    pub seen: String,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It works.
    Passed,
    /// It does not: the steps behind it were not tried.
    Failed,
    /// It was not tried.
    NotTried,
}

/// The way as far as it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) steps: Vec<Step>,
    /// The peer's address, once its name is known.
    pub(crate) peer: Option<IpAddr>,
    /// The largest packet that TCP sends to it.
    pub(crate) mtu_bytes: Option<u64>,
    /// Why RDMA does not reach it, though TCP does.
    pub(crate) rdma_refusal: Option<String>,
}

/// Somebody who is there answers or refuses in this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where nobody listens as a rule; a refusal shows that the host is reached.
const SOME_PORT: u16 = 7;

const NAME: &str = "name";
const ROUTE: &str = "route";
const TCP: &str = "tcp";
const CM: &str = "rdma_cm";
const MESSAGE: &str = "message";
const LARGE: &str = "large-messages";
const BANDWIDTH: &str = "bandwidth";

const ALL: &[&str] = &[NAME, ROUTE, TCP, CM, MESSAGE, LARGE, BANDWIDTH];

const SMALL_BYTES: usize = 64;
const LARGE_BYTES: usize = 1 << 20;
/// Few enough for slow software, enough for a first idea.
const SAMPLE: u32 = 16;

/// Walks as far as it goes. Only from the host that runs us is anything sent.
pub(crate) fn walk(root: &Root, host: &Host, target: &Target, probe: Option<&dyn Probe>) -> Way {
    let mut way = Way { steps: Vec::new(), peer: None, mtu_bytes: None, rdma_refusal: None };
    let why = way.go(root, host, target, probe);
    way.rest(&why);
    way
}

impl Way {
    /// Goes on until a step fails or cannot be tried, and says why the rest was not.
    fn go(
        &mut self,
        root: &Root,
        host: &Host,
        target: &Target,
        probe: Option<&dyn Probe>,
    ) -> String {
        const FAILED: &str = "a step before it failed";
        if !self.name(target) || !self.route(host) {
            return FAILED.to_owned();
        }
        if !root.is_host() {
            return "these are files of another host".to_owned();
        }
        if !self.tcp(target) {
            return FAILED.to_owned();
        }
        let Some(probe) = probe else { return "this command has no verbs compiled in".to_owned() };
        if !self.has_device(host) {
            return "there is no RDMA device on the way".to_owned();
        }
        self.rdma(target, probe).unwrap_or_else(|| FAILED.to_owned())
    }

    fn has_device(&self, host: &Host) -> bool {
        let interface = self.peer.and_then(|peer| host.network.interface_to(peer));
        interface.and_then(|interface| host.device_on(interface)).is_some()
    }

    /// `None` when a step failed.
    fn rdma(&mut self, target: &Target, probe: &dyn Probe) -> Option<String> {
        let peer = SocketAddr::new(self.peer?, target.port.unwrap_or(SOME_PORT));
        match probe.connect(peer) {
            Err(error) => {
                self.rdma_refusal = Some(error.clone());
                self.failed(CM, error);
                return None;
            }
            Ok(Reached::Host) => {
                self.passed(CM, format!("{peer} answers that nobody listens there"));
                return Some("run `fabric rep` over verbs:// at that port of the peer".to_owned());
            }
            Ok(Reached::Listener) => self.passed(CM, format!("connected to {peer}")),
        };
        let all = self.echo(MESSAGE, peer, probe, SMALL_BYTES, 1)
            && self.echo(LARGE, peer, probe, LARGE_BYTES, 1)
            && self.echo(BANDWIDTH, peer, probe, LARGE_BYTES, SAMPLE);
        all.then(String::new)
    }

    fn echo(
        &mut self,
        name: &'static str,
        peer: SocketAddr,
        probe: &dyn Probe,
        bytes: usize,
        count: u32,
    ) -> bool {
        match probe.echo(peer, bytes, count) {
            Ok(took) => self.passed(name, measured(bytes, count, took)),
            Err(error) => self.failed(name, error),
        }
    }

    fn name(&mut self, target: &Target) -> bool {
        let port = target.port.unwrap_or(SOME_PORT);
        let found = (target.host.as_str(), port).to_socket_addrs();
        match found.map(|mut found| found.next()) {
            Ok(Some(addr)) => {
                self.peer = Some(addr.ip());
                self.passed(NAME, format!("{} is {}", target.host, addr.ip()))
            }
            Ok(None) => self.failed(NAME, format!("{} has no address", target.host)),
            Err(error) => self.failed(NAME, format!("{}: {}", target.host, reason(&error))),
        }
    }

    fn route(&mut self, host: &Host) -> bool {
        let Some(peer) = self.peer else { return false };
        let Some(interface) = host.network.interface_to(peer) else {
            return self.failed(ROUTE, format!("no route leads to {peer}"));
        };
        let device = match host.device_on(interface) {
            Some(device) => format!("RDMA device {}", device.name),
            None => "no RDMA device".to_owned(),
        };
        self.passed(ROUTE, format!("through {interface}, which has {device}"))
    }

    fn tcp(&mut self, target: &Target) -> bool {
        let Some(peer) = self.peer else { return false };
        let addr = SocketAddr::new(peer, target.port.unwrap_or(SOME_PORT));
        match TcpStream::connect_timeout(&addr, PATIENCE) {
            Ok(stream) => {
                self.mtu_bytes = mtu_bytes(&stream, peer);
                let size =
                    self.mtu_bytes.map_or_else(String::new, |n| format!(", packets of {n} bytes"));
                self.passed(TCP, format!("connected to {addr}{size}"))
            }
            Err(error) if is_refusal(&error) && target.port.is_none() => {
                self.passed(TCP, format!("{peer} answers (port {SOME_PORT} refused)"))
            }
            Err(error) => self.failed(TCP, format!("{addr}: {}", reason(&error))),
        }
    }

    fn rest(&mut self, why: &str) {
        let rest = ALL.iter().skip(self.steps.len());
        let step =
            |name: &&'static str| Step { name, outcome: Outcome::NotTried, seen: why.to_owned() };
        self.steps.extend(rest.map(step));
    }

    fn passed(&mut self, name: &'static str, seen: String) -> bool {
        self.steps.push(Step { name, outcome: Outcome::Passed, seen });
        true
    }

    fn failed(&mut self, name: &'static str, seen: String) -> bool {
        self.steps.push(Step { name, outcome: Outcome::Failed, seen });
        false
    }
}

fn measured(bytes: usize, count: u32, took: Duration) -> String {
    let all = bytes as f64 * f64::from(count);
    let rate = all / took.as_secs_f64().max(f64::EPSILON);
    let (size, micros) = (Size(bytes as u64), took.as_micros() / u128::from(count.max(1)));
    format!("{count} x {size} and back, {micros} us each, {}/s each way", Size(rate as u64))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

/// The number of an error means nothing to people.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused: nobody listens there".to_owned(),
        io::ErrorKind::TimedOut => {
            "no answer: the host is down, or a firewall drops packets".to_owned()
        }
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

/// IP and TCP heads without options are 40 bytes, or 60 with IPv6.
fn mtu_bytes(stream: &TcpStream, peer: IpAddr) -> Option<u64> {
    let segment = u64::from(SockRef::from(stream).tcp_mss().ok()?);
    Some(segment + if peer.is_ipv4() { 40 } else { 60 })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::facts::device::testing::device_on;

    /// Verbs that get as far as this.
    #[derive(Debug)]
    struct Lent {
        reached: Result<Reached, &'static str>,
        /// The longest message that comes back.
        bytes_max: usize,
    }

    const GOOD: Lent = Lent { reached: Ok(Reached::Listener), bytes_max: usize::MAX };

    impl Probe for Lent {
        fn loopback(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn connect(&self, _: SocketAddr) -> Result<Reached, String> {
            self.reached.map_err(str::to_owned)
        }

        fn echo(&self, _: SocketAddr, bytes: usize, _: u32) -> Result<Duration, String> {
            let fits = bytes <= self.bytes_max;
            fits.then_some(Duration::from_millis(1)).ok_or_else(|| "lost".to_owned())
        }
    }

    /// The way to a listener on this host, which has a device on its loopback.
    fn walked(probe: Option<&dyn Probe>) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut host = Host::read(&Root::host());
        host.devices = vec![device_on("lo")];
        let target = listener.local_addr().unwrap().to_string().parse().unwrap();
        walk(&Root::host(), &host, &target, probe)
    }

    fn passed(way: &Way) -> usize {
        assert_eq!(way.steps.iter().map(|step| step.name).collect::<Vec<_>>(), ALL);
        way.steps.iter().filter(|step| step.outcome == Outcome::Passed).count()
    }

    #[test]
    fn with_verbs_the_way_goes_on_to_a_sample_of_bandwidth() {
        let way = walked(Some(&GOOD));
        assert_eq!(passed(&way), ALL.len(), "{:?}", way.steps);
        assert!(way.steps[6].seen.contains("16 x 1 MiB and back, 62 us each"), "{:?}", way.steps);
        assert!(way.mtu_bytes.is_some());
    }

    #[test]
    fn without_verbs_it_ends_after_tcp_and_says_why() {
        let way = walked(None);
        assert_eq!(passed(&way), 3);
        assert!(way.steps[3].seen.contains("no verbs"));
    }

    #[test]
    fn a_step_of_rdma_that_fails_ends_it() {
        let way = walked(Some(&Lent { reached: Err("no answer"), ..GOOD }));
        assert_eq!((passed(&way), way.rdma_refusal.as_deref()), (3, Some("no answer")));
        assert_eq!(way.steps[3].outcome, Outcome::Failed);

        let way = walked(Some(&Lent { bytes_max: 1024, ..GOOD }));
        assert_eq!((passed(&way), way.steps[5].outcome), (5, Outcome::Failed));
        assert_eq!(way.rdma_refusal, None);
    }

    #[test]
    fn a_host_where_nobody_listens_was_reached_all_the_same() {
        let way = walked(Some(&Lent { reached: Ok(Reached::Host), ..GOOD }));
        assert_eq!(passed(&way), 4);
        assert!(way.steps[4].seen.contains("fabric rep"));
    }
}
