//! Address schemes, and what their providers are like.

/// A scheme with the provider that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheme {
    /// Without `://`.
    pub(crate) name: &'static str,
    /// As `fi_info -l` names it; `None` lets libfabric choose.
    pub(crate) provider: Option<&'static str>,
}

/// All schemes that are served, in the order of [`SCHEMES`].
pub(crate) const NAMES: &[&str] = &[
    "ofi",
    "ofi+tcp",
    "ofi+shm",
    "ofi+verbs",
    "ofi+efa",
    "ofi+cxi",
    "ofi+psm2",
    "ofi+psm3",
    "ofi+opx",
    "ofi+ucx",
    "ofi+sm2",
    "ofi+net",
    "ofi+sockets",
];

/// Providers that reach this host alone and whose endpoints have names instead of IP addresses.
const LOCAL: &[&str] = &["shm", "sm2"];

impl Scheme {
    /// The scheme of this name, if it is one of ours.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let name = NAMES.iter().find(|known| **known == name)?;
        Some(Self { name, provider: name.split_once('+').map(|(_, provider)| provider) })
    }

    /// The scheme of a provider; that of all providers for one that has none of its own.
    pub(crate) fn of_provider(provider: Option<&str>) -> Self {
        let own = provider.and_then(|provider| Self::find(&format!("ofi+{provider}")));
        own.unwrap_or(Self { name: NAMES[0], provider: None })
    }
}

/// Providers whose domains reach everything, whichever interface they are named after.
const SOFTWARE: &[&str] = &["tcp", "net", "sockets", "udp", "shm", "sm2"];

/// Whether an endpoint of one domain of a provider gets to all that another one reaches.
pub(crate) fn reaches_all(provider: &str) -> bool {
    let lowest = provider.split(';').next().unwrap_or(provider);
    SOFTWARE.contains(&lowest)
}

/// Whether addresses of a provider are names on this host.
pub(crate) fn is_local(provider: &str) -> bool {
    LOCAL.contains(&provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_names_its_provider() {
        assert_eq!(Scheme::find("ofi+tcp").unwrap().provider, Some("tcp"));
        assert_eq!(Scheme::find("ofi").unwrap().provider, None);
        assert_eq!(Scheme::find("tcp"), None);
        assert_eq!(Scheme::of_provider(Some("shm")).name, "ofi+shm");
        assert_eq!(Scheme::of_provider(Some("unheard-of")).name, "ofi");
        assert!(reaches_all("tcp;ofi_rxm") && !reaches_all("verbs"));
    }
}
