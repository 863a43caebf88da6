//! `send_many` and `recv_many` do what as many single calls do.

use std::thread;
use std::time::Duration;

use msg_patterns::{Context, ErrorKind, Message, OnFull, Pub, Pull, Push, Sub};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const ANYWHERE: &str = "tcp://127.0.0.1:0";
/// More than both high-water marks together.
const COUNT: u64 = 10_000;

fn numbered(range: std::ops::Range<u64>) -> impl Iterator<Item = Message> {
    range.map(|number| Message::from(number.to_le_bytes().to_vec()))
}

fn collect(mut recv: impl FnMut(&mut Vec<Message>) -> usize) -> Vec<Message> {
    let mut messages = Vec::new();
    while messages.len() < COUNT as usize {
        let before = messages.len();
        let count = recv(&mut messages);
        assert_eq!((count > 0, messages.len()), (true, before + count));
    }
    messages
}

#[test]
fn pushed_together_and_one_by_one_all_arrive_in_order() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let push = Push::new(&context).unwrap();
    push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
    let sender = thread::spawn(move || {
        push.send_many(numbered(0..COUNT / 2)).unwrap();
        numbered(COUNT / 2..COUNT - 100).for_each(|message| push.send(message).unwrap());
        push.send_many(numbered(COUNT - 100..COUNT)).unwrap();
        push.close();
    });
    let found = collect(|messages| pull.recv_many(messages, 77).unwrap());
    assert_eq!(found, numbered(0..COUNT).collect::<Vec<_>>());
    sender.join().unwrap();
}

#[test]
fn published_together_all_arrive_in_order_at_each_subscriber() {
    let context = Context::new();
    let publisher = Pub::builder().on_full(OnFull::Block).build(&context).unwrap();
    let addr = publisher.bind(ANYWHERE).unwrap().to_string();
    let subscribers: Vec<_> = (0..3)
        .map(|_| {
            let sub = Sub::new(&context).unwrap();
            sub.connect(&addr).unwrap();
            sub.subscribe("").unwrap();
            thread::spawn(move || {
                collect(|messages| sub.recv_many_timeout(messages, 1_000, LONG).unwrap())
            })
        })
        .collect();
    publisher.wait_matching("", subscribers.len(), LONG).unwrap();
    publisher.send_many(numbered(0..COUNT)).unwrap();
    for subscriber in subscribers {
        assert_eq!(subscriber.join().unwrap(), numbered(0..COUNT).collect::<Vec<_>>());
    }
}

#[test]
fn no_more_than_asked_for_come_and_none_is_an_error_after_the_time() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let push = Push::new(&context).unwrap();
    push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
    push.send_many(["a", "b", "c"]).unwrap();
    let mut messages = Vec::new();
    assert_eq!(pull.recv_many(&mut messages, 0).unwrap(), 0);
    assert_eq!(pull.recv_many(&mut messages, 1).unwrap(), 1);
    while messages.len() < 3 {
        pull.recv_many_timeout(&mut messages, 2, LONG).unwrap();
    }
    assert_eq!(messages, ["a", "b", "c"].map(Message::from));
    let none = pull.recv_many_timeout(&mut messages, 2, Duration::from_millis(1));
    assert_eq!((none.unwrap_err().kind(), messages.len()), (ErrorKind::TimedOut, 3));
}

#[test]
fn the_message_that_could_not_be_sent_comes_back_and_those_before_it_left() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let push = Push::builder().message_bytes_max(3).build(&context).unwrap();
    push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
    let error = push.send_many(["a", "b", "long", "c"]).unwrap_err();
    assert_eq!((error.kind(), error.message), (ErrorKind::TooLong, Message::from("long")));
    let found = ["a", "b"].map(|_| pull.recv_timeout(LONG).unwrap());
    assert_eq!(found, ["a", "b"].map(Message::from));
}

#[test]
fn messages_to_acknowledge_come_one_at_a_time() {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let push = Push::builder().acknowledge(true).build(&context).unwrap();
    push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
    push.send_many(["a", "b", "c"]).unwrap();
    let mut messages = Vec::new();
    for count in 1..=3 {
        assert_eq!(pull.recv_many_timeout(&mut messages, 9, LONG).unwrap(), 1);
        assert_eq!(messages.len(), count);
    }
    pull.ack().unwrap();
}
