//! A map from topics that finds all prefixes of a subject.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::Bound;

/// Values by topic. Topics are shared, so that several maps hold the bytes once.
#[derive(Debug, Clone)]
pub(crate) struct PrefixMap<V> {
    topics: BTreeMap<Arc<[u8]>, V>,
}

impl<V> PrefixMap<V> {
    pub(crate) fn get_mut(&mut self, topic: &[u8]) -> Option<&mut V> {
        self.topics.get_mut(topic)
    }

    /// The shared form of a topic that is in the map.
    pub(crate) fn shared(&self, topic: &[u8]) -> Option<Arc<[u8]>> {
        self.topics.get_key_value(topic).map(|(topic, _)| Arc::clone(topic))
    }

    pub(crate) fn insert(&mut self, topic: Arc<[u8]>, value: V) {
        self.topics.insert(topic, value);
    }

    pub(crate) fn remove(&mut self, topic: &[u8]) -> Option<V> {
        self.topics.remove(topic)
    }

    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// All topics in the order of their bytes.
    pub(crate) fn topics(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.topics.keys().map(|topic| &**topic)
    }

    /// The values of all topics that `subject` starts with, the longest topic first. Takes one
    /// search per topic found, and one more for each branch of neighbours that only nearly match.
    pub(crate) fn prefixes_of<'a>(&'a self, subject: &'a [u8]) -> PrefixesOf<'a, V> {
        PrefixesOf { topics: &self.topics, rest: Some(subject) }
    }
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self { topics: BTreeMap::new() }
    }
}

pub(crate) struct PrefixesOf<'a, V> {
    topics: &'a BTreeMap<Arc<[u8]>, V>,
    /// Only prefixes up to this long are left to find.
    rest: Option<&'a [u8]>,
}

impl<'a, V> Iterator for PrefixesOf<'a, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
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
