//! Settings in the query of an address: `tcp://host:1?hwm=1000&linger=5s`.

use fabric_core::Addr;

use super::setting::Setting;
use super::{Options, Settings};
use crate::engine::{Core, Net};
use crate::roles::Role;
use crate::{Error, ErrorKind};

/// An address as it was given: the place, and settings of the socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// What is bound, connected to and shown.
    pub(crate) place: Addr,
    settings: Settings,
}

impl Given {
    /// Takes `addr` apart. Parameters in `of_fabric` belong to the place.
    ///
    /// # Errors
    /// `Invalid` for a name that no setting has, or a value that it cannot have.
    fn parse(addr: &Addr, of_fabric: &[&str]) -> Result<Self, Error> {
        let mut settings = Settings::new();
        let is_of_fabric = |key: &str| of_fabric.contains(&key);
        let place = addr.clone().with_queries(is_of_fabric);
        for (name, value) in addr.queries().filter(|(name, _)| !is_of_fabric(name)) {
            let added = decoded(name, value).and_then(|value| settings.add(name, &value));
            added.map_err(|error| error.within(&place.to_string()))?;
        }
        Ok(Self { place, settings })
    }
}

impl Net {
    /// Takes an address apart.
    ///
    /// # Errors
    /// As [`Given::parse`], and `Unsupported` when nobody serves it.
    pub(crate) fn given(&self, addr: Addr) -> Result<Given, Error> {
        if addr.queries().next().is_none() {
            return Ok(Given { place: addr, settings: Settings::new() });
        }
        let of_fabric = self.backends.find(&addr)?.queries();
        Given::parse(&addr, of_fabric)
    }
}

impl<R: Role> Core<R> {
    /// Uses an address: its settings become those of the socket, for good if `go` succeeds.
    ///
    /// # Errors
    /// `Invalid` for settings that the socket does not have, or that it cannot change any more;
    /// what `go` says.
    pub(crate) fn at<T>(
        &mut self,
        given: &Given,
        go: impl FnOnce(&mut Self, &Addr) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if given.settings.is_empty() {
            return go(self, &given.place);
        }
        let before = self.net.options.clone();
        let wanted = self.wanted(given).map_err(|error| error.within(&given.place.to_string()))?;
        self.configure(wanted);
        go(self, &given.place).inspect_err(|_| self.configure(before))
    }

    fn wanted(&self, given: &Given) -> Result<Options, Error> {
        let mut wanted = self.net.options.clone();
        given.settings.apply(R::TYPE, &mut wanted)?;
        wanted.check()?;
        if self.net.last_endpoint().is_none() {
            return Ok(wanted);
        }
        let now = &self.net.options;
        let differs = |setting: &&Setting| {
            setting.stands_for.is_empty() && setting.get(&wanted) != setting.get(now)
        };
        let changed = Setting::all().iter().find(differs);
        changed.map_or(Ok(()), |setting| Err(too_late(setting, now))).map(|()| wanted)
    }

    fn configure(&mut self, options: Options) {
        self.net.options = options;
        self.role.configure(&self.net.options);
    }
}

fn too_late(setting: &Setting, now: &Options) -> Error {
    let (name, value) = (setting.name(), setting.get(now));
    let text = format!(
        "settings are the socket's and fixed by its first address, here {name}={value}: set \
         {name} there or in the builder, or make another socket"
    );
    Error::new(ErrorKind::Invalid, text)
}

/// What a value in an address means (RFC 3986, 2.1).
///
/// # Errors
/// `Invalid` for broken percent signs and what is no text.
pub(super) fn decoded(name: &str, value: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let decoded = if byte == b'%' { hex_pair(&mut rest) } else { Some(byte) };
        bytes.push(decoded.ok_or_else(|| undecodable(name, value))?);
    }
    String::from_utf8(bytes).map_err(|_| undecodable(name, value))
}

fn hex_pair(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let mut digit = || char::from(bytes.next()?).to_digit(16);
    u8::try_from(16 * digit()? + digit()?).ok()
}

fn undecodable(name: &str, value: &str) -> Error {
    let text = format!("`{value}` of {name} cannot be read: write % as %25, and text as UTF-8");
    Error::new(ErrorKind::Invalid, text)
}

/// A value as it may stand in an address.
pub(super) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,:/".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
