//! What the sockets have in common.

use std::time::Duration;

use msg_patterns::{
    Addr, Counters, Dealer, Error, Message, Monitor, PeerStats, Pub, Pull, Push, Rep, Req, Router,
    Socket, Sub, XPub, XSub,
};

/// Any socket.
pub(crate) trait Endpoint: Socket + Clone + Send {
    /// As the socket's own.
    fn bind(&self, addr: &str) -> Result<Addr, Error>;
    /// As the socket's own.
    fn connect(&self, addr: &str) -> Result<(), Error>;
    /// As the socket's own.
    fn monitor(&self) -> Monitor;
    /// As the socket's own.
    fn counters(&self) -> Counters;
    /// As the socket's own.
    fn peers(&self) -> Vec<PeerStats>;
    /// As the socket's own.
    fn close(self);
}

macro_rules! endpoints {
    ($($socket:ty),*) => {$(
        impl Endpoint for $socket {
            fn bind(&self, addr: &str) -> Result<Addr, Error> {
                <$socket>::bind(self, addr)
            }
            fn connect(&self, addr: &str) -> Result<(), Error> {
                <$socket>::connect(self, addr)
            }
            fn monitor(&self) -> Monitor {
                <$socket>::monitor(self)
            }
            fn counters(&self) -> Counters {
                <$socket>::counters(self)
            }
            fn peers(&self) -> Vec<PeerStats> {
                <$socket>::peers(self)
            }
            fn close(self) {
                <$socket>::close(self)
            }
        }
    )*};
}

endpoints!(Pub, Sub, Push, Pull, Req, Rep, XPub, XSub, Router, Dealer);

/// A socket that only receives.
pub(crate) trait Inbound: Endpoint {
    /// As the socket's own.
    fn try_recv(&self) -> Result<Message, Error>;
    /// As the socket's own.
    fn recv_timeout(&self, timeout: Duration) -> Result<Message, Error>;
}

macro_rules! inbound {
    ($($socket:ty),*) => {$(
        impl Inbound for $socket {
            fn try_recv(&self) -> Result<Message, Error> {
                <$socket>::try_recv(self)
            }
            fn recv_timeout(&self, timeout: Duration) -> Result<Message, Error> {
                <$socket>::recv_timeout(self, timeout)
            }
        }
    )*};
}

inbound!(Sub, Pull);
