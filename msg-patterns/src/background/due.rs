//! When sockets are to be looked at.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Key;
use crate::ids::IdMap;

/// At most one time for each socket. Only entries that change are touched.
#[derive(Debug, Default)]
pub(super) struct Due {
    order: BTreeSet<(Instant, Key)>,
    of: IdMap<Key, Instant>,
}

impl Due {
    /// Sets or takes away the time of a socket.
    pub(super) fn set(&mut self, key: Key, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }

    /// The earliest time.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the socket whose time came first, if it has come by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Key> {
        let &(at, key) = self.order.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_socket_has_its_last_time_only() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut due = Due::default();
        due.set(1, Some(later));
        due.set(2, Some(later));
        due.set(1, Some(now));
        due.set(2, None);
        assert_eq!((due.next(), due.pop(now), due.pop(later)), (Some(now), Some(1), None));
        assert_eq!(due.next(), None);
    }

    proptest! {
        #[test]
        fn sockets_come_in_the_order_of_their_times(
            times in prop::collection::vec((0..20_u64, prop::option::of(0..50_u64)), 0..100),
        ) {
            let start = Instant::now();
            let at = |millis| start + Duration::from_millis(millis);
            let (mut due, mut model) = (Due::default(), std::collections::BTreeMap::new());
            for (key, millis) in times {
                due.set(key, millis.map(at));
                model.insert(key, millis);
            }
            let mut expected: Vec<_> =
                model.into_iter().filter_map(|(key, millis)| Some((millis?, key))).collect();
            expected.sort_unstable();
            let found: Vec<_> = std::iter::from_fn(|| due.pop(at(50))).collect();
            prop_assert_eq!(found, expected.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
        }
    }
}
