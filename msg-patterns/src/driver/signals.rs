//! Descriptors that say what may be done at a socket without waiting.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use slab::Slab;

use super::{Guard, Shared, State};
use crate::engine::Core;
use crate::roles::Role;
use crate::{Error, ErrorKind};

/// What a descriptor tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Something can be received.
    Incoming,
    /// Something can be sent.
    Room,
}

/// A descriptor that is readable as long as what it tells of holds.
#[derive(Debug)]
pub(super) struct Signal {
    fd: Arc<OwnedFd>,
    tells: Tells,
    raised: bool,
}

/// The descriptors of a socket.
#[derive(Debug, Default)]
pub(super) struct Signals(Slab<Signal>);

impl Signals {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes each as readable as `holds` says.
    fn update(&mut self, mut holds: impl FnMut(Tells) -> bool) {
        for (_, signal) in &mut self.0 {
            signal.set(holds(signal.tells));
        }
    }
}

impl Signal {
    fn set(&mut self, raised: bool) {
        if raised == self.raised {
            return;
        }
        self.raised = raised;
        // Neither can fail: the count is 0 or 1, and goes to the other.
        if raised {
            let _ = write(&*self.fd, &1_u64.to_ne_bytes());
        } else {
            let _ = read(&*self.fd, &mut [0_u8; 8]);
        }
    }
}

/// A socket, to whoever holds a descriptor of it.
pub(crate) trait SignalSource: Send + Sync {
    /// The descriptor is not looked at any more.
    fn remove_signal(&self, key: usize);
}

impl<R: Role> Shared<R> {
    /// A new descriptor and its key.
    ///
    /// # Errors
    /// `Limit` when the host has none to spare.
    pub(crate) fn add_signal(&self, tells: Tells) -> Result<(Arc<OwnedFd>, usize), Error> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| {
            let text = format!("no descriptor: raise the limit of open files ({error})");
            Error::new(ErrorKind::Limit, text)
        })?;
        let fd = Arc::new(fd);
        let mut state = self.lock();
        let key = state.signals.0.insert(Signal { fd: fd.clone(), tells, raised: false });
        state.sleepers += 1;
        self.update_signals(&mut state);
        self.flags.drive_for_tasks(&self.background);
        Ok((fd, key))
    }

    /// What holds may have changed.
    #[cold]
    pub(super) fn update_signals(&self, state: &mut Guard<'_, R>) {
        let over = self.is_over(state);
        let State { core: Core { net, role }, signals, .. } = &mut **state;
        signals.update(|tells| {
            over || match tells {
                Tells::Incoming => role.has_incoming(),
                Tells::Room => role.has_room(net),
            }
        });
    }
}

impl<R: Role> SignalSource for Shared<R> {
    fn remove_signal(&self, key: usize) {
        let mut state = self.lock();
        if state.signals.0.try_remove(key).is_some() {
            state.sleepers -= 1;
            self.set_awaited(&state);
        }
    }
}
