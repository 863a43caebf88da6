//! Things under way, by ids that only grow.

use alloc::collections::VecDeque;

/// A table whose ids count up from 1 and are never used again. Items mostly leave about as they
/// came; those that stay long cost nothing but their own place.
#[derive(Debug, Clone)]
pub(crate) struct IdQueue<T> {
    /// In the order of ids; items taken from the middle leave a hole for a while.
    entries: VecDeque<(u64, Option<T>)>,
    len: usize,
    last_id: u64,
}

/// So many holes are never worth closing.
const HOLES_MIN: usize = 16;

impl<T> IdQueue<T> {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new(), len: 0, last_id: 0 }
    }

    pub(crate) fn push(&mut self, item: T) -> u64 {
        self.last_id += 1;
        self.entries.push_back((self.last_id, Some(item)));
        self.len += 1;
        self.last_id
    }

    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        self.entries.get(self.index(id)?)?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let index = self.index(id)?;
        self.entries.get_mut(index)?.1.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let index = self.index(id)?;
        let item = self.entries.get_mut(index)?.1.take()?;
        self.len -= 1;
        self.close_holes();
        Some(item)
    }

    /// Shows every item, oldest first, and keeps those for which `keep` is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u64, &mut T) -> bool) {
        self.entries.retain_mut(|(id, item)| item.as_mut().is_some_and(|item| keep(*id, item)));
        self.len = self.entries.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn index(&self, id: u64) -> Option<usize> {
        let (first, _) = self.entries.front()?;
        // Where it is as long as no hole was closed before it.
        let likely = usize::try_from(id.checked_sub(*first)?).ok()?;
        match self.entries.get(likely) {
            Some((found, _)) if *found == id => Some(likely),
            _ => self.entries.binary_search_by_key(&id, |(id, _)| *id).ok(),
        }
    }

    fn close_holes(&mut self) {
        while self.entries.front().is_some_and(|(_, item)| item.is_none()) {
            self.entries.pop_front();
        }
        // Rarely enough that each removal pays for a constant number of moves.
        if self.entries.len() > 2 * self.len + HOLES_MIN {
            self.entries.retain(|(_, item)| item.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_that_stays_does_not_make_the_table_grow() {
        let mut queue = IdQueue::new();
        let stays = queue.push('s');
        for _ in 0..10_000 {
            let id = queue.push('x');
            assert_eq!(queue.remove(id), Some('x'));
            assert!(queue.entries.len() <= 2 + HOLES_MIN);
        }
        assert_eq!((queue.get(stays), queue.len()), (Some(&'s'), 1));
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_map(ops in prop::collection::vec((0u8..8, any::<u8>()), 0..300)) {
            let (mut queue, mut model) = (IdQueue::new(), BTreeMap::new());
            for (op, value) in ops {
                let id = u64::from(value);
                match op {
                    0..4 => {
                        let id = queue.push(value);
                        prop_assert_eq!(model.insert(id, value), None);
                        prop_assert_eq!(model.keys().next_back(), Some(&id));
                    }
                    4..7 => prop_assert_eq!(queue.remove(id), model.remove(&id)),
                    _ => {
                        queue.retain(|_, item| *item != value);
                        model.retain(|_, item| *item != value);
                    }
                }
                prop_assert_eq!(queue.get(id), model.get(&id));
                prop_assert_eq!(queue.get_mut(id), model.get_mut(&id));
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
