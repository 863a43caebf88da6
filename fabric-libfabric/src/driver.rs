//! The machinery of a domain: completions, connection events, and what each endpoint does next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use fabric_core::{Deadlines, EpId, Error, ErrorKind, Event, OpId, SendBuf};
use fabric_link::{Cut, FdWaker, HEAD_BYTES, Reason, Recvs};

use crate::accept::Listeners;
use crate::choose::Choice;
use crate::endpoint::{Endpoint, Farewell, Message, Outgoing};
use crate::limits::{
    BLIND_TURNS_MAX, COMPLETIONS, CONTROL_PACKETS, DROP_NAPS, EVENTS_MAX, LOOK_EVERY,
    LOOKS_IN_A_ROW, PACKET_BYTES, PACKET_BYTES_MIN, PIECES_MAX, RECEIVES_MAX, RETRY_AFTER,
    WINDOW_MAX, WINDOW_MIN,
};
use crate::link::{Link, Wires};
use crate::litter;
use crate::options::LibfabricOptions;
use crate::outbound::{Pumped, Shared};
use crate::pace::Pace;
use crate::region::Regions;
use crate::scheme::{self, Scheme};
use crate::sleeper::{Sleeper, Token, Watch};
use crate::status;
use crate::stock::Stock;
use crate::sys::{self, Ask, CmEvent, Code, Completion, Contexts, Info, Kind, Opened};
use crate::table::{Phase, Table};

/// Time limits by kind.
pub(crate) struct AllDeadlines {
    pub(crate) dials: Deadlines,
    pub(crate) accepts: Deadlines,
    pub(crate) lingers: Deadlines,
}

/// Fields are dropped in order: what came from the provider before what it is made from.
pub(crate) struct Driver {
    pub(crate) table: Table,
    /// Ways that were let go of and are to be closed.
    pub(crate) graves: Vec<(EpId, Link)>,
    pub(crate) listeners: Listeners,
    pub(crate) regions: Regions,
    pub(crate) recvs: Recvs,
    pub(crate) events: VecDeque<Event>,
    pub(crate) deadlines: AllDeadlines,
    pub(crate) options: LibfabricOptions,
    pub(crate) scheme: Scheme,
    pub(crate) kind: Kind,
    /// Addresses are names on this host.
    pub(crate) is_local: bool,
    /// What further offers of the same provider must fit.
    pub(crate) ask: Ask,
    info: Info,
    pub(crate) waker: Arc<FdWaker>,
    pub(crate) sleeper: Sleeper,
    /// The provider's completions are among what the sleeper watches.
    pub(crate) has_fds: bool,
    pub(crate) pace: Pace,
    /// Somebody slept or will sleep on the descriptor.
    pub(crate) is_armed: bool,
    last_look: Instant,
    /// Turns since the clock was read.
    blind_turns: u32,
    /// Flights that were read, to be posted again.
    pub(crate) read: Vec<usize>,
    /// Memory for completions.
    batch: Vec<Completion>,
    next_op: u64,
    pub(crate) wires: Wires,
}

impl Driver {
    /// Opens what was chosen, with nothing to do.
    ///
    /// # Errors
    /// `Host` when a limit is in the way, and what the provider says.
    pub(crate) fn new(choice: Choice, options: LibfabricOptions) -> Result<Self, Error> {
        let Choice { info, kind, scheme } = choice;
        let failed = |code: Code| status::host_error(code, "opening a libfabric domain");
        let opened = Opened::new(&info, kind, COMPLETIONS, options.wait_object).map_err(failed)?;
        let waker = FdWaker::new().map_err(|error| failed(error.into()))?;
        let sleeper = Sleeper::new().map_err(|error| failed(error.into()))?;
        // Endpoints without connections have queues of their own, which are not watched.
        for fd in opened.fds().filter(|_| kind == Kind::Connected).chain([waker.fd()]) {
            sleeper.add(fd, Token::LOOK, Watch::In).map_err(|error| failed(error.into()))?;
        }
        let has_fds = kind == Kind::Connected && opened.announces_completions();
        let provider = info.provider();
        let is_local = scheme::is_local(&provider);
        if is_local {
            litter::sweep();
        }
        let depth = RECEIVES_MAX.min(info.depth());
        let domain = (!scheme::reaches_all(&provider)).then(|| info.domain());
        let ask = Ask { provider: Some(provider), domain, depth, ..Ask::default() };
        Ok(Self {
            table: Table::default(),
            graves: Vec::new(),
            listeners: Listeners::default(),
            regions: Regions::default(),
            recvs: Recvs::new(options.recv_depth),
            events: VecDeque::new(),
            deadlines: AllDeadlines {
                dials: Deadlines::new(options.connect_timeout),
                accepts: Deadlines::new(options.handshake_timeout),
                lingers: Deadlines::new(options.linger_timeout),
            },
            options,
            scheme,
            kind,
            is_local,
            ask,
            waker,
            sleeper,
            has_fds,
            pace: Pace::new(Instant::now()),
            is_armed: true,
            last_look: Instant::now(),
            blind_turns: 0,
            read: Vec::new(),
            batch: Vec::new(),
            next_op: 0,
            wires: Wires {
                flights: slab::Slab::new(),
                contexts: Contexts::default(),
                stock: Stock::new(info.needs_registration()),
                inject_bytes: info.inject_bytes().min(PACKET_BYTES),
                draft: vec![0; info.inject_bytes().clamp(HEAD_BYTES, PACKET_BYTES)],
                clock: Instant::now(),
                opened,
            },
            info,
        })
    }

    /// The device, as the provider names it.
    pub(crate) fn device(&self) -> String {
        self.info.domain()
    }

    /// What to make the next endpoint without connections from.
    ///
    /// # Errors
    /// `Host` when the provider's endpoints cannot be named.
    pub(crate) fn new_info(&self) -> Result<Info, Error> {
        let mut info = self.info.clone();
        if self.is_local {
            info.set_name(&litter::new_name())
                .map_err(|code| status::host_error(code, "naming an endpoint"))?;
        }
        Ok(info)
    }

    /// A number for an operation, from 1.
    pub(crate) fn new_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    /// Bytes of a packet. Providers that share memory hand over what they can inject at once; the rest
    /// would need both sides to poll, and one to read the other's memory.
    pub(crate) fn packet_bytes(&self) -> usize {
        match self.is_local {
            true => self.wires.inject_bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES),
            false => PACKET_BYTES,
        }
    }

    /// How many packets a new peer may send before they are read.
    pub(crate) fn window(&self) -> usize {
        let others = CONTROL_PACKETS + 2 * PIECES_MAX;
        let share = self.options.window_bytes / PACKET_BYTES / (self.table.len() + 1);
        let room = self.ask.depth.saturating_sub(others);
        share.saturating_sub(others).min(room).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    /// Queues a message.
    pub(crate) fn send(&mut self, index: usize, buf: SendBuf, len: usize) -> OpId {
        let op = self.new_op();
        if let Some(endpoint) = self.table.endpoint(index) {
            endpoint.ops += 1;
            let message = Message { op, buf, cut: Cut::new(len) };
            endpoint.out.push_back(Outgoing::Message(message));
            self.table.mark_dirty(index);
        }
        op
    }

    /// Sends what is queued, as far as credit and provider allow, and then offers what was read.
    pub(crate) fn flush(&mut self) {
        self.pump_dirty();
        self.post_read();
    }

    fn pump_dirty(&mut self) {
        for _ in 0..self.table.dirty_len() {
            let Some(index) = self.table.pop_dirty() else { return };
            self.pump_one(index);
        }
    }

    /// Sends what an endpoint has.
    ///
    /// # Errors
    /// What the provider says when it takes no more.
    pub(crate) fn pump(&mut self, endpoint: &mut Endpoint) -> Result<Pumped, Code> {
        let Self { wires, regions, events, .. } = self;
        endpoint.pump(&mut Shared { wires, regions, events })
    }

    fn pump_one(&mut self, index: usize) {
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Open(_)) => self.pump_open(index),
            Some(Phase::Dialing(_)) => self.greet_dialed(index),
            Some(Phase::Accepting(_)) => self.greet_accepted(index),
            _ => {}
        }
    }

    fn pump_open(&mut self, index: usize) {
        self.repost_left(index);
        let Self { table, wires, regions, events, .. } = self;
        let Some(endpoint) = table.endpoint(index) else { return };
        match endpoint.pump(&mut Shared { wires, regions, events }) {
            Ok(Pumped::All) => self.settle_end(index),
            Ok(Pumped::Short) => self.table.mark_short(index),
            Ok(Pumped::Denied { piece }) => {
                let why = status::trespassed(&endpoint.peer);
                self.end(index, why, Some(Farewell::denied(piece)));
            }
            Err(code) => self.on_lost(index, Some(code)),
        }
    }

    /// One turn: works until `events_max` events are there or there is nothing to do.
    pub(crate) fn turn(&mut self, events_max: usize) {
        if self.table.has_short() {
            self.table.rouse_short();
        }
        self.flush();
        if self.events.len() < events_max {
            let looked = self.look();
            let came = self.drain_completions(events_max.min(EVENTS_MAX));
            if looked || came || self.table.starved_len() > 0 {
                self.expire();
                self.resume_starved();
                // What was read is offered in the next turn: whoever waits for it goes first.
                self.pump_dirty();
                self.close_graves();
            }
        }
    }

    /// Connection events, if it is time to ask for them. Where nothing but messages is to be expected,
    /// not every turn looks at the clock, which would take as long as the rest of it. Says whether this
    /// one did.
    fn look(&mut self) -> bool {
        self.blind_turns += 1;
        if !self.is_armed && self.blind_turns < BLIND_TURNS_MAX && !self.has_deadlines() {
            return false;
        }
        self.blind_turns = 0;
        let now = Instant::now();
        self.wires.clock = now;
        self.pace.on_look(now);
        if self.is_armed || now.saturating_duration_since(self.last_look) >= LOOK_EVERY {
            (self.last_look, self.is_armed) = (now, false);
            self.look_around();
        }
        true
    }

    fn look_around(&mut self) {
        match self.sleeper.ready() {
            Ok(ready) => ready.into_iter().for_each(|token| self.on_ready(token)),
            // The next `wait` says what is wrong with it.
            Err(error) => tracing::debug!(%error, "looking failed"),
        }
        loop {
            match self.wires.opened.next_event() {
                Ok(Some(event)) => self.on_cm_event(event),
                Ok(None) => return,
                Err(code) => return tracing::warn!(%code, "the event queue is broken"),
            }
        }
    }

    fn on_ready(&mut self, token: Token) {
        if token == Token::LOOK {
            return;
        }
        self.pace.on_progress();
        if let Some(listener) = Listeners::named(token) {
            return self.on_side_listener(listener);
        }
        let Some(index) = self.table.index_of(EpId(token.0)) else { return };
        match self.table.get(index).map(|conn| &mut conn.phase) {
            Some(Phase::Dialing(_)) => self.on_dial_side(index),
            Some(Phase::Accepting(_)) => self.on_accept_side(index),
            Some(Phase::Open(endpoint)) => {
                if endpoint.link.side.as_mut().is_some_and(crate::side::Side::is_gone) {
                    self.on_end_of_way(EpId(token.0));
                }
            }
            Some(Phase::Parting(link)) => {
                if link.side.as_mut().is_some_and(crate::side::Side::is_gone) {
                    self.entomb(index);
                }
            }
            Some(Phase::Gone) | None => {}
        }
    }

    /// The other end of a way is gone. The peer's last packets came before; they are looked at first.
    fn on_end_of_way(&mut self, ep: EpId) {
        self.drain_completions(usize::MAX);
        if let Some(index) = self.table.index_of(ep) {
            self.on_lost(index, None);
        }
    }

    fn on_cm_event(&mut self, event: CmEvent) {
        match event {
            CmEvent::Request { passive, info, said } => {
                self.on_connect_request(passive, &info, &said);
            }
            CmEvent::Connected { endpoint, said } => {
                let Some(index) = self.table.index_of_name(endpoint) else { return };
                match self.table.get(index).map(|conn| &conn.phase) {
                    Some(Phase::Dialing(_)) => self.on_dial_connected(index, &said),
                    Some(Phase::Accepting(_)) => self.greet_accepted(index),
                    _ => {}
                }
            }
            CmEvent::Shutdown { endpoint } => {
                if let Some(index) = self.table.index_of_name(endpoint)
                    && let Some(conn) = self.table.get(index)
                {
                    let id = conn.id;
                    self.on_end_of_way(id);
                }
            }
            CmEvent::Failed { object, code } => {
                if let Some(index) = self.table.index_of_name(object) {
                    self.drain_completions(usize::MAX);
                    self.on_lost(index, Some(code));
                }
            }
            CmEvent::Other(code) => tracing::debug!(code, "connection event"),
        }
    }

    /// Takes completions until the queues are empty or there are enough events. Says whether any came.
    pub(crate) fn drain_completions(&mut self, events_max: usize) -> bool {
        let (mut batch, mut came) = (std::mem::take(&mut self.batch), false);
        loop {
            let more = self.look_at_queues(&mut batch).unwrap_or_else(|code| {
                tracing::warn!(%code, "a completion queue is broken");
                false
            });
            if !batch.is_empty() {
                came = true;
                self.pace.on_progress();
                for completion in batch.drain(..) {
                    self.on_completion(completion);
                }
            }
            if !more || self.events.len() >= events_max {
                break;
            }
        }
        self.batch = batch;
        came
    }

    /// Where a look is so short that what goes on around it takes as long, who has looked in vain looks
    /// again at once.
    fn look_at_queues(&self, batch: &mut Vec<Completion>) -> Result<bool, Code> {
        let looks = if self.is_local { LOOKS_IN_A_ROW } else { 1 };
        for _ in 1..looks {
            let more = self.poll_queues(batch)?;
            if more || !batch.is_empty() {
                return Ok(more);
            }
        }
        self.poll_queues(batch)
    }

    fn poll_queues(&self, batch: &mut Vec<Completion>) -> Result<bool, Code> {
        let contexts = &self.wires.contexts;
        match self.kind {
            Kind::Connected => self.wires.opened.poll(contexts, batch),
            Kind::Datagram => self
                .table
                .iter()
                .filter_map(|(_, conn)| conn.phase.link())
                .try_fold(false, |more, link| Ok(link.endpoint.poll(contexts, batch)? || more)),
        }
    }

    fn has_deadlines(&mut self) -> bool {
        let all = &self.deadlines;
        let any = [&all.dials, &all.accepts, &all.lingers].iter().any(|queue| !queue.is_empty());
        any && self.next_deadline().is_some()
    }

    fn expire(&mut self) {
        if !self.has_deadlines() {
            return;
        }
        let now = self.wires.clock;
        self.expire_each(now, |all| &mut all.dials, Self::on_dial_timeout);
        self.expire_each(now, |all| &mut all.accepts, Self::on_accept_timeout);
        self.expire_each(now, |all| &mut all.lingers, Self::on_linger_timeout);
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
            if self.recvs.is_empty() {
                return;
            }
            let Some(index) = self.table.pop_starved() else { return };
            self.serve(index);
        }
    }

    /// Ends an endpoint as its user asked.
    pub(crate) fn close(&mut self, ep: EpId) {
        let Some(index) = self.table.index_of(ep) else { return };
        let why = Error::new(ErrorKind::Flushed, "this side closed the endpoint");
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Open(_)) => self.end(index, why, Some(Farewell::plain(Reason::Closed))),
            Some(Phase::Dialing(_)) => self.fail_dial(index, why),
            // Not an endpoint yet, or not any more.
            _ => {}
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let is_busy =
            |phase: &Phase| matches!(phase, Phase::Open(endpoint) if endpoint.in_flight > 0);
        !self.table.iter().any(|(_, conn)| is_busy(&conn.phase))
    }
}

impl Drop for Driver {
    /// What was sent gets a moment to leave. Then every way is closed before the memory that the
    /// provider may use goes; what cannot be closed yet is kept with that memory.
    fn drop(&mut self) {
        self.flush();
        for _ in 0..DROP_NAPS {
            self.drain_completions(usize::MAX);
            if self.is_quiet() {
                break;
            }
            std::thread::sleep(RETRY_AFTER);
        }
        for index in self.table.indices() {
            self.entomb(index);
        }
        self.close_graves();
        if !self.graves.is_empty() {
            self.keep_remains();
        }
    }
}

impl Driver {
    /// Endpoints of this process still send to ours; they let go when they hear that this end is gone.
    fn keep_remains(&mut self) {
        let graves = std::mem::take(&mut self.graves);
        let names = graves.iter().map(|(_, link)| link.endpoint.name().to_vec()).collect();
        let opened = self.wires.opened.clone();
        let wires = Wires {
            flights: std::mem::take(&mut self.wires.flights),
            contexts: std::mem::take(&mut self.wires.contexts),
            stock: std::mem::replace(&mut self.wires.stock, Stock::new(false)),
            inject_bytes: 0,
            draft: Vec::new(),
            clock: self.wires.clock,
            opened,
        };
        sys::keep(names, Box::new((graves, wires)));
    }
}
