//! All connections of a domain, and which of them have something to do.

use std::collections::{HashMap, VecDeque};

use fabric_core::EpId;
use slab::Slab;

use crate::accept::Accepting;
use crate::dial::Dial;
use crate::endpoint::Endpoint;
use crate::link::Link;

/// What a connection is doing.
pub(crate) enum Phase {
    /// It is being made.
    Dialing(Box<Dial>),
    /// It came in, and the peer has not finished.
    Accepting(Box<Accepting>),
    /// It is an endpoint.
    Open(Box<Endpoint>),
    /// It ended here, and the way stays open until the peer has heard it.
    Parting(Box<Link>),
    /// Its way was taken out, and it is about to be removed.
    Gone,
}

/// One connection.
pub(crate) struct Conn {
    pub(crate) id: EpId,
    pub(crate) phase: Phase,
    is_dirty: bool,
    is_starved: bool,
}

impl Conn {
    /// The way to the peer, if there is one yet.
    pub(crate) fn link(&self) -> Option<&Link> {
        match &self.phase {
            Phase::Dialing(dial) => dial.link(),
            Phase::Accepting(accepting) => accepting.link(),
            Phase::Open(endpoint) => Some(&endpoint.link),
            Phase::Parting(link) => Some(link),
            Phase::Gone => None,
        }
    }

    /// Takes the way to the peer out of a connection that ends.
    pub(crate) fn take_link(&mut self) -> Option<Link> {
        let phase = std::mem::replace(&mut self.phase, Phase::Gone);
        match phase {
            Phase::Dialing(dial) => dial.into_link(),
            Phase::Accepting(accepting) => accepting.into_link(),
            Phase::Open(endpoint) => Some(endpoint.link),
            Phase::Parting(link) => Some(*link),
            Phase::Gone => None,
        }
    }
}

/// Connections by index. The lists may name an index whose connection is gone or another one by
/// now: who is listed gets a look, no more.
#[derive(Default)]
pub(crate) struct Table {
    conns: Slab<Conn>,
    /// By what the provider calls them in events.
    by_object: HashMap<usize, EpId>,
    dirty: VecDeque<usize>,
    starved: VecDeque<usize>,
    /// Those that wait for something that the provider has no room for.
    short: Vec<usize>,
    next_id: u32,
}

/// Ids stay below this, as the numbers above name listeners.
const ID_MASK: u32 = (1 << 30) - 1;

impl Table {
    /// The id of the next connection to be put in.
    pub(crate) fn next_id(&mut self) -> EpId {
        let index = self.conns.vacant_key() as u32;
        self.next_id = self.next_id.wrapping_add(1) & ID_MASK;
        EpId(u64::from(self.next_id) << 32 | u64::from(index))
    }

    /// Puts a connection in under the id that `next_id` gave.
    pub(crate) fn insert(&mut self, id: EpId, phase: Phase) -> usize {
        self.conns.insert(Conn { id, phase, is_dirty: false, is_starved: false })
    }

    pub(crate) fn remove(&mut self, index: usize) -> Option<Conn> {
        self.conns.try_remove(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.conns.len()
    }

    pub(crate) fn get(&mut self, index: usize) -> Option<&mut Conn> {
        self.conns.get_mut(index)
    }

    /// Where the connection of this id is.
    pub(crate) fn index_of(&self, ep: EpId) -> Option<usize> {
        let index = ep.0 as u32 as usize;
        self.conns.get(index).filter(|conn| conn.id == ep).map(|_| index)
    }

    pub(crate) fn phase_of(&self, ep: EpId) -> Option<&Phase> {
        self.index_of(ep).and_then(|index| self.conns.get(index)).map(|conn| &conn.phase)
    }

    /// The endpoint of this id, which may be closing.
    pub(crate) fn endpoint_of(&mut self, ep: EpId) -> Option<(usize, &mut Endpoint)> {
        let index = self.index_of(ep)?;
        Some((index, self.endpoint(index)?))
    }

    /// The endpoint at this index, which may be closing.
    pub(crate) fn endpoint(&mut self, index: usize) -> Option<&mut Endpoint> {
        match &mut self.conns.get_mut(index)?.phase {
            Phase::Open(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    pub(crate) fn indices(&self) -> Vec<usize> {
        self.conns.iter().map(|(index, _)| index).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Conn)> {
        self.conns.iter()
    }

    /// Remembers what the provider calls a connection.
    pub(crate) fn name_object(&mut self, object: usize, ep: EpId) {
        self.by_object.insert(object, ep);
    }

    pub(crate) fn forget_object(&mut self, object: usize) {
        self.by_object.remove(&object);
    }

    /// Where the connection is that the provider calls so.
    pub(crate) fn index_of_object(&self, object: usize) -> Option<usize> {
        self.index_of(*self.by_object.get(&object)?)
    }

    /// Lists a connection that has something to send.
    pub(crate) fn mark_dirty(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.is_dirty, true) {
            self.dirty.push_back(index);
        }
    }

    /// Lists a connection that waits for a posted slot.
    pub(crate) fn mark_starved(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.is_starved, true) {
            self.starved.push_back(index);
        }
    }

    /// Lists a connection that the provider has no room for.
    pub(crate) fn mark_short(&mut self, index: usize) {
        self.short.push(index);
    }

    /// Those that there was no room for have another try.
    pub(crate) fn rouse_short(&mut self) {
        for index in std::mem::take(&mut self.short) {
            self.mark_dirty(index);
        }
    }

    pub(crate) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    pub(crate) fn pop_dirty(&mut self) -> Option<usize> {
        let index = self.dirty.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.is_dirty = false;
        }
        Some(index)
    }

    pub(crate) fn pop_starved(&mut self) -> Option<usize> {
        let index = self.starved.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.is_starved = false;
        }
        Some(index)
    }

    pub(crate) fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    pub(crate) fn starved_len(&self) -> usize {
        self.starved.len()
    }
}
