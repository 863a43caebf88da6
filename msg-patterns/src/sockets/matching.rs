use std::sync::Arc;
use std::time::Duration;

use super::Handle;
use crate::Error;
use crate::driver::Patience;
use crate::roles::publisher::{Publisher, Publishes};

/// Follows how many connected subscribers would get a message with one subject. A handle to its
/// publisher as any other; made by [`Pub::matching_listener`](crate::Pub::matching_listener).
pub struct MatchingListener {
    pub(super) handle: Arc<Handle<Publisher>>,
    pub(super) subject: Vec<u8>,
    pub(super) seen: usize,
}

impl MatchingListener {
    pub(super) fn new(handle: Arc<Handle<Publisher>>, subject: &[u8]) -> Self {
        let seen = handle.shared.look(|core| core.role.matching(&core.net, subject));
        Self { handle, subject: subject.to_vec(), seen }
    }

    /// The number of subscribers when last looked at: when this was made, or by `next_change`.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Waits until the number of subscribers is another than the one last seen, and gives it. What
    /// changes back before it is looked at is not noticed.
    ///
    /// # Errors
    /// `TimedOut` or `Terminated`.
    pub fn next_change(&mut self, timeout: Duration) -> Result<usize, Error> {
        let (seen, subject) = (self.seen, &self.subject);
        let waits_for = "as many subscribers stayed";
        self.seen = wait(&self.handle, subject, timeout, waits_for, |count| count != seen)?;
        Ok(self.seen)
    }
}

impl std::fmt::Debug for MatchingListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MatchingListener").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Waits until the number of subscribers of `subject` is as `wanted`, and gives it.
pub(super) fn wait<R: Publishes>(
    handle: &Handle<R>,
    subject: &[u8],
    timeout: Duration,
    waits_for: &str,
    wanted: impl Fn(usize) -> bool,
) -> Result<usize, Error> {
    let found = handle.recv_until(Patience::For(timeout), |core| {
        Some(core.role.publisher().matching(&core.net, subject)).filter(|&count| wanted(count))
    });
    found.map_err(|error| match error.kind() {
        crate::ErrorKind::TimedOut => Error::timed_out(waits_for),
        _ => error,
    })
}
