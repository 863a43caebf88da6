//! The link machine against a peer without manners.

use std::collections::VecDeque;
use std::time::Duration;

use bolero::check;
use msg_proto::credit::{Room, Tally};
use msg_proto::fault::Fault;
use msg_proto::link::{Heartbeat, Link, LinkAction, LinkConfig, LinkState};
use msg_proto::types::SocketType;
use msg_proto::wire::{Hello, VERSION, VERSION_MIN};

use crate::script::Script;

#[test]
fn no_peer_brings_a_link_to_panic_overdraw_or_hoard() {
    check!().for_each(|bytes: &[u8]| run(&mut Script::new(bytes)));
}

fn run(script: &mut Script<'_>) {
    let mut scene = Scene::new(script);
    while let Some(step) = script.byte() {
        scene.step(step, script);
        scene.check();
    }
    scene.drain();
}

/// A link and what its user and an observer of the wire know.
struct Scene {
    link: Link,
    now: Duration,
    /// What the peer granted, as far as the link took it.
    granted: Room,
    /// The largest window that was ever open.
    window_max: u64,
    unread: VecDeque<u64>,
    /// How far the link had come.
    progress: usize,
    /// What the link said last that may be followed by little.
    last_word: Option<LinkAction>,
    went_up: bool,
    /// Pings since the last drain, which come from the user's clock, not from the peer.
    ticks: usize,
}

/// More than a link may have to say at once, its pings aside.
const WORDS_MAX: usize = 24;

impl Scene {
    fn new(script: &mut Script<'_>) -> Self {
        let config = config(script);
        Self {
            link: Link::new(config, Duration::ZERO),
            now: Duration::ZERO,
            granted: Room { messages: 0, bytes: 0 },
            window_max: config.window.messages,
            unread: VecDeque::new(),
            progress: 0,
            last_word: None,
            went_up: false,
            ticks: 0,
        }
    }

    fn step(&mut self, step: u8, script: &mut Script<'_>) {
        match step {
            0..40 => self.hello(&legal_hello(script)),
            40..45 => self.hello(&any_hello(script)),
            45..75 => self.link.on_ping(self.now, script.number() as u16, script.bytes(40)),
            75..105 => self.credit(self.more(script)),
            105..110 => self.credit(Room { messages: script.number(), bytes: script.number() }),
            110..150 => self.message(script.number()),
            150..185 => self.read(),
            185..205 => self.send(script.number()),
            205..225 => self.wait(script.number()),
            225..230 => self.link.on_traffic(self.now),
            230..238 => self.set_window(script.number()),
            238..246 => self.drain(),
            246..249 => self.link.close(),
            249..252 => self.link.on_bye(),
            252..254 => self.link.refuse(Fault::from_code(script.number() as u16)),
            254.. => self.gone(),
        }
    }

    fn hello(&mut self, hello: &Hello<'_>) {
        let before = self.link.state();
        self.link.on_hello(self.now, hello);
        if (before, self.link.state()) == (LinkState::Greeting, LinkState::Up) {
            self.granted = Room { messages: hello.credit_messages, bytes: hello.credit_bytes };
        }
    }

    /// Totals somewhat above those of before.
    fn more(&self, script: &mut Script<'_>) -> Room {
        Room {
            messages: self.granted.messages.saturating_add(script.number()),
            bytes: self.granted.bytes.saturating_add(script.number()),
        }
    }

    fn credit(&mut self, total: Room) {
        let back = total.messages < self.granted.messages || total.bytes < self.granted.bytes;
        let before = self.link.state();
        self.link.on_credit(total);
        if back || total == self.granted || before == LinkState::Greeting {
            assert_eq!(self.link.state(), LinkState::Down, "{total:?} was taken");
        } else if before != LinkState::Down {
            self.granted = total;
        }
    }

    fn message(&mut self, bytes: u64) {
        let before = self.link.state();
        if self.link.on_message(bytes).is_ok() {
            assert_ne!(before, LinkState::Greeting, "a message before the greeting");
            self.unread.push_back(bytes);
        }
    }

    fn read(&mut self) {
        if let Some(bytes) = self.unread.pop_front() {
            self.link.on_consumed(bytes);
        }
    }

    fn send(&mut self, bytes: u64) {
        if self.link.has_room(bytes) {
            assert_eq!(self.link.state(), LinkState::Up);
            self.link.on_sent(Tally { messages: 1, bytes });
        }
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.saturating_add(Duration::from_millis(ms));
        self.link.on_timeout(self.now);
        self.ticks += 1;
        let next = self.link.poll_timeout();
        assert!(next.is_none_or(|at| at > self.now), "{next:?} is due at {:?} already", self.now);
    }

    fn set_window(&mut self, messages: u64) {
        self.link.set_window_messages(messages);
        self.window_max = self.window_max.max(messages);
    }

    fn gone(&mut self) {
        self.link.on_gone();
        assert_eq!(self.link.poll_action(), None);
    }

    fn check(&mut self) {
        let progress = progress(self.link.state());
        assert!(progress >= self.progress, "back to {:?}", self.link.state());
        self.progress = progress;
        assert!(self.link.sent_messages() <= self.granted.messages);
        assert!(self.unread.len() as u64 <= self.window_max);
        if self.link.state() == LinkState::Down {
            assert_eq!((self.link.poll_timeout(), self.link.has_room(0)), (None, false));
        }
    }

    fn drain(&mut self) {
        let mut words = 0;
        while let Some(action) = self.link.poll_action() {
            words += 1;
            self.hear(action);
        }
        assert!(words <= WORDS_MAX + self.ticks, "{words} actions at once");
        self.ticks = 0;
    }

    fn hear(&mut self, action: LinkAction) {
        let end = matches!(action, LinkAction::Refuse(_) | LinkAction::Close);
        match self.last_word {
            None => {}
            Some(LinkAction::SendBye) => assert!(end, "{action:?} behind a goodbye"),
            Some(last) => panic!("{action:?} behind {last:?}"),
        }
        if end || action == LinkAction::SendBye {
            self.last_word = Some(action);
        }
        if let LinkAction::Up(_) = action {
            assert!(!self.went_up, "up twice");
            self.went_up = true;
        }
    }
}

fn progress(state: LinkState) -> usize {
    match state {
        LinkState::Greeting => 0,
        LinkState::Up => 1,
        LinkState::Closing => 2,
        LinkState::Down => 3,
    }
}

fn config(script: &mut Script<'_>) -> LinkConfig {
    let window = Room { messages: script.number(), bytes: script.number() };
    let ms = |script: &mut Script<'_>| Duration::from_millis(script.number().max(1));
    let heartbeat = Heartbeat { interval: ms(script), timeout: ms(script), ttl: ms(script) };
    LinkConfig {
        socket_type: SocketType::Push,
        abilities: 0,
        abilities_needed: 0,
        instance: 1,
        message_bytes_max: u64::MAX,
        window,
        handshake_timeout: ms(script),
        heartbeat: (script.number() > 0).then_some(heartbeat),
    }
}

fn legal_hello(script: &mut Script<'_>) -> Hello<'static> {
    Hello {
        version: VERSION,
        version_min: VERSION_MIN,
        socket_type: SocketType::Pull.code(),
        abilities: 0,
        ttl_tenths: script.number() as u16,
        instance: 2,
        message_bytes_max: u64::MAX,
        credit_messages: script.number(),
        credit_bytes: script.number(),
        identity: b"",
    }
}

fn any_hello<'a>(script: &mut Script<'a>) -> Hello<'a> {
    Hello {
        version: script.number() as u16,
        version_min: script.number() as u16,
        socket_type: script.number() as u8,
        abilities: script.number() as u8,
        identity: script.bytes(255),
        ..legal_hello(script)
    }
}
