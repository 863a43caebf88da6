//! Naming what a peer speaks that does not speak this provider's protocol.

/// What the first bytes of a stream look like, and what to do about it.
pub(crate) fn describe(bytes: &[u8]) -> String {
    match bytes {
        _ if is_http(bytes) => "speaks HTTP: point web clients elsewhere, or check the port".into(),
        [0x16, 0x03, ..] => "speaks TLS: connect without TLS, or check the port".into(),
        [0xFF, ..] => {
            "speaks ZMTP, it is a ZeroMQ peer: use this library on both sides, or check the port"
                .into()
        }
        _ if bytes.starts_with(b"SSH-") => "speaks SSH: check the port".into(),
        _ => format!("sends unknown bytes \"{}\": check the port", bytes.escape_ascii()),
    }
}

fn is_http(bytes: &[u8]) -> bool {
    const STARTS: [&[u8]; 9] = [
        b"GET ",
        b"POST ",
        b"PUT ",
        b"HEAD ",
        b"DELETE ",
        b"OPTIONS ",
        b"PATCH ",
        b"HTTP/",
        b"PRI ",
    ];
    STARTS.iter().any(|start| bytes.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_protocols_are_named_and_unknown_bytes_shown() {
        assert!(describe(b"GET / HT").contains("HTTP"));
        assert!(describe(b"HTTP/1.1").contains("HTTP"));
        assert!(describe(&[0x16, 3, 1, 2, 0, 1, 0, 1]).contains("TLS"));
        assert!(describe(&[0xFF, 0, 0, 0, 0, 0, 0, 0]).contains("ZeroMQ"));
        assert!(describe(b"SSH-2.0-").contains("SSH"));
        assert!(describe(b"\x00a\n\"").contains(r#"\x00a\n\""#));
    }
}
