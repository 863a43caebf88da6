//! Listening, and taking in those who connect.

use std::collections::HashMap;
use std::time::Instant;

use fabric_core::{Addr, Error, ErrorKind, Event, Listener, ListenerId};
use fabric_link::Hello;

use crate::choice;
use crate::dial::PROTOCOL;
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::limits::BACKLOG;
use crate::resolve;
use crate::status;
use crate::sys::{CmEvent, CmKind, ConnParams, Id, Space};
use crate::table::Phase;

/// Marks the cookies of listeners.
const LISTENER: u64 = 1 << 63;

/// A connection that came in and is not finished.
pub(crate) struct Accepting {
    listener: ListenerId,
    endpoint: Box<Endpoint>,
}

/// All places where a domain listens.
#[derive(Default)]
pub(crate) struct Listeners {
    open: HashMap<u64, Open>,
    next: u64,
}

struct Open {
    _link: Id,
    addr: Addr,
}

impl Listeners {
    /// Whether a cookie is that of a listener, open or not.
    pub(crate) fn names(&self, cookie: u64) -> bool {
        cookie & LISTENER != 0
    }
}

impl Driver {
    /// Starts to listen.
    ///
    /// # Errors
    /// `Address`, `AddrInUse`, `Unsupported` or `Host`.
    pub(crate) fn start_listening(&mut self, addr: &Addr) -> Result<Listener, Error> {
        choice::check_named(addr, &self.queues.device().name())?;
        let mut last = Error::new(ErrorKind::Address, format!("{addr} has no address"));
        for place in resolve::places(addr, self.options.scheme, &self.devices)? {
            match self.listen_at(place, addr) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn listen_at(&mut self, at: std::net::SocketAddr, addr: &Addr) -> Result<Listener, Error> {
        let failed = |error| status::listen_error(error, addr);
        self.listeners.next += 1;
        let number = self.listeners.next;
        let link = Id::new(&self.channel, LISTENER | number, Space::Connected).map_err(failed)?;
        link.bind(at).map_err(failed)?;
        if !at.ip().is_unspecified() && !link.is_on(self.queues.device()) {
            let name = self.queues.device().name();
            let text = format!("{addr} is not an address of {name}, which this domain is on");
            return Err(Error::new(ErrorKind::Address, text));
        }
        link.listen(BACKLOG).map_err(failed)?;
        let addr = resolve::addr_in(addr.scheme(), link.local_addr().unwrap_or(at));
        let id = ListenerId(number);
        self.listeners.open.insert(number, Open { _link: link, addr: addr.clone() });
        Ok(Listener { id, addr })
    }

    /// Stops to listen, and turns away who has not finished.
    ///
    /// # Errors
    /// `Misuse` if there is no such listener.
    pub(crate) fn stop_listening(&mut self, listener: ListenerId) -> Result<(), Error> {
        let unknown = || Error::misuse("there is no such listener: it was closed already");
        self.listeners.open.remove(&listener.0).ok_or_else(unknown)?;
        let half: Vec<usize> = self
            .table
            .iter()
            .filter(|(_, conn)| {
                matches!(&conn.phase, Phase::Accepting(one) if one.listener == listener)
            })
            .map(|(index, _)| index)
            .collect();
        for index in half {
            self.drop_accepting(index);
        }
        Ok(())
    }

    pub(crate) fn on_listener_event(&mut self, event: CmEvent) {
        let listener = ListenerId(event.cookie & !LISTENER);
        match event.kind {
            CmKind::Request(link) => {
                let request = Request {
                    private: &event.private,
                    peer_reads: event.peer_reads,
                    peer_serves: event.peer_serves,
                };
                if let Err(error) = self.on_request(listener, link, &request)
                    && self.listeners.open.contains_key(&listener.0)
                {
                    self.events.push_back(Event::AcceptFailed { listener, error });
                }
            }
            CmKind::DeviceRemoved => tracing::warn!("the RDMA device is going away"),
            CmKind::Other(code) => tracing::debug!(code, "listener event"),
            _ => {}
        }
    }

    fn on_request(
        &mut self,
        listener: ListenerId,
        mut link: Id,
        request: &Request<'_>,
    ) -> Result<(), Error> {
        let full = [status::REJECT_FULL];
        let Some(open) = self.listeners.open.get(&listener.0) else {
            link.reject(&full);
            return Ok(());
        };
        let in_scheme = |at| resolve::addr_in(open.addr.scheme(), at);
        let peer = link.peer_addr().map_or_else(|| open.addr.clone(), in_scheme);
        let hello = self.vet(&link, request, &peer).map_err(|(reason, error)| {
            link.reject(&[reason]);
            error
        })?;
        let id = self.table.next_id();
        link.set_cookie(id.0);
        let offer = match self.prepare(&mut link, id) {
            Ok(offer) => offer,
            Err(error) => {
                link.reject(&full);
                return Err(error);
            }
        };
        link.set_ack_timeout(self.options.ack_timeout_power);
        let (private, reads) = (PROTOCOL.encode(offer.hello()), self.reads());
        let params = ConnParams {
            private: &private,
            serves: reads.min(request.peer_reads),
            reads: reads.min(request.peer_serves),
        };
        if let Err(error) = link.accept(params) {
            self.table.forget(offer.qp.into());
            self.release_window(offer.window);
            self.graves.push(link);
            return Err(status::connect_error(error, &peer));
        }
        let endpoint = Box::new(Endpoint::new(link, id, offer.terms(&hello, peer)));
        self.table.insert(id, Phase::Accepting(Accepting { listener, endpoint }));
        self.deadlines.accepts.push(id, Instant::now());
        Ok(())
    }

    /// Whether a peer may connect; else what to tell it, and what to tell the user.
    fn vet(&self, link: &Id, request: &Request<'_>, peer: &Addr) -> Result<Hello, (u8, Error)> {
        let device = self.queues.device();
        if !link.is_on(device) {
            let text = format!("{peer} came in on another device than this domain's");
            return Err((status::REJECT_FULL, Error::new(ErrorKind::Unreachable, text)));
        }
        check_mtu(link.path_mtu_bytes(), device.port_mtu_bytes(link.port()), peer)
            .map_err(|error| (status::REJECT_MTU, error))?;
        PROTOCOL
            .decode(request.private)
            .map_err(|error| (status::REJECT_FOREIGN, status::violation(peer, &error)))
    }

    pub(crate) fn on_accept_event(&mut self, index: usize, event: &CmEvent) {
        match event.kind {
            CmKind::Established => self.promote(index),
            CmKind::Failed => {
                let text = format!("the connection was not finished, error {}", event.status);
                self.fail_accept(index, Error::new(ErrorKind::TimedOut, text));
            }
            CmKind::Rejected | CmKind::Disconnected | CmKind::DeviceRemoved => {
                let text = "the peer gave up before the connection was finished";
                self.fail_accept(index, Error::new(ErrorKind::Reset, text));
            }
            _ => {}
        }
    }

    /// Makes an endpoint of a connection that is finished.
    pub(crate) fn promote(&mut self, index: usize) {
        let Some(conn) = self.table.remove(index) else { return };
        match conn.phase {
            Phase::Accepting(Accepting { listener, endpoint }) => {
                let (ep, peer) = (conn.id, endpoint.peer.clone());
                // It goes back to the place that its id names, which was just left.
                self.table.insert(ep, Phase::Open(endpoint));
                self.events.push_back(Event::Accepted { ep, listener, peer });
            }
            other => {
                self.table.insert(conn.id, other);
            }
        }
    }

    pub(crate) fn on_accept_timeout(&mut self, index: usize) {
        let text = "a peer did not finish its connection in time";
        self.fail_accept(index, Error::new(ErrorKind::TimedOut, text));
    }

    fn fail_accept(&mut self, index: usize, error: Error) {
        if let Some(listener) = self.drop_accepting(index) {
            self.events.push_back(Event::AcceptFailed { listener, error });
        }
    }

    fn drop_accepting(&mut self, index: usize) -> Option<ListenerId> {
        if !matches!(self.table.get(index)?.phase, Phase::Accepting(_)) {
            return None;
        }
        let Phase::Accepting(Accepting { listener, mut endpoint }) =
            self.table.remove(index)?.phase
        else {
            return None;
        };
        self.table.forget(endpoint.qp.into());
        self.release_window(endpoint.credit.outstanding());
        self.stock.on_broken();
        endpoint.cut();
        self.graves.push(endpoint.link);
        Some(listener)
    }
}

/// The one who connects sets the size of packets for both directions, by its own port. Where this
/// side's takes smaller ones, large packets would be lost and the connection break later.
///
/// # Errors
/// `Unreachable` if they do not fit.
fn check_mtu(path: Option<usize>, port: Option<usize>, peer: &Addr) -> Result<(), Error> {
    match (path, port) {
        (Some(path), Some(port)) if path > port => {
            let text = format!(
                "{peer} sends packets of {path} bytes, and the port here takes {port}: set the \
                 same MTU on both interfaces"
            );
            Err(Error::new(ErrorKind::Unreachable, text))
        }
        _ => Ok(()),
    }
}

/// What a peer that wants to connect says.
struct Request<'a> {
    private: &'a [u8],
    peer_reads: u8,
    peer_serves: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_larger_than_the_port_takes_are_refused() {
        let peer = Addr::new("verbs", "10.0.0.5", Some(7000));
        let kind = |path, port| check_mtu(path, port, &peer).err().map(|error| error.kind());
        assert_eq!(kind(Some(4096), Some(1024)), Some(ErrorKind::Unreachable));
        for fine in [(Some(1024), Some(1024)), (Some(1024), Some(4096)), (None, Some(1024))] {
            assert_eq!(kind(fine.0, fine.1), None);
        }
    }
}

#[cfg(test)]
mod on_device {
    use crate::both::Both;

    #[test]
    fn both_ends_use_the_packet_size_of_their_port() {
        let Some(mut both) = Both::new(true) else { return };
        let driver = &mut both.domain.driver;
        let port_mtu = driver.queues.device().mtu_bytes();
        for ep in [both.dialed[0], both.accepted[0]] {
            let (_, endpoint) = driver.table.endpoint_of(ep).unwrap();
            assert_eq!(endpoint.link.path_mtu_bytes(), Some(port_mtu));
        }
    }
}
