//! The provider itself: opens domains and lists what libfabric has.

use std::net::SocketAddr;

use fabric_core::{Addr, Device, Error, ErrorKind, Fabric};

use crate::choose::{self, choose};
use crate::domain::LibfabricDomain;
use crate::options::LibfabricOptions;
use crate::resolve;
use crate::scheme::{self, Scheme};
use crate::sys::Place;

/// The libfabric provider. Every domain it opens has its own connections and listeners, and one
/// provider of libfabric's.
#[derive(Debug, Clone, Default)]
pub struct LibfabricFabric {
    options: LibfabricOptions,
}

impl LibfabricFabric {
    /// A provider whose domains have these settings.
    pub fn new(options: LibfabricOptions) -> Self {
        Self { options }
    }

    /// The settings of its domains.
    pub fn options(&self) -> &LibfabricOptions {
        &self.options
    }

    fn open_with(&self, scheme: Scheme, place: Option<Place>) -> Result<LibfabricDomain, Error> {
        let choice = choose(scheme, &self.options, place)?;
        LibfabricDomain::open(choice, self.options.clone())
    }
}

impl Fabric for LibfabricFabric {
    type Domain = LibfabricDomain;

    fn schemes(&self) -> &'static [&'static str] {
        scheme::NAMES
    }

    /// What `fi_getinfo` lists and this library can use, as `provider:domain`.
    fn devices(&self) -> Result<Vec<Device>, Error> {
        choose::devices()
    }

    /// With the provider of the settings, or libfabric's first choice.
    fn open(&self) -> Result<LibfabricDomain, Error> {
        self.open_with(Scheme::of_provider(self.options.provider.as_deref()), None)
    }

    /// With the provider that the address names, and the device that leads there.
    fn open_for(&self, addr: &Addr) -> Result<LibfabricDomain, Error> {
        let Some(scheme) = Scheme::find(addr.scheme()) else {
            let text = format!("{addr} is no libfabric address: it begins with ofi://");
            return Err(Error::new(ErrorKind::Unsupported, text));
        };
        let provider = scheme.provider.unwrap_or_default();
        let places = match scheme::is_local(provider) {
            true => Vec::new(),
            false => resolve::places(addr, scheme)?,
        };
        let is_one = |at: &&SocketAddr| !at.ip().is_unspecified();
        self.open_with(scheme, places.iter().find(is_one).map(|at| Place::There(*at)))
    }
}
