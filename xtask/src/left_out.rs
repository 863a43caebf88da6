//! Crates that cannot be built on every host, and what that means for the workspace's tasks.

#[path = "../../fabric-verbs/build/needs.rs"]
mod needs;

/// The crate that needs libraries of the system, and why it cannot be built here, if so.
pub(crate) fn verbs() -> Option<(&'static str, String)> {
    needs::missing().map(|why| ("fabric-verbs", why))
}
