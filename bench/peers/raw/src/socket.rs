//! Sockets that may spin.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use common::Args;
use socket2::{Domain, Socket, Type};

/// As many waiting connections as the host allows.
const BACKLOG: i32 = 4096;

/// Listens at the port of the run.
pub fn listen(args: &Args) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The next peer.
pub fn accept(listener: &TcpListener, args: &Args) -> io::Result<TcpStream> {
    prepared(listener.accept()?.0, args)
}

/// Connects to the server.
pub fn connect(args: &Args) -> io::Result<TcpStream> {
    prepared(TcpStream::connect((Ipv4Addr::LOCALHOST, args.port))?, args)
}

fn prepared(stream: TcpStream, args: &Args) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(args.transport == "tcp-busy")?;
    Ok(stream)
}

/// Writes everything, spinning where the socket does not sleep.
pub fn write_all(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `bytes`, spinning where the socket does not sleep.
pub fn read_exact(stream: &TcpStream, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += read_some(stream, &mut bytes[filled..])?;
    }
    Ok(())
}

/// Reads at least one byte.
pub fn read_some(mut stream: &TcpStream, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => return Ok(len),
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
