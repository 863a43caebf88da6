//! What a subscriber asked for.

use crate::prefixes::PrefixMap;

/// The counted subscriptions of a subscriber (SUB-06). The same set filters what arrives (SUB-12)
/// and is sent in full to every publisher that comes or comes back (SUB-10, SUB-11).
#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    counts: PrefixMap<u64>,
}

impl Subscriptions {
    /// No subscription: nothing matches (SUB-02).
    pub fn new() -> Self {
        Self::default()
    }

    /// Subscribes to all subjects that start with `topic`. True if the publishers must be told,
    /// because it is the first subscription to this topic.
    pub fn subscribe(&mut self, topic: &[u8]) -> bool {
        if let Some(count) = self.counts.get_mut(topic) {
            *count += 1;
            return false;
        }
        self.counts.insert(topic.into(), 1);
        true
    }

    /// Takes back one subscription to `topic`; an unknown one is harmless (SUB-07). True if the
    /// publishers must be told, because it was the last one.
    pub fn cancel(&mut self, topic: &[u8]) -> bool {
        let Some(count) = self.counts.get_mut(topic) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.counts.remove(topic);
        }
        last
    }

    /// How many subscriptions to `topic` there are.
    pub fn count(&self, topic: &[u8]) -> u64 {
        self.counts.get(topic).copied().unwrap_or(0)
    }

    /// Whether a message on `subject` was asked for.
    pub fn matches(&self, subject: &[u8]) -> bool {
        self.counts.prefixes_of(subject).next().is_some()
    }

    /// Every topic once, in the order of its bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.counts.topics()
    }

    /// Every topic and how often it was subscribed to, in the order of its bytes.
    pub fn counts(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.counts.iter().map(|(topic, count)| (&**topic, *count))
    }

    /// The number of distinct topics.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sub_06_only_the_first_and_the_last_are_told() {
        let mut own = Subscriptions::new();
        assert!(own.subscribe(b"a") && !own.subscribe(b"a"));
        assert_eq!((own.count(b"a"), own.count(b"b")), (2, 0));
        assert!(!own.cancel(b"a") && own.matches(b"ab"));
        assert!(own.cancel(b"a") && !own.matches(b"ab"));
    }

    #[test]
    fn sub_07_cancelling_the_unknown_is_harmless() {
        let mut own = Subscriptions::new();
        own.subscribe(b"a");
        assert!(!own.cancel(b"") && !own.cancel(b"ab") && own.matches(b"a"));
    }

    #[test]
    fn sub_10_the_full_set_has_every_topic_once() {
        let mut own = Subscriptions::new();
        for topic in [&b"b"[..], b"", b"a", b"b"] {
            own.subscribe(topic);
        }
        assert!(own.iter().eq([&b""[..], b"a", b"b"]));
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_linear_scan(
            ops in prop::collection::vec((0u8..4, prop::collection::vec(0u8..3, 0..4)), 0..80),
        ) {
            let (mut own, mut model) = (Subscriptions::new(), BTreeMap::<Vec<u8>, u32>::new());
            for (op, topic) in ops {
                let before = model.get(&topic).copied().unwrap_or(0);
                match op {
                    0 | 1 => {
                        prop_assert_eq!(own.subscribe(&topic), before == 0);
                        model.insert(topic, before + 1);
                    }
                    2 => {
                        prop_assert_eq!(own.cancel(&topic), before == 1);
                        model.insert(topic, before.saturating_sub(1));
                    }
                    _ => prop_assert_eq!(own.matches(&topic),
                                         model.keys().any(|t| topic.starts_with(t))),
                }
                model.retain(|_, count| *count > 0);
                prop_assert!(own.iter().eq(model.keys().map(Vec::as_slice)));
                let counts = model.iter().map(|(topic, count)| (&topic[..], u64::from(*count)));
                prop_assert!(own.counts().eq(counts));
                prop_assert_eq!((own.len(), own.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
