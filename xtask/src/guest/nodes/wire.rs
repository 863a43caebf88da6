//! The wire between two guests: a pair of sockets that carries their Ethernet frames.
//!
//! Both ends stay here, so that a machine that is turned on again finds its old end. A frame for
//! which the other side has no room waits: nothing is lost that the scenario does not order.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// As long as a frame gets, and more.
const FRAME_BYTES_MAX: usize = 128 << 10;

/// One end of the wire.
#[derive(Debug)]
pub(in crate::guest) struct End(UnixDatagram);

/// Two ends of a wire.
///
/// # Errors
/// When the system has no more sockets.
pub(in crate::guest) fn wire() -> Result<[End; 2], String> {
    let told = |error| format!("a pair of sockets: {error}");
    let (one, two) = UnixDatagram::pair().map_err(told)?;
    for end in [&one, &two] {
        end.set_nonblocking(true).map_err(told)?;
    }
    Ok([End(one), End(two)])
}

impl End {
    /// The same end, for the machine.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub(in crate::guest) fn plug(&self) -> io::Result<OwnedFd> {
        self.0.try_clone().map(OwnedFd::from)
    }

    /// Loses what was sent to this end: what becomes of frames to a machine that is off.
    pub(super) fn drain(&self) {
        let mut frame = [0; FRAME_BYTES_MAX];
        while self.0.recv(&mut frame).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_off_blocks_nobody_and_gets_nothing_late() {
        let [one, two] = wire().unwrap();
        let full = (0..100_000).any(|_| one.0.send(b"frame").is_err());
        assert!(full);
        two.drain();
        assert_eq!(one.0.send(b"new").unwrap(), 3);
        let plug = UnixDatagram::from(two.plug().unwrap());
        let mut frame = [0; 16];
        assert_eq!(plug.recv(&mut frame).unwrap(), 3);
    }
}
