//! Connections on their way to a peer.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use fabric_core::{Addr, EpId, Error, ErrorKind, Event};
use mio::net::TcpStream;
use rustix::io::Errno;

use crate::driver::Driver;
use crate::greeting::{Greeting, Origin};
use crate::resolve;
use crate::status;
use crate::sys;
use crate::table::Phase;

/// An attempt to reach one of the addresses that a name stands for.
#[derive(Debug)]
pub(crate) struct Dial {
    /// What the user wrote.
    target: Addr,
    /// The address being tried.
    current: SocketAddr,
    /// What to try next.
    rest: VecDeque<SocketAddr>,
}

/// What a socket on its way says.
enum Progress {
    Pending,
    Connected,
    Failed(io::Error),
}

impl Driver {
    /// Starts to connect.
    ///
    /// # Errors
    /// As `Domain::connect`.
    pub(crate) fn dial(&mut self, target: &Addr) -> Result<EpId, Error> {
        let mut rest = VecDeque::from(resolve::peers(target)?);
        let (stream, current) = match self.next_stream(&mut rest) {
            Ok(found) => found,
            Err(error) if status::is_exhausted(&error) => {
                return Err(status::connect_error(error, target));
            }
            Err(error) => return Ok(self.failed_at_once(error, target)),
        };
        let dial = Dial { target: target.clone(), current, rest };
        let ep = self.insert(stream, Phase::Dialing(dial))?;
        self.deadlines.dials.push(ep, Instant::now());
        Ok(ep)
    }

    /// A dialing socket can go on.
    pub(crate) fn on_dialing(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Dialing(dial) = &conn.phase else { return };
        match progress(&conn.stream, dial.current) {
            Progress::Pending => {}
            Progress::Connected => self.on_dialed(index),
            Progress::Failed(error) => self.dial_next(index, error),
        }
    }

    /// The time to connect is over.
    pub(crate) fn on_dial_timeout(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Dialing(dial) = &conn.phase else { return };
        let text = format!(
            "{} did not answer within {:?}: check address, network and firewall",
            dial.target,
            self.deadlines.dials.span()
        );
        self.fail_dial(index, Error::new(ErrorKind::TimedOut, text));
    }

    /// The socket is connected: greet.
    fn on_dialed(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Dialing(dial) = &conn.phase else { return };
        let peer = resolve::addr_of(dial.current);
        conn.phase = Phase::Greeting(Greeting::new(Origin::Dialed, peer));
        let ep = conn.id;
        self.deadlines.dialed.push(ep, Instant::now());
        self.on_greeting(index);
    }

    /// One address failed: try the next, or end with its error.
    fn dial_next(&mut self, index: usize, error: io::Error) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Dialing(dial) = &mut conn.phase else { return };
        let (mut rest, target) = (std::mem::take(&mut dial.rest), dial.target.clone());
        if rest.is_empty() {
            return self.fail_dial(index, status::connect_error(error, &target));
        }
        match self.next_stream(&mut rest) {
            Ok((stream, current)) => self.redial(index, stream, Dial { target, current, rest }),
            Err(error) => self.fail_dial(index, status::connect_error(error, &target)),
        }
    }

    fn redial(&mut self, index: usize, mut stream: TcpStream, dial: Dial) {
        let target = dial.target.clone();
        if let Err(error) = self.register(&mut stream, index) {
            return self.fail_dial(index, status::connect_error(error, &target));
        }
        if let Some(conn) = self.table.get(index) {
            (conn.stream, conn.phase) = (stream, Phase::Dialing(dial));
            (conn.readable, conn.writable, conn.ends) = (false, true, false);
        }
    }

    fn fail_dial(&mut self, index: usize, why: Error) {
        if let Some(conn) = self.table.remove(index) {
            tracing::debug!(ep = conn.id.0, %why, "connecting failed");
            self.shared.events.push(Event::Closed { ep: conn.id, why });
        }
    }

    /// No address could even be tried. That is news about the peer, so it comes as an event.
    fn failed_at_once(&mut self, error: io::Error, target: &Addr) -> EpId {
        let ep = self.table.id_of_nothing();
        let why = status::connect_error(error, target);
        self.shared.events.push(Event::Closed { ep, why });
        ep
    }

    /// A socket on its way to the first of `rest` that lets itself be tried.
    fn next_stream(&self, rest: &mut VecDeque<SocketAddr>) -> io::Result<(TcpStream, SocketAddr)> {
        let mut last = io::Error::from(Errno::ADDRNOTAVAIL);
        while let Some(addr) = rest.pop_front() {
            match sys::connect(addr, &self.options) {
                Ok(stream) => return Ok((stream, addr)),
                Err(error) if status::is_exhausted(&error) => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn progress(stream: &TcpStream, peer: SocketAddr) -> Progress {
    match stream.take_error() {
        Ok(None) => {}
        Ok(Some(error)) | Err(error) => return Progress::Failed(error),
    }
    match stream.peer_addr() {
        Ok(_) if is_itself(stream, peer) => Progress::Failed(Errno::CONNREFUSED.into()),
        Ok(_) => Progress::Connected,
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Progress::Pending,
        Err(error) => Progress::Failed(error),
    }
}

/// Whether TCP connected a socket to itself: an ephemeral port that happens to be the target's meets
/// its own attempt. It means that nobody listens there.
fn is_itself(stream: &TcpStream, peer: SocketAddr) -> bool {
    stream.local_addr().is_ok_and(|local| local == peer)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_socket_connected_to_itself_is_refused() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let itself = socket.local_addr().unwrap();
        socket.connect(&itself).unwrap();
        socket.set_nonblocking(true).unwrap();
        let stream = TcpStream::from_std(socket.into());
        match progress(&stream, itself.as_socket().unwrap()) {
            Progress::Failed(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused),
            Progress::Pending | Progress::Connected => panic!("nobody listens there"),
        }
    }
}
