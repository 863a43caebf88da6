//! The machinery of a domain: completions, connection events, and what each endpoint does next.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric_core::{Deadlines, EpId, Error, ErrorKind, Event, OpId};
use fabric_link::{FdWaker, Reason, Recvs};

use crate::accept::Listeners;
use crate::buffers::{OutPackets, Registry};
use crate::choice;
use crate::kernel::{Ready, Sleeper};
use crate::limits::{
    COMPLETIONS, CONTROL_PACKETS, EVENTS_MAX, PACKET_BYTES, STOCK_MAX, WINDOW_MAX, WINDOW_MIN,
};
use crate::multicast::{GROUP_RECV, GROUP_SEND, Groups};
use crate::options::VerbsOptions;
use crate::outbound::{Pumped, Shared};
use crate::patience::Patience;
use crate::region::Regions;
use crate::stall;
use crate::status;
use crate::stock::{SHARED_RECV, Stock};
use crate::sys::{
    self, Chain, CmEvent, CmKind, Completion, Device, EventChannel, Id, Limits, Queues,
};
use crate::table::{Phase, Table};

/// How often connection events are asked for while nobody sleeps. Asking is a system call, which
/// polling for completions is not.
const LOOK_EVERY: Duration = Duration::from_micros(250);

/// Turns for each look at the clock while nobody sleeps.
const TURNS_PER_LOOK: u32 = 16;

/// How long a dropped domain waits for what it sent, in naps of a millisecond.
const DROP_NAPS: usize = 50;

/// Time limits by kind.
pub(crate) struct AllDeadlines {
    pub(crate) dials: Deadlines,
    pub(crate) accepts: Deadlines,
    pub(crate) lingers: Deadlines,
    pub(crate) silences: Deadlines,
}

/// Fields are dropped in order: what came from the device before what it is made from.
pub(crate) struct Driver {
    pub(crate) table: Table,
    /// Connections that ended and whose completions may still be in the queue.
    pub(crate) graves: Vec<Id>,
    pub(crate) listeners: Listeners,
    pub(crate) groups: Groups,
    pub(crate) regions: Regions,
    pub(crate) registry: Registry,
    pub(crate) out: OutPackets,
    pub(crate) stock: Stock,
    pub(crate) recvs: Recvs,
    pub(crate) events: VecDeque<Event>,
    pub(crate) deadlines: AllDeadlines,
    pub(crate) options: VerbsOptions,
    pub(crate) limits: Limits,
    pub(crate) devices: Vec<Device>,
    /// Bytes of the largest datagram.
    pub(crate) mtu_bytes: usize,
    /// Requests whose completions the queue has room for.
    pub(crate) room: usize,
    /// Packets that peers may fill, and those kept for their grants and goodbyes.
    pub(crate) reserved: usize,
    /// The device would not let go of a queue pair.
    is_haunted: bool,
    pub(crate) waker: Arc<FdWaker>,
    pub(crate) sleeper: Sleeper,
    /// What was ready at the end of a sleep and was not looked at yet.
    pub(crate) slept: Option<Ready>,
    /// Somebody slept or will sleep on the descriptor.
    pub(crate) is_armed: bool,
    pub(crate) patience: Patience,
    last_look: Instant,
    turns: u32,
    /// Empty; keeps its room.
    completions: Vec<Completion>,
    chain: Chain,
    next_op: u64,
    pub(crate) channel: Arc<EventChannel>,
    pub(crate) queues: Arc<Queues>,
}

impl Driver {
    /// Opens a device with nothing to do.
    ///
    /// # Errors
    /// `Host` when there is no device, no permission, or a limit is in the way.
    pub(crate) fn new(options: VerbsOptions, chosen: Option<&str>) -> Result<Self, Error> {
        let devices = Device::all().map_err(status::open_error)?;
        let device = choose(&devices, options.device.as_deref().or(chosen))?;
        let limits = device.limits().map_err(status::open_error)?;
        if limits.srq_wr_max == 0 {
            let text = format!("{} has no shared receive queues: use tcp://", device.name());
            return Err(Error::new(ErrorKind::Host, text));
        }
        let channel = EventChannel::new().map_err(status::channel_error)?;
        let completions = COMPLETIONS.min(limits.cqe_max);
        let receives = STOCK_MAX.min(limits.srq_wr_max).min(completions / 2);
        let queues = Queues::new(&device, completions, receives).map_err(status::open_error)?;
        let patience = Patience::new(options.look_max);
        let waker = FdWaker::new().map_err(status::open_error)?;
        let sleeper = Sleeper::new([queues.fd(), channel.fd(), waker.fd()]);
        Ok(Self {
            table: Table::default(),
            graves: Vec::new(),
            listeners: Listeners::default(),
            groups: Groups::default(),
            regions: Regions::default(),
            registry: Registry::default(),
            out: OutPackets::new(&queues)?,
            stock: Stock::new(receives),
            recvs: Recvs::new(options.recv_depth),
            events: VecDeque::new(),
            deadlines: AllDeadlines {
                dials: Deadlines::new(options.connect_timeout),
                accepts: Deadlines::new(options.handshake_timeout),
                lingers: Deadlines::new(options.linger_timeout),
                silences: Deadlines::new(stall::SILENCE_MAX),
            },
            options,
            limits,
            devices,
            mtu_bytes: device.mtu_bytes(),
            // The rest is for marks at the ends of connections.
            room: completions - receives - completions / 16,
            reserved: 0,
            is_haunted: false,
            waker,
            sleeper: sleeper.map_err(status::open_error)?,
            slept: None,
            is_armed: true,
            patience,
            last_look: Instant::now(),
            turns: 0,
            completions: Vec::new(),
            chain: Chain::default(),
            next_op: 0,
            channel,
            queues,
        })
    }

    /// A number for an operation, from 1.
    pub(crate) fn new_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    /// Sets a window aside for one more connection, and says how many packets it has.
    ///
    /// # Errors
    /// `Full` when the device has no room for more, `Host` when memory cannot be locked.
    pub(crate) fn reserve_window(&mut self) -> Result<usize, Error> {
        let share = self.options.window_bytes / PACKET_BYTES / (self.table.len() + 1);
        let window = share.saturating_sub(CONTROL_PACKETS).clamp(WINDOW_MIN, WINDOW_MAX);
        let window = match self.grow(window + CONTROL_PACKETS) {
            Ok(()) => window,
            Err(_) => {
                self.grow(WINDOW_MIN + CONTROL_PACKETS)?;
                WINDOW_MIN
            }
        };
        self.reserved += window + CONTROL_PACKETS;
        if let Err(error) = self.stock.post(&self.queues) {
            return Err(status::host_error(error, "posting receives"));
        }
        Ok(window)
    }

    /// Gives a window back of which `outstanding` packets are still allowed.
    pub(crate) fn release_window(&mut self, outstanding: usize) {
        self.reserved = self.reserved.saturating_sub(outstanding + CONTROL_PACKETS);
    }

    fn grow(&mut self, more: usize) -> Result<(), Error> {
        self.stock.grow_to(self.reserved + more, &self.queues)
    }

    /// Posts what is queued, as far as credit and queues allow.
    pub(crate) fn flush(&mut self) {
        self.flush_groups();
        for _ in 0..self.table.dirty_len() {
            let Some(index) = self.table.pop_dirty() else { return };
            self.pump_one(index);
        }
    }

    fn pump_one(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        let mut shared = Shared {
            packets: &self.out,
            registry: &self.registry,
            room: &mut self.room,
            chain: &mut self.chain,
            events: &mut self.events,
        };
        let pumped = endpoint.pump(&mut shared);
        if endpoint.wants_watch() {
            self.watch(index);
        }
        match pumped {
            Ok(Pumped::All) => self.settle_end(index),
            Ok(Pumped::Short) => self.table.mark_short(index),
            Err(error) => {
                let why = status::host_error(error, "posting to the send queue");
                self.end(index, why, None);
            }
        }
    }

    /// One turn: works until `events_max` events are there or there is nothing to do.
    pub(crate) fn turn(&mut self, events_max: usize) {
        self.flush();
        if self.events.len() < events_max {
            let came = self.drain_completions(events_max.min(EVENTS_MAX));
            if self.look() || came || self.table.starved_len() > 0 {
                self.expire();
                self.resume_starved();
                self.restock();
                self.flush();
            }
        }
    }

    /// Whether `turn` has something to do without asking anybody.
    pub(crate) fn is_pending(&self) -> bool {
        !self.events.is_empty()
            || self.table.dirty_len() > 0
            || (self.table.starved_len() > 0 && !self.recvs.is_empty())
            || !self.graves.is_empty()
    }

    /// Connection events and the events of the completion queue, if it is time to ask for them.
    /// While nobody sleeps, only some turns look at the clock. Says whether it was time.
    fn look(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        if !self.is_armed && !self.turns.is_multiple_of(TURNS_PER_LOOK) {
            return false;
        }
        let now = Instant::now();
        if !self.is_armed && now.saturating_duration_since(self.last_look) < LOOK_EVERY {
            return false;
        }
        self.last_look = now;
        self.stock.age(now);
        let ready = match self.slept.take() {
            Some(ready) => ready,
            None => self.ask(),
        };
        if ready.completions {
            self.queues.take_event();
        }
        if ready.any() {
            self.is_armed = false;
        }
        while ready.connections
            && let Some(event) = self.channel.next()
        {
            self.on_cm_event(event);
        }
        true
    }

    fn ask(&self) -> Ready {
        let asked = self.sleeper.sleep(Some(Duration::ZERO));
        asked.unwrap_or_else(|error| {
            // The next `wait` says what is wrong with it.
            tracing::debug!(%error, "polling failed");
            Ready::UNKNOWN
        })
    }

    fn on_cm_event(&mut self, event: CmEvent) {
        if self.listeners.names(event.cookie) {
            return self.on_listener_event(event);
        }
        if self.groups.names(event.cookie) {
            return self.on_group_event(&event);
        }
        let Some(index) = self.table.index_of(EpId(event.cookie)) else { return };
        if matches!(event.kind, CmKind::Disconnected) {
            // The peer's last packets came before; they are looked at first.
            self.drain_completions(usize::MAX);
        }
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Dialing(_)) => self.on_dial_event(index, &event),
            Some(Phase::Accepting(_)) => self.on_accept_event(index, &event),
            Some(Phase::Open(_)) => self.on_open_event(index, &event),
            None => {}
        }
    }

    fn on_open_event(&mut self, index: usize, event: &CmEvent) {
        match event.kind {
            CmKind::Disconnected => self.on_disconnected(index),
            CmKind::DeviceRemoved => {
                let why = Error::new(ErrorKind::Host, "the RDMA device is going away");
                self.end(index, why, None);
            }
            // It was taken for finished when its first packet came, and the connection manager, which
            // would tell of its end, has given it up.
            CmKind::Failed | CmKind::Rejected => {
                let why = match self.table.endpoint(index) {
                    Some(endpoint) => status::cm_error(event.status, &endpoint.peer),
                    None => return,
                };
                self.end(index, why, None);
            }
            CmKind::Other(code) => tracing::debug!(code, "connection event"),
            _ => {}
        }
    }

    /// Takes completions until the queue is empty or there are enough events. Says whether any came.
    pub(crate) fn drain_completions(&mut self, events_max: usize) -> bool {
        let (mut batch, mut came) = (std::mem::take(&mut self.completions), false);
        loop {
            let more = match self.queues.poll(&mut batch) {
                Ok(more) => more,
                Err(error) => {
                    tracing::warn!(%error, "the completion queue is broken");
                    false
                }
            };
            came |= !batch.is_empty();
            for completion in batch.drain(..) {
                self.on_completion(&completion);
            }
            if !more {
                // Nothing of them is left in the queue.
                self.graves.clear();
            }
            if !more || self.events.len() >= events_max {
                self.completions = batch;
                return came;
            }
        }
    }

    fn on_completion(&mut self, completion: &Completion) {
        if completion.id & SHARED_RECV != 0 {
            self.on_received(completion);
        } else if completion.id & (GROUP_RECV | GROUP_SEND) != 0 {
            self.on_group_completion(completion);
        } else {
            self.on_sent(completion);
        }
    }

    fn expire(&mut self) {
        let all = &self.deadlines;
        let queues = [&all.dials, &all.accepts, &all.lingers, &all.silences];
        if queues.iter().all(|queue| queue.is_empty()) {
            return;
        }
        let now = Instant::now();
        self.expire_each(now, |all| &mut all.dials, Self::on_dial_timeout);
        self.expire_each(now, |all| &mut all.accepts, Self::on_accept_timeout);
        self.expire_each(now, |all| &mut all.lingers, Self::on_linger_timeout);
        self.expire_each(now, |all| &mut all.silences, Self::on_silence_timeout);
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
    pub(crate) fn resume_starved(&mut self) {
        for _ in 0..self.table.starved_len() {
            if self.recvs.is_empty() {
                return;
            }
            let Some(index) = self.table.pop_starved() else { return };
            self.serve(index);
        }
    }

    /// Free packets go back to the device.
    pub(crate) fn restock(&mut self) {
        if !self.stock.is_short_of(self.reserved) {
            return;
        }
        if let Err(error) = self.stock.grow_to(self.reserved, &self.queues) {
            tracing::debug!(%error, "as many packets as there are have to do");
        }
        if let Err(error) = self.stock.post(&self.queues) {
            tracing::warn!(%error, "the device takes no receives for now");
        }
    }

    fn is_quiet(&self) -> bool {
        let busy = |phase: &Phase| matches!(phase, Phase::Open(ep) if !ep.flights.is_empty());
        !self.table.iter().any(|(_, conn)| busy(&conn.phase))
    }
}

fn choose(devices: &[Device], name: Option<&str>) -> Result<Device, Error> {
    let found = match name {
        Some(name) => devices.iter().find(|device| device.name() == name),
        None => devices.iter().find(|device| device.is_active()),
    };
    found.cloned().ok_or_else(|| {
        let text = match name {
            Some(name) => {
                format!("there is no RDMA device {name}; there {}", choice::listed(devices))
            }
            None if devices.is_empty() => status::no_device(),
            None => format!(
                "D20: no RDMA device is up; there {}: see `rdma link`",
                choice::listed(devices)
            ),
        };
        Error::new(ErrorKind::Host, text)
    })
}

impl Drop for Driver {
    /// What was sent gets a moment to leave. Then every queue pair is destroyed before the memory
    /// that the device may use goes; if the device refuses, the memory stays.
    fn drop(&mut self) {
        self.flush();
        for index in self.table.indices() {
            if let Some(endpoint) = self.table.endpoint(index) {
                endpoint.mark();
            }
        }
        for _ in 0..DROP_NAPS {
            self.drain_completions(usize::MAX);
            if self.is_quiet() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.regions.end_all_windows();
        for index in self.table.indices() {
            let Some(conn) = self.table.remove(index) else { continue };
            if let Phase::Open(mut endpoint) = conn.phase {
                endpoint.cut();
                if let Err(error) = endpoint.link.destroy_qp() {
                    self.keep_for_ever(endpoint, &error);
                }
            }
        }
        self.graves.clear();
        self.drop_groups();
        if self.is_haunted || sys::leaks() > 0 {
            std::mem::forget(std::mem::replace(&mut self.stock, Stock::new(0)));
        }
    }
}

impl Driver {
    /// The device may still use what a queue pair was given, and the packets that it may have taken
    /// from the shared queue.
    pub(crate) fn keep_for_ever<T>(&mut self, held: T, error: &io::Error) {
        std::mem::forget(held);
        self.is_haunted = true;
        tracing::warn!(%error, leaks = sys::leaks() + 1, "a queue pair's buffers are leaked");
    }

    /// Ends an endpoint as its user asked.
    pub(crate) fn close(&mut self, ep: EpId) {
        let Some(index) = self.table.index_of(ep) else { return };
        let why = Error::new(ErrorKind::Flushed, "this side closed the endpoint");
        match self.table.get(index).map(|conn| &conn.phase) {
            Some(Phase::Open(_)) => self.end(index, why, Some(Reason::Closed)),
            Some(Phase::Dialing(_)) => self.fail_dial(index, why),
            // Not an endpoint yet.
            Some(Phase::Accepting(_)) | None => {}
        }
    }
}
