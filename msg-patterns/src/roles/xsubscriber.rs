//! XSUB: a subscriber that filters nothing itself, and sends messages up to its publishers.

use msg_proto::fault::Fault;
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use super::subscriber::{Subscriber, tell_all};
use super::{Role, next_of_run, next_ready};
use crate::engine::inbox::Incoming;
use crate::engine::peer::{Head, Outgoing};
use crate::engine::{Net, Room};
use crate::monitor::PeerId;
use crate::options::Options;
use crate::{Message, Subscription};

/// The subscribing end that sends.
pub(crate) struct XSubscriber {
    subscriber: Subscriber,
    /// Publishers hear of every subscription, not only of the first and the last of equal ones.
    verbose: bool,
    /// Whom messages go to, sorted.
    publishers: Vec<PeerId>,
    with_room: Vec<PeerId>,
}

impl XSubscriber {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            subscriber: Subscriber::new(false),
            verbose: options.verbose,
            publishers: Vec::new(),
            with_room: Vec::new(),
        }
    }

    pub(crate) fn subscribe(&mut self, net: &mut Net, topic: &[u8]) {
        if self.subscriber.subscriptions.subscribe(topic) || self.verbose {
            tell_all(net, &Frame::Subscribe { history: true, topic });
        }
    }

    pub(crate) fn unsubscribe(&mut self, net: &mut Net, topic: &[u8]) {
        let known = self.subscriber.subscriptions.count(topic) > 0;
        if self.subscriber.subscriptions.cancel(topic) || (self.verbose && known) {
            tell_all(net, &Frame::Cancel { topic });
        }
    }

    /// Sends the message to all publishers with room. If it begins as RFC 29 has it, it subscribes or
    /// cancels instead, and only what follows that part is sent.
    pub(crate) fn send(&mut self, net: &mut Net, message: Message) {
        let Some((subscribes, topic)) = Subscription::parse(message.first()) else {
            return self.send_up(net, message);
        };
        if subscribes {
            self.subscribe(net, topic);
        } else {
            self.unsubscribe(net, topic);
        }
        if let [_, rest @ ..] = message.parts()
            && !rest.is_empty()
        {
            self.send_up(net, Message::from_parts(rest.iter().cloned()));
        }
    }

    /// As `send`, for the plain case: the message joins others on their way to the same peers. If
    /// that is not in order, nothing happened.
    #[inline]
    pub(crate) fn send_at_once(&mut self, net: &mut Net, message: &Message) -> bool {
        let done =
            Subscription::parse(message.first()).is_none() && net.append(&self.publishers, message);
        net.counters.accepted += u64::from(done);
        done
    }

    /// Sends the message to all publishers with room, whatever it begins with.
    pub(crate) fn send_up(&mut self, net: &mut Net, message: Message) {
        net.counters.accepted += 1;
        let size = message.len() as u64;
        let mut with_room = std::mem::take(&mut self.with_room);
        with_room.clear();
        for &peer in &self.publishers {
            match net.room(peer, size) {
                Room::Yes => with_room.push(peer),
                Room::Full => net.miss(peer, 1),
                Room::TooLong => {
                    net.miss(peer, 1);
                    // Nothing else may follow that would tell it.
                    net.pump(peer);
                }
                Room::Down | Room::Nobody => {}
            }
        }
        if !with_room.is_empty() {
            net.give_all(&with_room, &Outgoing::new(message, Head::None));
        }
        self.with_room = with_room;
    }

    /// The next message, if there is one.
    pub(crate) fn receive(&mut self, net: &mut Net) -> Option<Message> {
        let (peer, taken) = next_ready(&mut self.subscriber.ready, net)?;
        net.remove_if_read(peer);
        Some(Message::of(taken.parts))
    }

    /// As `receive`, if the next message is one of a run.
    #[inline(always)]
    pub(crate) fn receive_at_once(&mut self, net: &mut Net) -> Option<Message> {
        next_of_run(&mut self.subscriber.ready, net, |_, _| true).map(Message::single)
    }

    fn add(&mut self, peer: PeerId) {
        if let Err(at) = self.publishers.binary_search(&peer) {
            self.publishers.insert(at, peer);
        }
    }

    fn times(&self, count: u64) -> u64 {
        if self.verbose { count } else { 1 }
    }
}

impl Role for XSubscriber {
    const TYPE: SocketType = SocketType::XSub;
    const ONE_CONNECT_EACH: bool = Subscriber::ONE_CONNECT_EACH;

    fn has_incoming(&self) -> bool {
        self.subscriber.has_incoming()
    }

    fn configure(&mut self, options: &Options) {
        self.verbose = options.verbose;
    }

    fn on_attach(&mut self, _net: &mut Net, peer: PeerId) {
        self.add(peer);
    }

    fn on_up(&mut self, net: &mut Net, peer: PeerId) {
        self.add(peer);
        let history = self.subscriber.is_new(net, peer);
        for (topic, count) in self.subscriber.subscriptions.counts() {
            for _ in 0..self.times(count) {
                net.control(peer, &Frame::Subscribe { history, topic });
            }
        }
        net.control(peer, &Frame::Settled);
    }

    /// A publisher that is being left hears at once that nothing more is wanted (RFC 29).
    fn on_gone(&mut self, net: &mut Net, peer: PeerId, last: bool) {
        if last && net.peer(peer).is_up() {
            for (topic, count) in self.subscriber.subscriptions.counts() {
                for _ in 0..self.times(count) {
                    net.control(peer, &Frame::Cancel { topic });
                }
            }
        }
        if last {
            self.publishers.retain(|own| *own != peer);
        }
        self.subscriber.on_gone(net, peer, last);
    }

    fn on_frame(&mut self, net: &mut Net, peer: PeerId, frame: &Frame<'_>) -> Result<(), Fault> {
        self.subscriber.on_frame(net, peer, frame)
    }

    /// Publishers filter; RFC 29 leaves it at that.
    fn admits(&mut self, _net: &mut Net, _peer: PeerId, _message: &Incoming) -> bool {
        true
    }

    fn admits_lone(&self, _body: &[u8]) -> bool {
        true
    }

    fn on_ready(&mut self, net: &mut Net, peer: PeerId) {
        self.subscriber.on_ready(net, peer);
    }
}
