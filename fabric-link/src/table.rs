//! All connections of a domain, and which of them have something to do.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use fabric_core::EpId;
use slab::Slab;

/// What a connection is doing. In one of its phases it is an endpoint.
pub trait Phase {
    /// What it is then.
    type Endpoint;

    /// The endpoint, if it is one.
    fn endpoint(&mut self) -> Option<&mut Self::Endpoint>;
}

/// One connection.
#[derive(Debug)]
pub struct Conn<P> {
    /// Its id, for as long as it is in the table.
    pub id: EpId,
    /// What it is doing.
    pub phase: P,
    is_dirty: bool,
    is_starved: bool,
}

/// Connections by index. The lists may name an index whose connection is gone or another one by
/// now: who is listed gets a look, no more.
#[derive(Debug)]
pub struct Table<P> {
    conns: Slab<Conn<P>>,
    /// By what the provider calls them in its events.
    by_name: HashMap<u64, EpId, BuildHasherDefault<Spread>>,
    /// Whom the last name belonged to: often the next one's, too.
    last_name: Option<(u64, EpId)>,
    dirty: VecDeque<usize>,
    starved: VecDeque<usize>,
    short: Vec<usize>,
    next_id: u32,
}

/// Spreads names. The device or the provider chooses them, so no peer can make them collide.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, name: u64) {
        self.0 = (self.0 ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // Names may be addresses, whose lowest bits are all alike.
        self.0 ^ self.0 >> 32
    }
}

/// Ids stay below this, so that a provider can name listeners and groups by the numbers above.
const ID_MASK: u32 = (1 << 30) - 1;

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self {
            conns: Slab::new(),
            by_name: HashMap::default(),
            last_name: None,
            dirty: VecDeque::new(),
            starved: VecDeque::new(),
            short: Vec::new(),
            next_id: 0,
        }
    }
}

impl<P: Phase> Table<P> {
    /// The endpoint of this id, which may be closing.
    #[inline]
    pub fn endpoint_of(&mut self, ep: EpId) -> Option<(usize, &mut P::Endpoint)> {
        let index = self.index_of(ep)?;
        Some((index, self.endpoint(index)?))
    }

    /// The endpoint at this index, which may be closing.
    #[inline]
    pub fn endpoint(&mut self, index: usize) -> Option<&mut P::Endpoint> {
        self.conns.get_mut(index)?.phase.endpoint()
    }
}

impl<P> Table<P> {
    /// The id of the next connection to be put in. Its upper half is below 2^30 and counts up, so
    /// that the id of a connection that is gone names nobody.
    pub fn next_id(&mut self) -> EpId {
        let index = self.conns.vacant_key() as u32;
        self.next_id = self.next_id.wrapping_add(1) & ID_MASK;
        EpId(u64::from(self.next_id) << 32 | u64::from(index))
    }

    /// Puts a connection in under the id that `next_id` gave, and says where it is.
    pub fn insert(&mut self, id: EpId, phase: P) -> usize {
        self.conns.insert(Conn { id, phase, is_dirty: false, is_starved: false })
    }

    /// Takes a connection out.
    pub fn remove(&mut self, index: usize) -> Option<Conn<P>> {
        self.conns.try_remove(index)
    }

    /// How many there are, in all phases.
    #[inline]
    pub fn len(&self) -> usize {
        self.conns.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// The connection at this index.
    #[inline]
    pub fn get(&mut self, index: usize) -> Option<&mut Conn<P>> {
        self.conns.get_mut(index)
    }

    /// Where the connection of this id is.
    #[inline]
    pub fn index_of(&self, ep: EpId) -> Option<usize> {
        let index = ep.0 as u32 as usize;
        self.conns.get(index).filter(|conn| conn.id == ep).map(|_| index)
    }

    /// What the connection of this id is doing.
    pub fn phase_of(&self, ep: EpId) -> Option<&P> {
        self.index_of(ep).and_then(|index| self.conns.get(index)).map(|conn| &conn.phase)
    }

    /// Where all connections are.
    pub fn indices(&self) -> Vec<usize> {
        self.conns.iter().map(|(index, _)| index).collect()
    }

    /// All connections, with where they are.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Conn<P>)> {
        self.conns.iter()
    }

    /// Remembers what the provider calls a connection: the number of its queue pair, or the address
    /// of its object.
    pub fn name(&mut self, name: u64, ep: EpId) {
        self.last_name = None;
        self.by_name.insert(name, ep);
    }

    /// Forgets a name.
    pub fn forget(&mut self, name: u64) {
        self.last_name = None;
        self.by_name.remove(&name);
    }

    /// Where the connection is that the provider calls so.
    #[inline]
    pub fn index_of_name(&mut self, name: u64) -> Option<usize> {
        let ep = match self.last_name {
            Some((last, ep)) if last == name => ep,
            _ => *self.by_name.get(&name)?,
        };
        self.last_name = Some((name, ep));
        self.index_of(ep)
    }

    /// Lists a connection that has something to send.
    #[inline]
    pub fn mark_dirty(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.is_dirty, true) {
            self.dirty.push_back(index);
        }
    }

    /// Lists a connection that waits for a posted slot.
    #[inline]
    pub fn mark_starved(&mut self, index: usize) {
        let Some(conn) = self.conns.get_mut(index) else { return };
        if !std::mem::replace(&mut conn.is_starved, true) {
            self.starved.push_back(index);
        }
    }

    /// Lists a connection that waits for what all share: memory, room in the provider's queues, or
    /// completions of others.
    #[inline]
    pub fn mark_short(&mut self, index: usize) {
        self.short.push(index);
    }

    /// Those that came short have another try.
    #[inline]
    pub fn rouse_short(&mut self) {
        for index in std::mem::take(&mut self.short) {
            self.mark_dirty(index);
        }
    }

    /// Whether any came short.
    #[inline]
    pub fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    /// The next one that has something to send.
    #[inline]
    pub fn pop_dirty(&mut self) -> Option<usize> {
        let index = self.dirty.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.is_dirty = false;
        }
        Some(index)
    }

    /// The next one that waits for a posted slot.
    #[inline]
    pub fn pop_starved(&mut self) -> Option<usize> {
        let index = self.starved.pop_front()?;
        if let Some(conn) = self.conns.get_mut(index) {
            conn.is_starved = false;
        }
        Some(index)
    }

    /// How many `pop_dirty` would give.
    #[inline]
    pub fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    /// How many `pop_starved` would give.
    #[inline]
    pub fn starved_len(&self) -> usize {
        self.starved.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    enum Doing {
        Nothing,
        Endpoint(u32),
    }

    impl Phase for Doing {
        type Endpoint = u32;

        fn endpoint(&mut self) -> Option<&mut u32> {
            match self {
                Self::Nothing => None,
                Self::Endpoint(number) => Some(number),
            }
        }
    }

    fn put(table: &mut Table<Doing>, doing: Doing) -> (EpId, usize) {
        let id = table.next_id();
        (id, table.insert(id, doing))
    }

    #[test]
    fn the_id_of_one_that_is_gone_names_nobody() {
        let mut table = Table::default();
        let (old, index) = put(&mut table, Doing::Endpoint(1));
        table.name(7, old);
        assert_eq!(table.index_of_name(7), Some(index));
        table.remove(index).unwrap();
        let (new, again) = put(&mut table, Doing::Endpoint(2));
        assert_eq!((index, table.index_of(old)), (again, None));
        assert_eq!(table.index_of_name(7), None);
        table.name(7, new);
        assert_eq!(table.index_of_name(7), Some(again));
        table.forget(7);
        assert_eq!(table.index_of_name(7), None);
    }

    #[test]
    fn only_an_endpoint_is_one() {
        let mut table = Table::default();
        let (dialing, _) = put(&mut table, Doing::Nothing);
        let (open, index) = put(&mut table, Doing::Endpoint(5));
        assert!(table.endpoint_of(dialing).is_none());
        assert_eq!(table.endpoint_of(open), Some((index, &mut 5)));
    }

    #[test]
    fn each_is_listed_once_until_it_had_its_look() {
        let mut table = Table::default();
        let (_, first) = put(&mut table, Doing::Nothing);
        let (_, second) = put(&mut table, Doing::Nothing);
        for index in [first, second, first, 99] {
            table.mark_dirty(index);
            table.mark_starved(index);
        }
        assert_eq!((table.dirty_len(), table.starved_len()), (2, 2));
        assert_eq!((table.pop_dirty(), table.pop_starved()), (Some(first), Some(first)));
        table.mark_dirty(first);
        assert_eq!([(); 3].map(|()| table.pop_dirty()), [Some(second), Some(first), None]);
    }

    #[test]
    fn those_that_came_short_have_another_try() {
        let mut table = Table::default();
        let (_, index) = put(&mut table, Doing::Nothing);
        table.mark_short(index);
        assert!(table.has_short() && table.pop_dirty().is_none());
        table.rouse_short();
        assert!(!table.has_short());
        assert_eq!(table.pop_dirty(), Some(index));
    }

    #[test]
    fn names_are_spread_whether_they_are_numbers_or_addresses() {
        let spread = BuildHasherDefault::<Spread>::default();
        for step in [1, 64, 4096] {
            let buckets = (0..1024_u64).map(|i| spread.hash_one(i * step) & 1023);
            // Thrown at random, about 650 of 1024 places would be hit.
            assert!(buckets.collect::<HashSet<_>>().len() > 500, "step {step}");
        }
    }
}
