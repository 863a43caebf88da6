//! `kill -9` in the middle of traffic, twenty times for each role: survivors go on.

mod common;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{Fabric, fabric, wait_until};
use msg_patterns::{Context, ErrorKind, Linger, OnFull, Pub, Push, Req, Sub};

const KILLS: usize = 20;
/// Far longer than anything here takes; it ends what hangs.
const LONG: Duration = Duration::from_secs(60);
/// Between two messages where the traffic need not fill the queues.
const PAUSE: Duration = Duration::from_micros(200);

/// Numbered traffic from a thread of its own until it is stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Traffic {
    /// Calls `send` with 0, 1, 2…, with a `pause` in between, and `end` after the last one.
    fn start(
        pause: Duration,
        send: impl Fn(u64) + Send + 'static,
        end: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counter) = (stop.clone(), done.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                send(counter.load(Ordering::SeqCst));
                counter.fetch_add(1, Ordering::SeqCst);
                if !pause.is_zero() {
                    thread::sleep(pause);
                }
            }
            end();
        });
        Self { stop, done, thread }
    }

    fn wait_for_more(&self, count: u64) {
        let goal = self.done.load(Ordering::SeqCst) + count;
        wait_until("more traffic", || {
            self.done.load(Ordering::SeqCst) >= goal || self.thread.is_finished()
        });
        assert!(!self.thread.is_finished(), "the traffic has ended");
    }

    /// How many there were.
    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        self.done.load(Ordering::SeqCst)
    }
}

fn numbers(out: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(out).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// A free port at a host that nothing else uses: a process that comes back finds it free, since the
/// kernel picks ports of outgoing connections at 127.0.0.1 only.
fn any() -> String {
    static HOSTS: AtomicU16 = AtomicU16::new(1);
    let [high, low] = HOSTS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let [.., a, b] = std::process::id().to_be_bytes();
    format!("tcp://127.{}.{}.{}:0", a % 250 + 2, b, low.wrapping_add(high))
}

#[test]
fn killed_subscribers_disturb_neither_publisher_nor_others() {
    let publisher = Pub::builder().on_full(OnFull::Block).build(&Context::new()).unwrap();
    let addr = publisher.bind(&any()).unwrap().to_string();
    let mut survivor = fabric(["sub", &addr]);
    publisher.wait_matching("0", 1, LONG).unwrap();
    let sender = publisher.clone();
    let send = move |n: u64| sender.send_timeout(n.to_string(), LONG).unwrap();
    let traffic = Traffic::start(PAUSE, send, || {});
    for _ in 0..KILLS {
        let mut victim = fabric(["sub", &addr]);
        victim.wait("a message", |victim| victim.out.len() > 0);
        victim.kill();
        traffic.wait_for_more(50);
    }
    let count = traffic.stop();
    let last = format!("\n{}\n", count - 1);
    survivor.wait("the last message", |survivor| survivor.out.text().ends_with(&last));
    let all: Vec<u64> = (0..count).collect();
    assert!(numbers(&survivor.kill()) == all, "the survivor missed something");
    wait_until("the end of all links", || publisher.counters().disconnects == KILLS as u64 + 1);
    publisher.close();
}

#[test]
fn no_acknowledged_message_is_lost_with_a_killed_worker() {
    let builder = Push::builder().acknowledge(true).linger(Linger::For(LONG));
    let pusher = builder.build(&Context::new()).unwrap();
    let addr = pusher.bind(&any()).unwrap().to_string();
    let (sender, closer) = (pusher.clone(), pusher.clone());
    let send = move |n: u64| sender.send_timeout(n.to_string(), LONG).unwrap();
    // Without a pause, so that a killed worker always leaves something behind. Closing waits until
    // everything was processed.
    let traffic = Traffic::start(Duration::ZERO, send, || closer.close());
    let start = || fabric(["pull", "--connect", &addr, "--hwm", "100"]);
    let mut workers = [start(), start(), start()];
    let mut processed = Vec::new();
    for round in 0..KILLS {
        let worker = &mut workers[round % 3];
        worker.wait("a message", |worker| worker.out.len() > 0);
        let killed = std::mem::replace(worker, start());
        processed.extend(numbers(&killed.kill()));
        traffic.wait_for_more(500);
    }
    let count = traffic.stop();
    assert_eq!(pusher.counters().dropped, 0, "closing gave up");
    assert!(pusher.counters().redelivered > 0, "no kill hit a message under way");
    workers.into_iter().for_each(|worker| processed.extend(numbers(&worker.kill())));
    let distinct: BTreeSet<u64> = processed.into_iter().collect();
    assert_eq!(missing(&distinct, count), Vec::<u64>::new(), "of {count}");
}

fn missing(found: &BTreeSet<u64>, count: u64) -> Vec<u64> {
    (0..count).filter(|n| !found.contains(n)).collect()
}

#[test]
fn another_replier_answers_what_a_killed_one_was_asked() {
    let req = Req::builder()
        .retry(true)
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let start = |addr: &str| fabric(["rep", addr, "--", "sh", "-c", "read n; sleep 0.01; echo $n"]);
    let mut repliers: VecDeque<Fabric> = [start(&any()), start(&any())].into();
    let mut addrs: VecDeque<String> = repliers.iter_mut().map(Fabric::addr).collect();
    addrs.iter().for_each(|addr| req.connect(addr).unwrap());
    let askers: Vec<Traffic> = (0..2).map(|_| ask(req.clone())).collect();
    for _ in 0..KILLS {
        askers.iter().for_each(|asker| asker.wait_for_more(3));
        repliers.pop_front().unwrap().kill();
        repliers.push_back(start(&addrs[0]));
        repliers[1].addr();
        addrs.rotate_left(1);
    }
    assert!(askers.into_iter().map(Traffic::stop).sum::<u64>() >= 6 * KILLS as u64);
    assert!(req.counters().redelivered > 0, "no kill hit a request under way");
}

/// Each reply must be the one to its own request.
fn ask(req: Req) -> Traffic {
    let send = move |n: u64| {
        let reply = req.request(format!("{n}\n"), LONG).unwrap();
        assert_eq!(reply.first(), &format!("{n}\n"));
    };
    Traffic::start(PAUSE, send, || {})
}

#[test]
fn without_retry_a_killed_replier_is_an_error_in_time() {
    let req = Req::builder()
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let mut replier = fabric(["rep", &any(), "--", "sleep", "3"]);
    let addr = replier.addr();
    req.connect(&addr).unwrap();
    for _ in 0..KILLS {
        let (asker, before) = (req.clone(), req.counters().sent);
        let asked = thread::spawn(move || asker.request("anyone?", LONG));
        wait_until("a request under way", || req.counters().sent > before);
        replier.kill();
        let error = asked.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerGone, "{error}");
        replier = fabric(["rep", &addr, "--", "sleep", "3"]);
        replier.addr();
        wait_until("its return", || req.peers().iter().any(|peer| peer.up));
    }
}

const TOPICS: usize = 5000;

#[test]
fn all_subscriptions_are_active_again_after_each_kill_of_the_publisher() {
    let sub = Sub::builder()
        .recv_hwm(2 * TOPICS)
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let topics: Vec<String> = (0..TOPICS).map(|n| format!("topic.{n:04}.")).collect();
    topics.iter().for_each(|topic| sub.subscribe(topic).unwrap());
    let mut addr = any();
    for kill in 0..KILLS {
        let before = sub.counters().received;
        let mut publisher = publish(&addr, &topics);
        if kill == 0 {
            addr = publisher.addr();
            sub.connect(&addr).unwrap();
        }
        // Until here and until the next publisher, the subscriber calls nothing.
        publisher
            .wait("a message of each topic", |_| sub.counters().received - before > TOPICS as u64);
        publisher.kill();
        wait_until("its end", || sub.peers().iter().all(|peer| !peer.up));
        check_topics(&sub);
    }
}

/// Endless traffic, the topics in turn; it waits for each to be subscribed to.
fn publish(addr: &str, topics: &[String]) -> Fabric {
    let options = ["pub", addr, "-w", "1", "--when-full", "block", "--repeat", "1000000000"];
    let topics = topics.iter().flat_map(|topic| ["--topic", topic]);
    fabric(options.into_iter().chain(topics))
}

/// Takes what has arrived from a publisher that is gone.
fn check_topics(sub: &Sub) {
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    while let Ok(message) = sub.try_recv() {
        *counts.entry(message.first().to_vec()).or_default() += 1;
    }
    assert_eq!(counts.len(), TOPICS, "topics that were active");
}
