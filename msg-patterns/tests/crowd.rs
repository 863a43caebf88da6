//! Many sockets that come, send and go on several threads.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Message, Pull, Push};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(120);
const ANYWHERE: &str = "tcp://127.0.0.1:0";

const THREADS: u32 = 4;
const SOCKETS: u32 = 40;
const MESSAGES: u32 = 30;

fn named(thread: u32, socket: u32, number: u32) -> Message {
    Message::from(format!("{thread} {socket} {number}"))
}

/// Takes all messages; those of each socket must come once and in order.
fn collect(pull: &Pull) {
    let mut next = HashMap::<String, u32>::new();
    for _ in 0..THREADS * SOCKETS * MESSAGES {
        let message = pull.recv_timeout(LONG).unwrap();
        let text = String::from_utf8(message.first().to_vec()).unwrap();
        let (socket, number) = text.rsplit_once(' ').unwrap();
        let expected = next.entry(socket.to_owned()).or_default();
        assert_eq!(number.parse(), Ok(*expected), "{socket}");
        *expected += 1;
    }
    assert_eq!(next.len() as u32, THREADS * SOCKETS);
    assert!(next.values().all(|&count| count == MESSAGES));
}

fn push(context: &Context, addr: &str, thread: u32, socket: u32) -> Push {
    let push = Push::new(context).unwrap();
    push.connect(addr).unwrap();
    (0..MESSAGES).for_each(|number| push.send(named(thread, socket, number)).unwrap());
    push
}

fn crowd(ends: impl Fn(Push) -> Option<Push> + Sync) {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let addr = pull.bind(ANYWHERE).unwrap().to_string();
    let run = |thread| {
        let sockets = (0..SOCKETS).map(|socket| ends(push(&context, &addr, thread, socket)));
        sockets.collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        collect(&pull);
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    });
}

#[test]
fn sockets_that_close_lose_nothing() {
    crowd(|push| {
        push.close();
        None
    });
}

/// No call drives these any more: the background thread connects them and sends what they hold.
#[test]
fn sockets_that_nobody_calls_any_more_lose_nothing() {
    crowd(Some);
}
