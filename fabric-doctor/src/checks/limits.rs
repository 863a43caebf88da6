//! D12, D13, D16, D47: limits of this process and this host.

use super::{Case, error_if};
use crate::facts::Limit;
use crate::finding::Finding;
use crate::size::Size;

/// One socket locks its pool of 192 slots of 64 KiB, packets and queues.
pub(crate) const LOCKED_MIN_BYTES: u64 = 16 << 20;
/// A process with a handful of sockets.
pub(crate) const LOCKED_WANTED_BYTES: u64 = 64 << 20;

/// The limit of locked memory that binds this process, if one does and there is a device.
fn locked(case: &Case<'_>) -> Option<u64> {
    let process = &case.host.process;
    let bound = !process.may_lock_all && !case.host.devices.is_empty();
    process.locked_bytes.filter(|_| bound)?.soft
}

/// Devices reach only locked memory, and too little may be locked.
pub(super) fn d12_locked(case: &Case<'_>) -> Vec<Finding> {
    let limit = locked(case).filter(|limit| *limit < LOCKED_WANTED_BYTES);
    let finding = |limit: u64| {
        let (needed, enough) = (Size(LOCKED_MIN_BYTES), Size(LOCKED_WANTED_BYTES));
        let command = if case.host.container.is_some() {
            "docker run --ulimit memlock=-1 ...".to_owned()
        } else {
            "ulimit -l unlimited  # a service: LimitMEMLOCK=infinity".to_owned()
        };
        Finding::new(12, error_if(limit < LOCKED_MIN_BYTES))
            .seen(format!(
                "needs {needed} locked for one socket, {enough} for several, limit is {} \
                 (RLIMIT_MEMLOCK {limit})",
                Size(limit)
            ))
            .cause("the usual limits are for passwords, not for buffers")
            .command(command)
    };
    limit.map(finding).into_iter().collect()
}

/// Somebody raised the limit, and this process still has the old one.
pub(super) fn d13_not_applied(case: &Case<'_>) -> Vec<Finding> {
    let Some(limit) = locked(case).filter(|limit| *limit < LOCKED_WANTED_BYTES) else {
        return Vec::new();
    };
    let configured = case.host.configured_locked.as_deref().filter(|text| raises(text, limit));
    let parent = case.host.process.parent_locked_bytes.filter(|parent| exceeds(*parent, limit));
    let seen = match (configured, parent) {
        (Some(text), _) => format!("limits.conf says memlock {text}"),
        (None, Some(Limit { soft: Some(soft), .. })) => format!("the parent has {}", Size(soft)),
        (None, Some(_)) => "the parent has no limit".to_owned(),
        (None, None) => return Vec::new(),
    };
    let finding = Finding::warning(13)
        .seen(format!("{seen}, this process still has {} ({limit} bytes)", Size(limit)))
        .cause("limits.conf is for new logins: services, mpirun and old sessions keep their limit")
        .command("prlimit --memlock=unlimited --pid $PPID");
    vec![finding]
}

/// Its unit is KiB.
fn raises(configured: &str, limit: u64) -> bool {
    match configured {
        "unlimited" | "infinity" | "-1" => true,
        number => number.parse::<u64>().is_ok_and(|kib| kib.saturating_mul(1024) > limit),
    }
}

fn exceeds(other: Limit, limit: u64) -> bool {
    other.soft.is_none_or(|soft| soft > limit)
}

/// Each connection of TCP takes a descriptor.
const FREE_MIN: u64 = 16;
const FREE_WANTED: u64 = 256;

/// Soon no peer can be accepted.
pub(super) fn d16_descriptors(case: &Case<'_>) -> Vec<Finding> {
    let process = &case.host.process;
    let Some(limit) = process.descriptors.and_then(|limit| limit.soft) else { return Vec::new() };
    let open = process.descriptors_open as u64;
    let free = limit.saturating_sub(open);
    if free >= FREE_WANTED {
        return Vec::new();
    }
    let finding = Finding::new(16, error_if(free < FREE_MIN))
        .seen(format!("{open} of {limit} descriptors open (RLIMIT_NOFILE)"))
        .cause("each peer takes one; at the limit new peers are refused")
        .command("ulimit -n 65536  # a service: LimitNOFILE=65536");
    vec![finding]
}

/// What listeners ask for.
const BACKLOG_WANTED: u64 = 1024;

/// Many peers that connect at once are turned away.
pub(super) fn d47_backlog(case: &Case<'_>) -> Vec<Finding> {
    let limit = case.host.kernel.backlog_max.filter(|limit| *limit < BACKLOG_WANTED);
    let finding = |limit: u64| {
        Finding::warning(47)
            .seen(format!("net.core.somaxconn is {limit}, listeners ask for {BACKLOG_WANTED}"))
            .cause("the kernel cuts the queue of connections that wait to be accepted")
            .command("sysctl -w net.core.somaxconn=4096")
    };
    limit.map(finding).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_limit_counts_if_it_is_above_the_one_that_holds() {
        assert!(raises("unlimited", 1) && raises("9", 9000) && !raises("8", 9000));
        assert!(!raises("soft", 1));
    }
}
