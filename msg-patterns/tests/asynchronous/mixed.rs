//! Tasks and threads at one socket.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use msg_patterns::{ErrorKind, Pull, Push, Rep, Req};

use crate::support::LONG;

const EACH: u32 = 300;

everywhere! {
    async fn threads_and_tasks_share_a_receiver(on) {
        let pull = Pull::builder().recv_hwm(20).build(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::builder().send_hwm(20).build(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        let end = u32::MAX.to_le_bytes();
        let by_threads = [(); 2].map(|()| {
            let pull = pull.clone();
            on.beside(move || {
                let got = std::iter::from_fn(|| {
                    let message = pull.recv_timeout(LONG).unwrap();
                    (message.first() != &end[..]).then(|| message.into_first().to_vec())
                });
                got.collect::<Vec<_>>()
            })
        });
        let by_tasks = [(); 2].map(|()| {
            let pull = pull.clone();
            on.spawn(async move {
                let mut got = Vec::new();
                loop {
                    let message = pull.recv_async().await.unwrap();
                    if message.first() == &end[..] {
                        return got;
                    }
                    got.push(message.into_first().to_vec());
                }
            })
        });
        let sender = push.clone();
        let from_thread = on.beside(move || {
            (0..EACH).for_each(|i| sender.send(&i.to_le_bytes()).unwrap());
        });
        for i in EACH..2 * EACH {
            push.send_async(&i.to_le_bytes()).await.unwrap();
        }
        from_thread.await;
        for _ in 0..4 {
            push.send_async(&end).await.unwrap();
        }
        let mut got = join_all(by_tasks).await.concat();
        for thread in by_threads {
            got.extend(thread.await);
        }
        assert_eq!(got.len(), 2 * EACH as usize);
        let got: BTreeSet<u32> =
            got.iter().map(|body| u32::from_le_bytes(body[..].try_into().unwrap())).collect();
        assert!(got.into_iter().eq(0..2 * EACH));
    }

    async fn threads_and_tasks_ask_through_one_socket(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let serving = rep.clone();
        let server = on.beside(move || {
            while let Ok(request) = serving.recv() {
                serving.send(request).unwrap();
            }
        });
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        let asking = req.clone();
        let thread = on.beside(move || for i in 0..EACH {
            let text = format!("thread {i}");
            assert_eq!(asking.request(&text, LONG).unwrap().first(), &text);
        });
        for i in 0..EACH {
            let text = format!("task {i}");
            assert_eq!(req.request_async(&text).await.unwrap().first(), &text);
        }
        thread.await;
        rep.close_async().await;
        server.await;
    }

    async fn blocking_calls_work_between_futures(on) {
        let pull = Pull::new(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::new(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        for i in 0..50_u8 {
            push.send(&[i]).unwrap();
            let receiving = pull.clone();
            let got = match i % 2 {
                0 => pull.recv_async().await,
                // A blocking call here would block the executor's only thread.
                _ => on.beside(move || receiving.recv_timeout(LONG)).await,
            };
            assert_eq!(got.unwrap().first()[..], [i]);
        }
        assert_eq!(pull.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
