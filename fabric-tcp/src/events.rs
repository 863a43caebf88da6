//! Events waiting for the next poll.

use std::collections::VecDeque;

use fabric_core::Event;

/// A queue in which a place can be kept for an event that is not finished yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<Option<Event>>,
}

/// A place kept in the queue. Valid until the next `take`.
#[derive(Debug)]
pub(crate) struct Place(usize);

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        self.queue.push_back(Some(event));
    }

    /// Keeps a place: events pushed before it is filled come after it.
    pub(crate) fn reserve(&mut self) -> Place {
        self.queue.push_back(None);
        Place(self.queue.len() - 1)
    }

    pub(crate) fn fill(&mut self, place: &Place, event: Event) {
        if let Some(entry) = self.queue.get_mut(place.0) {
            *entry = Some(event);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Moves up to `max` events out and says how many.
    pub(crate) fn take(&mut self, into: &mut Vec<Event>, max: usize) -> usize {
        let before = into.len();
        let count = max.min(self.queue.len());
        into.extend(self.queue.drain(..count).flatten());
        into.len() - before
    }
}

#[cfg(test)]
mod tests {
    use fabric_core::{EpId, Error, ErrorKind};

    use super::*;

    fn event(ep: u64) -> Event {
        Event::Closed { ep: EpId(ep), why: Error::new(ErrorKind::Closed, "test") }
    }

    #[test]
    fn a_kept_place_comes_before_what_was_pushed_meanwhile() {
        let mut events = Events::default();
        let place = events.reserve();
        events.push(event(2));
        events.fill(&place, event(1));
        let mut out = Vec::new();
        assert_eq!((events.take(&mut out, 1), events.take(&mut out, 9)), (1, 1));
        let order: Vec<_> =
            out.iter().map(|e| matches!(e, Event::Closed { ep: EpId(1), .. })).collect();
        assert_eq!(order, [true, false]);
    }
}
