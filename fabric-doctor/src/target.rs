//! The peer that is asked about.

use std::fmt;
use std::str::FromStr;

/// A host by name or address, and a port if somebody should listen there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name or address, without brackets.
    pub host: String,
    /// The port of TCP to connect to.
    pub port: Option<u16>,
}

/// A text that names no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT")]
pub struct NoTarget;

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        let (host, port) = split(text).ok_or(NoTarget)?;
        let port = port.map(str::parse).transpose().map_err(|_| NoTarget)?;
        let odd = |c: char| c.is_whitespace() || "/[]".contains(c);
        if host.is_empty() || host.contains(odd) || port == Some(0) {
            return Err(NoTarget);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        let port = if after.is_empty() { None } else { Some(after.strip_prefix(':')?) };
        return Some((host, port));
    }
    // More than one colon is an IPv6 address without a port.
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port))),
        _ => Some((text, None)),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_with_or_without_a_port() {
        let cases = [
            ("peer", "peer", None),
            ("peer:7000", "peer", Some(7000)),
            ("10.0.0.9:1", "10.0.0.9", Some(1)),
            ("fe80::1", "fe80::1", None),
            ("[2001:db8::1]:7", "2001:db8::1", Some(7)),
            ("[::1]", "::1", None),
        ];
        for (text, host, port) in cases {
            assert_eq!(text.parse(), Ok(Target { host: host.into(), port }), "{text}");
        }
    }

    #[test]
    fn what_names_no_peer_is_refused() {
        for text in ["", ":7", "a:", "a:0", "a:70000", "a b", "tcp://a:1", "[::1", "[::1]7", "a/b"]
        {
            assert_eq!(text.parse::<Target>(), Err(NoTarget), "{text}");
        }
    }

    #[test]
    fn a_target_is_written_as_it_is_read() {
        for text in ["peer", "peer:7000", "fe80::1", "[::1]:7"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }
}
