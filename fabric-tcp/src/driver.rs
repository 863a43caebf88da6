//! The machinery of a domain: one poll, all connections, and what each has to do next.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric_core::{Deadlines, EpId, Error, ErrorKind, Event, OpId};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};

use crate::accept::Accepting;
use crate::endpoint::{End, Farewell, Scratch, Shared};
use crate::events::Events;
use crate::greeting::{Opened, Origin};
use crate::limits::{EVENTS_MAX, LINGER_TIME};
use crate::linger::{self, Lingering};
use crate::options::TcpOptions;
use crate::reader::Turn;
use crate::recvs::Recvs;
use crate::region::Regions;
use crate::status;
use crate::sys::Io;
use crate::table::{Conn, Phase, Table};
use crate::waker::TcpWaker;
use crate::writer::Flushed;

const WAKER: Token = Token(usize::MAX);

/// Tokens from here on name listeners, those below connections.
const LISTENERS: usize = usize::MAX / 2;

/// Readiness events taken from the kernel at once, at first and at most; more stay there for the
/// next time. Most domains have one connection.
const KERNEL_EVENTS: usize = 8;
const KERNEL_EVENTS_MAX: usize = 256;

/// Turns in a row that read from the only connection without asking the kernel who is ready.
const UNASKED_MAX: u32 = 16;

/// Time limits by kind.
#[derive(Debug)]
pub(crate) struct AllDeadlines {
    pub(crate) dials: Deadlines,
    /// Greetings of connections made here.
    pub(crate) dialed: Deadlines,
    /// Greetings of connections that came in.
    pub(crate) accepted: Deadlines,
    pub(crate) lingers: Deadlines,
}

pub(crate) struct Driver {
    pub(crate) options: TcpOptions,
    pub(crate) table: Table,
    pub(crate) shared: Shared,
    pub(crate) accepting: Accepting,
    pub(crate) lingering: Lingering,
    pub(crate) deadlines: AllDeadlines,
    pub(crate) waker: Arc<TcpWaker>,
    poll: mio::Poll,
    kernel_events: mio::Events,
    /// The next turn need not ask the kernel: `wait` just did, or something else goes first.
    is_fresh: bool,
    /// The kernel was asked since `wait` said so of something else.
    has_asked: bool,
    /// Nobody slept since the last turn.
    polls_on: bool,
    /// Turns that read without having asked since the kernel was asked last.
    unasked: u32,
    next_op: u64,
}

impl Driver {
    /// A driver with nothing to do.
    ///
    /// # Errors
    /// `Host` when the host gives no epoll instance.
    pub(crate) fn new(options: TcpOptions) -> Result<Self, Error> {
        let failed = |error| status::host_error(error, "opening a TCP domain");
        let poll = mio::Poll::new().map_err(failed)?;
        let waker = mio::Waker::new(poll.registry(), WAKER).map_err(failed)?;
        let shared = Shared {
            recvs: Recvs::new(options.recv_depth),
            regions: Regions::default(),
            events: Events::default(),
            scratch: Scratch::default(),
            message_bytes_max: options.message_bytes_max,
        };
        let deadlines = AllDeadlines {
            dials: Deadlines::new(options.connect_timeout),
            dialed: Deadlines::new(options.handshake_timeout),
            accepted: Deadlines::new(options.handshake_timeout),
            lingers: Deadlines::new(LINGER_TIME),
        };
        Ok(Self {
            options,
            table: Table::default(),
            shared,
            accepting: Accepting::default(),
            lingering: Lingering::default(),
            deadlines,
            waker: TcpWaker::new(waker),
            poll,
            kernel_events: mio::Events::with_capacity(KERNEL_EVENTS),
            is_fresh: false,
            has_asked: false,
            polls_on: false,
            unasked: 0,
            next_op: 0,
        })
    }

    /// A number for an operation, from 1.
    pub(crate) fn new_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    pub(crate) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// Puts a connection in.
    ///
    /// # Errors
    /// `Host` when the kernel cannot watch it.
    pub(crate) fn insert(&mut self, mut stream: TcpStream, phase: Phase) -> Result<EpId, Error> {
        let index = self.table.next_index();
        self.register(&mut stream, index)
            .map_err(|error| status::host_error(error, "watching a connection"))?;
        Ok(self.table.insert(stream, phase))
    }

    pub(crate) fn register(&self, stream: &mut TcpStream, index: usize) -> io::Result<()> {
        self.registry().register(stream, Token(index), Interest::READABLE | Interest::WRITABLE)
    }

    pub(crate) fn register_listener(
        &self,
        socket: &mut TcpListener,
        index: usize,
    ) -> io::Result<()> {
        self.registry().register(socket, Token(LISTENERS + index), Interest::READABLE)
    }

    /// Writes what was posted, as far as the kernel takes it.
    pub(crate) fn flush(&mut self) {
        if self.table.has_held() {
            self.release_greetings(Opened::Go);
        }
        self.flush_dirty();
    }

    /// Writes what is queued, but for greetings that the user may add to.
    fn flush_dirty(&mut self) {
        for _ in 0..self.table.dirty_len() {
            if self.shared.events.len() >= EVENTS_MAX {
                return;
            }
            let Some(index) = self.table.pop_dirty() else { return };
            self.flush_one(index);
        }
    }

    /// One turn: takes readiness from the kernel and works until `events_max` events are there or
    /// everyone had a turn.
    pub(crate) fn turn(&mut self, events_max: usize) {
        self.flush();
        if self.shared.events.len() < events_max {
            self.ask_kernel();
            self.expire();
            self.accept_some();
            self.resume_starved();
            self.serve_ready(events_max);
            if self.table.has_held() {
                self.release_greetings(Opened::Wait);
            }
            self.flush_dirty();
        }
    }

    /// Whether `turn` has something to do without asking the kernel.
    pub(crate) fn is_pending(&self) -> bool {
        let shared = &self.shared;
        !shared.events.is_empty()
            || self.table.ready_len() > 0
            || self.table.dirty_len() > 0
            || (self.table.starved_len() > 0 && !shared.recvs.is_empty())
            || self.accepting.is_ready()
    }

    /// Sleeps until the kernel has something, the waker was called, or the time is over.
    ///
    /// # Errors
    /// `Host` or `Provider` when the kernel cannot wait.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.flush();
        self.settle_readiness();
        if self.is_pending() || self.waker.take() {
            // What is pending goes without a system call, every other time: peers are to be heard.
            self.is_fresh |= std::mem::take(&mut self.has_asked);
            return Ok(());
        }
        let own = self.time_left();
        let timeout = [timeout, own].into_iter().flatten().min();
        match self.poll.poll(&mut self.kernel_events, timeout) {
            Ok(()) => self.on_waited(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.kernel_events.clear(),
            Err(error) => return Err(status::host_error(error, "waiting")),
        }
        Ok(())
    }

    /// Time until the domain's own next deadline.
    pub(crate) fn time_left(&mut self) -> Option<Duration> {
        let table = &self.table;
        let all = &mut self.deadlines;
        let is = |wanted: fn(&Phase) -> bool| move |ep| table.phase_of(ep).is_some_and(wanted);
        let next = [
            all.dials.next(is(|phase| matches!(phase, Phase::Dialing(_)))),
            all.dialed.next(is(|phase| matches!(phase, Phase::Greeting(_)))),
            all.accepted.next(is(|phase| matches!(phase, Phase::Greeting(_)))),
            all.lingers.next(is(|phase| matches!(phase, Phase::Lingering(_)))),
            self.accepting.next_deadline(),
        ];
        let next = next.into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Ends a connection as its user asked.
    pub(crate) fn close(&mut self, ep: EpId) {
        let Some(index) = self.table.index_of(ep) else { return };
        let Some(conn) = self.table.get(index) else { return };
        let why = Error::new(ErrorKind::Flushed, "this side closed the endpoint");
        match &conn.phase {
            Phase::Open(_) => self.end(index, End::new(why, Farewell::Orderly)),
            Phase::Dialing(_) => {
                self.table.remove(index);
                self.shared.events.push(Event::Closed { ep, why });
            }
            Phase::Greeting(greeting) if greeting.origin == Origin::Dialed => {
                self.fail_greeting(index, why);
            }
            // Not an endpoint yet, or not any more.
            Phase::Greeting(_) | Phase::Lingering(_) => {}
        }
    }

    /// Ends an endpoint: everything comes back, then the connection lingers or is dropped.
    pub(crate) fn end(&mut self, index: usize, end: End) {
        let Some(conn) = self.table.get(index) else { return };
        let Some(endpoint) = conn.take_endpoint() else { return };
        tracing::debug!(ep = conn.id.0, why = %end.why, "endpoint closed");
        match endpoint.finish(end, self.lingering.bytes_left(), &mut self.shared) {
            Some(out) => self.linger(index, out),
            None => drop(self.table.remove(index)),
        }
    }

    /// Takes readiness from the kernel, unless that can wait until the next turn.
    fn ask_kernel(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            return;
        }
        self.has_asked = true;
        if !std::mem::replace(&mut self.polls_on, true) || !self.reads_unasked() {
            self.take_readiness();
        }
    }

    fn take_readiness(&mut self) {
        self.unasked = 0;
        match self.poll.poll(&mut self.kernel_events, Some(Duration::ZERO)) {
            Ok(()) => {
                self.note_readiness();
            }
            // The next `wait` says what is wrong with it.
            Err(error) => tracing::debug!(%error, "polling failed"),
        }
    }

    /// Where one connection is all there is, to read from it tells as much as to ask who is ready. That
    /// is done now and then all the same: others may want to connect.
    fn reads_unasked(&mut self) -> bool {
        let reads = self.unasked < UNASKED_MAX && self.table.mark_only_open_ready();
        self.unasked += u32::from(reads);
        reads
    }

    /// Somebody is about to sleep: what was read unasked must not seem to be there still.
    pub(crate) fn settle_readiness(&mut self) {
        self.polls_on = false;
        if self.unasked > 0 {
            self.take_readiness();
        }
    }

    fn on_waited(&mut self) {
        (self.is_fresh, self.has_asked) = (true, true);
        if self.note_readiness() {
            self.waker.take();
        }
    }

    /// Remembers who is ready. Says whether the waker was called.
    fn note_readiness(&mut self) -> bool {
        let mut woken = false;
        let mut count = 0;
        for event in &self.kernel_events {
            count += 1;
            match event.token() {
                WAKER => woken = true,
                Token(index) if index >= LISTENERS => self.accepting.mark_ready(index - LISTENERS),
                Token(index) => note_connection(&mut self.table, index, event),
            }
        }
        if count >= KERNEL_EVENTS {
            self.take_more_than(count);
        }
        woken
    }

    /// The kernel had `count` events: if there was no room for more, there is from now on.
    fn take_more_than(&mut self, count: usize) {
        let room = self.kernel_events.capacity();
        if count == room && room < KERNEL_EVENTS_MAX {
            self.kernel_events = mio::Events::with_capacity((room * 4).min(KERNEL_EVENTS_MAX));
        }
    }

    fn flush_one(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Conn { stream, writable, phase: Phase::Open(endpoint), .. } = conn else { return };
        if !*writable || endpoint.broken.is_some() {
            return;
        }
        match endpoint.flush(&mut Io(stream), &mut self.shared) {
            Ok(Flushed::All) => {}
            Ok(Flushed::Blocked) => *writable = false,
            Ok(Flushed::Budget) => self.table.mark_dirty(index),
            Err(error) => self.on_write_error(index, error),
        }
    }

    /// Writing failed. What the peer sent before is still read; that ends the endpoint.
    fn on_write_error(&mut self, index: usize, error: io::Error) {
        let Some(conn) = self.table.get(index) else { return };
        if let Phase::Open(endpoint) = &mut conn.phase {
            endpoint.broken = Some(error);
        }
        (conn.readable, conn.ends) = (true, true);
        self.table.mark_ready(index);
    }

    fn expire(&mut self) {
        let all = &self.deadlines;
        let queues = [&all.dials, &all.dialed, &all.accepted, &all.lingers];
        if queues.iter().all(|queue| queue.is_empty()) && !self.accepting.is_resting() {
            return;
        }
        let now = Instant::now();
        self.accepting.on_time(now);
        self.expire_each(now, |all| &mut all.dials, Self::on_dial_timeout);
        self.expire_each(now, |all| &mut all.dialed, Self::on_greeting_timeout);
        self.expire_each(now, |all| &mut all.accepted, Self::on_greeting_timeout);
        self.expire_each(now, |all| &mut all.lingers, Self::end_linger);
    }

    fn expire_each(
        &mut self,
        now: Instant,
        queue: fn(&mut AllDeadlines) -> &mut Deadlines,
        act: fn(&mut Self, usize),
    ) {
        while let Some(ep) = queue(&mut self.deadlines).pop_due(now) {
            if let Some(index) = self.table.index_of(ep) {
                act(self, index);
            }
        }
    }

    /// Connections that waited for slots go on before others use them up.
    fn resume_starved(&mut self) {
        for _ in 0..self.table.starved_len() {
            if self.shared.recvs.is_empty() {
                return;
            }
            let Some(index) = self.table.pop_starved() else { return };
            self.serve(index);
        }
    }

    fn serve_ready(&mut self, events_max: usize) {
        for _ in 0..self.table.ready_len() {
            if self.shared.events.len() >= events_max {
                return;
            }
            let Some(index) = self.table.pop_ready() else { return };
            self.serve(index);
        }
    }

    fn serve(&mut self, index: usize) {
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Open(_)) => self.read_one(index),
            Some(Phase::Dialing(_)) => self.on_dialing(index),
            Some(Phase::Greeting(_)) => self.on_greeting(index),
            Some(Phase::Lingering(_)) => self.on_lingering(index),
            None => {}
        }
    }

    pub(crate) fn read_one(&mut self, index: usize) {
        let Some(conn) = self.table.get(index) else { return };
        let Conn { stream, readable, ends, phase: Phase::Open(endpoint), .. } = conn else {
            return;
        };
        let turn = Turn { readable: *readable, ends: *ends, starved: false };
        match endpoint.read(&mut Io(stream), &mut self.shared, turn) {
            Ok(turn) => {
                *readable = turn.readable;
                self.list_again(index, turn);
            }
            Err(end) => self.end(index, end),
        }
    }

    /// Lists a connection for what it has to do after reading.
    fn list_again(&mut self, index: usize, turn: Turn) {
        let Some(conn) = self.table.get(index) else { return };
        let Phase::Open(endpoint) = &mut conn.phase else { return };
        let is_dirty = !endpoint.writer.is_empty();
        if turn.starved
            && let Some(error) = endpoint.broken.take()
        {
            // Nobody knows when a slot is posted, and the peer is gone.
            let why = status::stream_error(error, &endpoint.peer);
            return self.end(index, End::new(why, Farewell::Gone));
        }
        if turn.starved {
            self.table.mark_starved(index);
        } else if turn.readable {
            self.table.mark_ready(index);
        }
        if is_dirty {
            self.table.mark_dirty(index);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for conn in self.table.drain() {
            linger::hurry(conn, self.shared.scratch.bytes());
        }
    }
}

fn note_connection(table: &mut Table, index: usize, event: &mio::event::Event) {
    let Some(conn) = table.get(index) else { return };
    let ends = event.is_read_closed() || event.is_error();
    conn.ends |= ends;
    conn.readable |= event.is_readable() || ends;
    conn.writable |= event.is_writable() || event.is_error();
    let Phase::Open(endpoint) = &conn.phase else { return table.mark_ready(index) };
    let (readable, dirty) = (conn.readable, conn.writable && !endpoint.writer.is_empty());
    if readable {
        table.mark_ready(index);
    }
    if dirty {
        table.mark_dirty(index);
    }
}
