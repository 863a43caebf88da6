//! What a post is refused for at once, before anybody is asked.

use fabric_core::{Access, Addr, Caps, Error, ErrorKind, Exposure, SendBuf, Slot};

/// `Misuse`, as the endpoint was never there, is not connected yet or closes.
#[cold]
pub fn unknown_endpoint() -> Error {
    Error::misuse("there is no such connected endpoint: wait for Connected, stop after Closed")
}

/// Whether one more operation fits beside those in flight.
///
/// # Errors
/// `Full` at the depth.
#[inline]
pub fn check_depth(in_flight: usize, depth: usize, peer: &Addr) -> Result<(), Error> {
    if in_flight >= depth { Err(full(depth, peer)) } else { Ok(()) }
}

#[cold]
fn full(depth: usize, peer: &Addr) -> Error {
    let text = format!("{depth} operations are in flight to {peer}: poll first");
    Error::new(ErrorKind::Full, text)
}

/// Whether a message of `len` bytes keeps to what the domain takes.
///
/// # Errors
/// `Misuse` when it is too long or in too many segments.
#[inline]
pub fn check_message(buf: &SendBuf, len: usize, caps: &Caps) -> Result<(), Error> {
    if len > caps.message_bytes_max {
        return Err(too_long(len, caps.message_bytes_max));
    }
    check_segments(buf, caps.segments_max)
}

#[cold]
fn too_long(len: usize, len_max: usize) -> Error {
    Error::misuse(format!(
        "a message of {len} bytes is over the limit of {len_max}: send it in pieces or let the peer \
         read it"
    ))
}

/// Whether a buffer has few enough segments.
///
/// # Errors
/// `Misuse` if not.
#[inline]
pub fn check_segments(buf: &SendBuf, segments_max: usize) -> Result<(), Error> {
    let segments = buf.segments().len();
    if segments > segments_max {
        let text = format!("{segments} segments are over the limit of {segments_max}: copy some");
        return Err(Error::misuse(text));
    }
    Ok(())
}

/// Whether `len` bytes can be read into `into`, and at once.
///
/// # Errors
/// `Misuse` if not.
pub fn check_read(into: &Slot, len: usize, len_max: usize) -> Result<(), Error> {
    if len > into.capacity() {
        let capacity = into.capacity();
        return Err(Error::misuse(format!("a slot of {capacity} bytes cannot take {len}")));
    }
    check_len(len, len_max)
}

/// Whether `buf` can be written at once.
///
/// # Errors
/// `Misuse` if not.
pub fn check_write(buf: &SendBuf, len_max: usize, segments_max: usize) -> Result<(), Error> {
    check_len(buf.len(), len_max)?;
    check_segments(buf, segments_max)
}

fn check_len(len: usize, len_max: usize) -> Result<(), Error> {
    if len > len_max {
        let text = format!("{len} bytes are over the limit of {len_max}: use several posts");
        return Err(Error::misuse(text));
    }
    Ok(())
}

/// Whether an atomic can be done at `offset`.
///
/// # Errors
/// `Misuse` where no word begins.
pub fn check_word(offset: u64) -> Result<(), Error> {
    match offset.is_multiple_of(8) {
        true => Ok(()),
        false => Err(Error::misuse(format!("offset {offset} is no multiple of 8"))),
    }
}

/// Whether memory can be exposed like this while the domain has `exposed` exposures.
///
/// # Errors
/// `Misuse` when it makes no sense, `Full` at `exposed_max`.
pub fn check_exposure(
    memory: &Exposure,
    access: Access,
    exposed: usize,
    exposed_max: usize,
) -> Result<(), Error> {
    let shared = matches!(memory, Exposure::Bytes(_));
    let refused = if memory.is_empty() {
        "there is nothing to expose: the memory has no bytes"
    } else if !access.read && !access.mutates() {
        "an exposure needs at least one of reading, writing and atomics"
    } else if shared && access.mutates() {
        "shared bytes can be exposed for reading only: expose a slot"
    } else if exposed >= exposed_max {
        let text = "too much memory is exposed at once: revoke some";
        return Err(Error::new(ErrorKind::Full, text));
    } else {
        return Ok(());
    };
    Err(Error::misuse(refused))
}

/// Whether the owner may change its exposed memory.
///
/// # Errors
/// `Misuse` for shared bytes.
pub fn check_store(memory: &Exposure) -> Result<(), Error> {
    match memory {
        Exposure::Slot(_) => Ok(()),
        Exposure::Bytes(_) => Err(Error::misuse("shared bytes cannot be changed: expose a slot")),
    }
}

/// `Misuse`, as the range is not all exposed.
pub fn beyond() -> Error {
    Error::misuse("the range lies beyond the exposed memory")
}

/// `Misuse`, as the key names nothing.
pub fn unknown_key() -> Error {
    Error::misuse("nothing is exposed under this key: it was revoked already")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn shared(text: &'static str) -> Exposure {
        Exposure::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn senseless_exposures_are_refused() {
        let check = |memory: &Exposure, access| check_exposure(memory, access, 0, 1);
        let slot = Exposure::Slot(Slot::alloc(1).unwrap());
        assert!(check(&slot, Access::ALL).is_ok() && check_store(&slot).is_ok());
        assert!(check(&shared("x"), Access::READ).is_ok());
        assert!(check(&shared("x"), Access::WRITE).is_err() && check_store(&shared("x")).is_err());
        assert!(check(&shared(""), Access::READ).is_err());
        let none = Access { read: false, write: false, atomic: false };
        assert!(check(&slot, none).is_err());
        let full = check_exposure(&slot, Access::ALL, 1, 1).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Full);
    }

    #[test]
    fn posts_at_their_limit_pass_and_beyond_it_are_misuse() {
        let peer = Addr::new("verbs", "h", Some(1));
        assert!(check_depth(1, 2, &peer).is_ok());
        assert_eq!(check_depth(2, 2, &peer).unwrap_err().kind(), ErrorKind::Full);
        let slot = Slot::alloc(8).unwrap();
        assert!(check_read(&slot, 8, 8).is_ok());
        assert!(check_read(&slot, 9, 9).is_err() && check_read(&slot, 8, 7).is_err());
        let buf = SendBuf::from(Bytes::from_static(b"abc"));
        assert!(check_write(&buf, 3, 1).is_ok());
        assert!(check_write(&buf, 2, 1).is_err() && check_write(&buf, 3, 0).is_err());
        assert!(check_word(16).is_ok() && check_word(12).is_err());
    }

    #[test]
    fn a_message_is_held_to_what_the_domain_says_it_takes() {
        let caps = |message_bytes_max, segments_max| Caps {
            provider: "verbs",
            device: String::new(),
            message_bytes_max,
            inline_bytes_max: 0,
            segments_max,
            send_depth: 1,
            recv_depth: 1,
            gather_bytes_min: 0,
            rma: None,
            atomics: false,
            multicast: false,
        };
        let buf = SendBuf::from(Bytes::from_static(b"abc"));
        assert!(check_message(&buf, 3, &caps(3, 1)).is_ok());
        for caps in [caps(2, 1), caps(3, 0)] {
            assert_eq!(check_message(&buf, 3, &caps).unwrap_err().kind(), ErrorKind::Misuse);
        }
    }
}
