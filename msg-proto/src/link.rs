//! One link to one peer: greeting, signs of life, credit and goodbye.
//!
//! ```text
//!            on_hello (legal)            close()
//! Greeting ────────────────────▶ Up ───────────────▶ Closing ──▶ Down
//!    │  time limit, illegal hello │  silence, violation, BYE,        ▲
//!    └────────────────────────────┴──────────── on_gone ─────────────┘
//! ```
//!
//! Inputs never fail; what they lead to is drained with [`Link::poll_action`] afterwards.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::fault::Fault;

use crate::credit::{CreditError, Grant, Room, Tally, Window};
use crate::types::SocketType;
use crate::wire::{CONTEXT_BYTES_MAX, Hello, VERSION, VERSION_MIN};

/// Heartbeats (ZMTP 3.1; libzmq's ZMQ_HEARTBEAT_*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// How often to ask for a sign of life.
    pub interval: Duration,
    /// How long the peer may stay silent.
    pub timeout: Duration,
    /// How long the peer should let this side stay silent; rounded down to tenths of a second.
    pub ttl: Duration,
}

/// What this side says and expects.
#[derive(Debug, Clone, Copy)]
pub struct LinkConfig {
    /// The type of the socket here.
    pub socket_type: SocketType,
    /// Bits of `wire::abilities` here.
    pub abilities: u8,
    /// Abilities without which a peer is refused.
    pub abilities_needed: u8,
    /// Drawn once for the socket.
    pub instance: u64,
    /// Largest message taken here, in bytes.
    pub message_bytes_max: u64,
    /// What is granted to the peer.
    pub window: Room,
    /// How long the greeting may take.
    pub handshake_timeout: Duration,
    /// Heartbeats, if wanted.
    pub heartbeat: Option<Heartbeat>,
}

/// Longest time to live that fits the wire (6553.5 s).
const TTL_TENTHS_MAX: u128 = u16::MAX as u128;

fn ttl_tenths(heartbeat: Option<Heartbeat>) -> u16 {
    let tenths = heartbeat.map_or(0, |heartbeat| heartbeat.ttl.as_millis() / 100);
    tenths.min(TTL_TENTHS_MAX) as u16
}

impl LinkConfig {
    /// The greeting that says this.
    pub fn hello<'a>(&self, identity: &'a [u8]) -> Hello<'a> {
        Hello {
            version: VERSION,
            version_min: VERSION_MIN,
            socket_type: self.socket_type.code(),
            abilities: self.abilities,
            ttl_tenths: ttl_tenths(self.heartbeat),
            instance: self.instance,
            message_bytes_max: self.message_bytes_max,
            credit_messages: self.window.messages,
            credit_bytes: self.window.bytes,
            identity,
        }
    }
}

/// What was learned from the peer's greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerInfo {
    /// The type of its socket.
    pub socket_type: SocketType,
    /// Bits of `wire::abilities`.
    pub abilities: u8,
    /// The same after a reconnect, another after a restart.
    pub instance: u64,
    /// Largest message it takes, in bytes.
    pub message_bytes_max: u64,
}

/// Where a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Waiting for the peer's greeting.
    Greeting,
    /// Messages may flow.
    Up,
    /// BYE was said; the peer closes when it has read everything.
    Closing,
    /// Over.
    Down,
}

/// What the owner of a link has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkAction {
    /// Send the HELLO of [`LinkConfig::hello`].
    SendHello,
    /// The peer is there and legal.
    Up(PeerInfo),
    /// Send a PING with this time to live, in tenths of a second.
    SendPing {
        /// For how long silence is in order.
        ttl_tenths: u16,
    },
    /// Send a PONG with this context.
    SendPong {
        /// The context, padded.
        context: [u8; CONTEXT_BYTES_MAX],
        /// How much of it counts.
        len: u8,
    },
    /// Send a CREDIT.
    SendCredit(Room),
    /// Send a BYE behind everything else.
    SendBye,
    /// Send an ERROR with this fault, then close the connection.
    Refuse(Fault),
    /// Close the connection.
    Close,
}

/// Most actions waiting at a time: a peer cannot make a link hoard them.
const ACTIONS_MAX: usize = 16;

/// The machine of one link.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    state: LinkState,
    deadline: Option<Duration>,
    last_heard: Duration,
    next_ping: Option<Duration>,
    peer_ttl: Option<Duration>,
    window: Window,
    grant: Grant,
    actions: VecDeque<LinkAction>,
}

impl Link {
    /// A link over a connection that has just come up.
    pub fn new(config: LinkConfig, now: Duration) -> Self {
        let mut link = Self {
            config,
            state: LinkState::Greeting,
            deadline: now.checked_add(config.handshake_timeout),
            last_heard: now,
            next_ping: None,
            peer_ttl: None,
            window: Window::new(Room { messages: 0, bytes: 0 }),
            grant: Grant::new(config.window),
            actions: VecDeque::new(),
        };
        link.act(LinkAction::SendHello);
        link
    }

    /// Where the link is.
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// The peer's greeting came.
    pub fn on_hello(&mut self, now: Duration, hello: &Hello<'_>) {
        if self.state != LinkState::Greeting {
            return self.refuse(Fault::Protocol);
        }
        match self.judge(hello) {
            Err(fault) => self.refuse(fault),
            Ok(info) => self.come_up(now, hello, info),
        }
    }

    fn judge(&self, hello: &Hello<'_>) -> Result<PeerInfo, Fault> {
        if hello.version < VERSION_MIN || hello.version_min > VERSION {
            return Err(Fault::Version);
        }
        if hello.identity.first() == Some(&0) {
            return Err(Fault::Protocol);
        }
        let socket_type = SocketType::from_code(hello.socket_type).ok_or(Fault::SocketType)?;
        if !self.config.socket_type.legal_peer(socket_type) {
            return Err(Fault::SocketType);
        }
        let needed = self.config.abilities_needed;
        if hello.abilities & needed != needed {
            return Err(Fault::Ability);
        }
        Ok(PeerInfo {
            socket_type,
            abilities: hello.abilities,
            instance: hello.instance,
            message_bytes_max: hello.message_bytes_max,
        })
    }

    fn come_up(&mut self, now: Duration, hello: &Hello<'_>, info: PeerInfo) {
        self.state = LinkState::Up;
        self.deadline = None;
        self.last_heard = now;
        self.window =
            Window::new(Room { messages: hello.credit_messages, bytes: hello.credit_bytes });
        self.next_ping = self.ping_after(now);
        self.on_ttl(hello.ttl_tenths);
        self.act(LinkAction::Up(info));
        self.announce();
    }

    fn on_ttl(&mut self, ttl_tenths: u16) {
        if ttl_tenths > 0 {
            self.peer_ttl = Some(Duration::from_millis(u64::from(ttl_tenths) * 100));
        }
    }

    /// Whether `on_traffic` has to be told of what arrives: else nobody minds silence.
    pub fn minds_silence(&self) -> bool {
        self.config.heartbeat.is_some() || self.peer_ttl.is_some()
    }

    /// Something arrived: any traffic is a sign of life.
    pub fn on_traffic(&mut self, now: Duration) {
        self.last_heard = now;
    }

    /// A PING came. Contexts over the limit are answered with their beginning.
    pub fn on_ping(&mut self, now: Duration, ttl_tenths: u16, context: &[u8]) {
        if self.state == LinkState::Greeting {
            return self.refuse(Fault::Protocol);
        }
        if self.state != LinkState::Up {
            // Nothing follows a BYE or an ERROR.
            return;
        }
        // From here on silence may matter that did not matter before.
        self.last_heard = now;
        self.on_ttl(ttl_tenths);
        let mut padded = [0; CONTEXT_BYTES_MAX];
        let len = context.len().min(CONTEXT_BYTES_MAX);
        padded[..len].copy_from_slice(&context[..len]);
        if self.actions.len() < ACTIONS_MAX {
            self.act(LinkAction::SendPong { context: padded, len: len as u8 });
        }
    }

    /// A CREDIT came.
    pub fn on_credit(&mut self, total: Room) {
        if self.state == LinkState::Greeting || self.window.on_credit(total).is_err() {
            self.refuse(Fault::Protocol);
        }
    }

    /// A message of `bytes` came (at its last part).
    ///
    /// # Errors
    /// [`CreditError::Overdrawn`] if it was not granted, as nothing is before the greeting; the link
    /// then refuses the peer by itself.
    pub fn on_message(&mut self, bytes: u64) -> Result<(), CreditError> {
        if self.state == LinkState::Greeting {
            self.refuse(Fault::Protocol);
            return Err(CreditError::Overdrawn);
        }
        let found = self.grant.on_message(bytes);
        if found.is_err() {
            self.refuse(Fault::Protocol);
        }
        found
    }

    /// Messages came together. Says whether all of them were granted; if not nothing was counted,
    /// and they are to be told one by one.
    #[must_use]
    pub fn on_messages(&mut self, tally: Tally) -> bool {
        self.state != LinkState::Greeting && self.grant.on_messages(tally)
    }

    /// The application took a message of `bytes`, or it was dropped here. Says whether there may be
    /// something to do.
    #[inline]
    pub fn on_consumed(&mut self, bytes: u64) -> bool {
        let due = self.grant.on_consumed(bytes);
        if due {
            self.announce();
        }
        due
    }

    /// The room for received messages changed.
    pub fn set_window_messages(&mut self, messages: u64) {
        self.grant.set_messages(messages);
        self.announce();
    }

    /// Announces credit that is due, in place of what still waits to be announced. What changes
    /// before the link is up stays due until then.
    fn announce(&mut self) {
        if self.state != LinkState::Up {
            return;
        }
        if let Some(total) = self.grant.poll_due() {
            self.actions.retain(|action| !matches!(action, LinkAction::SendCredit(_)));
            self.act(LinkAction::SendCredit(total));
        }
    }

    /// BYE came: everything the peer had to say was heard.
    pub fn on_bye(&mut self) {
        if self.state != LinkState::Down {
            self.state = LinkState::Down;
            self.act(LinkAction::Close);
        }
    }

    /// The connection is gone.
    pub fn on_gone(&mut self) {
        self.state = LinkState::Down;
        self.actions.clear();
    }

    /// The peer broke a rule that another machine watches over.
    pub fn refuse(&mut self, fault: Fault) {
        if self.state != LinkState::Down {
            self.state = LinkState::Down;
            self.act(LinkAction::Refuse(fault));
        }
    }

    /// Says goodbye behind everything that was sent.
    pub fn close(&mut self) {
        match self.state {
            LinkState::Up => {
                self.state = LinkState::Closing;
                self.next_ping = None;
                self.act(LinkAction::SendBye);
            }
            LinkState::Greeting => {
                self.state = LinkState::Down;
                self.act(LinkAction::Close);
            }
            LinkState::Closing | LinkState::Down => {}
        }
    }

    /// Deadlines up to `now` are due.
    pub fn on_timeout(&mut self, now: Duration) {
        if self.state == LinkState::Down {
            return;
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return self.refuse(Fault::Handshake);
        }
        if self.dead_at().is_some_and(|dead| dead <= now) {
            return self.refuse(Fault::Silent);
        }
        self.ping_if_due(now);
    }

    fn ping_if_due(&mut self, now: Duration) {
        let Some(heartbeat) = self.config.heartbeat else { return };
        if self.next_ping.is_some_and(|at| at <= now) {
            self.next_ping = self.ping_after(now);
            self.act(LinkAction::SendPing { ttl_tenths: ttl_tenths(Some(heartbeat)) });
        }
    }

    fn ping_after(&self, now: Duration) -> Option<Duration> {
        self.config.heartbeat.and_then(|heartbeat| now.checked_add(heartbeat.interval))
    }

    /// When the peer is held dead unless it is heard before.
    fn dead_at(&self) -> Option<Duration> {
        if self.state == LinkState::Greeting {
            return None;
        }
        let silence = |heartbeat: Heartbeat| heartbeat.timeout.saturating_add(heartbeat.interval);
        let own = self.config.heartbeat.map(silence);
        let limit = [own, self.peer_ttl].into_iter().flatten().min()?;
        self.last_heard.checked_add(limit)
    }

    /// When `on_timeout` is due next.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.state == LinkState::Down {
            return None;
        }
        [self.deadline, self.next_ping, self.dead_at()].into_iter().flatten().min()
    }

    /// Whether a message of `bytes` may be sent now.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.has_room_behind(Tally::default(), bytes)
    }

    /// Whether a message of `bytes` may be sent once those of `tally` were, which are not counted
    /// yet.
    pub fn has_room_behind(&self, tally: Tally, bytes: u64) -> bool {
        self.state == LinkState::Up && self.window.has_room_behind(tally, bytes)
    }

    /// What may be sent without asking again, once the messages of `tally` were.
    pub fn free_behind(&self, tally: Tally) -> Room {
        match self.state {
            LinkState::Up => self.window.free_behind(tally),
            _ => Room { messages: 0, bytes: 0 },
        }
    }

    /// Counts messages as sent.
    pub fn on_sent(&mut self, tally: Tally) {
        self.window.on_sent(tally);
    }

    /// Messages sent since the link came up.
    pub fn sent_messages(&self) -> u64 {
        self.window.sent_messages()
    }

    /// Messages received since the link came up.
    pub fn received_messages(&self) -> u64 {
        self.grant.received_messages()
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<LinkAction> {
        self.actions.pop_front()
    }

    fn act(&mut self, action: LinkAction) {
        self.actions.push_back(action);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn config(socket_type: SocketType) -> LinkConfig {
        LinkConfig {
            socket_type,
            abilities: 0,
            abilities_needed: 0,
            instance: 1,
            message_bytes_max: 1 << 20,
            window: Room { messages: 4, bytes: 400 },
            handshake_timeout: 100 * MS,
            heartbeat: Some(Heartbeat { interval: 10 * MS, timeout: 30 * MS, ttl: 250 * MS }),
        }
    }

    fn actions(link: &mut Link) -> Vec<LinkAction> {
        core::iter::from_fn(|| link.poll_action()).collect()
    }

    fn up() -> Link {
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        link.on_hello(Duration::ZERO, &config(SocketType::Pull).hello(b""));
        assert_eq!(link.state(), LinkState::Up);
        actions(&mut link);
        link
    }

    #[test]
    fn a_legal_greeting_brings_the_link_up() {
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        link.on_hello(MS, &config(SocketType::Pull).hello(b"name"));
        assert!(matches!(actions(&mut link)[..], [LinkAction::SendHello, LinkAction::Up(_)]));
    }

    #[test]
    fn an_illegal_pair_is_refused_for_good() {
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        link.on_hello(MS, &config(SocketType::Sub).hello(b""));
        let found = actions(&mut link);
        assert_eq!(found[1..], [LinkAction::Refuse(Fault::SocketType)]);
        assert!(Fault::SocketType.is_fatal());
    }

    #[test]
    fn a_newer_peer_that_still_understands_this_version_is_accepted() {
        let mut hello = config(SocketType::Pull).hello(b"");
        hello.version = VERSION + 7;
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        link.on_hello(MS, &hello);
        assert_eq!(link.state(), LinkState::Up);
        hello.version_min = VERSION + 1;
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        link.on_hello(MS, &hello);
        assert_eq!(actions(&mut link)[1..], [LinkAction::Refuse(Fault::Version)]);
    }

    #[test]
    fn a_late_greeting_is_refused() {
        let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
        assert_eq!(link.poll_timeout(), Some(100 * MS));
        link.on_timeout(100 * MS);
        assert_eq!(actions(&mut link)[1..], [LinkAction::Refuse(Fault::Handshake)]);
    }

    #[test]
    fn silence_ends_the_link_and_traffic_keeps_it() {
        let mut link = up();
        for t in 1..100 {
            link.on_traffic(t * 10 * MS);
            link.on_timeout(t * 10 * MS);
        }
        assert_eq!(link.state(), LinkState::Up);
        link.on_timeout(990 * MS + 40 * MS);
        assert_eq!(actions(&mut link).last(), Some(&LinkAction::Refuse(Fault::Silent)));
    }

    #[test]
    fn silence_counts_from_the_ping_that_first_names_a_limit() {
        let patient = |socket_type| LinkConfig { heartbeat: None, ..config(socket_type) };
        let mut link = Link::new(patient(SocketType::Push), Duration::ZERO);
        link.on_hello(Duration::ZERO, &patient(SocketType::Pull).hello(b""));
        assert_eq!((link.minds_silence(), link.poll_timeout()), (false, None));
        link.on_ping(5000 * MS, 2, b"");
        assert_eq!((link.minds_silence(), link.poll_timeout()), (true, Some(5200 * MS)));
    }

    #[test]
    fn a_ping_is_answered_with_its_context_cut_to_the_limit() {
        let mut link = up();
        link.on_ping(Duration::ZERO, 0, &[7; 40]);
        let pong = LinkAction::SendPong { context: [7; CONTEXT_BYTES_MAX], len: 16 };
        assert_eq!(actions(&mut link), [pong]);
    }

    #[test]
    fn a_flood_of_pings_cannot_pile_up_answers() {
        let mut link = up();
        for _ in 0..10_000 {
            link.on_ping(Duration::ZERO, 0, b"x");
        }
        assert!(actions(&mut link).len() <= ACTIONS_MAX);
    }

    #[test]
    fn waiting_credit_is_replaced_by_newer_credit() {
        let mut link = up();
        for _ in 0..4 {
            link.on_message(10).unwrap();
            link.on_consumed(10);
        }
        let last = LinkAction::SendCredit(Room { messages: 8, bytes: 440 });
        assert_eq!(actions(&mut link), [last]);
    }

    #[test]
    fn goodbye_waits_for_the_peer_to_close() {
        let mut link = up();
        link.close();
        assert_eq!(
            (actions(&mut link), link.state()),
            (alloc::vec![LinkAction::SendBye], LinkState::Closing)
        );
        link.on_gone();
        assert_eq!(link.state(), LinkState::Down);
    }
}
