//! The link machine: every state against every input, and two honest links against each other.

use std::collections::VecDeque;
use std::time::Duration;

use msg_proto::credit::{Room, Tally};
use msg_proto::fault::Fault;
use msg_proto::link::{Heartbeat, Link, LinkAction, LinkConfig, LinkState};
use msg_proto::types::SocketType;
use msg_proto::wire::{Hello, VERSION};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn config(socket_type: SocketType) -> LinkConfig {
    LinkConfig {
        socket_type,
        abilities: 0,
        abilities_needed: 0,
        instance: 1,
        message_bytes_max: 1_000,
        window: Room { messages: 2, bytes: 200 },
        handshake_timeout: 500 * MS,
        heartbeat: Some(Heartbeat { interval: 100 * MS, timeout: 300 * MS, ttl: 2_000 * MS }),
    }
}

fn pull_hello() -> Hello<'static> {
    config(SocketType::Pull).hello(b"")
}

fn drain(link: &mut Link) -> Vec<LinkAction> {
    std::iter::from_fn(|| link.poll_action()).collect()
}

/// A PUSH link in each state, with nothing left to do.
fn in_state(state: LinkState) -> Link {
    let mut link = Link::new(config(SocketType::Push), Duration::ZERO);
    if state != LinkState::Greeting {
        link.on_hello(Duration::ZERO, &pull_hello());
    }
    match state {
        LinkState::Greeting | LinkState::Up => {}
        LinkState::Closing => link.close(),
        LinkState::Down => link.on_bye(),
    }
    drain(&mut link);
    assert_eq!(link.state(), state);
    link
}

/// Messages arrive; the link itself does what is to be done when they may not.
fn receive(link: &mut Link, sizes: &[u64]) {
    for bytes in sizes {
        let _ = link.on_message(*bytes);
    }
}

type Input = (&'static str, fn(&mut Link));

const INPUTS: [Input; 22] = [
    ("hello", |link| link.on_hello(MS, &pull_hello())),
    ("hello, illegal type", |link| link.on_hello(MS, &config(SocketType::Sub).hello(b""))),
    ("hello, too new", |link| {
        link.on_hello(MS, &Hello { version: 9, version_min: VERSION + 1, ..pull_hello() });
    }),
    ("hello, too old", |link| link.on_hello(MS, &Hello { version: 0, ..pull_hello() })),
    ("ping", |link| link.on_ping(MS, 0, b"c")),
    ("credit, new", |link| link.on_credit(Room { messages: 9, bytes: 900 })),
    ("credit, repeated", |link| link.on_credit(Room { messages: 2, bytes: 200 })),
    ("credit, back", |link| link.on_credit(Room { messages: 9, bytes: 100 })),
    ("message", |link| receive(link, &[10])),
    ("message, no credit", |link| receive(link, &[10, 10, 10])),
    ("message, too many bytes", |link| receive(link, &[190, 190])),
    ("consumed", |link| {
        receive(link, &[10]);
        link.on_consumed(10);
    }),
    ("larger window", |link| link.set_window_messages(3)),
    ("smaller window", |link| link.set_window_messages(1)),
    ("bye", Link::on_bye),
    ("gone", Link::on_gone),
    ("refuse", |link| link.refuse(Fault::Limit)),
    ("close", Link::close),
    ("99 ms", |link| link.on_timeout(99 * MS)),
    ("100 ms", |link| link.on_timeout(100 * MS)),
    ("500 ms, heard at 400", |link| {
        link.on_traffic(400 * MS);
        link.on_timeout(500 * MS);
    }),
    ("500 ms", |link| link.on_timeout(500 * MS)),
];

#[test]
fn every_state_against_every_input() {
    let mut table = String::new();
    for state in [LinkState::Greeting, LinkState::Up, LinkState::Closing, LinkState::Down] {
        for (name, input) in INPUTS {
            let mut link = in_state(state);
            input(&mut link);
            let (state, now) = (format!("{state:?}"), format!("{:?}", link.state()));
            let actions: Vec<_> = drain(&mut link).iter().map(brief).collect();
            let line = format!("{state:9} {name:24} -> {now:9} {}", actions.join(", "));
            table += &format!("{}\n", line.trim_end());
        }
        table += "\n";
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_window_that_grows_before_the_greeting_is_announced_behind_it() {
    let mut link = in_state(LinkState::Greeting);
    link.set_window_messages(5);
    assert_eq!(drain(&mut link), []);
    link.on_hello(MS, &pull_hello());
    let grown = LinkAction::SendCredit(Room { messages: 5, bytes: 200 });
    assert_eq!(drain(&mut link)[1..], [grown]);
}

#[test]
fn nothing_follows_a_goodbye() {
    let mut link = in_state(LinkState::Closing);
    link.on_ping(Duration::ZERO, 0, b"");
    link.on_timeout(200 * MS);
    assert_eq!((drain(&mut link), link.poll_timeout()), (vec![], Some(400 * MS)));
}

#[test]
fn heartbeats_longer_than_any_clock_never_come_due() {
    let heartbeat =
        Heartbeat { interval: Duration::MAX, timeout: Duration::MAX, ttl: Duration::MAX };
    let config = LinkConfig { heartbeat: Some(heartbeat), ..config(SocketType::Push) };
    let mut link = Link::new(config, MS);
    link.on_hello(MS, &Hello { ttl_tenths: 0, ..pull_hello() });
    link.on_timeout(Duration::MAX - MS);
    assert_eq!((link.state(), link.poll_timeout()), (LinkState::Up, None));
}

fn brief(action: &LinkAction) -> String {
    match action {
        LinkAction::Up(info) => format!("Up({})", info.socket_type),
        LinkAction::SendPing { ttl_tenths } => format!("SendPing({ttl_tenths})"),
        LinkAction::SendPong { len, .. } => format!("SendPong({len} bytes)"),
        LinkAction::SendCredit(room) => format!("SendCredit({}, {})", room.messages, room.bytes),
        other => format!("{other:?}"),
    }
}

/// One of two links that talk to each other, and what is under way to it.
struct Side {
    link: Link,
    inbox: VecDeque<Letter>,
    unread: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Letter {
    Hello,
    Ping(u16),
    Pong,
    Credit(Room),
    Message(u64),
    Bye,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Send(u64),
    Deliver,
    Read,
    Wait,
    Window(u64),
}

struct Pair {
    sides: [Side; 2],
    now: Duration,
}

const TYPES: [SocketType; 2] = [SocketType::Push, SocketType::Pull];

impl Pair {
    fn new() -> Self {
        let side = |socket_type| Side {
            link: Link::new(config(socket_type), Duration::ZERO),
            inbox: VecDeque::new(),
            unread: VecDeque::new(),
        };
        let mut pair = Self { sides: TYPES.map(side), now: Duration::ZERO };
        pair.post();
        pair
    }

    /// Moves what the links want to say into the inboxes. Neither may ever complain.
    fn post(&mut self) {
        for (from, to) in [(0, 1), (1, 0)] {
            for action in drain(&mut self.sides[from].link) {
                if let Some(letter) = letter(action) {
                    self.sides[to].inbox.push_back(letter);
                }
            }
        }
    }

    fn step(&mut self, at: usize, step: Step) {
        match step {
            Step::Send(bytes) => self.send(at, bytes),
            Step::Deliver => self.deliver(at),
            Step::Read => self.read(at),
            Step::Wait => self.wait(),
            Step::Window(messages) => self.sides[at].link.set_window_messages(messages),
        }
        self.post();
    }

    fn send(&mut self, at: usize, bytes: u64) {
        if self.sides[at].link.has_room(bytes) {
            self.sides[at].link.on_sent(Tally { messages: 1, bytes });
            self.sides[1 - at].inbox.push_back(Letter::Message(bytes));
        }
    }

    fn deliver(&mut self, at: usize) {
        let now = self.now;
        let Side { link, inbox, unread } = &mut self.sides[at];
        let Some(letter) = inbox.pop_front() else { return };
        link.on_traffic(now);
        match letter {
            Letter::Hello => link.on_hello(now, &config(TYPES[1 - at]).hello(b"")),
            Letter::Ping(ttl_tenths) => link.on_ping(now, ttl_tenths, b""),
            Letter::Pong => {}
            Letter::Credit(total) => link.on_credit(total),
            Letter::Message(bytes) => {
                link.on_message(bytes).expect("an honest peer has credit");
                unread.push_back(bytes);
            }
            Letter::Bye => link.on_bye(),
        }
    }

    fn read(&mut self, at: usize) {
        let Side { link, unread, .. } = &mut self.sides[at];
        if let Some(bytes) = unread.pop_front() {
            link.on_consumed(bytes);
        }
    }

    /// A tenth of the heartbeat's interval passes, in which everything under way arrives.
    fn wait(&mut self) {
        self.now += 10 * MS;
        for at in [0, 1] {
            self.sides[at].link.on_timeout(self.now);
            self.post();
            while !self.sides[at].inbox.is_empty() {
                self.deliver(at);
                self.post();
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..40 {
            self.wait();
            (0..4).for_each(|step| self.step(step % 2, Step::Read));
        }
    }
}

fn letter(action: LinkAction) -> Option<Letter> {
    match action {
        LinkAction::SendHello => Some(Letter::Hello),
        LinkAction::SendPing { ttl_tenths } => Some(Letter::Ping(ttl_tenths)),
        LinkAction::SendPong { .. } => Some(Letter::Pong),
        LinkAction::SendCredit(total) => Some(Letter::Credit(total)),
        LinkAction::SendBye => Some(Letter::Bye),
        LinkAction::Up(_) | LinkAction::Close => None,
        LinkAction::Refuse(fault) => panic!("an honest peer is refused: {fault:?}"),
    }
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        6 => prop_oneof![0..50_u64, 0..1_000_u64].prop_map(Step::Send),
        8 => Just(Step::Deliver),
        4 => Just(Step::Read),
        1 => Just(Step::Wait),
        1 => (1..6_u64).prop_map(Step::Window),
    ];
    (0..2_usize, step)
}

proptest! {
    #[test]
    fn two_honest_links_never_refuse_each_other_and_never_get_stuck(
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut pair = Pair::new();
        for (at, step) in steps {
            pair.step(at, step);
        }
        pair.settle();
        for at in [0, 1] {
            let link = &pair.sides[at].link;
            prop_assert_eq!(link.state(), LinkState::Up);
            prop_assert_eq!(link.sent_messages(), pair.sides[1 - at].link.received_messages());
            prop_assert!(link.has_room(1_000), "everything was read and there is no room");
        }
    }

    #[test]
    fn a_goodbye_comes_behind_everything_that_was_sent(
        steps in prop::collection::vec(step(), 0..100), at in 0..2_usize,
    ) {
        let mut pair = Pair::new();
        for (at, step) in steps {
            pair.step(at, step);
        }
        pair.wait();
        let sent = pair.sides[at].link.sent_messages();
        pair.sides[at].link.close();
        pair.post();
        while !pair.sides[1 - at].inbox.is_empty() {
            pair.deliver(1 - at);
        }
        let other = &mut pair.sides[1 - at].link;
        prop_assert_eq!((other.state(), other.received_messages()), (LinkState::Down, sent));
        prop_assert_eq!(drain(other).pop(), Some(LinkAction::Close));
    }
}
