//! PUB/SUB.

use std::collections::HashMap;
use std::time::Duration;

use msg_patterns::{Context, OnFull, Pub, Sub};

use super::{Ground, LONG, PAUSE, Traffic, numbers};
use crate::common::{Fabric, fabric, wait_until};

/// Neither the publisher nor another subscriber is disturbed.
pub(crate) fn subscribers(ground: &Ground) {
    let publisher = Pub::builder().on_full(OnFull::Block).build(&Context::new()).unwrap();
    let addr = publisher.bind(&(ground.any)()).unwrap().to_string();
    let mut survivor = fabric(["sub", &addr]);
    publisher.wait_matching("0", 1, LONG).unwrap();
    let sender = publisher.clone();
    let send = move |n: u64| sender.send_timeout(n.to_string(), LONG).unwrap();
    let traffic = Traffic::start(PAUSE, send, || {});
    for _ in 0..ground.kills {
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
    wait_until("the end of all links", || {
        publisher.counters().disconnects == ground.kills as u64 + 1
    });
    publisher.close();
}

/// All subscriptions are active again after each kill.
pub(crate) fn publishers(ground: &Ground) {
    let sub = Sub::builder()
        .recv_hwm(2 * ground.topics)
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let topics: Vec<String> = (0..ground.topics).map(|n| format!("topic.{n:04}.")).collect();
    topics.iter().for_each(|topic| sub.subscribe(topic).unwrap());
    let mut addr = (ground.any)();
    for kill in 0..ground.kills {
        let before = sub.counters().received;
        let mut publisher = publish(&addr, &topics);
        if kill == 0 {
            addr = publisher.addr();
            sub.connect(&addr).unwrap();
        }
        // Until here and until the next publisher, the subscriber calls nothing.
        publisher.wait("a message of each topic", |_| {
            sub.counters().received - before > ground.topics as u64
        });
        publisher.kill();
        wait_until("its end", || sub.peers().iter().all(|peer| !peer.up));
        check_topics(&sub, ground.topics);
    }
}

/// Endless traffic, the topics in turn; it waits for each to be subscribed to.
fn publish(addr: &str, topics: &[String]) -> Fabric {
    let options = ["pub", addr, "-w", "1", "--when-full", "block", "--repeat", "1000000000"];
    let topics = topics.iter().flat_map(|topic| ["--topic", topic]);
    fabric(options.into_iter().chain(topics))
}

/// Takes what has arrived from a publisher that is gone.
fn check_topics(sub: &Sub, topics: usize) {
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    while let Ok(message) = sub.try_recv() {
        *counts.entry(message.first().to_vec()).or_default() += 1;
    }
    assert_eq!(counts.len(), topics, "topics that were active");
}
