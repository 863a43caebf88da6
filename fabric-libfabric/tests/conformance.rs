//! The suite over libfabric's tcp and shm, and over its verbs where `FABRIC_LIBFABRIC_VERBS` names an
//! address of an RDMA device.
//!
//! Without libfabric, each case says so and ends, unless `FABRIC_REQUIRE_LIBFABRIC=1` is set: then it
//! fails.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fabric_conformance::{Exception, Harness, conformance_tests};
use fabric_core::{Addr, Domain, Fabric};
use fabric_libfabric::{LibfabricDomain, LibfabricFabric, LibfabricOptions};
use socket2::{Socket, Type};

/// Set to 1 where libfabric must be there.
const REQUIRE: &str = "FABRIC_REQUIRE_LIBFABRIC";

/// Longer than hundreds of connections take on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Ofi<D> {
    name: &'static str,
    provider: &'static str,
    host: String,
    dress: fn(LibfabricDomain) -> D,
    /// Holds a port at which nobody listens, so that nobody else can.
    deaf: Socket,
}

impl<D: Domain + 'static> Ofi<D> {
    fn new(
        name: &'static str,
        provider: &'static str,
        dress: fn(LibfabricDomain) -> D,
    ) -> Option<Self> {
        let device = std::env::var("FABRIC_LIBFABRIC_VERBS");
        if provider == "verbs" && device.is_err() {
            println!("skipped: FABRIC_LIBFABRIC_VERBS names no address of an RDMA device");
            return None;
        }
        open(provider, true)?;
        let deaf = Socket::new(socket2::Domain::IPV4, Type::STREAM, None).expect("a socket");
        deaf.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
        let host = match provider {
            "shm" => format!("conformance-{}", std::process::id()),
            "verbs" => device.unwrap_or_default(),
            _ => "127.0.0.1".into(),
        };
        Some(Self { name, provider, host, dress, deaf })
    }

    fn scheme(&self) -> String {
        format!("ofi+{}", self.provider)
    }
}

impl<D: Domain + 'static> Harness for Ofi<D> {
    type Domain = D;

    fn name(&self) -> &str {
        self.name
    }

    fn domain(&self) -> D {
        let wait_object = !self.name.ends_with("-napping");
        (self.dress)(open(self.provider, wait_object).expect("a libfabric domain"))
    }

    fn listen_addr(&self) -> Addr {
        Addr::new(&self.scheme(), &self.host, Some(0))
    }

    /// The same thousands twice over would take minutes, and a dress changes nothing about them.
    fn exceptions(&self) -> &[Exception] {
        const DRESSED: &[Exception] = &[Exception {
            case: "thousands_of_connections_come_and_go",
            reason: "an endpoint of shm takes milliseconds to make: once, undressed, is enough",
        }];
        if self.name.starts_with("ofi+shm-") { DRESSED } else { &[] }
    }

    fn unreachable_addr(&self) -> Addr {
        let at = self.deaf.local_addr().ok().and_then(|addr| addr.as_socket());
        let host = if self.provider == "shm" { "nobody" } else { &self.host };
        Addr::new(&self.scheme(), host, at.map(|at| at.port()))
    }
}

/// A domain, or the reason why there is none, which is printed.
fn open(provider: &str, wait_object: bool) -> Option<LibfabricDomain> {
    let options = LibfabricOptions {
        provider: Some(provider.into()),
        // A new endpoint of shm costs milliseconds, and two hundred are made at once.
        connect_timeout: PATIENCE,
        handshake_timeout: PATIENCE,
        wait_object,
        ..Default::default()
    };
    match LibfabricFabric::new(options).open() {
        Ok(domain) => Some(domain),
        Err(error) if std::env::var(REQUIRE).is_ok_and(|value| value == "1") => {
            panic!("{REQUIRE}=1, but: {error}")
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

macro_rules! suite {
    ($module:ident, $name:literal, $provider:literal, $domain:ty, $dress:expr) => {
        mod $module {
            use super::*;
            conformance_tests!({
                let dress: fn(LibfabricDomain) -> $domain = $dress;
                match Ofi::new($name, $provider, dress) {
                    Some(harness) => harness,
                    None => return,
                }
            });
        }
    };
}

suite!(ofi_tcp, "ofi+tcp", "tcp", LibfabricDomain, |domain| domain);
suite!(ofi_tcp_napping, "ofi+tcp-napping", "tcp", Box<dyn Domain>, |domain| Box::new(domain));
suite!(ofi_verbs, "ofi+verbs", "verbs", LibfabricDomain, |domain| domain);
suite!(ofi_shm, "ofi+shm", "shm", LibfabricDomain, |domain| domain);
suite!(ofi_shm_boxed, "ofi+shm-boxed", "shm", Box<dyn Domain>, |domain| Box::new(domain));
