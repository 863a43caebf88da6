//! Endpoints of one process that send to each other.
//!
//! A provider may reach a peer in its own process through a plain pointer (shm does). Then an
//! endpoint must not be closed before all others have forgotten it. Each process keeps count here;
//! what cannot be closed when its domain is dropped is kept until the last other one has let go.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Code;

/// What is known of an endpoint of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many others send to it.
    Alive(usize),
    /// It is being closed.
    Dying,
}

/// By name.
static FAMILY: Mutex<Option<HashMap<Vec<u8>, State>>> = Mutex::new(None);

/// What waits to be closed, with the names that must be unknown first.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

type Kept = (Vec<Vec<u8>>, Box<dyn Any + Send>);

/// An endpoint of this process can be reached under this name from now on.
pub(super) fn born(name: &[u8]) {
    family(|family| family.insert(name.to_vec(), State::Alive(0)));
}

/// An endpoint was closed.
pub(super) fn died(name: &[u8]) {
    family(|family| family.remove(name));
}

/// Another endpoint of this process begins to send to this name. `is_ours` says whether it is one of
/// this process: shm never forgets where such a one had its memory, so it must not be asked.
///
/// # Errors
/// When the one of this name is being closed, or was.
pub(super) fn know(name: &[u8], is_ours: bool) -> Result<(), Code> {
    family(|family| match family.get_mut(name) {
        Some(State::Alive(count)) => {
            *count += 1;
            Ok(())
        }
        Some(State::Dying) => Err(Code::GONE),
        None if is_ours => Err(Code::GONE),
        None => Ok(()),
    })
}

/// It ended. What waited for that is closed.
pub(super) fn forget(name: &[u8]) {
    family(|family| {
        if let Some(State::Alive(count)) = family.get_mut(name) {
            *count = count.saturating_sub(1);
        }
    });
    release();
}

/// Whether nobody sends to this name. If so, nobody begins to any more, and it can be closed.
pub(super) fn retire(name: &[u8]) -> bool {
    retire_all(&[name])
}

/// Keeps `remains` until nobody knows any of `names`.
pub(crate) fn keep(names: Vec<Vec<u8>>, remains: Box<dyn Any + Send>) {
    locked(&KEPT).push((names, remains));
    release();
}

fn retire_all(names: &[impl AsRef<[u8]>]) -> bool {
    family(|family| {
        let is_known = |name| matches!(family.get(name), Some(State::Alive(1..)));
        if names.iter().any(|name| is_known(name.as_ref())) {
            return false;
        }
        for name in names {
            if let Some(state) = family.get_mut(name.as_ref()) {
                *state = State::Dying;
            }
        }
        true
    })
}

fn release() {
    let mut kept = locked(&KEPT);
    let free: Vec<_> = kept.extract_if(.., |(names, _)| retire_all(names)).collect();
    // Closing may bring others here.
    drop(kept);
    drop(free);
}

fn family<T>(job: impl FnOnce(&mut HashMap<Vec<u8>, State>) -> T) -> T {
    job(locked(&FAMILY).get_or_insert_default())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_is_known_stays_until_the_last_one_forgets_and_is_not_met_again() {
        let name = b"kin-test-one";
        born(name);
        know(name, true).unwrap();
        know(name, true).unwrap();
        forget(name);
        assert!(!retire(name));
        forget(name);
        assert!(retire(name));
        assert!(know(name, true).is_err());
        died(name);
        assert!(know(name, true).is_err());
        assert!(know(name, false).is_ok());
    }

    #[test]
    fn what_is_kept_goes_with_the_last_one_that_knows_it() {
        let (name, witness) = (b"kin-test-two", Arc::new(()));
        born(name);
        know(name, true).unwrap();
        keep(vec![name.to_vec()], Box::new(witness.clone()));
        assert_eq!(Arc::strong_count(&witness), 2);
        forget(name);
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
