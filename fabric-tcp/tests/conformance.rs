//! The suite on TCP: with the kernel's buffers as they come and with tiny ones, boxed, traced, and
//! in a wrapper for faults without any.

use std::net::{Ipv4Addr, SocketAddr};

use fabric_conformance::{Harness, conformance_tests};
use fabric_core::wrap::{Fault, FaultPlan, Trace};
use fabric_core::{Addr, Domain, Fabric};
use fabric_tcp::{TcpDomain, TcpFabric, TcpOptions};
use socket2::{Socket, Type};

/// Settings, and how domains are dressed.
struct Tcp<D> {
    name: &'static str,
    fabric: TcpFabric,
    dress: fn(TcpDomain) -> D,
    /// Holds a port at which nobody listens, so that nobody else can.
    deaf: Socket,
}

impl<D: Domain + 'static> Tcp<D> {
    fn new(name: &'static str, dress: fn(TcpDomain) -> D) -> Self {
        Self::with(name, TcpOptions::default(), dress)
    }

    fn with(name: &'static str, options: TcpOptions, dress: fn(TcpDomain) -> D) -> Self {
        let deaf = Socket::new(socket2::Domain::IPV4, Type::STREAM, None).expect("a socket");
        deaf.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
        Self { name, fabric: TcpFabric::new(options), dress, deaf }
    }
}

impl<D: Domain + 'static> Harness for Tcp<D> {
    type Domain = D;

    fn name(&self) -> &str {
        self.name
    }

    fn domain(&self) -> D {
        (self.dress)(self.fabric.open().expect("a TCP domain"))
    }

    fn listen_addr(&self) -> Addr {
        Addr::new("tcp", "127.0.0.1", Some(0))
    }

    fn unreachable_addr(&self) -> Addr {
        let at = self.deaf.local_addr().ok().and_then(|addr| addr.as_socket());
        Addr::new("tcp", "127.0.0.1", at.map(|at| at.port()))
    }
}

/// The kernel makes of these what it has as a minimum: every message is written and read in parts.
fn tiny_buffers() -> TcpOptions {
    TcpOptions {
        send_buffer_bytes: Some(16 << 10),
        recv_buffer_bytes: Some(32 << 10),
        ..TcpOptions::default()
    }
}

mod tcp {
    use super::*;
    conformance_tests!(Tcp::new("tcp", |domain| domain));
}

mod tcp_tiny {
    use super::*;
    conformance_tests!(Tcp::with("tcp-tiny", tiny_buffers(), |domain| domain));
}

mod tcp_boxed {
    use super::*;
    conformance_tests!(Tcp::<Box<dyn Domain>>::new("tcp-boxed", |domain| Box::new(domain)));
}

mod tcp_trace {
    use super::*;
    conformance_tests!(Tcp::new("tcp-trace", Trace::new));
}

mod tcp_fault {
    use super::*;
    conformance_tests!(Tcp::new("tcp-fault", |domain| Fault::new(domain, FaultPlan::default())));
}
