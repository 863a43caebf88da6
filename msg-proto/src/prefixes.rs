//! A map from topics that finds all prefixes of a subject.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Keys;
use alloc::sync::Arc;
use core::ops::Bound;

/// Values by topic. Topics are shared, so that several maps hold the bytes once. The empty topic,
/// which everything matches, stands apart: often it is the only one.
#[derive(Debug, Clone)]
pub(crate) struct PrefixMap<V> {
    all: Option<(Arc<[u8]>, V)>,
    topics: BTreeMap<Arc<[u8]>, V>,
}

impl<V> PrefixMap<V> {
    pub(crate) fn get(&self, topic: &[u8]) -> Option<&V> {
        match topic {
            [] => self.all.as_ref().map(|(_, value)| value),
            _ => self.topics.get(topic),
        }
    }

    pub(crate) fn get_mut(&mut self, topic: &[u8]) -> Option<&mut V> {
        match topic {
            [] => self.all.as_mut().map(|(_, value)| value),
            _ => self.topics.get_mut(topic),
        }
    }

    /// The shared form of a topic that is in the map.
    pub(crate) fn shared(&self, topic: &[u8]) -> Option<Arc<[u8]>> {
        match topic {
            [] => self.all.as_ref().map(|(topic, _)| Arc::clone(topic)),
            _ => self.topics.get_key_value(topic).map(|(topic, _)| Arc::clone(topic)),
        }
    }

    pub(crate) fn insert(&mut self, topic: Arc<[u8]>, value: V) {
        if topic.is_empty() {
            self.all = Some((topic, value));
        } else {
            self.topics.insert(topic, value);
        }
    }

    pub(crate) fn remove(&mut self, topic: &[u8]) -> Option<V> {
        match topic {
            [] => self.all.take().map(|(_, value)| value),
            _ => self.topics.remove(topic),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.topics.len() + usize::from(self.all.is_some())
    }

    /// All topics in the order of their bytes, each with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<[u8]>, &V)> {
        self.all.iter().map(|(topic, value)| (topic, value)).chain(&self.topics)
    }

    /// All topics in the order of their bytes.
    pub(crate) fn topics(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        Topics { all: self.all.as_ref().map(|(topic, _)| &**topic), others: self.topics.keys() }
    }

    /// The values of all topics that `subject` starts with, the longest topic first. Takes one
    /// search per topic found, and one more for each branch of neighbours that only nearly match.
    #[inline]
    pub(crate) fn prefixes_of<'a>(&'a self, subject: &'a [u8]) -> PrefixesOf<'a, V> {
        let rest = if self.topics.is_empty() { None } else { Some(subject) };
        PrefixesOf { all: self.all.as_ref().map(|(_, value)| value), topics: &self.topics, rest }
    }
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self { all: None, topics: BTreeMap::new() }
    }
}

struct Topics<'a, V> {
    all: Option<&'a [u8]>,
    others: Keys<'a, Arc<[u8]>, V>,
}

impl<'a, V> Iterator for Topics<'a, V> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.all.take().or_else(|| self.others.next().map(|topic| &**topic))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.others.len() + usize::from(self.all.is_some());
        (len, Some(len))
    }
}

impl<V> ExactSizeIterator for Topics<'_, V> {}

pub(crate) struct PrefixesOf<'a, V> {
    all: Option<&'a V>,
    topics: &'a BTreeMap<Arc<[u8]>, V>,
    /// Only prefixes up to this long, and no empty one, are left to find.
    rest: Option<&'a [u8]>,
}

impl<'a, V> Iterator for PrefixesOf<'a, V> {
    type Item = &'a V;

    #[inline]
    fn next(&mut self) -> Option<&'a V> {
        match self.rest {
            Some(_) => self.next_long().or_else(|| self.all.take()),
            None => self.all.take(),
        }
    }
}

impl<'a, V> PrefixesOf<'a, V> {
    fn next_long(&mut self) -> Option<&'a V> {
        while let Some(rest) = self.rest.take() {
            let below = (Bound::Unbounded, Bound::Included(rest));
            let (topic, value) = self.topics.range::<[u8], _>(below).next_back()?;
            let common = common_len(topic, rest);
            if common == topic.len() {
                self.rest = common.checked_sub(1).and_then(|len| rest.get(..len));
                return Some(value);
            }
            // `topic` is the greatest one not above `rest`, and every prefix of `rest` longer than
            // what they share lies between the two: there is none.
            self.rest = rest.get(..common);
        }
        None
    }
}

fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn map(topics: &[Vec<u8>]) -> PrefixMap<Vec<u8>> {
        let mut map = PrefixMap::default();
        topics.iter().for_each(|topic| map.insert(topic.as_slice().into(), topic.clone()));
        map
    }

    #[test]
    fn the_longest_prefix_comes_first() {
        let map = map(&[vec![], b"a".into(), b"abc".into(), b"abb".into(), b"b".into()]);
        let found: Vec<_> = map.prefixes_of(b"abcd").collect();
        assert_eq!(found, [&b"abc"[..], b"a", b""]);
    }

    #[test]
    fn octets_are_compared_unsigned_and_nul_is_one_of_them() {
        let map = map(&[vec![0], vec![0, 0], vec![0xff], vec![0x7f]]);
        assert_eq!(map.prefixes_of(&[0, 0, 0]).count(), 2);
        assert_eq!(map.prefixes_of(&[0xff, 0]).count(), 1);
        assert_eq!(map.prefixes_of(&[]).count(), 0);
    }

    proptest! {
        #[test]
        fn it_finds_what_a_scan_finds(
            topics in prop::collection::vec(prop::collection::vec(0u8..3, 0..6), 0..40),
            subject in prop::collection::vec(0u8..3, 0..8),
        ) {
            let map = map(&topics);
            let mut scanned: Vec<_> = map.topics().filter(|t| subject.starts_with(t)).collect();
            scanned.reverse();
            prop_assert_eq!(map.prefixes_of(&subject).collect::<Vec<_>>(), scanned);
        }
    }
}
