//! What was posted and has not come back yet.

use crate::OpId;

/// A bounded table of posted things. Keys carry a generation, so a late or doubled completion finds
/// nothing instead of another operation's buffer.
#[derive(Debug)]
pub struct Inflight<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    depth_max: usize,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    item: Option<T>,
}

impl<T> Inflight<T> {
    /// A table for at most `depth_max` things (at most `u32::MAX`).
    pub fn new(depth_max: usize) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), depth_max: depth_max.min(u32::MAX as usize) }
    }

    /// Puts `item` in.
    ///
    /// # Errors
    /// `item` itself when the table is full.
    pub fn insert(&mut self, item: T) -> Result<OpId, T> {
        if self.is_full() {
            return Err(item);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, item: None });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.item = Some(item);
        Ok(key(index, entry.generation))
    }

    /// Takes out what `op` names, once.
    pub fn remove(&mut self, op: OpId) -> Option<T> {
        let (index, generation) = split(op);
        let entry = self.entries.get_mut(index as usize).filter(|e| e.generation == generation)?;
        let item = entry.item.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
        Some(item)
    }

    /// A look at what `op` names.
    pub fn get_mut(&mut self, op: OpId) -> Option<&mut T> {
        let (index, generation) = split(op);
        let entry = self.entries.get_mut(index as usize).filter(|e| e.generation == generation)?;
        entry.item.as_mut()
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> Vec<(OpId, T)> {
        let ops: Vec<OpId> = (0..).zip(&self.entries).map(|(i, e)| key(i, e.generation)).collect();
        ops.into_iter().filter_map(|op| self.remove(op).map(|item| (op, item))).collect()
    }

    /// How many things are in.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether nothing is in.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one more would be refused.
    pub fn is_full(&self) -> bool {
        self.len() == self.depth_max
    }
}

fn key(index: u32, generation: u32) -> OpId {
    OpId(u64::from(generation) << 32 | u64::from(index))
}

fn split(op: OpId) -> (u32, u32) {
    (op.0 as u32, (op.0 >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_table_hands_the_item_back() {
        let mut table = Inflight::new(1);
        table.insert('a').unwrap();
        assert_eq!(table.insert('b'), Err('b'));
    }

    #[test]
    fn a_key_works_once() {
        let mut table = Inflight::new(4);
        let op = table.insert('a').unwrap();
        assert_eq!((table.remove(op), table.remove(op)), (Some('a'), None));
        let next = table.insert('b').unwrap();
        assert_ne!(op, next);
        assert_eq!(table.remove(op), None);
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_map(ops in prop::collection::vec(any::<(bool, u8)>(), 0..300)) {
            let (mut table, mut model) = (Inflight::new(16), HashMap::new());
            let mut keys = Vec::new();
            for (put, value) in ops {
                if put {
                    match table.insert(value) {
                        Ok(op) => { prop_assert!(model.insert(op, value).is_none()); keys.push(op); }
                        Err(back) => { prop_assert_eq!((back, model.len()), (value, 16)); }
                    }
                } else if !keys.is_empty() {
                    let op = keys[value as usize % keys.len()];
                    prop_assert_eq!(table.remove(op), model.remove(&op));
                }
                prop_assert_eq!(table.len(), model.len());
            }
            prop_assert_eq!(table.drain().into_iter().collect::<HashMap<_, _>>(), model);
        }
    }
}
