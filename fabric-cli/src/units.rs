//! Sizes, times and places as people write them.

use std::time::Duration;

use msg_patterns::{Addr, units};

/// A size in bytes: `4096`, `64KiB`, `1G` (binary), `1GB` (decimal), `1.5MiB`.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    units::parse_size(text).ok_or_else(|| "write a size like 4096, 64KiB, 1G or 10MB".into())
}

/// As [`parse_size`], for what is held in memory.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_len(text: &str) -> Result<usize, String> {
    usize::try_from(parse_size(text)?).map_err(|_| "more than this machine can address".into())
}

/// As [`parse_len`], but not zero.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_some_len(text: &str) -> Result<usize, String> {
    match parse_len(text)? {
        0 => Err("must be at least 1".into()),
        len => Ok(len),
    }
}

/// A time: `5` and `5s` are seconds, `200ms`, `50us`, `2m`, `1h`.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    units::parse_time(text).ok_or_else(|| "write a time like 5s, 200ms, 50us or 2m".into())
}

/// An address whose port is not chosen yet: `tcp://127.0.0.1`, `verbs://10.0.0.5:0`.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_place(text: &str) -> Result<Addr, String> {
    let addr: Addr = text.parse().map_err(|error| format!("{error}"))?;
    match addr.port() {
        None | Some(0) => Ok(addr.with_port(0)),
        Some(port) => Err(format!("several sockets listen there: leave out the port {port}")),
    }
}

/// Where every host can listen on a fabric: tcp, ofi+tcp or ofi+shm.
///
/// # Errors
/// A text for people.
pub(crate) fn parse_fabric(name: &str) -> Result<Addr, String> {
    match name {
        "tcp" | "ofi" | "ofi+tcp" => parse_place(&format!("{name}://127.0.0.1")),
        "ofi+shm" => parse_place("ofi+shm://demo"),
        _ => {
            Err(format!("not every host has a place there: say where, as in --addr {name}://HOST"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_free_port() {
        for text in ["verbs://10.0.0.5", "verbs://10.0.0.5:0"] {
            assert_eq!(parse_place(text).unwrap().to_string(), "verbs://10.0.0.5:0");
        }
        for text in ["verbs://10.0.0.5:7000", "10.0.0.5", "verbs://h:x"] {
            assert!(parse_place(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fabrics_that_every_host_has_stand_for_a_place() {
        for (name, place) in [("tcp", "tcp://127.0.0.1:0"), ("ofi+shm", "ofi+shm://demo:0")] {
            assert_eq!(parse_fabric(name).unwrap().to_string(), place);
        }
        assert!(parse_fabric("verbs").unwrap_err().contains("--addr verbs://"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "x", "-1", "1x", "1.2.3", "99999999999999999999", "20000000T", "."] {
            assert!(parse_size(text).is_err(), "{text}");
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_some_len("0").is_err());
    }
}
