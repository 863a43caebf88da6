//! Listeners, and connections that come in.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use fabric_core::{Addr, Error, ErrorKind, Event, Listener, ListenerId};
use mio::net::{TcpListener, TcpStream};
use slab::Slab;

use crate::driver::Driver;
use crate::greeting::{Greeting, Origin};
use crate::limits::{ACCEPT_PAUSE, ACCEPTS_PER_POLL};
use crate::resolve::{self, Place};
use crate::status;
use crate::sys;
use crate::table::Phase;

/// One listening socket.
#[derive(Debug)]
pub(crate) struct Listening {
    id: ListenerId,
    socket: TcpListener,
    addr: Addr,
    /// There may be connections to take. Kept because readiness is told once.
    ready: bool,
    /// Rests until then, because the host had nothing left for another connection.
    paused: Option<Instant>,
}

/// All listeners of a domain.
#[derive(Debug, Default)]
pub(crate) struct Accepting {
    listeners: Slab<Listening>,
    next_id: u32,
    /// Accepted connections that have not greeted.
    pub(crate) pending: usize,
}

impl Accepting {
    /// Whether some listener can go on now.
    pub(crate) fn is_ready(&self) -> bool {
        self.listeners.iter().any(|(_, listening)| listening.can_accept())
    }

    /// Whether some listener rests.
    pub(crate) fn is_resting(&self) -> bool {
        self.next_deadline().is_some()
    }

    /// When the next listener has rested.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.listeners.iter().filter_map(|(_, listening)| listening.paused).min()
    }

    /// Listener `index` has connections to take.
    pub(crate) fn mark_ready(&mut self, index: usize) {
        if let Some(listening) = self.listeners.get_mut(index) {
            listening.ready = true;
        }
    }

    /// Ends rests that are over.
    pub(crate) fn on_time(&mut self, now: Instant) {
        for (_, listening) in &mut self.listeners {
            if listening.paused.is_some_and(|until| until <= now) {
                (listening.paused, listening.ready) = (None, true);
            }
        }
    }

    fn new_id(&mut self, index: usize) -> ListenerId {
        self.next_id = self.next_id.wrapping_add(1);
        ListenerId(u64::from(self.next_id) << 32 | index as u64)
    }
}

impl Listening {
    fn can_accept(&self) -> bool {
        self.ready && self.paused.is_none()
    }
}

impl Driver {
    /// Starts to listen.
    ///
    /// # Errors
    /// As `Domain::listen`.
    pub(crate) fn start_listening(&mut self, addr: &Addr) -> Result<Listener, Error> {
        let mut socket = self.listening_socket(addr)?;
        let failed = |error| status::listen_error(error, addr);
        let at = socket.local_addr().map_err(failed)?;
        let index = self.accepting.listeners.vacant_key();
        self.register_listener(&mut socket, index).map_err(failed)?;
        let addr = if addr.host() == "*" {
            addr.clone().with_port(at.port())
        } else {
            resolve::addr_of(at)
        };
        let id = self.accepting.new_id(index);
        let listening = Listening { id, socket, addr: addr.clone(), ready: false, paused: None };
        self.accepting.listeners.insert(listening);
        tracing::debug!(listener = id.0, %addr, "listening");
        Ok(Listener { id, addr })
    }

    /// Stops listening. Connections that have not greeted end too.
    ///
    /// # Errors
    /// `Misuse` if there is no such listener.
    pub(crate) fn stop_listening(&mut self, id: ListenerId) -> Result<(), Error> {
        let index = id.0 as u32 as usize;
        if self.accepting.listeners.get(index).is_none_or(|listening| listening.id != id) {
            return Err(Error::misuse("there is no such listener: it was stopped already"));
        }
        self.accepting.listeners.remove(index);
        for index in self.greeting_at(id) {
            self.drop_greeting(index);
        }
        Ok(())
    }

    /// Takes a bounded number of connections from each listener that has some.
    pub(crate) fn accept_some(&mut self) {
        let indices = 0..self.accepting.listeners.capacity();
        for index in indices {
            for _ in 0..ACCEPTS_PER_POLL {
                if !self.accept_one(index) {
                    break;
                }
            }
        }
    }

    /// The time to greet is over for an accepted or dialed connection.
    pub(crate) fn on_greeting_timeout(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Greeting(greeting) = &conn.phase else { return };
        let text = format!(
            "the peer at {} connected but did not greet within {:?}: check what listens or \
             connects there",
            greeting.peer, self.options.handshake_timeout
        );
        self.fail_greeting(index, Error::new(ErrorKind::TimedOut, text));
    }

    /// Takes one connection. Says whether there may be another.
    fn accept_one(&mut self, index: usize) -> bool {
        let Some(listening) = self.accepting.listeners.get_mut(index) else { return false };
        if !listening.can_accept() {
            return false;
        }
        let id = listening.id;
        match listening.socket.accept() {
            Ok((stream, peer)) => self.on_accepted(id, stream, peer),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => listening.ready = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.on_accept_error(index, error),
        }
        true
    }

    fn on_accepted(&mut self, listener: ListenerId, stream: TcpStream, peer: SocketAddr) {
        let peer = resolve::addr_of(peer);
        if let Err(error) = stream.set_nodelay(true) {
            let error = status::stream_error(error, &peer);
            return self.shared.events.push(Event::AcceptFailed { listener, error });
        }
        let greeting = Greeting::new(Origin::Accepted(listener), peer);
        match self.insert(stream, Phase::Greeting(greeting)) {
            Ok(ep) => {
                self.accepting.pending += 1;
                self.deadlines.accepted.push(ep, Instant::now());
                self.drop_oldest_pending();
                if let Some(index) = self.table.index_of(ep) {
                    self.table.mark_held(index);
                    self.on_greeting(index);
                }
            }
            Err(error) => self.shared.events.push(Event::AcceptFailed { listener, error }),
        }
    }

    /// Keeps the memory of connections that do not greet bounded.
    fn drop_oldest_pending(&mut self) {
        while self.accepting.pending > self.options.pending_handshakes_max {
            let Some(ep) = self.deadlines.accepted.pop() else { return };
            let Some(index) = self.table.index_of(ep) else { continue };
            let max = self.options.pending_handshakes_max;
            let text = format!(
                "dropped the oldest of more than {max} connections that have not greeted: raise \
                 pending_handshakes_max if they are honest"
            );
            self.fail_greeting(index, Error::new(ErrorKind::Full, text));
        }
    }

    /// One connection was lost, or the host has no room: then the listener rests, and the peers
    /// wait in its backlog.
    fn on_accept_error(&mut self, index: usize, error: io::Error) {
        let Some(listening) = self.accepting.listeners.get_mut(index) else { return };
        if status::is_exhausted(&error) {
            listening.paused = Some(Instant::now() + ACCEPT_PAUSE);
        }
        let error = status::accept_error(error, &listening.addr);
        tracing::debug!(%error, "accepting failed");
        self.shared.events.push(Event::AcceptFailed { listener: listening.id, error });
    }

    fn listening_socket(&self, addr: &Addr) -> Result<TcpListener, Error> {
        let failed = |error| status::listen_error(error, addr);
        match resolve::listen_place(addr)? {
            Place::At(addrs) => {
                first_listening(&addrs, |at| sys::listen(at, false, &self.options)).map_err(failed)
            }
            Place::All { port } => {
                let [both, v4] = resolve::all(port);
                match sys::listen(both, true, &self.options) {
                    Err(error) if !is_in_use(&error) => sys::listen(v4, false, &self.options),
                    result => result,
                }
                .map_err(failed)
            }
        }
    }

    fn greeting_at(&self, id: ListenerId) -> Vec<usize> {
        let is_there = |phase: &Phase| matches!(phase, Phase::Greeting(greeting) if greeting.origin == Origin::Accepted(id));
        self.table
            .iter()
            .filter(|(_, conn)| is_there(&conn.phase))
            .map(|(index, _)| index)
            .collect()
    }
}

fn is_in_use(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// The first address that works, or the error of the first.
fn first_listening(
    addrs: &[SocketAddr],
    listen: impl Fn(SocketAddr) -> io::Result<TcpListener>,
) -> io::Result<TcpListener> {
    let mut first = None;
    for addr in addrs {
        match listen(*addr) {
            Ok(socket) => return Ok(socket),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable)))
}
