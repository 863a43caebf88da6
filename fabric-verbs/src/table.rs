//! All connections of a domain, and which of them have something to do.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use fabric_core::EpId;
use slab::Slab;

use crate::accept::Accepting;
use crate::dial::Dial;
use crate::endpoint::Endpoint;

/// What a connection is doing.
pub(crate) enum Phase {
    /// It is being made.
    Dialing(Box<Dial>),
    /// It came in, and the peer has not finished.
    Accepting(Accepting),
    /// It is an endpoint.
    Open(Box<Endpoint>),
}

/// One connection.
pub(crate) struct Conn {
    pub(crate) id: EpId,
    pub(crate) phase: Phase,
    is_dirty: bool,
    is_starved: bool,
}

/// Connections by index. The lists may name an index whose connection is gone or another one by
/// now: who is listed gets a look, no more.
#[derive(Default)]
pub(crate) struct Table {
    conns: Slab<Conn>,
    /// By the number of their queue pair.
    by_qp: HashMap<u32, EpId, BuildHasherDefault<Spread>>,
    /// Whom the last one belonged to: often the next one's, too.
    last_qp: Option<(u32, EpId)>,
    dirty: VecDeque<usize>,
    starved: VecDeque<usize>,
    /// Those that wait for something that all share.
    short: Vec<usize>,
    next_id: u32,
}

/// Spreads the numbers of queue pairs. The device chooses them, so no peer can make them collide.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Ids stay below this, as the numbers above name listeners and groups.
const ID_MASK: u32 = (1 << 30) - 1;

impl Table {
    /// The id of the next connection to be put in.
    pub(crate) fn next_id(&mut self) -> EpId {
        let index = self.conns.vacant_key() as u32;
        self.new_id(index)
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

    pub(crate) fn name_qp(&mut self, qp: u32, ep: EpId) {
        self.last_qp = None;
        self.by_qp.insert(qp, ep);
    }

    pub(crate) fn forget_qp(&mut self, qp: u32) {
        self.last_qp = None;
        self.by_qp.remove(&qp);
    }

    /// Where the connection with this queue pair is.
    pub(crate) fn index_of_qp(&mut self, qp: u32) -> Option<usize> {
        let ep = match self.last_qp {
            Some((last, ep)) if last == qp => ep,
            _ => *self.by_qp.get(&qp)?,
        };
        self.last_qp = Some((qp, ep));
        self.index_of(ep)
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

    /// Lists a connection that waits for memory or completions of others.
    pub(crate) fn mark_short(&mut self, index: usize) {
        self.short.push(index);
    }

    /// Those that waited for others have another try.
    pub(crate) fn rouse_short(&mut self) {
        for index in std::mem::take(&mut self.short) {
            self.mark_dirty(index);
        }
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

    fn new_id(&mut self, index: u32) -> EpId {
        self.next_id = self.next_id.wrapping_add(1) & ID_MASK;
        EpId(u64::from(self.next_id) << 32 | u64::from(index))
    }
}
