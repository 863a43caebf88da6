//! Connecting: address, route, queue pair, handshake; each step reports through an event.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use fabric_core::{Addr, EpId, Error, ErrorKind, Event};
use fabric_link::{Credit, HEAD_BYTES, Hello, Protocol};

use crate::choice;
use crate::driver::Driver;
use crate::endpoint::{Endpoint, Terms};
use crate::limits::{PACKET_BYTES, SEGMENTS_MAX, SEND_QUEUE};
use crate::resolve;
use crate::status;
use crate::sys::{CmEvent, CmKind, ConnParams, Id, QpPlan, Space};
use crate::table::Phase;

/// What hellos of this provider begin with.
pub(crate) const PROTOCOL: Protocol = Protocol { magic: *b"FABverbs", version: 1 };

/// A connection that is being made.
pub(crate) struct Dial {
    link: Option<Id>,
    /// The peer as the user named it.
    addr: Addr,
    target: SocketAddr,
    /// What to try when this one fails, last one first.
    rest: Vec<SocketAddr>,
    /// The address to come from, where the route would leave through another device than named.
    from: Option<IpAddr>,
    offer: Option<Offer>,
    /// The connection manager took the last attempt for an old one; it is repeated once.
    is_repeated: bool,
}

/// A queue pair that is ready to be connected, and what this side offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) qp: u32,
    pub(crate) inline_bytes: usize,
    pub(crate) window: usize,
    pub(crate) token: u64,
}

impl Offer {
    pub(crate) fn hello(&self) -> Hello {
        let granted = self.window as u32;
        Hello { granted, packet_bytes: PACKET_BYTES as u32, token: self.token }
    }

    /// What both sides agree on.
    pub(crate) fn terms(&self, hello: &Hello, peer: Addr) -> Terms {
        Terms {
            peer,
            qp: self.qp,
            salt: self.token ^ hello.token,
            packet_bytes: (hello.packet_bytes as usize).clamp(HEAD_BYTES + 1, PACKET_BYTES),
            inline_bytes: self.inline_bytes,
            credit: Credit::new(self.window as u32, hello.granted),
            window: self.window,
        }
    }
}

impl Driver {
    /// Starts to connect.
    ///
    /// # Errors
    /// `Address` or `Unsupported`.
    pub(crate) fn dial(&mut self, addr: &Addr) -> Result<EpId, Error> {
        choice::check_named(addr, &self.queues.device().name())?;
        let mut rest = resolve::peers(addr, self.options.scheme, &self.devices)?;
        rest.reverse();
        let Some(target) = rest.pop() else {
            return Err(Error::new(ErrorKind::Address, format!("{addr} has no address")));
        };
        let id = self.table.next_id();
        let addr = addr.clone();
        let dial =
            Dial { link: None, addr, target, rest, from: None, offer: None, is_repeated: false };
        let index = self.table.insert(id, Phase::Dialing(Box::new(dial)));
        self.deadlines.dials.push(id, Instant::now());
        if let Err(error) = self.start(index) {
            self.next_target(index, error);
        }
        Ok(id)
    }

    fn start(&mut self, index: usize) -> Result<(), Error> {
        let timeout_ms = self.step_ms();
        let channel = self.channel.clone();
        let Some((id, dial)) = self.dialing(index) else { return Ok(()) };
        let failed = |error| status::connect_error(error, &dial.addr);
        let link = Id::new(&channel, id.0, Space::Connected).map_err(failed)?;
        link.resolve_address(dial.from, dial.target, timeout_ms).map_err(failed)?;
        dial.link = Some(link);
        Ok(())
    }

    pub(crate) fn on_dial_event(&mut self, index: usize, event: &CmEvent) {
        let result = match event.kind {
            CmKind::AddressResolved => self.on_address(index),
            CmKind::RouteResolved => self.on_route(index),
            CmKind::Established => self.on_established(index, &event.private),
            CmKind::Rejected => return self.on_rejected(index, event),
            CmKind::Failed => Err(self.failure(index, event.status)),
            CmKind::Disconnected => Err(Error::new(
                ErrorKind::Reset,
                "the peer dropped the connection while it was made",
            )),
            CmKind::DeviceRemoved => {
                Err(Error::new(ErrorKind::Host, "the RDMA device is going away"))
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.next_target(index, error);
        }
    }

    fn on_address(&mut self, index: usize) -> Result<(), Error> {
        let timeout_ms = self.step_ms();
        let device = self.queues.device().clone();
        let Some((_, dial)) = self.dialing(index) else { return Ok(()) };
        let Some(link) = &dial.link else { return Ok(()) };
        if !link.is_on(&device) {
            return self.turn_to_own_device(index);
        }
        link.resolve_route(timeout_ms).map_err(|error| status::connect_error(error, &dial.addr))
    }

    /// The route leads to another device. A user who named this one wants it all the same.
    fn turn_to_own_device(&mut self, index: usize) -> Result<(), Error> {
        let is_named = self.options.device.is_some();
        let device = self.queues.device().clone();
        let locals = choice::addresses(&device, &self.channel);
        let Some((_, dial)) = self.dialing(index) else { return Ok(()) };
        let from = choice::source_for(dial.target.ip(), &locals);
        match from.filter(|_| is_named && dial.from.is_none()) {
            Some(from) => {
                dial.from = Some(from);
                self.undo_attempt(index);
                self.start(index)
            }
            None => {
                let (addr, name) = (&dial.addr, device.name());
                let text = format!(
                    "{addr} is reached through another device than {name}: open the domain there, \
                     or name {name} in the address with ?device={name}"
                );
                Err(Error::new(ErrorKind::Unreachable, text))
            }
        }
    }

    fn on_route(&mut self, index: usize) -> Result<(), Error> {
        let Some((id, dial)) = self.dialing(index) else { return Ok(()) };
        let Some(mut link) = dial.link.take() else { return Ok(()) };
        let offer = self.prepare(&mut link, id)?;
        let (hello, reads) = (PROTOCOL.encode(offer.hello()), self.reads());
        let ack_timeout_power = self.options.ack_timeout_power;
        let Some((_, dial)) = self.dialing(index) else { return Ok(()) };
        dial.offer = Some(offer);
        link.set_ack_timeout(ack_timeout_power);
        let connected = link.connect(ConnParams { private: &hello, serves: reads, reads });
        dial.link = Some(link);
        connected.map_err(|error| status::connect_error(error, &dial.addr))
    }

    fn on_established(&mut self, index: usize, private: &[u8]) -> Result<(), Error> {
        let Some((id, dial)) = self.dialing(index) else { return Ok(()) };
        let (Some(offer), addr) = (dial.offer, dial.addr.clone()) else { return Ok(()) };
        let hello = PROTOCOL.decode(private).map_err(|error| status::violation(&addr, &error))?;
        let Some(link) = dial.link.take() else { return Ok(()) };
        let peer = match link.peer_addr() {
            Some(at) => resolve::addr_in(addr.scheme(), at),
            None => addr,
        };
        let endpoint = Endpoint::new(link, id, offer.terms(&hello, peer.clone()));
        if let Some(conn) = self.table.get(index) {
            conn.phase = Phase::Open(Box::new(endpoint));
        }
        self.events.push_back(Event::Connected { ep: id, peer });
        Ok(())
    }

    fn on_rejected(&mut self, index: usize, event: &CmEvent) {
        let Some((_, dial)) = self.dialing(index) else { return };
        if status::is_stale(event.status) && !std::mem::replace(&mut dial.is_repeated, true) {
            let again = dial.target;
            dial.rest.push(again);
        }
        let error = status::rejection(event.status, &event.private, &dial.addr);
        self.next_target(index, error);
    }

    fn failure(&mut self, index: usize, code: i32) -> Error {
        match self.dialing(index) {
            Some((_, dial)) => status::cm_error(code, &dial.addr),
            None => status::cm_error(code, &"the peer"),
        }
    }

    /// This target failed: tries the next one, or gives up.
    fn next_target(&mut self, index: usize, mut error: Error) {
        loop {
            self.undo_attempt(index);
            let Some((_, dial)) = self.dialing(index) else { return };
            let Some(target) = dial.rest.pop() else { return self.fail_dial(index, error) };
            (dial.target, dial.from) = (target, None);
            match self.start(index) {
                Ok(()) => return,
                Err(another) => error = another,
            }
        }
    }

    fn undo_attempt(&mut self, index: usize) {
        let Some((_, dial)) = self.dialing(index) else { return };
        let (link, offer) = (dial.link.take(), dial.offer.take());
        if let Some(offer) = offer {
            self.table.forget(offer.qp.into());
            self.release_window(offer.window);
        }
        self.graves.extend(link);
    }

    /// Gives up a connection that was being made.
    pub(crate) fn fail_dial(&mut self, index: usize, why: Error) {
        self.undo_attempt(index);
        let Some(conn) = self.table.remove(index) else { return };
        self.events.push_back(Event::Closed { ep: conn.id, why });
    }

    pub(crate) fn on_dial_timeout(&mut self, index: usize) {
        let Some((_, dial)) = self.dialing(index) else { return };
        let text = format!("{} did not answer in time: check that it runs", dial.addr);
        self.fail_dial(index, Error::new(ErrorKind::TimedOut, text));
    }

    fn dialing(&mut self, index: usize) -> Option<(EpId, &mut Dial)> {
        let conn = self.table.get(index)?;
        match &mut conn.phase {
            Phase::Dialing(dial) => Some((conn.id, dial)),
            _ => None,
        }
    }

    /// Makes the queue pair of a connection and sets its window aside.
    ///
    /// # Errors
    /// `Full` or `Host` when something is used up.
    pub(crate) fn prepare(&mut self, link: &mut Id, id: EpId) -> Result<Offer, Error> {
        let window = self.reserve_window()?;
        let made = self.make_qp(link);
        let (inline_bytes, qp) = match made {
            Ok(made) => made,
            Err(error) => {
                self.release_window(window);
                return Err(error);
            }
        };
        self.table.name(qp.into(), id);
        // Before the peer hears of it: iWARP has no way to say that no receive is posted yet, and ends
        // the connection.
        self.restock();
        Ok(Offer { qp, inline_bytes, window, token: fastrand::u64(..) })
    }

    /// Inline space is asked for and stepped down: devices differ, and few say how much they have.
    fn make_qp(&mut self, link: &mut Id) -> Result<(usize, u32), Error> {
        let mut plan = QpPlan {
            // One more for the mark at the end.
            send_depth: (SEND_QUEUE + 1).min(self.limits.qp_wr_max),
            recv_depth: 0,
            sges: (SEGMENTS_MAX + 1).min(self.limits.sge_max),
            inline_bytes: self.options.inline_bytes,
        };
        loop {
            match link.create_qp(&self.queues, plan) {
                Ok(inline_bytes) => {
                    let qp = link.qp_number().unwrap_or(u32::MAX);
                    return Ok((inline_bytes, qp));
                }
                Err(_) if plan.inline_bytes > 0 => {
                    plan.inline_bytes =
                        if plan.inline_bytes > 32 { plan.inline_bytes / 2 } else { 0 };
                }
                Err(error) => return Err(status::host_error(error, "making a queue pair")),
            }
        }
    }

    /// Reads and atomics in flight on one connection.
    pub(crate) fn reads(&self) -> u8 {
        self.limits.rd_atomic_max.min(crate::limits::READS_MAX)
    }

    fn step_ms(&self) -> i32 {
        i32::try_from(self.options.connect_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}
