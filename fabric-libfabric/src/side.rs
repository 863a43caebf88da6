//! The channel beside endpoints that have no connections.
//!
//! Reliable datagrams know no connecting, no refusal and no death of a peer. So each endpoint of this
//! kind has a socket to its peer: a Unix one for providers of one host, TCP otherwise. On it both
//! sides say hello with the names of their endpoints; afterwards it carries single bytes that wake a
//! peer which sleeps, and its end tells that the peer is gone, however that happened.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fabric_link::{HELLO_BYTES, Hello, HelloError};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use crate::dial::PROTOCOL;
use crate::limits::{BACKLOG, NAME_BYTES_MAX};

/// Names Unix sockets of this provider; they are in no file system and end with their process.
const PREFIX: &str = "fabric-ofi/";

/// A peer whose host vanished is noticed after this long.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Where a side channel leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// On this host, under a name.
    Local(String),
    /// At an address of IP.
    Remote(SocketAddr),
}

/// What a peer said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
    /// The name of its endpoint. Empty if it turned this side away.
    pub(crate) name: Vec<u8>,
}

/// How reading went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing whole yet.
    Nothing,
    Greeting(Greeting),
    Senseless(HelloError),
    /// The other end is gone.
    Gone,
}

/// Whether a peer that greeted has taken the answer in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    NotYet,
    Yes,
    Gone,
}

/// A socket to one peer.
#[derive(Debug)]
pub(crate) struct Side {
    socket: Socket,
    heard: Vec<u8>,
}

/// A socket that peers connect to.
#[derive(Debug)]
pub(crate) struct SideListener {
    socket: Socket,
}

impl Meeting {
    fn domain(&self) -> Domain {
        match self {
            Self::Local(_) => Domain::UNIX,
            Self::Remote(at) => Domain::for_address(*at),
        }
    }

    fn addr(&self) -> io::Result<SockAddr> {
        match self {
            // A leading zero byte: a name of Linux's own that is in no file system (unix(7)).
            Self::Local(name) => SockAddr::unix(format!("\0{PREFIX}{name}")),
            Self::Remote(at) => Ok((*at).into()),
        }
    }

    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(self.domain(), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        if matches!(self, Self::Remote(_)) {
            set_up_tcp(&socket)?;
        }
        Ok(socket)
    }
}

fn set_up_tcp(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

impl SideListener {
    /// # Errors
    /// What the host says, such as that the name is in use.
    pub(crate) fn new(at: &Meeting) -> io::Result<Self> {
        let socket = at.socket()?;
        if let Meeting::Remote(addr) = at {
            socket.set_reuse_address(true)?;
            if addr.is_ipv6() {
                socket.set_only_v6(!addr.ip().is_unspecified())?;
            }
        }
        socket.bind(&at.addr()?)?;
        socket.listen(BACKLOG)?;
        Ok(Self { socket })
    }

    /// Where it listens, if at an address of IP.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// The next peer, if one is waiting.
    ///
    /// # Errors
    /// What the host says when it has no descriptor left.
    pub(crate) fn accept(&self) -> io::Result<Option<Side>> {
        match self.socket.accept() {
            Ok((socket, addr)) => {
                socket.set_nonblocking(true)?;
                if addr.as_socket().is_some() {
                    set_up_tcp(&socket)?;
                }
                Ok(Some(Side { socket, heard: Vec::new() }))
            }
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SideListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Side {
    /// Starts to connect.
    ///
    /// # Errors
    /// What the host says, such as that nobody listens there.
    pub(crate) fn connect(to: &Meeting) -> io::Result<Self> {
        let socket = to.socket()?;
        match socket.connect(&to.addr()?) {
            Ok(()) => {}
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { socket, heard: Vec::new() })
    }

    /// Whether connecting, which was reported to have ended, went well.
    ///
    /// # Errors
    /// Why it did not.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Says hello, once; there is room for that.
    ///
    /// # Errors
    /// What the host says when the peer is gone.
    pub(crate) fn greet(&mut self, hello: Hello, name: &[u8]) -> io::Result<()> {
        let len = u16::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = PROTOCOL.encode(hello).to_vec();
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(name);
        self.socket.write_all(&bytes)
    }

    /// Reads on until the peer's hello is whole.
    pub(crate) fn hear(&mut self) -> Heard {
        let is_gone = self.read();
        match parse(&self.heard) {
            Ok(Some(greeting)) => Heard::Greeting(greeting),
            Err(error) => Heard::Senseless(error),
            Ok(None) if is_gone => Heard::Gone,
            Ok(None) => Heard::Nothing,
        }
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; HELLO_BYTES + 2 + NAME_BYTES_MAX];
        match self.socket.read(&mut bytes) {
            Ok(0) => true,
            Ok(count) => {
                self.heard.extend_from_slice(&bytes[..count]);
                false
            }
            Err(error) => !is_later(&error),
        }
    }

    /// Takes the nudges that came, and says whether the other end is gone.
    pub(crate) fn is_gone(&mut self) -> bool {
        let mut bytes = [0; 256];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if is_later(&error) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Takes the peer's word that it is ready.
    pub(crate) fn hear_ready(&mut self) -> Ready {
        let mut bytes = [0; 256];
        match self.socket.read(&mut bytes) {
            Ok(0) => Ready::Gone,
            Ok(_) => Ready::Yes,
            Err(error) if is_later(&error) => Ready::NotYet,
            Err(_) => Ready::Gone,
        }
    }

    /// Wakes the peer if it sleeps; the first time it also says that this side is ready.
    pub(crate) fn nudge(&mut self) {
        if let Err(error) = self.socket.write(&[1]) {
            // Full of nudges that were not read, which is as good; or the end, which is heard soon.
            tracing::trace!(%error, "no nudge");
        }
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }
}

impl AsFd for Side {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A hello, the length of a name as u16, the name.
fn parse(bytes: &[u8]) -> Result<Option<Greeting>, HelloError> {
    let Some((head, rest)) = bytes.split_at_checked(HELLO_BYTES) else { return Ok(None) };
    let hello = PROTOCOL.decode(head)?;
    let Some((len, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let len = usize::from(u16::from_le_bytes(*len));
    if len > NAME_BYTES_MAX {
        return Err(HelloError::Limits);
    }
    Ok(rest.get(..len).map(|name| Greeting { hello, name: name.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello { granted: 3, packet_bytes: 4096, token: 7 }
    }

    fn meeting() -> Meeting {
        Meeting::Local(format!("test-{}-{}", std::process::id(), fastrand::u64(..)))
    }

    #[test]
    fn greetings_cross_and_an_end_is_heard() {
        let at = meeting();
        let listener = SideListener::new(&at).unwrap();
        let mut client = Side::connect(&at).unwrap();
        client.connected().unwrap();
        let mut server = listener.accept().unwrap().unwrap();
        assert_eq!(server.hear(), Heard::Nothing);
        client.greet(hello(), b"name").unwrap();
        let greeting = Greeting { hello: hello(), name: b"name".to_vec() };
        assert_eq!(server.hear(), Heard::Greeting(greeting));
        client.nudge();
        assert!(!server.is_gone());
        drop(client);
        assert!(server.is_gone());
    }

    #[test]
    fn a_name_is_used_once_and_free_when_its_listener_is_gone() {
        let at = meeting();
        let listener = SideListener::new(&at).unwrap();
        assert_eq!(SideListener::new(&at).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(Side::connect(&at).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        SideListener::new(&at).unwrap();
    }

    #[test]
    fn a_name_longer_than_any_provider_s_is_senseless() {
        let bytes = [&PROTOCOL.encode(hello())[..], &[0xff, 0xff]].concat();
        assert_eq!(parse(&bytes), Err(HelloError::Limits));
        assert_eq!(parse(&bytes[..HELLO_BYTES + 1]), Ok(None));
    }
}
