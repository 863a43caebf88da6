//! All connections of a domain, and which of them have something to do.

use std::collections::VecDeque;

use fabric_core::EpId;
use mio::net::TcpStream;
use slab::Slab;

use crate::dial::Dial;
use crate::endpoint::Endpoint;
use crate::greeting::Greeting;
use crate::linger::Linger;

/// What a connection is doing.
#[derive(Debug)]
pub(crate) enum Phase {
    /// It is being made.
    Dialing(Dial),
    /// Both sides tell which protocol they speak.
    Greeting(Greeting),
    /// It is an endpoint.
    Open(Box<Endpoint>),
    /// It is no endpoint any more, and hands over what was accepted before.
    Lingering(Linger),
}

/// One socket.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: EpId,
    pub(crate) stream: TcpStream,
    /// Reading may give something. Kept because readiness is told once.
    pub(crate) readable: bool,
    /// Writing may go on.
    pub(crate) writable: bool,
    /// The peer sends nothing more, or the connection is broken.
    pub(crate) ends: bool,
    pub(crate) phase: Phase,
    listed: Listed,
}

impl Conn {
    /// Takes the endpoint out and leaves a connection that lingers.
    pub(crate) fn take_endpoint(&mut self) -> Option<Endpoint> {
        match std::mem::replace(&mut self.phase, Phase::Lingering(Linger::default())) {
            Phase::Open(endpoint) => Some(*endpoint),
            other => {
                self.phase = other;
                None
            }
        }
    }
}

/// In which lists a connection stands, so that it does not stand there twice.
#[derive(Debug, Default)]
struct Listed {
    ready: bool,
    dirty: bool,
    starved: bool,
}

/// Connections by index. The lists may name an index whose connection is gone or another one by
/// now: who is listed gets a look, no more.
#[derive(Debug, Default)]
pub(crate) struct Table {
    conns: Slab<Conn>,
    ready: VecDeque<usize>,
    dirty: VecDeque<usize>,
    starved: VecDeque<usize>,
    /// Those with a greeting that the kernel holds back for what follows it.
    held: Vec<usize>,
    next_id: u32,
}

/// Stands for no index in an id.
const NOWHERE: u32 = u32::MAX;

impl Table {
    /// The index of the next connection to be put in.
    pub(crate) fn next_index(&self) -> usize {
        self.conns.vacant_key()
    }

    /// Puts a connection in at `next_index`.
    pub(crate) fn insert(&mut self, stream: TcpStream, phase: Phase) -> EpId {
        let id = self.new_id(self.next_index() as u32);
        let listed = Listed::default();
        let conn = Conn { id, stream, readable: false, writable: true, ends: false, phase, listed };
        if self.conns.capacity() == 0 {
            // Most domains have one connection, and a table grows by four at least.
            self.conns.reserve_exact(1);
        }
        self.conns.insert(conn);
        id
    }

    /// An id for a connection that failed before it had a socket.
    pub(crate) fn id_of_nothing(&mut self) -> EpId {
        self.new_id(NOWHERE)
    }

    pub(crate) fn remove(&mut self, index: usize) -> Option<Conn> {
        self.conns.try_remove(index)
    }

    pub(crate) fn get(&mut self, index: usize) -> Option<&mut Conn> {
        self.conns.get_mut(index)
    }

    /// Where the connection of this id is.
    pub(crate) fn index_of(&self, ep: EpId) -> Option<usize> {
        let index = ep.0 as u32 as usize;
        self.conns.get(index).filter(|conn| conn.id == ep).map(|_| index)
    }

    /// The phase of the connection of this id.
    pub(crate) fn phase_of(&self, ep: EpId) -> Option<&Phase> {
        self.index_of(ep).and_then(|index| self.conns.get(index)).map(|conn| &conn.phase)
    }

    /// The open endpoint of this id.
    pub(crate) fn endpoint(&mut self, ep: EpId) -> Option<(usize, &mut Endpoint)> {
        let index = self.index_of(ep)?;
        match &mut self.conns.get_mut(index)?.phase {
            Phase::Open(endpoint) => Some((index, endpoint)),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Conn)> {
        self.conns.iter()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Conn> {
        self.conns.drain()
    }

    /// Lists a connection that has something to read or to go on with.
    pub(crate) fn mark_ready(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.listed.ready, true) {
            self.ready.push_back(index);
        }
    }

    /// Lists a connection that has something to write.
    pub(crate) fn mark_dirty(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.listed.dirty, true) {
            self.dirty.push_back(index);
        }
    }

    /// Lists a connection that waits for a posted slot.
    pub(crate) fn mark_starved(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.listed.starved, true) {
            self.starved.push_back(index);
        }
    }

    /// Lists a connection whose greeting is held back.
    pub(crate) fn mark_held(&mut self, index: usize) {
        self.held.push(index);
    }

    #[inline]
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn take_held(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.held)
    }

    /// Lists the only connection as one to read from, if it is an endpoint that waits for nothing but
    /// its peer. Says whether it did.
    pub(crate) fn mark_only_open_ready(&mut self) -> bool {
        if self.conns.len() != 1 {
            return false;
        }
        let Some((index, conn)) = self.conns.iter_mut().next() else { return false };
        let waits = matches!(conn.phase, Phase::Open(_)) && conn.writable && !conn.listed.starved;
        if waits {
            conn.readable = true;
            self.mark_ready(index);
        }
        waits
    }

    pub(crate) fn pop_ready(&mut self) -> Option<usize> {
        let index = self.ready.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.listed.ready = false;
        }
        Some(index)
    }

    pub(crate) fn pop_dirty(&mut self) -> Option<usize> {
        let index = self.dirty.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.listed.dirty = false;
        }
        Some(index)
    }

    pub(crate) fn pop_starved(&mut self) -> Option<usize> {
        let index = self.starved.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.listed.starved = false;
        }
        Some(index)
    }

    pub(crate) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    pub(crate) fn starved_len(&self) -> usize {
        self.starved.len()
    }

    fn new_id(&mut self, index: u32) -> EpId {
        self.next_id = self.next_id.wrapping_add(1);
        EpId(u64::from(self.next_id) << 32 | u64::from(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_costs_less_than_a_kilobyte() {
        let bytes = size_of::<Conn>() + size_of::<Endpoint>();
        assert!(bytes < 1000, "{bytes}");
    }
}
