//! The way to a peer, step by step: which step fails says where to look.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde::Serialize;
use socket2::SockRef;

use crate::facts::Host;
use crate::root::Root;
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
}

/// Somebody who is there answers or refuses in this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where nobody listens as a rule; a refusal shows that the host is reached.
const SOME_PORT: u16 = 7;

const NAME: &str = "name";
const ROUTE: &str = "route";
const TCP: &str = "tcp";

/// Steps that need an RDMA library.
const LATER: &[&str] = &["rdma_cm", "message", "large-messages", "bandwidth"];

/// Walks as far as it goes. Only from the host that runs us is anything sent.
pub(crate) fn walk(root: &Root, host: &Host, target: &Target) -> Way {
    let mut way = Way { steps: Vec::new(), peer: None, mtu_bytes: None };
    let reached = way.name(target) && way.route(host) && root.is_host() && way.tcp(target);
    way.rest(reached);
    way
}

impl Way {
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

    fn rest(&mut self, reached: bool) {
        let tried = self.steps.len();
        let failed = self.steps.iter().any(|step| step.outcome == Outcome::Failed);
        let why = match (reached, failed) {
            (true, _) => "this version has no RDMA steps yet",
            (false, true) => "a step before it failed",
            (false, false) => "these are files of another host",
        };
        let first: &[&str] = &[NAME, ROUTE, TCP];
        let rest = first.iter().skip(tried).chain(LATER);
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
