//! PUSH/PULL.

use std::collections::BTreeSet;
use std::time::Duration;

use msg_patterns::{Context, Linger, Pull, Push};

use super::{Ground, LONG, PAUSE, Traffic, numbers};
use crate::common::{fabric, wait_until};

/// Nothing acknowledged is lost.
pub(crate) fn workers(ground: &Ground) {
    let builder = Push::builder().acknowledge(true).linger(Linger::For(LONG));
    let pusher = builder.build(&Context::new()).unwrap();
    let addr = pusher.bind(&(ground.any)()).unwrap().to_string();
    let (sender, closer) = (pusher.clone(), pusher.clone());
    let send = move |n: u64| sender.send_timeout(n.to_string(), LONG).unwrap();
    // Without a pause, so that a killed worker always leaves something behind. Closing waits until
    // everything was processed.
    let traffic = Traffic::start(Duration::ZERO, send, || closer.close());
    let start = || fabric(["pull", "--connect", &addr, "--hwm", "100"]);
    let mut workers = [start(), start(), start()];
    let mut processed = Vec::new();
    for round in 0..ground.kills {
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

/// What `found` lacks of the numbers below `count`.
fn missing(found: &BTreeSet<u64>, count: u64) -> Vec<u64> {
    (0..count).filter(|n| !found.contains(n)).collect()
}

/// What others push arrives whole and in order.
pub(crate) fn pushers(ground: &Ground) {
    let puller = Pull::new(&Context::new()).unwrap();
    let addr = puller.bind(&(ground.any)()).unwrap().to_string();
    let survivor = Push::new(&Context::new()).unwrap();
    survivor.connect(&addr).unwrap();
    let send = move |n: u64| survivor.send_timeout(n.to_string(), LONG).unwrap();
    let traffic = Traffic::start(PAUSE, send, || {});
    let mut taken = Taken { puller, numbers: Vec::new(), others: 0 };
    for kill in 0..ground.kills as u64 {
        let victim = fabric(["push", &addr, "--repeat", "1000000000", "--size", "100"]);
        // What a killed one left behind may still arrive, so messages alone do not tell that this
        // one is there: the survivor and it are.
        taken.until(|taken| taken.puller.counters().connects == kill + 2);
        let (others, numbers) = (taken.others + 100, taken.numbers.len() + 50);
        taken.until(|taken| taken.others >= others && taken.numbers.len() >= numbers);
        victim.kill();
    }
    let count = traffic.stop();
    taken.until(|taken| taken.numbers.len() as u64 >= count);
    assert!(taken.numbers.into_iter().eq(0..count), "the survivor's messages");
    wait_until("the end of all links", || {
        let counters = taken.puller.counters();
        counters.disconnects == ground.kills as u64 + 1
    });
}

/// What a puller took so far.
struct Taken {
    puller: Pull,
    /// The survivor's messages.
    numbers: Vec<u64>,
    /// How many came from those that are killed.
    others: usize,
}

impl Taken {
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let message = self.puller.recv_timeout(LONG).unwrap();
            match std::str::from_utf8(message.first()).ok().and_then(|text| text.parse().ok()) {
                Some(number) => self.numbers.push(number),
                None => self.others += 1,
            }
        }
    }
}
