//! Connecting. Either the provider does it, or a side channel is connected and both sides say hello
//! on it.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use fabric_core::{Addr, EpId, Error, ErrorKind, Event};
use fabric_link::{Credit, Hello, Protocol};

use crate::driver::Driver;
use crate::endpoint::{Endpoint, Terms};
use crate::limits::{CONTROL_PACKETS, PACKET_BYTES_MIN, PIECES_MAX};
use crate::link::Link;
use crate::outbound::Pumped;
use crate::resolve;
use crate::side::{Greeting, Heard, Meeting, Side};
use crate::sleeper::{Token, Watch};
use crate::status;
use crate::stock::Packet;
use crate::sys::{self, Ask, Code, Info, Kind, Place};
use crate::table::Phase;

/// What hellos of this provider begin with.
pub(crate) const PROTOCOL: Protocol = Protocol { magic: *b"FAB__ofi", version: 1 };

/// A connection that is being made.
pub(crate) struct Dial {
    link: Option<Link>,
    /// Both sides have said hello; the provider has still to take the first packet.
    ready: Option<Box<Endpoint>>,
    /// A side channel that is not connected yet.
    side: Option<Side>,
    /// The peer as the user named it.
    addr: Addr,
    /// What to try when this one fails, last one first.
    rest: Vec<Target>,
    offer: Option<Offer>,
    /// Packets that came before this side heard that the connection stands.
    pub(crate) early: Vec<Packet>,
}

/// A way to try.
enum Target {
    Connect(SocketAddr),
    Meet(Meeting),
}

/// What this side offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    window: usize,
    packet_bytes: usize,
    token: u64,
}

impl Dial {
    pub(crate) fn link(&self) -> Option<&Link> {
        self.ready.as_ref().map(|endpoint| &endpoint.link).or(self.link.as_ref())
    }

    pub(crate) fn into_link(self) -> Option<Link> {
        self.ready.map(|endpoint| endpoint.link).or(self.link)
    }
}

impl Offer {
    pub(crate) fn hello(&self) -> Hello {
        let granted = self.window as u32;
        Hello { granted, packet_bytes: self.packet_bytes as u32, token: self.token }
    }

    /// What both sides agree on.
    pub(crate) fn terms(&self, hello: &Hello, peer: Addr) -> Terms {
        Terms {
            peer,
            packet_bytes: (hello.packet_bytes as usize).clamp(PACKET_BYTES_MIN, self.packet_bytes),
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
        let rest = self.targets(addr)?;
        let id = self.table.next_id();
        let addr = addr.clone();
        let dial = Dial {
            link: None,
            ready: None,
            side: None,
            addr,
            rest,
            offer: None,
            early: Vec::new(),
        };
        let index = self.table.insert(id, Phase::Dialing(Box::new(dial)));
        self.deadlines.dials.push(id, Instant::now());
        let none = Error::new(ErrorKind::Address, "the peer has no address");
        self.next_target(index, none);
        Ok(id)
    }

    fn targets(&self, addr: &Addr) -> Result<Vec<Target>, Error> {
        if self.is_local {
            return Ok(vec![Target::Meet(resolve::local_peer(addr, self.scheme)?)]);
        }
        let found = resolve::peers(addr, self.scheme)?.into_iter().rev();
        Ok(match self.kind {
            Kind::Connected => found.map(Target::Connect).collect(),
            Kind::Datagram => found.map(|at| Target::Meet(Meeting::Remote(at))).collect(),
        })
    }

    fn start(&mut self, index: usize, target: &Target) -> Result<(), Error> {
        match target {
            Target::Connect(at) => self.start_connecting(index, *at),
            Target::Meet(meeting) => self.start_meeting(index, meeting),
        }
    }

    fn start_connecting(&mut self, index: usize, at: SocketAddr) -> Result<(), Error> {
        let place = Some(Place::There(at));
        let ask = Ask { kind: Some(Kind::Connected), place, ..self.ask.clone() };
        let Some((id, addr)) = self.dialed(index) else { return Ok(()) };
        let failed = |code: Code| status::connect_error(code, &addr);
        let info = crate::choose::find(&ask).map_err(failed)?.ok_or_else(|| unreachable(&addr))?;
        let (endpoint, offer) = self.prepare(id, &info)?;
        let said = endpoint.connect(&info, &PROTOCOL.encode(offer.hello()));
        self.table.name(endpoint.object(), id);
        if let Some(dial) = self.dialing(index) {
            dial.link = Some(Link::new(endpoint, None));
            dial.offer = Some(offer);
        }
        said.map_err(|code| status::connect_error(code, &addr))
    }

    fn start_meeting(&mut self, index: usize, meeting: &Meeting) -> Result<(), Error> {
        let Some((id, addr)) = self.dialed(index) else { return Ok(()) };
        let failed = |error: std::io::Error| status::connect_error(Code::from(error), &addr);
        let side = Side::connect(meeting).map_err(failed)?;
        self.sleeper.add(side.as_fd(), Token(id.0), Watch::InOut).map_err(failed)?;
        if let Some(dial) = self.dialing(index) {
            dial.side = Some(side);
        }
        Ok(())
    }

    /// Makes an endpoint with its receives posted.
    ///
    /// # Errors
    /// `Host` when memory is used up, and what the provider says.
    pub(crate) fn prepare(
        &mut self,
        id: EpId,
        info: &Info,
    ) -> Result<(sys::Endpoint, Offer), Error> {
        let window = self.window();
        let endpoint = sys::Endpoint::new(&self.wires.opened, info, self.kind)
            .map_err(|code| status::host_error(code, "making an endpoint"))?;
        let receives = window + CONTROL_PACKETS + 2 * PIECES_MAX;
        if let Err(error) = self.wires.stock_up(&endpoint, id, receives) {
            self.graves.push((id, Link::new(endpoint, None)));
            return Err(error);
        }
        let packet_bytes = self.packet_bytes();
        Ok((endpoint, Offer { window, packet_bytes, token: fastrand::u64(..) }))
    }

    /// The provider's connection stands.
    pub(crate) fn on_dial_connected(&mut self, index: usize, said: &[u8]) {
        let Some((_, addr)) = self.dialed(index) else { return };
        match PROTOCOL.decode(said) {
            Ok(hello) => {
                self.ready_dialed(index, &hello);
                self.greet_dialed(index);
            }
            Err(error) => self.next_target(index, status::violation(&addr, &error)),
        }
    }

    /// Something happened on the side channel.
    pub(crate) fn on_dial_side(&mut self, index: usize) {
        if let Err(error) = self.continue_meeting(index) {
            self.next_target(index, error);
        }
    }

    fn continue_meeting(&mut self, index: usize) -> Result<(), Error> {
        let Some((id, addr)) = self.dialed(index) else { return Ok(()) };
        let failed = |error: std::io::Error| status::connect_error(Code::from(error), &addr);
        let side = self.dialing(index).and_then(|dial| dial.side.take());
        if let Some(mut side) = side {
            side.connected().map_err(failed)?;
            let info = self.new_info()?;
            let (endpoint, offer) = self.prepare(id, &info)?;
            let greeted = side.greet(offer.hello(), endpoint.name());
            let watched = self.sleeper.change(side.as_fd(), Token(id.0), Watch::In);
            if let Some(dial) = self.dialing(index) {
                dial.link = Some(Link::new(endpoint, Some(side)));
                dial.offer = Some(offer);
            }
            greeted.and(watched).map_err(failed)?;
        }
        self.hear_answer(index)
    }

    fn hear_answer(&mut self, index: usize) -> Result<(), Error> {
        let Some((_, addr)) = self.dialed(index) else { return Ok(()) };
        let dial = self.dialing(index);
        let link = dial.and_then(|dial| dial.link.as_mut());
        let Some(side) = link.and_then(|link| link.side.as_mut()) else { return Ok(()) };
        match side.hear() {
            Heard::Nothing => Ok(()),
            Heard::Greeting(Greeting { hello, name }) if !name.is_empty() => {
                self.meet(index, &name).map_err(|code| status::connect_error(code, &addr))?;
                self.ready_dialed(index, &hello);
                self.greet_dialed(index);
                Ok(())
            }
            Heard::Greeting(_) => {
                let text = format!("{addr} takes no more connections for now: try again");
                Err(Error::new(ErrorKind::Refused, text))
            }
            Heard::Senseless(error) => Err(status::violation(&addr, &error)),
            Heard::Gone => {
                let text = format!("{addr} dropped the connection while it was made");
                Err(Error::new(ErrorKind::Reset, text))
            }
        }
    }

    fn meet(&mut self, index: usize, name: &[u8]) -> Result<(), Code> {
        match self.dialing(index).and_then(|dial| dial.link.as_mut()) {
            Some(link) => {
                link.endpoint.meet(name)?;
                link.on_met();
                link.side.as_mut().into_iter().for_each(Side::nudge);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn ready_dialed(&mut self, index: usize, hello: &Hello) {
        let Some((id, addr)) = self.dialed(index) else { return };
        let scheme = self.scheme;
        let Some(dial) = self.dialing(index) else { return };
        let (Some(link), Some(offer)) = (dial.link.take(), dial.offer) else { return };
        let at = link.endpoint.peer_addr();
        let peer = at.map_or(addr, |at| resolve::addr_of(at, scheme));
        dial.ready = Some(Box::new(Endpoint::new(link, id, offer.terms(hello, peer))));
    }

    /// Has the provider take the first packet, if one is owed; then it takes the user's, too.
    pub(crate) fn greet_dialed(&mut self, index: usize) {
        let ready = self.dialing(index).and_then(|dial| dial.ready.take());
        let Some(mut endpoint) = ready else { return };
        let pumped = self.pump(&mut endpoint);
        if let Some(dial) = self.dialing(index) {
            dial.ready = Some(endpoint);
        }
        match pumped {
            Ok(Pumped::All) => self.open_dialed(index),
            Ok(_) => self.table.mark_short(index),
            Err(code) => self.on_dial_lost(index, Some(code)),
        }
    }

    fn open_dialed(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Dialing(dial) = &mut conn.phase else { return };
        let early = std::mem::take(&mut dial.early);
        let Some(endpoint) = dial.ready.take() else { return };
        let (ep, peer) = (conn.id, endpoint.peer.clone());
        conn.phase = Phase::Open(endpoint);
        self.events.push_back(Event::Connected { ep, peer });
        for packet in early {
            self.on_arrived(index, packet);
        }
    }

    /// The provider says that connecting failed, or that what was being made is gone.
    pub(crate) fn on_dial_lost(&mut self, index: usize, code: Option<Code>) {
        let Some((_, addr)) = self.dialed(index) else { return };
        let error = match code {
            Some(code) => status::connect_error(code, &addr),
            None => status::vanished(&addr, None),
        };
        self.next_target(index, error);
    }

    /// Tries the next target, or gives up with what the last one failed with.
    fn next_target(&mut self, index: usize, mut error: Error) {
        loop {
            self.undo_attempt(index);
            let Some(dial) = self.dialing(index) else { return };
            let Some(target) = dial.rest.pop() else { return self.fail_dial(index, error) };
            match self.start(index, &target) {
                Ok(()) => return,
                Err(another) => error = another,
            }
        }
    }

    fn undo_attempt(&mut self, index: usize) {
        let Some((id, _)) = self.dialed(index) else { return };
        let Some(dial) = self.dialing(index) else { return };
        dial.side = None;
        dial.offer = None;
        let link = dial.ready.take().map(|endpoint| endpoint.link).or(dial.link.take());
        let early = std::mem::take(&mut dial.early);
        for packet in early {
            self.wires.stock.give_back(packet);
        }
        if let Some(link) = link {
            self.table.forget(link.endpoint.object());
            self.graves.push((id, link));
            // Its receives must be back before the next attempt posts under the same name.
            self.close_graves();
        }
    }

    /// Gives up a connection that was being made.
    pub(crate) fn fail_dial(&mut self, index: usize, why: Error) {
        self.undo_attempt(index);
        let Some(conn) = self.table.remove(index) else { return };
        self.events.push_back(Event::Closed { ep: conn.id, why });
    }

    pub(crate) fn on_dial_timeout(&mut self, index: usize) {
        let Some((_, addr)) = self.dialed(index) else { return };
        let text = format!("{addr} did not answer in time: check that it runs");
        self.fail_dial(index, Error::new(ErrorKind::TimedOut, text));
    }

    fn dialing(&mut self, index: usize) -> Option<&mut Dial> {
        match &mut self.table.get(index)?.phase {
            Phase::Dialing(dial) => Some(dial),
            _ => None,
        }
    }

    fn dialed(&mut self, index: usize) -> Option<(EpId, Addr)> {
        let conn = self.table.get(index)?;
        match &conn.phase {
            Phase::Dialing(dial) => Some((conn.id, dial.addr.clone())),
            _ => None,
        }
    }
}

fn unreachable(addr: &Addr) -> Error {
    let text = format!("{addr}: the provider has no device that leads there");
    Error::new(ErrorKind::Unreachable, text)
}
