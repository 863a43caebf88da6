//! Each pattern, with nothing but futures.

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use msg_patterns::{Dealer, Message, Pub, Pull, Push, Rep, Req, Sub};

use crate::support::On;

const MESSAGES: u32 = 2000;

fn number(message: &Message) -> u32 {
    u32::from_le_bytes(message.first()[..].try_into().unwrap())
}

/// Answers with what was asked, until the socket is closed.
async fn serve(rep: Rep) {
    while let Ok(request) = rep.recv_async().await {
        rep.send(request).unwrap();
    }
}

everywhere! {
    async fn what_is_pushed_is_pulled_in_order(on) {
        let pull = Pull::builder().recv_hwm(10).build(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::builder().send_hwm(10).build(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        let sender = on.spawn(async move {
            for i in 0..MESSAGES {
                push.send_async(&i.to_le_bytes()).await.unwrap();
            }
            push.close_async().await;
        });
        for i in 0..MESSAGES {
            assert_eq!(number(&pull.recv_async().await.unwrap()), i);
        }
        sender.await;
    }

    async fn many_are_received_at_once(on) {
        let pull = Pull::new(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::new(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        for i in 0..500_u32 {
            push.send_async(&i.to_le_bytes()).await.unwrap();
        }
        let mut messages = Vec::new();
        assert_eq!(pull.recv_many_async(&mut messages, 0).await.unwrap(), 0);
        while messages.len() < 500 {
            let before = messages.len();
            let came = pull.recv_many_async(&mut messages, 64).await.unwrap();
            assert!((1..=64).contains(&came) && messages.len() == before + came);
        }
        assert!(messages.iter().map(number).eq(0..500));
    }

    async fn what_is_published_reaches_subscribers(on) {
        let publisher = Pub::new(&on.net.context()).unwrap();
        let addr = publisher.bind(on.net.any()).unwrap().to_string();
        let subs: Vec<Sub> = (0..3).map(|_| {
            let sub = Sub::new(&on.net.context()).unwrap();
            sub.subscribe("a").unwrap();
            sub.connect(&addr).unwrap();
            sub
        }).collect();
        publisher.wait_matching_async("a", 3).await.unwrap();
        publisher.send_async("b no").await.unwrap();
        publisher.send_async("a yes").await.unwrap();
        for sub in &subs {
            assert_eq!(sub.recv_async().await.unwrap().first(), "a yes");
        }
    }

    async fn a_change_of_subscribers_is_noticed(on) {
        let publisher = Pub::new(&on.net.context()).unwrap();
        let addr = publisher.bind(on.net.any()).unwrap().to_string();
        let mut listener = publisher.matching_listener("a");
        let sub = Sub::new(&on.net.context()).unwrap();
        sub.subscribe("a").unwrap();
        sub.connect(&addr).unwrap();
        assert_eq!(listener.next_change_async().await.unwrap(), 1);
        sub.close_async().await;
        assert_eq!(listener.next_change_async().await.unwrap(), 0);
    }

    async fn many_tasks_ask_at_once_and_get_their_own_replies(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let servers: Vec<_> = (0..2).map(|_| on.spawn(serve(rep.clone()))).collect();
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        let askers = (0..20).map(|task| {
            let req = req.clone();
            on.spawn(async move {
                for i in 0..50 {
                    let text = format!("{task}:{i}");
                    let reply = req.request_async(&text).await.unwrap();
                    assert_eq!(reply.first(), &text);
                }
            })
        });
        join_all(askers.collect::<Vec<_>>()).await;
        rep.close_async().await;
        join_all(servers).await;
    }

    async fn a_handle_alternates_between_send_and_recv(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let server = on.spawn(serve(rep.clone()));
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        for i in 0..50 {
            let text = format!("{i}");
            req.send_async(&text).await.unwrap();
            let twice = req.send_async("again").await.unwrap_err();
            assert_eq!(twice.kind(), msg_patterns::ErrorKind::State);
            assert_eq!(twice.message.first(), "again");
            assert_eq!(req.recv_async().await.unwrap().first(), &text);
        }
        rep.close_async().await;
        server.await;
    }

    async fn dealers_send_and_receive_freely(on) {
        let [asking, answering] = [(); 2].map(|()| Dealer::new(&on.net.context()).unwrap());
        asking.connect(&answering.bind(on.net.any()).unwrap().to_string()).unwrap();
        let echo = on.spawn(async move {
            let (mut messages, mut back) = (answering.stream(), answering.sink());
            while let Some(message) = messages.next().await {
                let last = message.first() == "last";
                back.send(message).await.unwrap();
                if last {
                    return answering.close_async().await;
                }
            }
        });
        for text in ["first", "second", "last"] {
            asking.send_async(text).await.unwrap();
        }
        for text in ["first", "second", "last"] {
            assert_eq!(asking.recv_async().await.unwrap().first(), text);
        }
        echo.await;
    }

    async fn requests_are_answered_in_any_order(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        let askers: Vec<_> = (0..10).map(|i| {
            let req = req.clone();
            on.spawn(async move {
                let text = format!("{i}");
                assert_eq!(req.request_async(&text).await.unwrap().first(), &text);
            })
        }).collect();
        let mut requests = Vec::new();
        for _ in 0..10 {
            requests.push(rep.next_request_async().await.unwrap());
        }
        for request in requests.into_iter().rev() {
            let message = request.message().clone();
            request.reply(message).unwrap();
        }
        join_all(askers).await;
    }
}

/// The end of a task that always finds what it looks for.
#[test]
fn who_never_waits_lets_others_have_their_turn() {
    let exec = crate::support::Exec::one_thread();
    exec.run(crate::support::Net::sim(), |on: On| async move {
        let publisher = Pub::new(&on.net.context()).unwrap();
        let other = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = other.clone();
        let task = on.spawn(async move { seen.store(true, std::sync::atomic::Ordering::SeqCst) });
        let mut sent = 0;
        while !other.load(std::sync::atomic::Ordering::SeqCst) {
            publisher.send_async("to nobody").await.unwrap();
            sent += 1;
            assert!(sent < 10_000, "the other task never runs");
        }
        task.await;
    });
}
