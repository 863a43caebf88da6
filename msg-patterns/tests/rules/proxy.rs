//! Proxies: what passes, what waits, and what is left when they stop.

use std::thread::JoinHandle;

use futures_lite::future;
use msg_patterns::{
    Builder, Dealer, Error, ErrorKind, Linger, Message, OnFull, Proxy, ProxyControl, ProxyStats,
    Pub, Pull, Push, Rep, Req, Router, Socket, Sub, XPub, XSub,
};

use crate::pubsub::{END, next, publisher, subscriber, upto_end};
use crate::support::{LONG, NEVER, Net, wait_until};
use crate::xpub::{seen, xpub, xsub};

/// A proxy that runs on a thread of its own.
struct Running {
    control: ProxyControl,
    thread: JoinHandle<(Proxy, Result<ProxyStats, Error>)>,
}

impl Running {
    fn start(mut proxy: Proxy) -> Self {
        let control = proxy.control();
        let thread = std::thread::spawn(move || {
            let done = proxy.run();
            (proxy, done)
        });
        Self { control, thread }
    }

    fn stop(self) -> (Proxy, ProxyStats) {
        self.control.stop();
        let (proxy, done) = self.join();
        (proxy, done.unwrap())
    }

    fn join(self) -> (Proxy, Result<ProxyStats, Error>) {
        wait_until("it ends", || self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

fn build<S: Socket>(net: &Net, settings: Builder<S>) -> S {
    settings.linger(Linger::No).build(net.context()).unwrap()
}

/// A bound XSUB and a bound XPUB, and their addresses.
fn forwarder(net: &Net, back: Builder<XPub>) -> (XSub, String, XPub, String) {
    let (front, (back, below)) = (build(net, XSub::builder()), xpub(net, back));
    let above = front.bind(net.any()).unwrap().to_string();
    (front, above, back, below)
}

/// A bound PULL and a bound PUSH, and their addresses.
fn streamer(net: &Net, hwm: usize) -> (Pull, String, Push, String) {
    let front = build(net, Pull::builder().recv_hwm(hwm));
    let back = build(net, Push::builder().send_hwm(hwm));
    let [above, below] = [front.bind(net.any()), back.bind(net.any())].map(|addr| addr.unwrap());
    (front, above.to_string(), back, below.to_string())
}

/// A bound ROUTER and a bound DEALER, and their addresses.
fn queue(net: &Net) -> (Router, String, Dealer, String) {
    let (front, back) = (build(net, Router::builder()), build(net, Dealer::builder()));
    let [above, below] = [front.bind(net.any()), back.bind(net.any())].map(|addr| addr.unwrap());
    (front, above.to_string(), back, below.to_string())
}

fn connected<S: Socket>(net: &Net, settings: Builder<S>, connect: impl Fn(&S)) -> S {
    let socket = build(net, settings);
    connect(&socket);
    socket
}

fn pusher(net: &Net, addr: &str, settings: Builder<Push>) -> Push {
    connected(net, settings, |push| push.connect(addr).unwrap())
}

fn puller(net: &Net, addr: &str, settings: Builder<Pull>) -> Pull {
    connected(net, settings, |pull| pull.connect(addr).unwrap())
}

fn number(pull: &Pull) -> u32 {
    u32::from_le_bytes(pull.recv_timeout(LONG).unwrap().first()[..].try_into().unwrap())
}

rules! {
    // rules: XSUB-05, XPUB-09
    fn xsub_05_a_forwarder_carries_subscriptions_up_and_messages_down(net) {
        let (front, above, back, below) = forwarder(net, XPub::builder());
        let running = Running::start(Proxy::forwarder(&front, &back));
        let publisher = connected(net, Pub::builder(), |own| own.connect(&above).unwrap());
        let sub = subscriber(net, Sub::builder(), &below, &["a", END]);
        let other = subscriber(net, Sub::builder(), &below, &["a", "b"]);
        for topic in ["a", "b", END] {
            publisher.wait_matching(topic, 1, LONG).unwrap();
        }
        for text in ["a 1", "b 1", "c 1", END] {
            publisher.send(Message::from_parts([text, "body"])).unwrap();
        }
        assert_eq!(upto_end(&sub), ["a 1"]);
        assert_eq!([next(&other), next(&other)], ["a 1", "b 1"]);
        // What nobody below wants does not even leave its publisher.
        assert_eq!(publisher.counters().sent, 3);
        // What only one wanted goes with it; what another one still wants stays.
        other.close();
        wait_until("its topic is gone", || publisher.topics() == 2);
        assert_eq!(publisher.matching("a"), 1);
        let (_, stats) = running.stop();
        assert_eq!((stats.to_back.messages, stats.to_front.messages), (3, 4));
        drop(sub);
    }

    // rules: XSUB-05, XPUB-08, XPUB-09
    fn decisions_of_a_manual_one_end_and_cancels_reach_upstream(net) {
        let (front, above, back, below) = forwarder(net, XPub::builder().manual(true));
        let (publisher, sub) = (build(net, XPub::builder()), xsub(net, XSub::builder(), &below));
        publisher.connect(&above).unwrap();
        sub.subscribe("a").unwrap();
        let msg_patterns::Upstream::Subscription(asked) = back.recv_timeout(LONG).unwrap() else {
            panic!("no subscription");
        };
        back.subscribe_for(&asked, "b").unwrap();
        front.subscribe("b").unwrap();
        assert_eq!(seen(&publisher), "+b");
        let running = Running::start(Proxy::forwarder(&front, &back));
        publisher.send("b 1").unwrap();
        assert_eq!(sub.recv_timeout(LONG).unwrap().first(), "b 1");
        // A message goes up as it is, also if it looks like a subscription.
        sub.send(Message::from_parts(["\u{1}c", "\u{1}d"])).unwrap();
        assert_eq!([seen(&publisher), seen(&publisher)], ["+c", "\u{1}d"]);
        front.unsubscribe("b").unwrap();
        sub.close();
        assert_eq!([seen(&publisher), seen(&publisher)], ["-b", "-c"]);
        assert_eq!(back.topics(), 0);
        running.stop();
    }

    // rules: HWM-08, XPUB-07
    fn a_full_side_holds_the_other_one_up(net) {
        let (front, above, back, below) = streamer(net, 5);
        let running = Running::start(Proxy::streamer(&front, &back));
        let source = pusher(net, &above, Push::builder().send_hwm(5));
        // Without a peer behind, nothing is taken.
        let mut sent = 0_u32;
        let mut fill = || {
            while source.send_timeout(&sent.to_le_bytes(), NEVER).is_ok() {
                sent += 1;
            }
            sent
        };
        assert_eq!(fill(), 10);
        assert_eq!((front.counters().delivered, running.control.stats().to_back.held), (0, 0));
        let sink = puller(net, &below, Pull::builder().recv_hwm(5));
        // Each of the four queues holds five, and the proxy nothing.
        assert_eq!(fill(), 20);
        assert_eq!(running.control.stats().to_back.held, 0);
        assert!((0..20).map(|_| number(&sink)).eq(0..20));
        let (_, stats) = running.stop();
        assert_eq!((stats.to_back.messages, stats.to_back.bytes), (20, 80));
    }

    // rules: XPUB-07, NEW-05
    fn a_blocking_forwarder_holds_its_publisher_up(net) {
        let settings = XPub::builder().on_full(OnFull::Block).send_hwm(5);
        let (back, below) = xpub(net, settings);
        let front = build(net, XSub::builder().recv_hwm(5));
        let above = front.bind(net.any()).unwrap().to_string();
        let running = Running::start(Proxy::forwarder(&front, &back));
        let settings = Pub::builder().on_full(OnFull::Block).send_hwm(5);
        let publisher = connected(net, settings, |own| own.connect(&above).unwrap());
        let sub = subscriber(net, Sub::builder().recv_hwm(5), &below, &[""]);
        publisher.wait_matching("", 1, LONG).unwrap();
        let mut sent = 0;
        while publisher.send_timeout(sent.to_string(), NEVER).is_ok() {
            sent += 1;
        }
        // One waits in the proxy: who of the subscribers it is for only the message says.
        // What it took may not have been granted anew.
        assert_eq!(running.control.stats().to_back.held, 1);
        assert!((20..=21).contains(&sent), "{sent}");
        (0..sent).for_each(|i| assert_eq!(next(&sub), i.to_string()));
        let (_, stats) = running.stop();
        assert_eq!((stats.to_back.held, publisher.counters().dropped), (0, 0));
    }

    // rules: ROUT-14, REP-08
    fn a_queue_carries_requests_there_and_replies_back(net) {
        let (front, above, back, below) = queue(net);
        let running = Running::start(Proxy::queue(&front, &back));
        let reps = [(); 2].map(|()| connected(net, Rep::builder(), |rep| rep.connect(&below).unwrap()));
        let serving = reps.clone().map(|rep| {
            std::thread::spawn(move || while let Ok(request) = rep.recv() {
                rep.send(request.with("done")).unwrap();
            })
        });
        let req = connected(net, Req::builder(), |req| req.connect(&above).unwrap());
        let dealer = connected(net, Dealer::builder(), |dealer| dealer.connect(&above).unwrap());
        for i in 0..20 {
            let reply = req.request(i.to_string(), LONG).unwrap();
            assert_eq!(reply.parts(), [&i.to_string(), "done"]);
            dealer.send(Message::from_parts(["id", "", &i.to_string()])).unwrap();
            let reply = dealer.recv_timeout(LONG).unwrap();
            assert_eq!(reply.parts(), ["id", "", &i.to_string(), "done"]);
        }
        // Whatever the proxy passes on wrongly would be no reply, and is no reason to end.
        let stray = connected(net, Dealer::builder(), |dealer| dealer.connect(&below).unwrap());
        stray.send("no id").unwrap();
        wait_until("it was refused", || running.control.stats().refused == 1);
        stray.close();
        wait_until("it is gone", || back.peers().len() == 2);
        assert_eq!(req.request("last", LONG).unwrap().parts(), ["last", "done"]);
        let (_, stats) = running.stop();
        assert_eq!((stats.to_back.messages, stats.to_front.messages), (41, 41));
        reps.into_iter().for_each(Rep::close);
        serving.into_iter().for_each(|thread| thread.join().unwrap());
    }

    // rules: GEN-06, GEN-07, NEW-07
    fn nothing_is_lost_or_doubled_however_often_it_is_stopped(net) {
        const COUNT: u32 = 3000;
        let (front, above, back, below) = streamer(net, 10);
        let tap = connected(net, Push::builder().send_hwm(1), |push| push.connect(&below).unwrap());
        let mut proxy = Proxy::streamer(&front, &back).capture(&tap);
        let source = pusher(net, &above, Push::builder().acknowledge(true));
        let sink = puller(net, &below, Pull::builder().recv_hwm(3));
        let sending = source.clone();
        let sender =
            std::thread::spawn(move || (0..COUNT).try_for_each(|i| sending.send(&i.to_le_bytes())));
        let receiver = std::thread::spawn(move || (0..COUNT).for_each(|i| assert_eq!(number(&sink), i)));
        for round in 0.. {
            if receiver.is_finished() {
                break;
            }
            let control = proxy.control();
            let running = Running::start(proxy);
            wait_until("something passes", || {
                receiver.is_finished() || control.stats().to_back.messages > 20 * round
            });
            // Both ways of stopping, and a future that is dropped.
            if round % 2 == 0 { control.stop() } else { control.stop_now() }
            let (stopped, done) = running.join();
            done.unwrap();
            proxy = stopped;
            let nothing = future::block_on(future::poll_once(proxy.run_async()));
            assert!(nothing.is_none());
        }
        receiver.join().unwrap();
        sender.join().unwrap().unwrap();
        let stats = proxy.control().stats();
        assert_eq!((stats.to_back.messages, stats.to_back.held), (u64::from(COUNT), 0));
        // The tap had no peer that pulls.
        assert_eq!(stats.captured + stats.not_captured, u64::from(COUNT));
        assert!(stats.not_captured > 0);
        proxy.control().stop();
        proxy.run().unwrap();
        assert_eq!((front.counters().dropped, source.counters().redelivered), (0, 0));
    }

    // rules: PIPE-14
    fn work_that_was_passed_on_is_acknowledged_when_the_run_ends(net) {
        let (front, above, back, below) = streamer(net, 1);
        let _stuck = puller(net, &below, Pull::builder().recv_hwm(1));
        wait_until("it is there", || back.peers().iter().any(|peer| peer.up));
        let running = Running::start(Proxy::streamer(&front, &back));
        let source = pusher(net, &above, Push::builder().acknowledge(true));
        (0..3_u32).for_each(|i| source.send(&i.to_le_bytes()).unwrap());
        // There is no room behind for the third one.
        wait_until("two passed", || running.control.stats().to_back.messages == 2);
        assert_eq!(running.stop().1.to_back.held, 0);
        front.close();
        wait_until("it is gone", || source.counters().disconnects == 1);
        assert_eq!(source.counters().redelivered, 1);
    }

    // rules: NEW-05
    fn a_paused_proxy_passes_nothing_until_it_goes_on(net) {
        let (front, above, back, below) = queue(net);
        let (tap, tapped) = publisher(net, Pub::builder());
        let spy = subscriber(net, Sub::builder(), &tapped, &[""]);
        tap.wait_matching("", 1, LONG).unwrap();
        let proxy = Proxy::queue(&front, &back).capture(&tap);
        let control = proxy.control();
        control.pause();
        let running = Running::start(proxy);
        let near = connected(net, Dealer::builder().identity("near"), |own| own.connect(&above).unwrap());
        let far = connected(net, Dealer::builder(), |own| own.connect(&below).unwrap());
        near.send("asked").unwrap();
        wait_until("it came", || front.counters().received == 1);
        assert_eq!(far.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(control.is_paused() && control.stats() == ProxyStats::default());
        control.resume();
        let asked = far.recv_timeout(LONG).unwrap();
        assert_eq!(asked.parts(), ["near", "asked"]);
        control.pause();
        far.send(asked.with("answered")).unwrap();
        wait_until("it came", || back.counters().received == 1);
        assert_eq!(near.recv_timeout(NEVER).unwrap_err().kind(), ErrorKind::TimedOut);
        control.resume();
        assert_eq!(near.recv_timeout(LONG).unwrap().parts(), ["asked", "answered"]);
        // Who listens in heard both, as they were carried.
        let copies = [(); 2].map(|()| spy.recv_timeout(LONG).unwrap());
        assert_eq!(copies[0].parts(), ["near", "asked"]);
        assert_eq!(copies[1].parts(), ["near", "asked", "answered"]);
        control.pause();
        let (_, stats) = running.stop();
        assert_eq!((stats.captured, stats.not_captured), (2, 0));
    }

    // rules: LIFE-06
    fn a_proxy_ends_when_a_socket_of_it_is_closed(net) {
        // Waiting for room, and waiting for messages.
        for (closes, peer) in [(0, false), (1, false), (0, true), (1, true)] {
            let (front, _, back, below) = streamer(net, 5);
            let _sink = peer.then(|| puller(net, &below, Pull::builder()));
            wait_until("it is there", || back.peers().iter().any(|peer| peer.up) == peer);
            let running = Running::start(Proxy::streamer(&front, &back));
            std::thread::sleep(NEVER / 20);
            if closes == 0 { front.clone().close() } else { back.clone().close() }
            assert_eq!(running.join().1.unwrap_err().kind(), ErrorKind::Terminated);
        }
        // Told to stop before, it does not even begin.
        let (front, _, back, _) = streamer(net, 5);
        let mut proxy = Proxy::streamer(&front, &back);
        proxy.control().stop();
        assert_eq!(future::block_on(proxy.run_async()).unwrap(), ProxyStats::default());
    }
}
