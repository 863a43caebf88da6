//! D01 to D03 and D05: libraries and drivers in user space.

use super::{Case, offered};
use crate::facts::{Device, Stack};
use crate::finding::Finding;

/// The device is in the kernel, but the library cannot drive it.
pub(super) fn d01_no_driver(case: &Case<'_>) -> Vec<Finding> {
    let stack = &case.host.stack;
    let Some(library) = &stack.verbs else {
        return offered(case).next().map(|device| no_library(stack, device)).into_iter().collect();
    };
    if !stack.has_config_dir || library.is_legacy() {
        return Vec::new();
    }
    offered(case).filter_map(|device| no_driver(stack, device)).collect()
}

fn no_library(stack: &Stack, device: &Device) -> Finding {
    Finding::error(1)
        .seen(format!("{} is there, libibverbs.so.1 is in no directory of libraries", device.name))
        .cause("the user part of RDMA is not installed")
        .command(stack.install("libibverbs1 librdmacm1 ibverbs-providers", "libibverbs librdmacm"))
}

fn no_driver(stack: &Stack, device: &Device) -> Option<Finding> {
    let provider = device.provider()?;
    let kernel = device.driver.as_deref().unwrap_or_default();
    let level = stack.driver_level.map_or_else(|| "?".to_owned(), |level| level.to_string());
    let wanted = format!("lib{provider}-rdmav{level}.so");
    let finding = Finding::error(1).about(&device.name);
    if stack.driver_file(provider).is_some() {
        let dir = stack.config_dir.as_deref().unwrap_or_default();
        let missing = (!stack.names_driver(provider)).then_some(finding)?;
        return Some(
            missing
                .seen(format!("{wanted} is there, {dir}/{provider}.driver is not"))
                .cause("the library loads only drivers that are named there")
                .command(stack.reinstall("ibverbs-providers", "libibverbs")),
        );
    }
    Some(match stack.other_driver_file(provider) {
        Some(other) => finding
            .seen(format!("the library takes {wanted}, there is {other}"))
            .cause("library and driver are of different versions, or of different stacks")
            .command(stack.reinstall("libibverbs1 ibverbs-providers", "libibverbs")),
        None => finding
            .seen(format!("kernel driver {kernel} is loaded, {wanted} is not there"))
            .cause("the package with the user drivers is not installed")
            .command(stack.install("ibverbs-providers", "libibverbs")),
    })
}

/// The library looks for drivers in a directory that is not there.
pub(super) fn d02_no_config_dir(case: &Case<'_>) -> Vec<Finding> {
    let stack = &case.host.stack;
    let (Some(library), Some(dir)) = (&stack.verbs, &stack.config_dir) else { return Vec::new() };
    if stack.has_config_dir || offered(case).next().is_none() {
        return Vec::new();
    }
    let (cause, command) = if dir == "/etc/libibverbs.d" {
        ("the package with the user drivers is not installed", {
            stack.install("ibverbs-providers", "libibverbs")
        })
    } else {
        ("a library with a prefix of its own (conda, a container's) shadows the host's", {
            "env -u LD_LIBRARY_PATH fabric doctor".to_owned()
        })
    };
    let seen = format!("{} looks for drivers in {dir}, which does not exist", library.path);
    vec![Finding::error(2).seen(seen).cause(cause).command(command)]
}

/// Which versions of what is spoken with the kernel a user driver knows, least and most, where it
/// is the same in all versions of rdma-core.
const SPOKEN: &[(&str, u64, u64)] =
    &[("mlx4", 2, 4), ("mlx5", 1, 1), ("rxe", 1, 2), ("irdma", 0, 5)];

/// Kernel and user driver speak different versions.
pub(super) fn d03_versions(case: &Case<'_>) -> Vec<Finding> {
    offered(case).filter_map(|device| versions(&case.host.stack, device)).collect()
}

fn versions(stack: &Stack, device: &Device) -> Option<Finding> {
    let verbs = device.verbs.as_ref()?;
    let kernel = verbs.abi_version?;
    let provider = device.provider()?;
    let (_, least, most) = SPOKEN.iter().find(|(name, ..)| *name == provider)?;
    if (*least..=*most).contains(&kernel) {
        return None;
    }
    let finding = Finding::error(3)
        .about(&device.name)
        .seen(format!(
            "{}/abi_version is {kernel}; the user driver {provider} speaks {least} to {most}",
            verbs.name
        ))
        .cause("rdma-core and the kernel are too far apart");
    Some(if kernel > *most {
        finding.command(stack.upgrade("rdma-core ibverbs-providers", "rdma-core"))
    } else {
        finding.command("uname -r && echo 'upgrade the kernel, then reboot'")
    })
}

/// Half of one stack, half of another.
pub(super) fn d05_mixed(case: &Case<'_>) -> Vec<Finding> {
    let mixed = modules(case).or_else(|| vendors(case)).or_else(|| legacy(case));
    mixed.into_iter().collect()
}

/// Modules that must come from one source.
const TOGETHER: &[&str] = &["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "mlx4_ib"];

fn modules(case: &Case<'_>) -> Option<Finding> {
    let kernel = &case.host.kernel;
    let loaded = TOGETHER.iter().filter(|name| kernel.has_module(name));
    let (foreign, own): (Vec<&str>, Vec<&str>) =
        loaded.partition(|name| kernel.foreign_modules.contains_key(**name));
    let version = foreign.first().and_then(|name| kernel.foreign_modules.get(*name))?;
    if own.is_empty() {
        return None;
    }
    let seen = format!(
        "{} of version {version}, {} of the kernel's own",
        foreign.join(", "),
        own.join(", ")
    );
    let finding = Finding::error(5)
        .seen(seen)
        .cause("an update of the kernel brought back some of the modules that a vendor replaced")
        .command("depmod -a && reboot");
    Some(finding)
}

fn vendors(case: &Case<'_>) -> Option<Finding> {
    let vendor = case.host.stack.vendor.as_deref()?;
    let kernel = case.host.kernel.foreign_modules.get("mlx5_core")?;
    let (user, loaded) = (major(vendor.rsplit_once("LINUX-")?.1)?, major(kernel)?);
    let finding = Finding::error(5)
        .seen(format!("user space is {vendor}, the kernel's mlx5_core is {kernel}"))
        .cause("the vendor supports only one version on both sides; usual in containers")
        .command("ofed_info -s && modinfo -F version mlx5_core");
    (user != loaded).then_some(finding)
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

fn legacy(case: &Case<'_>) -> Option<Finding> {
    let stack = &case.host.stack;
    let library = stack.verbs.as_ref().filter(|library| library.is_legacy())?;
    offered(case).next()?;
    let finding = Finding::error(5)
        .seen(format!("{} is {}", library.path, library.file))
        .cause("a libibverbs from before rdma-core (MLNX_OFED 4 and older): other structures")
        .command(stack.install("libibverbs1 ibverbs-providers", "libibverbs"));
    Some(finding)
}
