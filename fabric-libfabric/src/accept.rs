//! Listening, and taking in those who connect.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use fabric_core::{Addr, EpId, Error, ErrorKind, Event, Listener, ListenerId};
use fabric_link::Hello;

use crate::dial::{Offer, PROTOCOL};
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::limits::GREETINGS_MAX;
use crate::link::Link;
use crate::outbound::Pumped;
use crate::resolve;
use crate::side::{Greeting, Heard, Meeting, Ready, Side, SideListener};
use crate::sleeper::{Token, Watch};
use crate::status;
use crate::stock::Packet;
use crate::sys::{Ask, Code, Info, Kind, Passive, Place};
use crate::table::Phase;

/// Marks the tokens of listeners.
const LISTENER: u64 = 1 << 63;

/// Ports on this host that are picked from, where there is nothing that picks one.
const PORTS: std::ops::Range<u16> = 1024..u16::MAX;
/// The name that stands for all of this host.
const THIS_HOST: &str = "localhost";
/// How often one is tried before this gives up.
const TRIES_MAX: usize = 100;

/// A connection that came in and is not finished.
pub(crate) enum Accepting {
    /// The provider, or on a side channel the peer, has still to say that it stands. Until then nothing
    /// is sent: the other side may not know this one yet.
    Handshake { listener: ListenerId, endpoint: Box<Endpoint>, early: Vec<Packet> },
    /// The peer has not said hello yet.
    Greeting { listener: ListenerId, side: Side },
}

/// All places where a domain listens.
#[derive(Default)]
pub(crate) struct Listeners {
    open: HashMap<u64, Open>,
    next: u64,
}

struct Open {
    addr: Addr,
    ear: Ear,
}

/// What hears of peers.
enum Ear {
    Passive(Passive),
    Side(SideListener),
}

impl Accepting {
    pub(crate) fn into_link(self) -> Option<Link> {
        match self {
            Self::Handshake { endpoint, .. } => Some(endpoint.link),
            Self::Greeting { .. } => None,
        }
    }

    pub(crate) fn link(&self) -> Option<&Link> {
        match self {
            Self::Handshake { endpoint, .. } => Some(&endpoint.link),
            Self::Greeting { .. } => None,
        }
    }

    fn listener(&self) -> ListenerId {
        match self {
            Self::Handshake { listener, .. } | Self::Greeting { listener, .. } => *listener,
        }
    }
}

impl Listeners {
    /// The listener that a token names, open or not.
    pub(crate) fn named(token: Token) -> Option<ListenerId> {
        (token.0 & LISTENER != 0).then_some(ListenerId(token.0 & !LISTENER))
    }

    fn of_passive(&self, object: u64) -> Option<ListenerId> {
        let is_it = |open: &Open| matches!(&open.ear, Ear::Passive(p) if p.object() == object);
        self.open.iter().find(|(_, open)| is_it(open)).map(|(number, _)| ListenerId(*number))
    }

    fn passive(&self, listener: ListenerId) -> Option<&Passive> {
        match &self.open.get(&listener.0)?.ear {
            Ear::Passive(passive) => Some(passive),
            Ear::Side(_) => None,
        }
    }

    fn side(&self, listener: ListenerId) -> Option<&SideListener> {
        match &self.open.get(&listener.0)?.ear {
            Ear::Side(side) => Some(side),
            Ear::Passive(_) => None,
        }
    }
}

impl Driver {
    /// Starts to listen.
    ///
    /// # Errors
    /// `Address`, `AddrInUse`, `Unsupported` or `Host`.
    pub(crate) fn start_listening(&mut self, addr: &Addr) -> Result<Listener, Error> {
        if self.is_local {
            return self.listen_locally(addr);
        }
        let mut last = Error::new(ErrorKind::Address, format!("{addr} has no address"));
        for place in resolve::places(addr, self.scheme)? {
            let ear = match self.kind {
                Kind::Connected => self.passive_ear(place, addr),
                Kind::Datagram => side_ear(&Meeting::Remote(place), addr),
            };
            match ear {
                Ok(ear) => {
                    let at = ear.local_addr().unwrap_or(place);
                    return self.hear(ear, resolve::addr_of(at, self.scheme));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn listen_locally(&mut self, addr: &Addr) -> Result<Listener, Error> {
        let addr = &match addr.host() {
            // There are no interfaces to name all of.
            "*" => Addr::new(addr.scheme(), THIS_HOST, addr.port()),
            _ => addr.clone(),
        };
        if addr.port() != Some(0) {
            let ear = side_ear(&resolve::local(addr, self.scheme)?, addr)?;
            return self.hear(ear, addr.clone());
        }
        for _ in 0..TRIES_MAX {
            let addr = addr.clone().with_port(fastrand::u16(PORTS));
            match side_ear(&resolve::local(&addr, self.scheme)?, &addr) {
                Ok(ear) => return self.hear(ear, addr),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::AddrInUse, format!("{addr}: no port is free")))
    }

    fn passive_ear(&self, at: SocketAddr, addr: &Addr) -> Result<Ear, Error> {
        let failed = |code: Code| status::listen_error(code, addr);
        let info = match self.offer_at(at).map_err(failed)? {
            Some(info) => info,
            None => return Err(self.why_not_at(at, addr)),
        };
        Passive::new(&self.wires.opened, &info).map(Ear::Passive).map_err(failed)
    }

    fn offer_at(&self, at: SocketAddr) -> Result<Option<Info>, Code> {
        let place = Some(Place::Here(at));
        crate::choose::find(&Ask { kind: Some(Kind::Connected), place, ..self.ask.clone() })
    }

    /// Some providers bind an address while they look for it, and offer nothing if it is in use: then
    /// they have something at another port.
    fn why_not_at(&self, at: SocketAddr, addr: &Addr) -> Error {
        match self.offer_at(SocketAddr::new(at.ip(), 0)) {
            Ok(Some(_)) => status::listen_error(Code::IN_USE, addr),
            _ => {
                let text = format!("{addr} is no address of a device of this provider");
                Error::new(ErrorKind::Address, text)
            }
        }
    }

    fn hear(&mut self, ear: Ear, addr: Addr) -> Result<Listener, Error> {
        self.listeners.next += 1;
        let number = self.listeners.next;
        if let Ear::Side(side) = &ear {
            self.sleeper
                .add(side.as_fd(), Token(LISTENER | number), Watch::In)
                .map_err(|error| status::listen_error(Code::from(error), &addr))?;
        }
        self.listeners.open.insert(number, Open { addr: addr.clone(), ear });
        Ok(Listener { id: ListenerId(number), addr })
    }

    /// Stops to listen, and turns away who has not finished.
    ///
    /// # Errors
    /// `Misuse` if there is no such listener.
    pub(crate) fn stop_listening(&mut self, listener: ListenerId) -> Result<(), Error> {
        let unknown = || Error::misuse("there is no such listener: it was closed already");
        self.listeners.open.remove(&listener.0).ok_or_else(unknown)?;
        let half = self.table.iter().filter(
            |(_, conn)| matches!(&conn.phase, Phase::Accepting(one) if one.listener() == listener),
        );
        let half: Vec<usize> = half.map(|(index, _)| index).collect();
        for index in half {
            self.entomb(index);
        }
        Ok(())
    }

    /// A peer wants to connect through the provider.
    pub(crate) fn on_connect_request(&mut self, passive: u64, info: &Info, said: &[u8]) {
        let Some(listener) = self.listeners.of_passive(passive) else { return };
        if let Err(error) = self.take_request(listener, info, said) {
            if let Some(passive) = self.listeners.passive(listener) {
                passive.reject(info, &[]);
            }
            self.events.push_back(Event::AcceptFailed { listener, error });
        }
    }

    fn take_request(
        &mut self,
        listener: ListenerId,
        info: &Info,
        said: &[u8],
    ) -> Result<(), Error> {
        let hello = PROTOCOL.decode(said).map_err(|error| status::violation(&"a peer", &error))?;
        let id = self.table.next_id();
        let (endpoint, offer) = self.prepare(id, info)?;
        let accepted = endpoint.accept(&PROTOCOL.encode(offer.hello()));
        let at = endpoint.peer_addr();
        let peer = at.map_or_else(
            || self.listeners.open[&listener.0].addr.clone(),
            |at| resolve::addr_of(at, self.scheme),
        );
        let link = Link::new(endpoint, None);
        if let Err(code) = accepted {
            self.graves.push((id, link));
            return Err(status::connect_error(code, &peer));
        }
        self.table.name(link.endpoint.object(), id);
        let endpoint = Box::new(Endpoint::new(link, id, offer.terms(&hello, peer)));
        let early = Vec::new();
        self.insert_accepting(id, Accepting::Handshake { listener, endpoint, early });
        Ok(())
    }

    /// The oldest of too many that never say hello makes room.
    fn drop_oldest_greeting(&mut self) {
        let is_greeting = |phase: &Phase| matches!(phase, Phase::Accepting(one) if matches!(**one, Accepting::Greeting { .. }));
        let greetings = || self.table.iter().filter(|(_, conn)| is_greeting(&conn.phase));
        if greetings().count() >= GREETINGS_MAX
            && let Some((oldest, _)) = greetings().min_by_key(|(_, conn)| conn.id)
        {
            let error = Error::new(ErrorKind::TimedOut, "too many peers have not said hello");
            self.fail_accept(oldest, error);
        }
    }

    fn insert_accepting(&mut self, id: EpId, accepting: Accepting) {
        self.table.insert(id, Phase::Accepting(Box::new(accepting)));
        self.deadlines.accepts.push(id, Instant::now());
    }

    /// Peers are waiting at a side channel's listener.
    pub(crate) fn on_side_listener(&mut self, listener: ListenerId) {
        loop {
            let Some(side) = self.listeners.side(listener).map(SideListener::accept) else {
                return;
            };
            let side = match side {
                Ok(Some(side)) => side,
                Ok(None) => return,
                Err(error) => {
                    let error = status::host_error(error.into(), "accepting a peer");
                    return self.events.push_back(Event::AcceptFailed { listener, error });
                }
            };
            self.drop_oldest_greeting();
            let id = self.table.next_id();
            match self.sleeper.add(side.as_fd(), Token(id.0), Watch::In) {
                Ok(()) => self.insert_accepting(id, Accepting::Greeting { listener, side }),
                Err(error) => tracing::warn!(%error, "a peer cannot be watched"),
            }
        }
    }

    /// Something happened on a side channel whose connection is not finished.
    pub(crate) fn on_accept_side(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Accepting(accepting) = &mut conn.phase else { return };
        let side = match accepting.as_mut() {
            Accepting::Greeting { side, .. } => side,
            Accepting::Handshake { endpoint, .. } => {
                let side = endpoint.link.side.as_mut();
                return match side.map_or(Ready::NotYet, Side::hear_ready) {
                    Ready::NotYet => {}
                    Ready::Yes => self.greet_accepted(index),
                    Ready::Gone => self.on_accept_lost(index),
                };
            }
        };
        match side.hear() {
            Heard::Nothing => {}
            Heard::Greeting(greeting) => self.answer_greeting(index, &greeting),
            Heard::Senseless(error) => {
                // So that a peer of another version learns of it.
                let hello = Hello { granted: 0, packet_bytes: 64, token: 0 };
                let told = side.greet(hello, &[]);
                tracing::debug!(?told, "a peer is turned away");
                self.fail_accept(index, status::violation(&"a peer", &error));
            }
            Heard::Gone => self.on_accept_lost(index),
        }
    }

    fn answer_greeting(&mut self, index: usize, greeting: &Greeting) {
        let Some(conn) = self.table.get(index) else { return };
        let id = conn.id;
        let Phase::Accepting(accepting) = std::mem::replace(&mut conn.phase, Phase::Gone) else {
            return;
        };
        let Accepting::Greeting { listener, mut side } = *accepting else { return };
        self.table.remove(index);
        let peer = match side.peer_addr() {
            Some(at) => resolve::addr_of(at, self.scheme),
            None => match self.listeners.open.get(&listener.0) {
                Some(open) => open.addr.clone(),
                None => return,
            },
        };
        let (link, offer) = match self.meet_peer(id, greeting, &mut side, &peer) {
            Ok((endpoint, offer)) => {
                let mut link = Link::new(endpoint, Some(side));
                link.on_met();
                (link, offer)
            }
            Err(error) => {
                return self.events.push_back(Event::AcceptFailed { listener, error });
            }
        };
        let endpoint = Endpoint::new(link, id, offer.terms(&greeting.hello, peer));
        // It goes back to the place that its id names, which was just left.
        let (endpoint, early) = (Box::new(endpoint), Vec::new());
        let accepting = Accepting::Handshake { listener, endpoint, early };
        self.table.insert(id, Phase::Accepting(Box::new(accepting)));
    }

    fn meet_peer(
        &mut self,
        id: EpId,
        greeting: &Greeting,
        side: &mut Side,
        peer: &Addr,
    ) -> Result<(crate::sys::Endpoint, Offer), Error> {
        let info = self.new_info()?;
        let (mut endpoint, offer) = self.prepare(id, &info)?;
        let met = endpoint.meet(&greeting.name);
        let met = met.and_then(|()| Ok(side.greet(offer.hello(), endpoint.name())?));
        match met {
            Ok(()) => Ok((endpoint, offer)),
            Err(code) => {
                self.graves.push((id, Link::new(endpoint, None)));
                Err(status::connect_error(code, peer))
            }
        }
    }

    /// Has the provider take the first packet, if one is owed; then it takes the user's, too.
    pub(crate) fn greet_accepted(&mut self, index: usize) {
        let Some((id, accepting)) = self.take_accepting(index) else { return };
        let Accepting::Handshake { listener, mut endpoint, early } = accepting else {
            return self.put_back(index, accepting);
        };
        let pumped = self.pump(&mut endpoint);
        match pumped {
            Ok(Pumped::All) => {
                let peer = endpoint.peer.clone();
                if let Some(conn) = self.table.get(index) {
                    conn.phase = Phase::Open(endpoint);
                }
                self.events.push_back(Event::Accepted { ep: id, listener, peer });
                for packet in early {
                    self.on_arrived(index, packet);
                }
            }
            Ok(_) => {
                self.put_back(index, Accepting::Handshake { listener, endpoint, early });
                self.table.mark_short(index);
            }
            Err(_) => {
                self.put_back(index, Accepting::Handshake { listener, endpoint, early });
                self.on_accept_lost(index);
            }
        }
    }

    /// A packet came before this side knew that the connection stands. Where the provider makes the
    /// connections, it does now.
    pub(crate) fn on_early_packet(&mut self, index: usize, packet: Packet) {
        let Some((_, accepting)) = self.take_accepting(index) else { return };
        match accepting {
            Accepting::Handshake { listener, endpoint, mut early } => {
                let is_connected = endpoint.link.side.is_none();
                early.push(packet);
                self.put_back(index, Accepting::Handshake { listener, endpoint, early });
                if is_connected {
                    self.greet_accepted(index);
                }
            }
            greeting => {
                self.wires.stock.give_back(packet);
                self.put_back(index, greeting);
            }
        }
    }

    fn take_accepting(&mut self, index: usize) -> Option<(EpId, Accepting)> {
        let conn = self.table.get(index)?;
        match std::mem::replace(&mut conn.phase, Phase::Gone) {
            Phase::Accepting(accepting) => Some((conn.id, *accepting)),
            other => {
                conn.phase = other;
                None
            }
        }
    }

    fn put_back(&mut self, index: usize, accepting: Accepting) {
        if let Some(conn) = self.table.get(index) {
            conn.phase = Phase::Accepting(Box::new(accepting));
        }
    }

    pub(crate) fn on_accept_timeout(&mut self, index: usize) {
        let text = "a peer did not finish its connection in time";
        self.fail_accept(index, Error::new(ErrorKind::TimedOut, text));
    }

    pub(crate) fn on_accept_lost(&mut self, index: usize) {
        let text = "the peer gave up before the connection was finished";
        self.fail_accept(index, Error::new(ErrorKind::Reset, text));
    }

    fn fail_accept(&mut self, index: usize, error: Error) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Accepting(accepting) = &conn.phase else { return };
        let listener = accepting.listener();
        self.entomb(index);
        self.events.push_back(Event::AcceptFailed { listener, error });
    }
}

impl Ear {
    fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Passive(passive) => passive.addr(),
            Self::Side(side) => side.local_addr(),
        }
    }
}

fn side_ear(at: &Meeting, addr: &Addr) -> Result<Ear, Error> {
    let failed = |error: std::io::Error| status::listen_error(Code::from(error), addr);
    SideListener::new(at).map(Ear::Side).map_err(failed)
}
