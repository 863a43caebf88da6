//! XPUB, XSUB and proxies, with nothing but futures.

use futures_util::{SinkExt, StreamExt};
use msg_patterns::{Proxy, Pub, Pull, Push, Sub, Upstream, XPub, XSub};

use crate::support::Fickle;

const MESSAGES: u32 = 500;

everywhere! {
    async fn what_comes_up_is_a_stream_and_what_goes_up_a_sink(on) {
        let context = on.net.context();
        let (publisher, sub) = (XPub::new(&context).unwrap(), XSub::new(&context).unwrap());
        sub.connect(&publisher.bind(on.net.any()).unwrap().to_string()).unwrap();
        sub.send_async("\u{1}a").await.unwrap();
        let Upstream::Subscription(asked) = publisher.recv_async().await.unwrap() else {
            panic!("no subscription");
        };
        publisher.send_to_async(&asked, "b 1").await.unwrap();
        publisher.wait_matching_async("a", 1).await.unwrap();
        publisher.sink().send("a 2".into()).await.unwrap();
        sub.sink().send("up".into()).await.unwrap();
        sub.subscribe("c").unwrap();
        let up: Vec<_> = publisher.stream().take(2).map(Upstream::into_message).collect().await;
        assert_eq!([up[0].first(), up[1].first()], ["up", "\u{1}c"]);
        assert_eq!(sub.recv_async().await.unwrap().first(), "b 1");
        assert_eq!(sub.stream().next().await.unwrap().first(), "a 2");
        sub.close_async().await;
        assert_eq!(publisher.recv_async().await.unwrap().into_message().first(), "\0a");
        publisher.close_async().await;
    }

    async fn a_forwarder_is_a_task_among_others(on) {
        let context = on.net.context();
        let (front, back) = (XSub::new(&context).unwrap(), XPub::new(&context).unwrap());
        let publisher = Pub::new(&context).unwrap();
        publisher.connect(&front.bind(on.net.any()).unwrap().to_string()).unwrap();
        let sub = Sub::new(&context).unwrap();
        sub.connect(&back.bind(on.net.any()).unwrap().to_string()).unwrap();
        sub.subscribe("").unwrap();
        let mut proxy = Proxy::forwarder(&front, &back);
        let control = proxy.control();
        let running = on.spawn(async move { proxy.run_async().await });
        publisher.wait_matching_async("", 1).await.unwrap();
        for i in 0..MESSAGES {
            publisher.send_async(&i.to_le_bytes()).await.unwrap();
            assert_eq!(sub.recv_async().await.unwrap().first()[..], i.to_le_bytes());
        }
        control.stop();
        assert_eq!(running.await.unwrap().to_back.messages, u64::from(MESSAGES));
    }

    async fn a_run_that_is_dropped_anywhere_loses_nothing(on) {
        let context = on.net.context();
        let front = Pull::builder().recv_hwm(4).build(&context).unwrap();
        let back = Push::builder().send_hwm(4).build(&context).unwrap();
        let push = Push::builder().send_hwm(4).build(&context).unwrap();
        push.connect(&front.bind(on.net.any()).unwrap().to_string()).unwrap();
        let pull = Pull::builder().recv_hwm(4).build(&context).unwrap();
        pull.connect(&back.bind(on.net.any()).unwrap().to_string()).unwrap();
        let mut proxy = Proxy::streamer(&front, &back);
        let control = proxy.control();
        let carrier = on.spawn(async move {
            let mut runs = 0_usize;
            while Fickle::new(proxy.run_async(), 1 + runs % 3).await.is_none() {
                runs += 1;
                futures_lite::future::yield_now().await;
            }
            runs
        });
        let sender = on.spawn(async move {
            for i in 0..MESSAGES {
                push.send_async(&i.to_le_bytes()).await.unwrap();
            }
            push.close_async().await;
        });
        for i in 0..MESSAGES {
            assert_eq!(pull.recv_async().await.unwrap().first()[..], i.to_le_bytes());
        }
        sender.await;
        control.stop();
        assert!(carrier.await > 0, "nothing was put to the test");
        assert_eq!(control.stats().to_back.messages, u64::from(MESSAGES));
    }
}
