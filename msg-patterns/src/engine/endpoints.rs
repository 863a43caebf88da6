//! Addresses of a socket: where it listens, where it connects to, and how it leaves.

use std::time::Duration;

use fabric_core::{Addr, Error as FabricError, ListenerId};
use msg_proto::backoff::Backoff;
use msg_proto::fault::Fault;

use super::peer::{ConnectorKey, Origin, Peer};
use super::{Core, Net};
use crate::monitor::{MonitorEvent, PeerId};
use crate::options::Linger;
use crate::roles::Role;
use crate::{Error, ErrorKind};

/// An address that this socket listens at.
#[derive(Debug)]
pub(crate) struct Bound {
    port: usize,
    listener: ListenerId,
    addr: Addr,
}

/// An address that this socket connects to.
#[derive(Debug)]
pub(crate) struct Connector {
    addr: Addr,
    port: usize,
    peer: PeerId,
    backoff: Backoff,
    retry_at: Option<Duration>,
    /// A refusal that makes trying again pointless.
    fatal: Option<Fault>,
    /// There shall be no further attempt.
    stopped: bool,
}

impl<R: Role> Core<R> {
    /// Connects, now or later, for as long as the socket lives.
    pub(crate) fn connect(&mut self, addr: &Addr) -> Result<(), Error> {
        let net = &mut self.net;
        if net.one_connect_each && !net.connected_to(addr).is_empty() {
            return Ok(());
        }
        let port = net.port_for(addr)?;
        let entry = net.connectors.vacant_key();
        let peer = net.peers.insert(Peer::new(addr.clone(), port, Origin::Connector(entry)));
        let peer = PeerId(peer as u32);
        let backoff =
            Backoff::new(net.options.reconnect_interval, net.options.reconnect_interval_max);
        net.connectors.insert(Connector {
            addr: addr.clone(),
            port,
            peer,
            backoff,
            retry_at: None,
            fatal: None,
            stopped: false,
        });
        if let Err(error) = net.start_connect(entry) {
            net.connectors.remove(entry);
            net.peers.remove(peer.0 as usize);
            return Err(error.into());
        }
        net.last_endpoint = Some(addr.clone());
        self.role.on_attach(&mut self.net, peer);
        Ok(())
    }

    /// Leaves an address: nothing more is accepted for it, what is queued still leaves.
    pub(crate) fn disconnect(&mut self, addr: &Addr) -> Result<(), Error> {
        let found = self.net.connected_to(addr);
        if found.is_empty() {
            let text = format!("not connected to {addr}: name it as it was given to connect");
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        for peer in found {
            self.leave(peer);
        }
        Ok(())
    }

    fn leave(&mut self, peer: PeerId) {
        let until = self.net.linger_until();
        self.net.drop_inbox(peer);
        self.net.peer_mut(peer).leaving = Some(until);
        self.role.on_gone(&mut self.net, peer, true);
        self.net.note(until);
        self.net.advance_leaving(peer);
    }

    /// Ends the connectors that will not be tried again, as if their owner had left them: nothing
    /// that is queued for them could ever leave.
    pub(crate) fn end_stopped(&mut self) {
        while let Some(peer) = self.net.stopped.pop() {
            if !self.net.peers.contains(peer.0 as usize) {
                continue; // It was being left, and its time was over.
            }
            self.role.on_gone(&mut self.net, peer, true);
            self.net.drop_queue(peer);
            self.net.orphan(peer);
        }
    }

    /// Stops listening at an address; its peers stay.
    pub(crate) fn unbind(&mut self, addr: &Addr) -> Result<(), Error> {
        let found = self.net.bound.iter().find(|(_, bound)| bound.addr == *addr);
        let Some((key, _)) = found else {
            let text = format!("not bound to {addr}: name it as last_endpoint gave it");
            return Err(Error::new(ErrorKind::Invalid, text));
        };
        self.net.unlisten(key);
        Ok(())
    }

    /// Begins to close: no new peers, and goodbye to each once everything has left.
    pub(crate) fn begin_close(&mut self) {
        self.role.on_idle(&mut self.net);
        self.net.closing = true;
        self.net.unlisten_all();
        self.advance_close();
    }

    /// Moves a close on; says whether nothing is left to wait for.
    pub(crate) fn advance_close(&mut self) -> bool {
        let pending = self.role.is_pending();
        for peer in self.net.peer_ids() {
            if self.net.peer(peer).ep.is_some() && !pending {
                self.net.goodbye_if_drained(peer);
            } else if self.net.peer(peer).ep.is_none() && self.is_ending(peer) {
                self.role.on_gone(&mut self.net, peer, true);
                self.net.drop_inbox(peer);
                self.net.forget(peer);
            }
        }
        self.net.flush();
        self.net.peers.is_empty() && !pending
    }

    /// Whether nothing is left to connect to the peer for.
    pub(crate) fn is_ending(&self, peer: PeerId) -> bool {
        let entry = self.net.peer(peer);
        let closed = self.net.closing && !self.role.is_pending();
        entry.queue.is_empty() && (closed || entry.leaving.is_some())
    }
}

impl Net {
    /// The peers that this side connects to at `addr`, without those it is leaving.
    fn connected_to(&self, addr: &Addr) -> Vec<PeerId> {
        let at = self.connectors.iter().filter(|(_, connector)| connector.addr == *addr);
        at.map(|(_, connector)| connector.peer)
            .filter(|&peer| self.peer(peer).leaving.is_none())
            .collect()
    }

    pub(crate) fn bind(&mut self, addr: &Addr) -> Result<Addr, Error> {
        let port = self.port_for(addr)?;
        let listener = self.ports[port].domain.listen(addr)?;
        let key =
            self.bound.insert(Bound { port, listener: listener.id, addr: listener.addr.clone() });
        self.ports[port].listeners.insert(listener.id, key);
        self.last_endpoint = Some(listener.addr.clone());
        self.tell(&MonitorEvent::Listening { addr: listener.addr.clone() });
        Ok(listener.addr)
    }

    pub(crate) fn last_endpoint(&self) -> Option<Addr> {
        self.last_endpoint.clone()
    }

    fn unlisten(&mut self, key: usize) {
        let bound = self.bound.remove(key);
        self.ports[bound.port].listeners.remove(&bound.listener);
        // Cannot fail: the listener was made by this domain and is removed once.
        drop(self.ports[bound.port].domain.unlisten(bound.listener));
        self.tell(&MonitorEvent::Unbound { addr: bound.addr });
    }

    fn unlisten_all(&mut self) {
        while let Some((key, _)) = self.bound.iter().next() {
            self.unlisten(key);
        }
    }

    fn start_connect(&mut self, key: ConnectorKey) -> Result<(), FabricError> {
        let connector = &mut self.connectors[key];
        connector.retry_at = None;
        let (addr, port, peer) = (connector.addr.clone(), connector.port, connector.peer);
        let ep = self.ports[port].domain.connect(&addr)?;
        self.ports[port].by_ep.insert(ep, peer);
        self.peer_mut(peer).ep = Some(ep);
        self.posted_since_flush = true;
        self.tell(&MonitorEvent::ConnectDelayed { addr });
        Ok(())
    }

    /// Starts attempts that are due, and ends what has lingered long enough.
    pub(crate) fn reconnect_due(&mut self, now: Duration) {
        let keys: Vec<ConnectorKey> = self.connectors.iter().map(|(key, _)| key).collect();
        for key in keys {
            let connector = &self.connectors[key];
            let peer = connector.peer;
            match connector.retry_at {
                Some(at) if at <= now => self.reconnect(key),
                at => self.note(at),
            }
            match self.peer(peer).leaving {
                Some(Some(until)) if until <= now => self.give_up(peer),
                Some(until) => self.note(until),
                None => {}
            }
        }
    }

    fn reconnect(&mut self, key: ConnectorKey) {
        if let Err(error) = self.start_connect(key) {
            self.on_connect_failed(key, &error);
        }
    }

    fn on_connect_failed(&mut self, key: ConnectorKey, error: &FabricError) {
        let addr = self.connectors[key].addr.clone();
        let why = error.to_string();
        self.tell(&MonitorEvent::ConnectFailed { addr, why });
        self.connectors[key].stopped |= self.options.reconnect_stop.covers(error.kind());
        self.schedule_retry(key, error);
    }

    fn schedule_retry(&mut self, key: ConnectorKey, error: &FabricError) {
        let now = self.now();
        let connector = &mut self.connectors[key];
        let (addr, peer) = (connector.addr.clone(), connector.peer);
        let wait = if connector.stopped { None } else { connector.backoff.next(fastrand::u32(..)) };
        let Some(interval) = wait else {
            let why = connector.fatal.map_or_else(|| error.to_string(), |f| f.text().to_owned());
            self.stopped.push(peer);
            return self.tell(&MonitorEvent::ConnectStopped { addr, why });
        };
        connector.retry_at = Some(now + interval);
        self.note(Some(now + interval));
        self.tell(&MonitorEvent::ConnectRetried { addr, interval });
    }

    /// The connection that this side asked for ended: it is wanted again.
    pub(crate) fn try_again(&mut self, peer: PeerId, was_up: bool, why: &FabricError) {
        let Origin::Connector(key) = self.peer(peer).origin else { return };
        if was_up {
            self.schedule_retry(key, why);
        } else {
            self.on_connect_failed(key, why);
        }
    }

    /// A refusal may make further attempts pointless.
    pub(crate) fn after_refusal(&mut self, peer: PeerId, fault: Fault) {
        let Origin::Connector(key) = self.peer(peer).origin else { return };
        let stop = fault.is_fatal()
            || (self.options.reconnect_stop.on_handshake_failed && !self.peer(peer).is_up());
        if stop {
            self.connectors[key].fatal = Some(fault);
            self.connectors[key].stopped = true;
        }
    }

    pub(crate) fn reset_backoff(&mut self, peer: PeerId) {
        if let Origin::Connector(key) = self.peer(peer).origin {
            self.connectors[key].backoff.reset();
        }
    }

    pub(crate) fn on_accept_failed(&mut self, error: &FabricError) {
        self.counters.refused += 1;
        self.tell(&MonitorEvent::AcceptFailed { why: error.to_string() });
    }

    /// Until when something put off now may linger.
    fn linger_until(&self) -> Option<Duration> {
        match self.options.linger {
            Linger::Forever => None,
            Linger::For(limit) => Some(self.now() + limit),
            Linger::No => Some(self.now()),
        }
    }

    fn advance_leaving(&mut self, peer: PeerId) {
        if self.peer(peer).ep.is_none() && self.peer(peer).queue.is_empty() {
            self.forget(peer);
        } else if self.peer(peer).ep.is_some() {
            self.goodbye_if_drained(peer);
            self.flush();
        }
    }

    /// A leaving peer has lingered long enough.
    fn give_up(&mut self, peer: PeerId) {
        self.drop_queue(peer);
        if self.peer(peer).ep.is_some() {
            self.close_ep(peer);
        } else {
            self.forget(peer);
        }
    }

    /// The connector of a peer without connection ends; what the peer sent stays to be received.
    fn orphan(&mut self, peer: PeerId) {
        if let Origin::Connector(key) = self.peer(peer).origin {
            self.connectors.remove(key);
        }
        self.peer_mut(peer).origin = Origin::Accepted;
        self.remove_if_read(peer);
    }

    /// Removes a peer that has no connection.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.leave_batch(peer);
        #[cfg(feature = "metrics")]
        self.publish_end(peer);
        let entry = self.peers.remove(peer.0 as usize);
        if let Origin::Connector(key) = entry.origin {
            self.connectors.remove(key);
        }
    }
}
