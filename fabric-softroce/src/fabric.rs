//! The provider "verbs on a soft-RoCE link".

use fabric_core::{Addr, Device, Error, ErrorKind, Fabric};
use fabric_verbs::{VerbsDomain, VerbsFabric, VerbsOptions};

use crate::{link_for, links};

/// The scheme this provider serves.
const SCHEME: &str = "softroce";

/// Opens verbs domains on soft-RoCE links, and makes the link that an address needs if this process may.
///
/// `softroce://eth0:7000` is at the addresses of `eth0`, `softroce://10.0.0.5:7000` on the interface
/// that leads there, `softroce://*:7000` on any link there is. A link made for an address stays:
/// see [`link_for`].
#[derive(Debug, Clone, Default)]
pub struct SoftRoceFabric {
    options: VerbsOptions,
}

impl SoftRoceFabric {
    /// A provider whose domains have these settings; their device is chosen by address, and their
    /// scheme is `softroce`.
    pub fn new(options: VerbsOptions) -> Self {
        Self { options }
    }
}

impl Fabric for SoftRoceFabric {
    type Domain = VerbsDomain;

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    /// The links that there are.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        let state = |active| if active { "up" } else { "down" };
        let devices = links()?.into_iter().map(|link| Device {
            detail: format!("soft-RoCE on {}, {}", link.interface, state(link.active)),
            name: link.name,
        });
        Ok(devices.collect())
    }

    /// On any link that there is.
    fn open(&self) -> Result<VerbsDomain, Error> {
        self.open_for(&Addr::new(SCHEME, "*", None))
    }

    fn open_for(&self, addr: &Addr) -> Result<VerbsDomain, Error> {
        check(addr)?;
        let device = Some(link_for(addr)?.name);
        let options = VerbsOptions { device, scheme: SCHEME, ..self.options.clone() };
        VerbsFabric::new(options).open()
    }

    fn device_for(&self, addr: &Addr) -> Result<Option<String>, Error> {
        check(addr)?;
        if addr.host() == "*" { Ok(None) } else { Ok(Some(link_for(addr)?.name)) }
    }

    fn queries(&self) -> &'static [&'static str] {
        Fabric::queries(&VerbsFabric::default())
    }
}

fn check(addr: &Addr) -> Result<(), Error> {
    if addr.scheme() == SCHEME {
        return Ok(());
    }
    let text = format!("{addr} is no soft-RoCE address: it begins with {SCHEME}://");
    Err(Error::new(ErrorKind::Unsupported, text))
}
