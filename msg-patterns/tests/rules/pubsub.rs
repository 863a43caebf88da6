//! What the rules of PUB and SUB share.

use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::time::Duration;

use msg_patterns::{Builder, Linger, Message, Pub, Sub};
use msg_proto::types::SocketType;
use msg_proto::wire::{Frame, Hello};

use crate::support::{LONG, Net, Raw, hello};

/// The topic of the message that ends a test's traffic.
pub(crate) const END: &str = "end";

/// A bound publisher and its address.
pub(crate) fn publisher(net: &Net, settings: Builder<Pub>) -> (Pub, String) {
    let publisher = settings.linger(Linger::No).build(net.context()).unwrap();
    let addr = publisher.bind(net.any()).unwrap().to_string();
    (publisher, addr)
}

/// A subscriber to `topics` that connects to `addr`.
pub(crate) fn subscriber(net: &Net, settings: Builder<Sub>, addr: &str, topics: &[&str]) -> Sub {
    let sub = settings.linger(Linger::No).build(net.context()).unwrap();
    topics.iter().for_each(|topic| sub.subscribe(topic).unwrap());
    sub.connect(addr).unwrap();
    sub
}

/// Publishes the message of each number on a thread of its own, until what this gives is dropped.
pub(crate) fn stream(publisher: &Pub, message: fn(usize) -> Message) -> Sender<()> {
    let (running, stopped) = channel();
    let publisher = publisher.clone();
    std::thread::spawn(move || {
        for number in 0.. {
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
            publisher.send(message(number)).unwrap();
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    running
}

/// A subscriber to everything that grants `messages` and no more.
pub(crate) fn granting(net: &Net, addr: &str, messages: u64) -> Raw {
    let greeting = Hello { credit_messages: messages, ..hello(SocketType::Sub) };
    let mut raw = Raw::greet_with(net, addr, greeting);
    raw.send(&[Frame::Subscribe { history: false, topic: b"" }, Frame::Settled]);
    raw
}

/// The first part of the next message.
pub(crate) fn next(sub: &Sub) -> String {
    text(&sub.recv_timeout(LONG).unwrap())
}

/// The first parts of what comes before the message that ends the traffic.
pub(crate) fn upto_end(sub: &Sub) -> Vec<String> {
    std::iter::from_fn(|| Some(next(sub)).filter(|text| text != END)).collect()
}

/// The body of the next part.
pub(crate) fn next_part(raw: &mut Raw) -> Vec<u8> {
    let bytes = raw.expect("a part", |frame| matches!(frame, Frame::Part { .. }));
    match Frame::decode(&bytes).unwrap().0 {
        Frame::Part { body, .. } => body.to_vec(),
        other => panic!("not a part: {other:?}"),
    }
}

/// A message of `parts` parts that all say `number`.
pub(crate) fn numbered(number: usize, parts: usize) -> Message {
    Message::from_parts(vec![number.to_string(); parts])
}

/// The texts of numbers.
pub(crate) fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

fn text(message: &Message) -> String {
    String::from_utf8(message.first().to_vec()).unwrap()
}
