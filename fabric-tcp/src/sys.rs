//! Sockets: how they are made, and input and output on them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};

use mio::net::{TcpListener, TcpStream};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::BACKLOG;
use crate::options::TcpOptions;

/// A connected socket as byte stream. A broken one is an error, never a signal.
pub(crate) struct Io<'a>(pub(crate) &'a TcpStream);

/// As [`Io`], but the kernel may hold back what is written for what follows it (tcp(7), send(2):
/// `MSG_MORE`), until something is written without that or `TCP_NODELAY` is set again.
pub(crate) struct Held<'a>(pub(crate) &'a TcpStream);

impl Read for Io<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read_vectored(bufs)
    }
}

impl Write for Io<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(self.0, bufs, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Held<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for Held<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        let flags = SendFlags::NOSIGNAL | SendFlags::MORE;
        Ok(sendmsg(self.0, &[IoSlice::new(buf)], &mut nothing, flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket on its way to `peer`.
pub(crate) fn connect(peer: SocketAddr, options: &TcpOptions) -> io::Result<TcpStream> {
    let socket = socket(peer, options)?;
    match socket.connect(&peer.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(StdStream::from(socket))),
    }
}

/// A socket that listens at `addr`; on all addresses of both families if that is `[::]` and
/// `dual`.
pub(crate) fn listen(
    addr: SocketAddr,
    dual: bool,
    options: &TcpOptions,
) -> io::Result<TcpListener> {
    let socket = socket(addr, options)?;
    // Otherwise connections of an earlier listener would block the port for minutes.
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(!dual)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(StdListener::from(socket)))
}

fn socket(addr: SocketAddr, options: &TcpOptions) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(addr), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.recv_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(socket)
}
