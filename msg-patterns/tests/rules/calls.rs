//! Rules of the calls themselves: what success means, and what is left after a failure.

use std::time::Duration;

use msg_patterns::{
    Context, ErrorKind, Linger, Message, OnFull, Pub, Pull, Push, Rep, Req, SendError, Sub,
};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, NEVER, Raw};

/// What is refused everywhere below.
fn sample() -> Message {
    Message::from_parts(["first part", "", "last part"])
}

#[track_caller]
fn comes_back(sent: Result<(), SendError>, kind: ErrorKind) {
    let refused = sent.unwrap_err();
    assert_eq!(refused.kind(), kind);
    assert_eq!(refused.message, sample());
}

/// The type of calls that do not exist.
#[derive(Debug, PartialEq)]
struct Missing;

/// A socket's own methods come before those of a trait. So a socket that had `recv` would not
/// compile below, where the answer is compared with `Missing`.
trait NoRecv {
    fn recv(&self) -> Missing {
        Missing
    }
    fn try_recv(&self) -> Missing {
        Missing
    }
    fn recv_timeout(&self, _: Duration) -> Missing {
        Missing
    }
}

trait NoSend {
    fn send(&self, _: &str) -> Missing {
        Missing
    }
    fn try_send(&self, _: &str) -> Missing {
        Missing
    }
    fn send_timeout(&self, _: &str, _: Duration) -> Missing {
        Missing
    }
}

impl NoRecv for Pub {}
impl NoRecv for Push {}
impl NoSend for Sub {}
impl NoSend for Pull {}

rules! {
    fn gen_26_threads_cannot_mix_their_parts(net) {
        const THREADS: u8 = 4;
        const COUNT: usize = 200;
        let pull = Pull::new(net.context()).unwrap();
        let push = Push::new(net.context()).unwrap();
        push.connect(&pull.bind(net.any()).unwrap().to_string()).unwrap();
        let senders: Vec<_> = (0..THREADS)
            .map(|thread| {
                let push = push.clone();
                std::thread::spawn(move || {
                    let parts = [vec![thread; 3], vec![thread; 5_000], vec![thread; 70_000]];
                    for _ in 0..COUNT / 10 {
                        push.send(Message::from_parts(parts.clone())).unwrap();
                        for _ in 0..9 {
                            push.send(Message::from_parts([[thread; 4]; 3].each_ref())).unwrap();
                        }
                    }
                })
            })
            .collect();
        for _ in 0..COUNT * usize::from(THREADS) {
            let message = pull.recv_timeout(LONG).unwrap();
            let thread = message.first()[0];
            assert_eq!(message.parts().len(), 3);
            assert!(message.parts().iter().all(|part| part.iter().all(|octet| *octet == thread)));
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(pull.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn gen_27_send_ok_is_not_delivered(net) {
        let push = Push::builder().linger(Linger::No).build(net.context()).unwrap();
        push.connect(&net.nobody()).unwrap();
        push.send("queued").unwrap();
        let counters = push.counters();
        assert_eq!((counters.accepted, counters.sent), (1, 0));
        let handle = push.clone();
        push.close();
        assert_eq!(handle.counters().dropped, 1);
    }

    fn gen_28_msg_consumed_only_on_success(net) {
        let push = Push::builder().message_bytes_max(100).linger(Linger::No).send_hwm(1);
        let push = push.build(net.context()).unwrap();
        comes_back(push.try_send(sample()), ErrorKind::NoPeer);
        comes_back(push.send_timeout(sample(), NEVER), ErrorKind::TimedOut);
        let long = Message::from(vec![0; 101]);
        let refused = push.send(long.clone()).unwrap_err();
        assert_eq!((refused.kind(), refused.message), (ErrorKind::TooLong, long));
        push.connect(&net.nobody()).unwrap();
        push.send("fills the queue").unwrap();
        comes_back(push.try_send(sample()), ErrorKind::WouldBlock);
        comes_back(push.send_timeout(sample(), NEVER), ErrorKind::TimedOut);
        push.clone().close();
        comes_back(push.send(sample()), ErrorKind::Terminated);
        comes_back(push.try_send(sample()), ErrorKind::Terminated);
        comes_back(push.send_timeout(sample(), LONG), ErrorKind::Terminated);
    }

    // rules: GEN-28
    fn a_request_or_reply_out_of_turn_comes_back(net) {
        let rep = Rep::new(net.context()).unwrap();
        let req = Req::new(net.context()).unwrap();
        comes_back(rep.send(sample()), ErrorKind::State);
        comes_back(req.try_send(sample()), ErrorKind::NoPeer);
        req.connect(&rep.bind(net.any()).unwrap().to_string()).unwrap();
        req.send("first").unwrap();
        comes_back(req.send(sample()), ErrorKind::State);
        comes_back(req.try_send(sample()), ErrorKind::State);
        rep.recv_timeout(LONG).unwrap();
        rep.clone().close();
        comes_back(rep.send(sample()), ErrorKind::Terminated);
        req.clone().close();
        comes_back(req.clone().send(sample()), ErrorKind::Terminated);
        comes_back(req.clone().try_send(sample()), ErrorKind::Terminated);
    }

    // rules: GEN-28
    fn a_blocked_or_ended_publication_comes_back(net) {
        let publisher = Pub::builder()
            .on_full(OnFull::Block)
            .send_hwm(1)
            .linger(Linger::No)
            .build(net.context())
            .unwrap();
        let sub = Sub::builder().recv_hwm(1).build(net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.connect(&publisher.bind(net.any()).unwrap().to_string()).unwrap();
        publisher.wait_matching("", 1, LONG).unwrap();
        while publisher.try_send("fills the queue").is_ok() {}
        comes_back(publisher.try_send(sample()), ErrorKind::WouldBlock);
        comes_back(publisher.send_timeout(sample(), NEVER), ErrorKind::TimedOut);
        publisher.clone().close();
        comes_back(publisher.send(sample()), ErrorKind::Terminated);
    }

    // rules: PUB-01, SUB-01
    fn gen_30_wrong_direction_does_not_exist(net) {
        let (publisher, push) =
            (Pub::new(net.context()).unwrap(), Push::new(net.context()).unwrap());
        assert_eq!([publisher.recv(), publisher.try_recv(), publisher.recv_timeout(LONG)], [Missing, Missing, Missing]);
        assert_eq!([push.recv(), push.try_recv(), push.recv_timeout(LONG)], [Missing, Missing, Missing]);
        let (sub, pull) = (Sub::new(net.context()).unwrap(), Pull::new(net.context()).unwrap());
        assert_eq!([sub.send(""), sub.try_send(""), sub.send_timeout("", LONG)], [Missing, Missing, Missing]);
        assert_eq!([pull.send(""), pull.try_send(""), pull.send_timeout("", LONG)], [Missing, Missing, Missing]);
    }

    // rules: GEN-30
    fn what_a_peer_sends_the_wrong_way_is_discarded(net) {
        for (kind, peer) in [(SocketType::Push, SocketType::Pull), (SocketType::Pub, SocketType::Sub)] {
            let socket = crate::sockets::open(net.context(), kind);
            let mut raw = Raw::greet(net, &socket.bind(net.any()).unwrap().to_string(), peer);
            raw.send(&[Frame::Part { more: false, body: b"wrong way" }]);
            crate::support::wait_until("discarded", || socket.counters().discarded == 1);
            assert_eq!(socket.up(), 1, "{kind} stays connected");
            drop(raw); // It would not say goodbye.
        }
    }
}

// rules: GEN-28
#[test]
fn a_message_comes_back_from_a_context_that_was_shut_down() {
    let context = Context::new();
    let push = Push::new(&context).unwrap();
    context.shutdown();
    comes_back(push.send(sample()), ErrorKind::Terminated);
    comes_back(push.try_send(sample()), ErrorKind::Terminated);
}
