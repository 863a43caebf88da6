//! Connections that ended on this side and still hand over what was accepted before.
//!
//! Closing a socket with unread input resets the connection, and a reset may overtake data that the
//! kernel still sends. So the end of the stream is sent first, and input is read and dropped until
//! the peer ends too.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Instant;

use mio::net::TcpStream;

use crate::driver::Driver;
use crate::limits::{LINGER_BYTES_MAX, LINGERS_MAX, READ_BYTES_PER_POLL};
use crate::sys::Io;
use crate::table::{Conn, Phase};

/// How far the end of a connection got.
#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// The rest of a frame.
    out: Vec<u8>,
    sent: usize,
    is_shut: bool,
}

/// All lingering connections together.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    count: usize,
    bytes: usize,
}

impl Lingering {
    /// How much one more connection may keep.
    pub(crate) fn bytes_left(&self) -> usize {
        LINGER_BYTES_MAX - self.bytes.min(LINGER_BYTES_MAX)
    }
}

impl Linger {
    fn new(out: Vec<u8>) -> Self {
        Self { out, ..Self::default() }
    }

    /// Goes on as far as the socket allows. Says whether the connection is over.
    fn step(&mut self, conn: &mut Live<'_>) -> bool {
        match self.send(conn.stream) {
            Ok(()) => drain(conn, READ_BYTES_PER_POLL),
            Err(_) => true,
        }
    }

    fn send(&mut self, stream: &TcpStream) -> io::Result<()> {
        while self.sent < self.out.len() {
            match Io(stream).write(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_shut {
            return Ok(());
        }
        self.is_shut = true;
        stream.shutdown(Shutdown::Write)
    }
}

/// What a lingering connection needs of its socket.
struct Live<'a> {
    stream: &'a TcpStream,
    readable: &'a mut bool,
    scratch: &'a mut [u8],
}

/// Reads and drops input. Says whether it ended.
fn drain(conn: &mut Live<'_>, mut budget: usize) -> bool {
    while *conn.readable && budget > 0 {
        match Io(conn.stream).read(conn.scratch) {
            Ok(0) => return true,
            Ok(got) => budget = budget.saturating_sub(got),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => *conn.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
    false
}

impl Driver {
    /// Ends a connection after `out`. Whatever it was, it is no endpoint any more.
    pub(crate) fn linger(&mut self, index: usize, out: Vec<u8>) {
        let Some(conn) = self.table.get(index) else { return };
        self.lingering.count += 1;
        self.lingering.bytes += out.len();
        conn.phase = Phase::Lingering(Linger::new(out));
        // Input that nobody read yet may be there without a word from the kernel.
        conn.readable = true;
        let ep = conn.id;
        self.deadlines.lingers.push(ep, Instant::now());
        self.on_lingering(index);
        self.drop_oldest_linger();
    }

    /// A lingering connection can go on.
    pub(crate) fn on_lingering(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Conn { stream, readable, phase: Phase::Lingering(linger), .. } = conn else { return };
        let mut live = Live { stream, readable, scratch: self.shared.scratch.bytes() };
        if linger.step(&mut live) {
            self.end_linger(index);
        } else if conn.readable {
            self.table.mark_ready(index);
        }
    }

    /// A lingering connection ends, done or not.
    pub(crate) fn end_linger(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Lingering(linger) = &conn.phase else { return };
        self.lingering.count -= 1;
        self.lingering.bytes -= linger.out.len();
        self.table.remove(index);
    }

    fn drop_oldest_linger(&mut self) {
        while self.lingering.count > LINGERS_MAX {
            let Some(ep) = self.deadlines.lingers.pop() else { return };
            self.table.index_of(ep).into_iter().for_each(|index| self.end_linger(index));
        }
    }
}

/// The domain goes away: hands over what the socket takes now, and reads what is there so that
/// closing does not reset.
pub(crate) fn hurry(conn: Conn, scratch: &mut [u8]) {
    let Conn { stream, phase, .. } = conn;
    let mut linger = match phase {
        Phase::Open(_) => Linger::new(Vec::new()),
        Phase::Lingering(linger) => linger,
        Phase::Dialing(_) | Phase::Greeting(_) => return,
    };
    linger.step(&mut Live { stream: &stream, readable: &mut true, scratch });
}
