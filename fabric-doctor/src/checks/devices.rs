//! D11, D15, D18, D19: devices that are seen and cannot be used.

use super::{Case, offered};
use crate::facts::{Device, DeviceFile, Host};
use crate::finding::Finding;

/// sysfs shows every device of a host, `/dev/infiniband` only those that were passed in.
pub(super) fn d11_no_file(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let lacking = offered(case).filter(|device| file(device).is_some_and(|file| !file.exists));
    lacking.map(|device| no_file(host, device)).collect()
}

fn file(device: &Device) -> Option<&DeviceFile> {
    device.verbs.as_ref().map(|verbs| &verbs.file)
}

fn no_file(host: &Host, device: &Device) -> Finding {
    let path = file(device).map(|file| file.path.as_str()).unwrap_or_default();
    let passed = host.device_files.iter().filter(|name| name.starts_with("uverbs")).count();
    let seen =
        format!("{path} does not exist: {} devices in sysfs, {passed} files", host.devices.len());
    let finding = Finding::error(11).about(&device.name).seen(seen);
    match &host.container {
        Some(_) => finding
            .cause("the file was not passed to this container")
            .command(format!("docker run --device={path} ...")),
        None => finding
            .cause("nothing made the file (udev), or it was removed")
            .command("udevadm trigger --subsystem-match=infiniband_verbs"),
    }
}

/// The file is there and this process may not open it.
pub(super) fn d15_no_permission(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let devices = offered(case).filter_map(|device| {
        let finding = no_permission(host, file(device)?)?;
        Some(finding.about(&device.name))
    });
    let manager = Some(&host.kernel.cm_file).filter(|_| !host.devices.is_empty());
    devices.chain(manager.and_then(|file| no_permission(host, file))).collect()
}

fn no_permission(host: &Host, file: &DeviceFile) -> Option<Finding> {
    let permissions = file.permissions?;
    if file.refusal.is_none() && host.process.may_open(permissions) {
        return None;
    }
    let owner = file.owner.as_deref().unwrap_or_default();
    let uid = host.process.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string());
    let refusal = file.refusal.as_deref().unwrap_or("permission denied");
    let path = &file.path;
    let finding = Finding::error(15).seen(format!("{path} is {owner}, user {uid}: {refusal}"));
    Some(match &host.container {
        Some(_) if permissions.mode & 0o6 == 0o6 => finding
            .cause("the container's device rules do not allow it")
            .command(format!("docker run --device={path} ...")),
        _ => finding
            .cause("no udev rule opens it to users, or the group is another one")
            .command(format!("chmod 0666 {path}")),
    })
}

/// Namespaces share devices, so this one sees what it cannot use.
pub(super) fn d18_shared(case: &Case<'_>) -> Vec<Finding> {
    let host = case.host;
    let apart = host.devices.iter().any(|device| foreign(host, device).is_some());
    if host.kernel.exclusive_namespaces != Some(false) || !apart {
        return Vec::new();
    }
    let finding = Finding::note(18)
        .seen("the mode of RDMA network namespaces is shared (rdma netlink)")
        .cause("each namespace sees all devices; exclusive must be set before namespaces are made")
        .command("rdma system set netns exclusive");
    vec![finding]
}

/// The device is here, its network interface is elsewhere.
pub(super) fn d19_no_interface(case: &Case<'_>) -> Vec<Finding> {
    offered(case).filter_map(|device| no_interface(case.host, device)).collect()
}

fn no_interface(host: &Host, device: &Device) -> Option<Finding> {
    let empty = device.ports.iter().find(|port| port.gid_places > 0 && port.gids.is_empty());
    let seen = match (empty, foreign(host, device)) {
        (Some(port), _) => {
            format!("all {} addresses of port {} are zero", port.gid_places, port.number)
        }
        (None, Some(interface)) => {
            format!("its addresses are of {interface}, which is not in this network namespace")
        }
        (None, None) => return None,
    };
    let finding = Finding::error(19)
        .about(&device.name)
        .seen(seen)
        .cause("the container has the device, but not its network interface")
        .command("docker run --network=host ...");
    Some(finding)
}

/// The interface of a device if it is not in this namespace.
fn foreign<'a>(host: &Host, device: &'a Device) -> Option<&'a str> {
    device.interface().filter(|name| !host.has_interface(name))
}
