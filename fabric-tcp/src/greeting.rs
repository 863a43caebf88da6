//! The first bytes of a connection: both sides say which protocol they speak, in which version.

use std::io::{self, Read, Write};

use fabric_core::{Addr, Error, ErrorKind, Event, ListenerId};
use mio::net::TcpStream;

use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::foreign;
use crate::status;
use crate::sys::{Held, Io};
use crate::table::{Conn, Phase};

/// No text, TLS or ZMTP begins with this first byte.
const MAGIC: [u8; 6] = [0xF5, b'f', b'a', b'b', b't', b'c'];

/// Version of the frames that follow. It has no compatible predecessor.
const VERSION: u16 = 1;

const GREETING_BYTES: usize = 8;

/// Who made the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Dialed,
    Accepted(ListenerId),
}

/// How far a greeting got.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) origin: Origin,
    pub(crate) peer: Addr,
    sent: usize,
    got: [u8; GREETING_BYTES],
    got_len: usize,
}

impl Greeting {
    pub(crate) fn new(origin: Origin, peer: Addr) -> Self {
        Self { origin, peer, sent: 0, got: [0; GREETING_BYTES], got_len: 0 }
    }

    /// Goes on as far as the socket allows; says whether both sides have greeted.
    fn step(&mut self, io: &mut (impl Read + Write), readable: &mut bool) -> Result<bool, Error> {
        self.send(io).map_err(|error| status::stream_error(error, &self.peer))?;
        self.receive(io, readable)?;
        Ok(self.sent == GREETING_BYTES && self.got_len == GREETING_BYTES)
    }

    fn send(&mut self, io: &mut impl Write) -> io::Result<()> {
        while self.sent < GREETING_BYTES {
            match io.write(&greeting()[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, io: &mut impl Read, readable: &mut bool) -> Result<(), Error> {
        while *readable && self.got_len < GREETING_BYTES {
            match io.read(&mut self.got[self.got_len..]) {
                Ok(0) => return Err(self.closed_early()),
                Ok(got) => {
                    self.got_len += got;
                    self.check()?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => *readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(status::stream_error(error, &self.peer)),
            }
        }
        Ok(())
    }

    /// Whether what came so far can be a greeting.
    fn check(&self) -> Result<(), Error> {
        let got = &self.got[..self.got_len];
        let (peer, magic) = (&self.peer, got.len().min(MAGIC.len()));
        if got[..magic] != MAGIC[..magic] {
            let text = format!("the peer at {peer} {}", foreign::describe(got));
            return Err(Error::new(ErrorKind::Protocol, text));
        }
        let version = u16::from_le_bytes([self.got[6], self.got[7]]);
        if got.len() == GREETING_BYTES && version != VERSION {
            let text = format!(
                "the peer at {peer} speaks version {version} of this protocol, this side {VERSION}: \
                 use the same release on both sides"
            );
            return Err(Error::new(ErrorKind::Protocol, text));
        }
        Ok(())
    }

    fn closed_early(&self) -> Error {
        let text = format!("the peer at {} closed before it greeted: check the port", self.peer);
        Error::new(ErrorKind::Closed, text)
    }
}

/// What this side says.
pub(crate) fn greeting() -> [u8; GREETING_BYTES] {
    let [m0, m1, m2, m3, m4, m5] = MAGIC;
    let [v0, v1] = VERSION.to_le_bytes();
    [m0, m1, m2, m3, m4, m5, v0, v1]
}

impl Driver {
    /// A greeting connection can go on.
    pub(crate) fn on_greeting(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Conn { stream, readable, phase: Phase::Greeting(greeting), .. } = conn else { return };
        let stepped = match greeting.origin {
            Origin::Dialed => greeting.step(&mut Io(stream), readable),
            Origin::Accepted(_) => greeting.step(&mut Held(stream), readable),
        };
        match stepped {
            Ok(true) => self.open(index),
            Ok(false) => {}
            Err(error) => self.fail_greeting(index, error),
        }
    }

    /// A peer greeted: the connection becomes an endpoint.
    fn open(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Greeting(Greeting { origin, peer, .. }) = &conn.phase else { return };
        let (ep, origin, peer) = (conn.id, *origin, peer.clone());
        conn.phase = Phase::Open(Box::new(Endpoint::new(ep, peer.clone())));
        tracing::debug!(ep = ep.0, %peer, ?origin, "endpoint opened");
        self.shared.events.push(match origin {
            Origin::Dialed => Event::Connected { ep, peer },
            Origin::Accepted(listener) => {
                self.accepting.pending -= 1;
                Event::Accepted { ep, listener, peer }
            }
        });
        // What came along with the greeting is read at once, to be answered together with it.
        self.read_one(index);
    }

    /// Lets greetings go that were held back and that nothing followed. A connection that has just
    /// become an endpoint has until the user flushes, if `opened` says so.
    pub(crate) fn release_greetings(&mut self, opened: Opened) {
        for index in self.table.take_held() {
            let Some(conn) = self.table.get(index) else { continue };
            match &conn.phase {
                Phase::Open(_) if opened == Opened::Wait => self.table.mark_held(index),
                Phase::Open(endpoint) if !endpoint.writer.is_empty() => {}
                _ => release(&conn.stream),
            }
        }
    }

    /// A connection ends before it became an endpoint.
    pub(crate) fn fail_greeting(&mut self, index: usize, error: Error) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Greeting(Greeting { origin, .. }) = &conn.phase else { return };
        let (ep, origin) = (conn.id, *origin);
        tracing::debug!(ep = ep.0, %error, "greeting failed");
        self.shared.events.push(match origin {
            Origin::Dialed => Event::Closed { ep, why: error },
            Origin::Accepted(listener) => Event::AcceptFailed { listener, error },
        });
        self.drop_greeting(index);
    }

    /// Ends a greeting without a word. Unlike endpoints these do not linger: strangers should cost
    /// no descriptor longer than they must.
    pub(crate) fn drop_greeting(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        if let Phase::Greeting(Greeting { origin: Origin::Accepted(_), .. }) = &conn.phase {
            self.accepting.pending -= 1;
        }
        self.table.remove(index);
    }
}

/// What becomes of greetings of connections that are endpoints already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The user may add to them.
    Wait,
    /// They go with what the user added, or alone.
    Go,
}

fn release(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        // The connection is broken; reading tells why.
        tracing::debug!(%error, "a greeting could not be released");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8]) -> Result<(), Error> {
        let mut greeting = Greeting::new(Origin::Dialed, Addr::new("tcp", "h", Some(1)));
        greeting.got[..bytes.len()].copy_from_slice(bytes);
        greeting.got_len = bytes.len();
        greeting.check()
    }

    #[test]
    fn each_beginning_of_the_greeting_is_accepted_and_nothing_else() {
        for len in 0..=GREETING_BYTES {
            assert!(check(&greeting()[..len]).is_ok());
        }
        for at in 0..GREETING_BYTES {
            let mut wrong = greeting();
            wrong[at] ^= 1;
            assert_eq!(check(&wrong).unwrap_err().kind(), ErrorKind::Protocol);
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut newer = greeting();
        newer[6] = 9;
        assert!(check(&newer).unwrap_err().message().contains("version 9"));
    }
}
