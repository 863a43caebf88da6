//! Links: listing, making, removing.

use std::io;

use fabric_core::{Error, ErrorKind};
use rustix::io::Errno;

use crate::channel::Channel;
use crate::interface;
use crate::message::{Attribute, Command, DRIVER_RXE, Message, PORT_ACTIVE};
use crate::status::{self, Doing};

/// The kernel's limit for names of devices, with the zero behind it.
const NAME_BYTES_MAX: usize = 63;

/// A soft-RoCE device on a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name as an RDMA device: `rxe0`.
    pub name: String,
    /// The interface that its packets take: `eth0`.
    pub interface: String,
    /// Whether its port is up, which it is when its interface is.
    pub active: bool,
    /// The kernel's number for the device; no other gets it while the host is up.
    pub(crate) index: u32,
}

/// All soft-RoCE links that this network namespace sees.
///
/// # Errors
/// `Host` when the kernel has no RDMA, `TimedOut` or `Provider` when it does not say.
pub fn links() -> Result<Vec<Link>, Error> {
    list().map_err(|refusal| status::error(Doing::List, refusal))
}

/// The soft-RoCE link on an interface, if there is one.
///
/// # Errors
/// `Address` when there is no such interface, `Unsupported` when it can have none, otherwise as
/// [`links`].
pub fn link_on(interface: &str) -> Result<Option<Link>, Error> {
    interface::check(interface)?;
    Ok(links()?.into_iter().find(|link| link.interface == interface))
}

/// Makes a soft-RoCE link called `name` on an interface. It stays until it is removed or the host
/// goes down.
///
/// # Errors
/// `Misuse` for a name that no device can have, `Address` when there is no such interface,
/// `Unsupported` when it can have no link (the loopback), `Host` when the kernel lacks the module
/// `rdma_rxe`, when this process may not (`CAP_NET_ADMIN`), or when the interface has a link or
/// another device the name already.
pub fn add(name: &str, interface: &str) -> Result<Link, Error> {
    check_name(name)?;
    interface::check(interface)?;
    make(name, interface).map_err(|refusal| status::error(Doing::Add(name, interface), refusal))
}

/// Removes the soft-RoCE link called `name`. Whoever uses the device loses it.
///
/// # Errors
/// `Misuse` when there is no soft-RoCE link of that name, `Host` when this process may not
/// (`CAP_NET_ADMIN`), otherwise as [`links`].
pub fn remove(name: &str) -> Result<(), Error> {
    let link = links()?.into_iter().find(|link| link.name == name);
    let link = link.ok_or_else(|| Error::misuse(status::no_such_link(name)))?;
    remove_link(&link)
}

pub(crate) fn remove_link(link: &Link) -> Result<(), Error> {
    let attributes = vec![Attribute::DeviceIndex(link.index)];
    let removed = Channel::open()
        .and_then(|mut channel| channel.ask(Message { command: Command::LINK_DELETE, attributes }));
    removed.map(drop).map_err(|refusal| status::error(Doing::Remove(&link.name), refusal))
}

fn check_name(name: &str) -> Result<(), Error> {
    let letters = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/%".contains(&byte));
    if letters && !name.starts_with('.') && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let text = format!("`{name}` is no name for a device: use up to 63 letters, digits and _");
    Err(Error::new(ErrorKind::Misuse, text))
}

fn make(name: &str, interface: &str) -> io::Result<Link> {
    let mut channel = Channel::open()?;
    let attributes = vec![
        Attribute::DeviceName(name.into()),
        Attribute::InterfaceName(interface.into()),
        Attribute::LinkType("rxe".into()),
    ];
    channel.ask(Message { command: Command::LINK_NEW, attributes })?;
    let devices = devices(&mut channel)?;
    let made = devices.into_iter().find(|device| device.name == name);
    let made = made.ok_or_else(|| io::Error::other("the new device is gone already"))?;
    described(&mut channel, made)?.ok_or_else(|| io::Error::other("the new device has no port"))
}

struct Device {
    index: u32,
    name: String,
}

fn list() -> io::Result<Vec<Link>> {
    let mut channel = Channel::open()?;
    let mut links = Vec::new();
    for device in devices(&mut channel)? {
        if is_soft(&mut channel, &device)? {
            links.extend(described(&mut channel, device)?);
        }
    }
    Ok(links)
}

fn devices(channel: &mut Channel) -> io::Result<Vec<Device>> {
    let all = Message { command: Command::DEVICE_GET, attributes: Vec::new() };
    Ok(channel.ask_all(all)?.iter().filter_map(device).collect())
}

fn device(answer: &Message) -> Option<Device> {
    let index = answer.find(|attribute| match attribute {
        Attribute::DeviceIndex(index) => Some(*index),
        _ => None,
    })?;
    let name = answer.find(|attribute| match attribute {
        Attribute::DeviceName(name) => Some(name.clone()),
        _ => None,
    })?;
    Some(Device { index, name })
}

/// Only the driver tells soft-RoCE from hardware.
fn is_soft(channel: &mut Channel, device: &Device) -> io::Result<bool> {
    let attributes =
        vec![Attribute::DeviceIndex(device.index), Attribute::CharDeviceType("uverbs".into())];
    let question = Message { command: Command::CHAR_DEVICE_GET, attributes };
    let answers = unless_gone(channel.ask(question))?;
    Ok(answers.iter().any(|answer| answer.attributes.contains(&Attribute::DriverId(DRIVER_RXE))))
}

/// The link of a device, by its only port.
fn described(channel: &mut Channel, device: Device) -> io::Result<Option<Link>> {
    let attributes = vec![Attribute::DeviceIndex(device.index), Attribute::PortIndex(1)];
    let answers = unless_gone(channel.ask(Message { command: Command::PORT_GET, attributes }))?;
    let Some(port) = answers.first() else { return Ok(None) };
    let interface = port.find(|attribute| match attribute {
        Attribute::InterfaceName(interface) => Some(interface.clone()),
        _ => None,
    });
    let active = port.attributes.contains(&Attribute::PortState(PORT_ACTIVE));
    let Device { index, name } = device;
    Ok(interface.map(|interface| Link { name, interface, active, index }))
}

/// A device may go between two questions, or be going; one that no program can use has no character
/// device.
fn unless_gone(answers: io::Result<Vec<Message>>) -> io::Result<Vec<Message>> {
    const GONE: [Errno; 4] = [Errno::INVAL, Errno::NODEV, Errno::NOENT, Errno::OPNOTSUPP];
    match answers {
        Err(error) if Errno::from_io_error(&error).is_some_and(|errno| GONE.contains(&errno)) => {
            Ok(Vec::new())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_be_one_that_the_kernel_takes_as_it_is() {
        assert!(check_name("rxe_eth0.100").is_ok());
        for name in ["", "rxe%d", "a/b", "..", "a b", "a\n", &"a".repeat(64)] {
            assert_eq!(check_name(name).unwrap_err().kind(), ErrorKind::Misuse, "{name}");
        }
    }

    #[test]
    fn a_device_without_a_name_is_none() {
        let attributes = vec![Attribute::DeviceIndex(3)];
        assert!(device(&Message { command: Command::DEVICE_GET, attributes }).is_none());
    }
}
