//! REQ/REP.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, ErrorKind, Rep, Req};

use super::{Ground, LONG, PAUSE, Traffic};
use crate::common::{Fabric, fabric, wait_until};

/// Another one answers what a killed one was asked.
pub(crate) fn repliers(ground: &Ground) {
    let req = Req::builder()
        .retry(true)
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let start = |addr: &str| fabric(["rep", addr, "--", "sh", "-c", "read n; sleep 0.01; echo $n"]);
    let mut repliers: VecDeque<Fabric> = [start(&(ground.any)()), start(&(ground.any)())].into();
    let mut addrs: VecDeque<String> = repliers.iter_mut().map(Fabric::addr).collect();
    addrs.iter().for_each(|addr| req.connect(addr).unwrap());
    let askers: Vec<Traffic> = (0..2).map(|_| ask(req.clone())).collect();
    for _ in 0..ground.kills {
        askers.iter().for_each(|asker| asker.wait_for_more(3));
        repliers.pop_front().unwrap().kill();
        repliers.push_back(start(&addrs[0]));
        repliers[1].addr();
        addrs.rotate_left(1);
    }
    assert!(askers.into_iter().map(Traffic::stop).sum::<u64>() >= 6 * ground.kills as u64);
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

/// An error in time.
pub(crate) fn repliers_without_retry(ground: &Ground) {
    let req = Req::builder()
        .reconnect_interval(Some(Duration::from_millis(20)))
        .build(&Context::new())
        .unwrap();
    let mut replier = fabric(["rep", &(ground.any)(), "--", "sleep", "3"]);
    let addr = replier.addr();
    req.connect(&addr).unwrap();
    for _ in 0..ground.kills {
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

/// Others get their replies.
pub(crate) fn requesters(ground: &Ground) {
    let context = Context::new();
    let rep = Rep::new(&context).unwrap();
    let addr = rep.bind(&(ground.any)()).unwrap().to_string();
    let replier = rep.clone();
    let answering = thread::spawn(move || {
        while let Ok(request) = replier.recv() {
            replier.send(request).unwrap();
        }
    });
    let req = Req::new(&Context::new()).unwrap();
    req.connect(&addr).unwrap();
    let asker = ask(req);
    for _ in 0..ground.kills {
        let victim = fabric(["req", &addr, "--repeat", "1000000000", "--discard"]);
        wait_until("requests of both", || {
            let peers = rep.peers();
            peers.len() == 2 && peers.iter().all(|peer| peer.received > 20)
        });
        victim.kill();
        wait_until("its end", || rep.peers().len() == 1);
        asker.wait_for_more(20);
    }
    asker.stop();
    context.shutdown();
    answering.join().unwrap();
}
