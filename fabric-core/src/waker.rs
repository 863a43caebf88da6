//! Waking a thread that sleeps in `Domain::wait`.

use std::fmt;
use std::sync::Arc;

/// What a provider implements to have its `wait` interrupted.
pub trait Wake: Send + Sync {
    /// Makes the current or the next `wait` of the domain return soon. May be called from any
    /// thread, any number of times, also after the domain is gone.
    fn wake(&self);
}

/// Interrupts `Domain::wait` from another thread. Cheap to clone.
#[derive(Clone)]
pub struct Waker(Arc<dyn Wake>);

impl Waker {
    /// A waker that calls `wake`.
    pub fn new(wake: Arc<dyn Wake>) -> Self {
        Self(wake)
    }

    /// Makes the current or the next `wait` of the domain return soon.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}
