//! Tasks that wait for a socket: their wakers, and what each waits for.

use std::task::Waker;

use slab::Slab;
use smallvec::SmallVec;

/// A task's place in a socket's table, while it waits there.
pub(crate) type Ticket = Option<usize>;

/// What a task waits for. Those whose wait cannot be over sleep on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Anything that happens: a message, room, a subscriber.
    Anything,
    /// What becomes of one request.
    Reply(u64),
    /// Another event for monitors than the so many told until now.
    Event(u64),
    /// That the socket is closed.
    End,
}

/// Wakers that were taken out, to be called once the socket's lock is free: they run foreign code.
pub(crate) type Wakers = SmallVec<[Waker; 2]>;

/// The tasks that wait for one socket. A task that was woken keeps its place until it has looked.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    entries: Slab<Entry>,
    /// Entries with a waker.
    asleep: usize,
}

#[derive(Debug)]
struct Entry {
    awaits: Awaits,
    waker: Option<Waker>,
}

impl Tasks {
    /// How many are to be woken.
    pub(crate) fn asleep(&self) -> usize {
        self.asleep
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The task behind `waker` waits from now on, in the place that it has or in a new one.
    pub(crate) fn register(&mut self, ticket: &mut Ticket, awaits: Awaits, waker: &Waker) {
        let key = *ticket.get_or_insert_with(|| self.entries.insert(Entry { awaits, waker: None }));
        let entry = &mut self.entries[key];
        entry.awaits = awaits;
        match &mut entry.waker {
            Some(known) => known.clone_from(waker),
            none => {
                *none = Some(waker.clone());
                self.asleep += 1;
            }
        }
    }

    /// The task does not wait any more.
    pub(crate) fn forget(&mut self, ticket: &mut Ticket) {
        let Some(key) = ticket.take() else { return };
        self.asleep -= usize::from(self.entries.remove(key).waker.is_some());
    }

    /// Takes the wakers of those whose wait may be over.
    pub(crate) fn take(&mut self, mut is_over: impl FnMut(Awaits) -> bool) -> Wakers {
        if self.asleep == 0 {
            return Wakers::new();
        }
        let due = self.entries.iter_mut().filter(|(_, entry)| is_over(entry.awaits));
        let taken: Wakers = due.filter_map(|(_, entry)| entry.waker.take()).collect();
        self.asleep -= taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waker() -> &'static Waker {
        Waker::noop()
    }

    #[test]
    fn a_task_is_woken_once_for_each_time_it_registers() {
        let (mut tasks, mut ticket) = (Tasks::default(), None);
        tasks.register(&mut ticket, Awaits::Anything, waker());
        tasks.register(&mut ticket, Awaits::Anything, waker());
        assert_eq!((tasks.asleep(), tasks.take(|_| true).len()), (1, 1));
        assert_eq!((tasks.asleep(), tasks.take(|_| true).len()), (0, 0));
        tasks.register(&mut ticket, Awaits::Anything, waker());
        assert_eq!(tasks.take(|_| true).len(), 1);
    }

    #[test]
    fn only_those_whose_wait_may_be_over_are_woken() {
        let mut tasks = Tasks::default();
        let mut tickets = [None, None, None];
        let all = [Awaits::Anything, Awaits::Reply(1), Awaits::Reply(2)];
        for (ticket, awaits) in tickets.iter_mut().zip(all) {
            tasks.register(ticket, awaits, waker());
        }
        assert_eq!(tasks.take(|awaits| awaits != Awaits::Reply(1)).len(), 2);
        assert_eq!(tasks.asleep(), 1);
    }

    #[test]
    fn who_leaves_takes_its_registration_back() {
        let (mut tasks, mut first, mut second) = (Tasks::default(), None, None);
        tasks.register(&mut first, Awaits::End, waker());
        tasks.register(&mut second, Awaits::End, waker());
        assert_eq!(tasks.take(|_| true).len(), 2);
        tasks.register(&mut second, Awaits::End, waker());
        tasks.forget(&mut first);
        assert_eq!((first, tasks.asleep(), tasks.entries.len()), (None, 1, 1));
        tasks.forget(&mut second);
        tasks.forget(&mut second);
        assert_eq!((tasks.asleep(), tasks.entries.len()), (0, 0));
    }
}
