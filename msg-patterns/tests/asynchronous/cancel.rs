//! Futures dropped at every point where they wait, under load: nothing is lost and nothing comes
//! twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fastrand::Rng;
use msg_patterns::{Pull, Push, Rep, Req};

use crate::support::Fickle;

const MESSAGES: u32 = 1000;

/// Fresh numbers, from a seed that is printed.
fn rng() -> Rng {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    Rng::with_seed(seed)
}

everywhere! {
    async fn dropped_sends_and_receives_lose_nothing(on) {
        let pull = Pull::builder().recv_hwm(4).build(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::builder().send_hwm(4).build(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        let (mut rng, mut given_up) = (rng(), 0);
        let mut sending = rng.fork();
        let sender = on.spawn(async move {
            for i in 0..MESSAGES {
                let body = i.to_le_bytes();
                // A send that was given up was not done, or the next one would be the second.
                while !matches!(Fickle::new(push.send_async(&body), sending.usize(1..4)).await, Some(Ok(()))) {
                    futures_lite::future::yield_now().await;
                }
            }
            let accepted = push.counters().accepted;
            push.close_async().await;
            accepted
        });
        let mut next = 0;
        while next < MESSAGES {
            match Fickle::new(pull.recv_async(), rng.usize(1..4)).await {
                Some(message) => {
                    assert_eq!(message.unwrap().first()[..], next.to_le_bytes());
                    next += 1;
                }
                None => {
                    given_up += 1;
                    futures_lite::future::yield_now().await;
                }
            }
        }
        assert_eq!(sender.await, u64::from(MESSAGES));
        assert!(given_up > 0, "nothing was put to the test");
    }

    async fn dropped_requests_leave_nothing_to_others(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let served = Arc::new(AtomicU32::new(0));
        let server = {
            let (rep, served) = (rep.clone(), served.clone());
            let mut rng = rng();
            on.spawn(async move {
                loop {
                    match Fickle::new(rep.recv_async(), rng.usize(1..4)).await {
                        Some(Ok(request)) => {
                            rep.send(request).unwrap();
                            served.fetch_add(1, Ordering::SeqCst);
                        }
                        Some(Err(_)) => return,
                        None => futures_lite::future::yield_now().await,
                    }
                }
            })
        };
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        let (mut rng, mut answered) = (rng(), 0);
        let mut i = 0_u32;
        while answered < 200 {
            i += 1;
            let asked = Fickle::new(req.request_async(&i.to_le_bytes()), rng.usize(1..6)).await;
            if let Some(reply) = asked {
                assert_eq!(reply.unwrap().first()[..], i.to_le_bytes(), "its own reply");
                answered += 1;
            }
        }
        assert!(served.load(Ordering::SeqCst) >= answered);
        // The socket is as good as new.
        assert_eq!(req.request_async("last").await.unwrap().first(), "last");
        rep.close_async().await;
        server.await;
    }
}
