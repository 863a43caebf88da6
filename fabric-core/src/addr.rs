//! Addresses: `scheme://host:port/path?key=value`.

use std::fmt;
use std::str::FromStr;

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// No `scheme://` in front.
    #[error("`{0}` has no scheme: write it like tcp://127.0.0.1:5555")]
    NoScheme(String),
    /// The scheme has other characters than letters, digits, `+`, `-` and `.` (RFC 3986, 3.1).
    #[error("`{0}` is no scheme: use letters, digits and +, like tcp://127.0.0.1:5555")]
    BadScheme(String),
    /// Nothing stands between `://` and the port.
    #[error("`{0}` names no host: use a name, an IP address, an interface or * for all")]
    NoHost(String),
    /// The port is no number from 0 to 65535.
    #[error("`{port}` in `{text}` is no port: use a number from 0 to 65535 (0 picks a free one)")]
    BadPort {
        /// The whole text.
        text: String,
        /// What stood at the port's place.
        port: String,
    },
    /// An IPv6 address without its closing bracket, or text behind the bracket.
    #[error("`{0}` has unpaired brackets: write IPv6 addresses like tcp://[::1]:5555")]
    Brackets(String),
}

/// An address as a user writes it. What host and path mean is the provider's business.
///
/// ```
/// let addr: fabric_core::Addr = "tcp://[::1]:5555?hint=1".parse().unwrap();
/// assert_eq!((addr.scheme(), addr.host(), addr.port()), ("tcp", "::1", Some(5555)));
/// assert_eq!(addr.query("hint"), Some("1"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
    query: Vec<(String, String)>,
}

impl Addr {
    /// An address of `scheme` at `host` (no brackets, also for IPv6) and `port`.
    pub fn new(scheme: &str, host: &str, port: Option<u16>) -> Self {
        Self {
            scheme: scheme.into(),
            host: host.into(),
            port,
            path: String::new(),
            query: Vec::new(),
        }
    }

    /// The part before `://`, which chooses the provider.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host: a name, an IP address without brackets, an interface, or `*`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, if one was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path with its leading slash, or nothing.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of a query parameter.
    pub fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All query parameters, in order.
    pub fn queries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The same address with only those query parameters that `keep` says.
    #[must_use]
    pub fn with_queries(mut self, mut keep: impl FnMut(&str) -> bool) -> Self {
        self.query.retain(|(key, _)| keep(key));
        self
    }

    /// The same address with the query parameters of `other` that it does not have itself.
    #[must_use]
    pub fn with_queries_of(mut self, other: &Self) -> Self {
        for (key, value) in other.queries() {
            if self.query(key).is_none() {
                self.query.push((key.into(), value.into()));
            }
        }
        self
    }

    /// The same address for another provider.
    #[must_use]
    pub fn with_scheme(mut self, scheme: &str) -> Self {
        self.scheme = scheme.into();
        self
    }

    /// The same address at another port.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

impl FromStr for Addr {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<Self, AddrError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| AddrError::NoScheme(text.into()))?;
        if !is_scheme(scheme) {
            return Err(AddrError::BadScheme(scheme.into()));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = split_port(text, authority)?;
        if host.is_empty() {
            return Err(AddrError::NoHost(text.into()));
        }
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.into(),
            port,
            path: path.into(),
            query: parse_query(query),
        })
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn split_port<'a>(text: &str, authority: &'a str) -> Result<(&'a str, Option<u16>), AddrError> {
    let unpaired = || AddrError::Brackets(text.into());
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or_else(unpaired)?;
        match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => return Err(unpaired()),
        }
    } else {
        match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(unpaired()),
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let port = port.map(|port| parse_port(text, port)).transpose()?;
    Ok((host, port))
}

fn parse_port(text: &str, port: &str) -> Result<u16, AddrError> {
    // `u16::from_str` would take a leading plus sign.
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| port.parse().ok())
        .flatten()
        .ok_or_else(|| AddrError::BadPort { text: text.into(), port: port.into() })
}

fn parse_query(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]", self.scheme, self.host)?;
        } else {
            write!(f, "{}://{}", self.scheme, self.host)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)?;
        for (i, (key, value)) in self.query.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Addr, AddrError> {
        text.parse()
    }

    #[test]
    fn all_parts_are_found() {
        let addr = parse("verbs://mlx5_0:7/x/y?a=1&b").unwrap();
        assert_eq!((addr.scheme(), addr.host(), addr.port()), ("verbs", "mlx5_0", Some(7)));
        assert_eq!((addr.path(), addr.query("a"), addr.query("b")), ("/x/y", Some("1"), Some("")));
    }

    #[test]
    fn another_scheme_or_port_leaves_the_rest() {
        let addr = parse("softroce://eth0:0/x?a=1").unwrap().with_scheme("verbs").with_port(7);
        assert_eq!(addr.to_string(), "verbs://eth0:7/x?a=1");
    }

    #[test]
    fn queries_that_are_not_kept_go() {
        let addr = parse("tcp://h:1/x?a=1&b=2&a=3").unwrap();
        assert_eq!(addr.clone().with_queries(|key| key == "b").to_string(), "tcp://h:1/x?b=2");
        assert_eq!(addr.with_queries(|_| false).to_string(), "tcp://h:1/x");
    }

    #[test]
    fn queries_of_another_address_come_along() {
        let (addr, other) = (parse("tcp://h:1?a=1").unwrap(), parse("tcp://i:2?a=2&b=3").unwrap());
        assert_eq!(addr.with_queries_of(&other).to_string(), "tcp://h:1?a=1&b=3");
    }

    #[test]
    fn each_mistake_has_its_own_message() {
        assert_eq!(parse("localhost:1"), Err(AddrError::NoScheme("localhost:1".into())));
        assert!(matches!(parse("t!p://h"), Err(AddrError::BadScheme(_))));
        assert!(matches!(parse("tcp://:5555"), Err(AddrError::NoHost(_))));
        assert!(matches!(parse("tcp://[::1:5"), Err(AddrError::Brackets(_))));
        assert!(matches!(parse("tcp://::1:5"), Err(AddrError::Brackets(_))));
        for port in ["", "+1", "65536", "-1", "x", "1 "] {
            let found = parse(&format!("tcp://h:{port}"));
            assert!(matches!(found, Err(AddrError::BadPort { .. })), "{port}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(host in "[a-z0-9.*-]{1,20}|::1|fe80::2", port in any::<Option<u16>>(),
                                       path in "(/[a-z0-9]{1,5}){0,2}", value in "[a-z0-9]{0,5}") {
            let mut addr = Addr::new("tcp", &host, port);
            addr.path = path;
            addr.query = vec![("key".into(), value)];
            prop_assert_eq!(parse(&addr.to_string()), Ok(addr));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
            let _ = parse(&format!("tcp://{text}"));
        }
    }
}
