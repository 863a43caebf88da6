//! D44: what libfabric would find.

use super::{Case, verdict};
use crate::finding::Finding;

/// Providers of libfabric that need a device.
const WITH_DEVICE: &[&str] = &["verbs", "efa", "psm", "psm2", "psm3", "opx", "usnic", "cxi", "mlx"];
/// Those that do not.
const WITHOUT: &[&str] = &["tcp", "net", "udp", "sockets", "shm", "sm2", "lnx"];

/// `FI_PROVIDER` leaves nothing that works here.
pub(super) fn d44_nothing_fits(case: &Case<'_>) -> Vec<Finding> {
    let asked = case.host.process.variable("FI_PROVIDER");
    let library = case.host.stack.libfabric.as_ref();
    let (Some(asked), Some(library)) = (asked, library) else { return Vec::new() };
    let has_device = !verdict::usable(case.host, &[]).is_empty();
    if asked.starts_with('^') || asked.split(',').any(|name| fits(name, has_device)) {
        return Vec::new();
    }
    let known = asked.split(',').any(|name| WITH_DEVICE.contains(&base(name)));
    let cause = if known {
        "these need an RDMA device that is up, and there is none"
    } else {
        "libfabric has no provider of that name"
    };
    let finding = Finding::warning(44)
        .seen(format!(
            "FI_PROVIDER={asked} with {}: fi_getinfo gives -61 (FI_ENODATA)",
            library.file
        ))
        .cause(cause)
        .command("env -u FI_PROVIDER fi_info");
    vec![finding]
}

fn fits(name: &str, has_device: bool) -> bool {
    let name = base(name);
    WITHOUT.contains(&name) || has_device && WITH_DEVICE.contains(&name)
}

/// Layers stand behind a semicolon: `tcp;ofi_rxm`.
fn base(name: &str) -> &str {
    name.split(';').next().unwrap_or_default().trim()
}
