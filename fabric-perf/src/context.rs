//! The context of what is measured.

use msg_patterns::Context;

use crate::plan::Task;

/// A context for one socket of each peer, and some more.
pub(crate) fn context(task: &Task) -> Context {
    let context = Context::with_sockets_max(task.peers.saturating_add(SPARE_SOCKETS));
    if task.settings.busy_poll { awake(context) } else { context }
}

const SPARE_SOCKETS: usize = 16;

/// Nobody sleeps, so providers need no descriptor to sleep on.
#[cfg(feature = "libfabric")]
fn awake(context: Context) -> Context {
    use fabric_libfabric::{LibfabricFabric, LibfabricOptions};

    let options = LibfabricOptions { wait_object: false, ..LibfabricOptions::default() };
    context.with_fabric(LibfabricFabric::new(options))
}

#[cfg(not(feature = "libfabric"))]
fn awake(context: Context) -> Context {
    context
}
