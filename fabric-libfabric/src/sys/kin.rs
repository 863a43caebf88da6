//! Endpoints of one process that send to each other.
//!
//! A provider may reach a peer in its own process through a plain pointer (shm does). Then an
//! endpoint must not be closed before all others have forgotten it. Each process keeps count here;
//! what cannot be closed when its domain is dropped is kept until the last other one has let go.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By name: how many others of this process know it.
static ALIVE: Mutex<Option<HashMap<Vec<u8>, usize>>> = Mutex::new(None);

/// What waits to be closed, with the names that must be unknown first.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

type Kept = (Vec<Vec<u8>>, Box<dyn Any + Send>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An endpoint of this process can be reached under this name from now on.
pub(super) fn born(name: &[u8]) {
    locked(&ALIVE).get_or_insert_default().insert(name.to_vec(), 0);
}

/// An endpoint is about to be closed.
pub(super) fn died(name: &[u8]) {
    locked(&ALIVE).get_or_insert_default().remove(name);
}

/// Another endpoint of this process begins to send to this name.
pub(super) fn know(name: &[u8]) {
    if let Some(count) = locked(&ALIVE).get_or_insert_default().get_mut(name) {
        *count += 1;
    }
}

/// It ended. What waited for that is closed.
pub(super) fn forget(name: &[u8]) {
    if let Some(count) = locked(&ALIVE).get_or_insert_default().get_mut(name) {
        *count = count.saturating_sub(1);
    }
    release();
}

/// Whether another endpoint of this process sends to this name.
pub(super) fn is_known(name: &[u8]) -> bool {
    locked(&ALIVE).get_or_insert_default().get(name).is_some_and(|count| *count > 0)
}

/// Keeps `remains` until nobody knows any of `names`.
pub(crate) fn keep(names: Vec<Vec<u8>>, remains: Box<dyn Any + Send>) {
    locked(&KEPT).push((names, remains));
    release();
}

fn release() {
    let is_free = |names: &[Vec<u8>]| !names.iter().any(|name| is_known(name));
    let mut kept = locked(&KEPT);
    let free: Vec<_> = kept.extract_if(.., |(names, _)| is_free(names)).collect();
    // Closing may bring others here.
    drop(kept);
    drop(free);
}
