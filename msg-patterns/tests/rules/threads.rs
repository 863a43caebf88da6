//! Several threads on clones of one socket at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use msg_patterns::{ErrorKind, Pull, Push, Rep, Req};
use msg_proto::types::SocketType;
use msg_proto::wire::Frame;

use crate::support::{LONG, Raw};

const SENDERS: u32 = 4;
const SENT_EACH: u32 = 500;
const ASKED_EACH: u32 = 100;

/// Sends its share of the numbers.
fn sender(push: &Push, thread: u32) -> JoinHandle<()> {
    let push = push.clone();
    let share = thread * SENT_EACH..(thread + 1) * SENT_EACH;
    thread::spawn(move || share.for_each(|i| push.send(&i.to_le_bytes()).unwrap()))
}

/// Receives numbers until all threads together have them all; gives its own.
fn receiver(pull: &Pull, received: &Arc<AtomicU32>) -> JoinHandle<Vec<u32>> {
    let (pull, received) = (pull.clone(), received.clone());
    thread::spawn(move || {
        let mut own = Vec::new();
        while received.load(Ordering::SeqCst) < SENDERS * SENT_EACH {
            let Ok(message) = pull.recv_timeout(Duration::from_millis(5)) else { continue };
            own.push(u32::from_le_bytes(message.first()[..].try_into().unwrap()));
            received.fetch_add(1, Ordering::SeqCst);
        }
        own
    })
}

/// Serves requests with themselves until the socket is closed.
fn server(rep: &Rep) -> JoinHandle<()> {
    let rep = rep.clone();
    thread::spawn(move || {
        while let Ok(request) = rep.recv() {
            rep.send(request).unwrap();
        }
    })
}

/// Asks again and again, and gets the reply to its own question each time.
fn asker(req: &Req, thread: u32) -> JoinHandle<()> {
    let req = req.clone();
    thread::spawn(move || {
        for i in 0..ASKED_EACH {
            let text = format!("{thread}:{i}");
            let reply = if i % 2 == 0 {
                req.request(&text, LONG).unwrap()
            } else {
                req.send(&text).unwrap();
                req.recv_timeout(LONG).unwrap()
            };
            assert_eq!(reply.first(), &text);
        }
    })
}

/// Each number came once, and those of one sender came in order to each receiver.
fn check(received: &[Vec<u32>]) {
    for own in received {
        for thread in 0..SENDERS {
            assert!(own.iter().filter(|i| *i / SENT_EACH == thread).is_sorted());
        }
    }
    let all: Vec<u32> = received.concat();
    assert_eq!(all.len(), (SENDERS * SENT_EACH) as usize);
    assert!(all.into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..SENDERS * SENT_EACH));
}

/// Sends a request and waits for its reply on a thread of its own; gives the request's id.
fn ask(req: &Req, raw: &mut Raw) -> (u64, JoinHandle<()>) {
    let req = req.clone();
    let waiter = thread::spawn(move || {
        req.send("question").unwrap();
        assert_eq!(req.recv_timeout(LONG).unwrap().first(), "reply");
    });
    let head = raw.expect("a request", |frame| matches!(frame, Frame::Request { .. }));
    match Frame::decode(&head).unwrap().0 {
        Frame::Request { id, .. } => (id, waiter),
        other => panic!("{other:?}"),
    }
}

rules! {
    fn many_senders_and_receivers_share_their_sockets(net) {
        let pull = Pull::builder().recv_hwm(50).build(net.context()).unwrap();
        let addr = pull.bind(net.any()).unwrap().to_string();
        let push = Push::builder().send_hwm(50).build(net.context()).unwrap();
        push.connect(&addr).unwrap();
        let received = Arc::new(AtomicU32::new(0));
        let receivers = [(); 3].map(|()| receiver(&pull, &received));
        let senders = (0..SENDERS).map(|thread| sender(&push, thread));
        senders.collect::<Vec<_>>().into_iter().for_each(|sender| sender.join().unwrap());
        check(&receivers.map(|receiver| receiver.join().unwrap()));
    }

    // rules: REQ-N3, REP-N1
    fn many_askers_and_servers_share_their_sockets(net) {
        let rep = Rep::new(net.context()).unwrap();
        let addr = rep.bind(net.any()).unwrap().to_string();
        let req = Req::new(net.context()).unwrap();
        req.connect(&addr).unwrap();
        let servers = [(); 3].map(|()| server(&rep));
        let askers: Vec<_> = (0..4).map(|thread| asker(&req, thread)).collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        rep.close();
        servers.into_iter().for_each(|server| server.join().unwrap());
    }

    fn one_socket_asks_several_repliers_from_many_threads(net) {
        let req = Req::new(net.context()).unwrap();
        let reps = [(); 3].map(|()| {
            let rep = Rep::new(&net.another_context()).unwrap();
            req.connect(&rep.bind(net.any()).unwrap().to_string()).unwrap();
            rep
        });
        let servers = reps.each_ref().map(server);
        let askers: Vec<_> = (0..4).map(|thread| asker(&req, thread)).collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        reps.into_iter().for_each(Rep::close);
        servers.into_iter().for_each(|server| server.join().unwrap());
    }

    /// One thread sleeps in the fabric, the other waits for it; a third that only looks must not
    /// keep what it finds for the second to itself.
    fn a_thread_that_only_looks_wakes_those_that_wait(net) {
        let (mut raw, addr) = Raw::listen(net);
        let req = Req::new(net.context()).unwrap();
        req.connect(&addr).unwrap();
        raw.accept(SocketType::Rep);
        let looking = req.clone();
        looking.send("never answered").unwrap();
        raw.expect("a request", |frame| matches!(frame, Frame::Request { .. }));
        for _ in 0..20 {
            let ((first, drives), (second, waits)) = (ask(&req, &mut raw), ask(&req, &mut raw));
            for (id, thread) in [(second, waits), (first, drives)] {
                let part = Frame::Part { more: false, body: b"reply" };
                raw.send(&[Frame::Reply { id, envelope: b"" }, part]);
                while !thread.is_finished() {
                    assert_eq!(looking.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
                }
                thread.join().unwrap();
            }
        }
        raw.vanish();
    }
}
