//! Sockets as streams and sinks.

use futures_util::{SinkExt, StreamExt, stream};
use msg_patterns::{Message, MonitorEvent, Pub, Pull, Push, Rep, Req, Sub};

const MESSAGES: u32 = 500;

fn numbers() -> impl futures_util::Stream<Item = Message> + Unpin {
    stream::iter((0..MESSAGES).map(|i| Message::from(&i.to_le_bytes())))
}

everywhere! {
    async fn all_of_a_stream_goes_through_a_sink_into_a_stream(on) {
        let pull = Pull::builder().recv_hwm(5).build(&on.net.context()).unwrap();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::builder().send_hwm(5).build(&on.net.context()).unwrap();
        push.connect(&addr).unwrap();
        let sender = on.spawn(async move {
            let mut sink = push.sink();
            sink.send_all(&mut numbers().map(Ok)).await.unwrap();
            sink.close().await.unwrap();
            // The socket is still open.
            push.send_async("last").await.unwrap();
            push.close_async().await;
        });
        let mut stream = pull.stream();
        for i in 0..MESSAGES {
            assert_eq!(stream.next().await.unwrap().first()[..], i.to_le_bytes());
        }
        assert_eq!(stream.next().await.unwrap().first(), "last");
        sender.await;
        pull.close_async().await;
        assert!(stream.next().await.is_none(), "it ends with its socket");
    }

    async fn subscribers_are_streams_and_publishers_are_sinks(on) {
        let publisher = Pub::new(&on.net.context()).unwrap();
        let addr = publisher.bind(on.net.any()).unwrap().to_string();
        let sub = Sub::new(&on.net.context()).unwrap();
        sub.subscribe("").unwrap();
        sub.connect(&addr).unwrap();
        publisher.wait_matching_async("", 1).await.unwrap();
        let mut sink = publisher.sink();
        sink.feed("one".into()).await.unwrap();
        sink.send("two".into()).await.unwrap();
        let two: Vec<_> = sub.stream().take(2).map(Message::into_first).collect().await;
        assert_eq!(two, ["one", "two"]);
    }

    async fn requests_come_as_a_stream(on) {
        let rep = Rep::new(&on.net.context()).unwrap();
        let addr = rep.bind(on.net.any()).unwrap().to_string();
        let requests = rep.stream();
        let server = on.spawn(requests.for_each_concurrent(4, |request| async {
            let message = request.message().clone();
            request.reply(message).unwrap();
        }));
        let req = Req::new(&on.net.context()).unwrap();
        req.connect(&addr).unwrap();
        for i in 0..50 {
            let text = format!("{i}");
            assert_eq!(req.request_async(&text).await.unwrap().first(), &text);
        }
        rep.close_async().await;
        server.await;
    }

    async fn a_monitor_is_a_stream_that_ends_with_its_socket(on) {
        let pull = Pull::new(&on.net.context()).unwrap();
        let mut events = pull.monitor().stream();
        let addr = pull.bind(on.net.any()).unwrap().to_string();
        let push = Push::new(&on.net.context()).unwrap();
        let seen = on.spawn(async move {
            let mut seen = Vec::new();
            while let Some(event) = events.next().await {
                seen.push(event);
            }
            seen
        });
        push.connect(&addr).unwrap();
        push.send_async("x").await.unwrap();
        pull.recv_async().await.unwrap();
        push.close_async().await;
        pull.close_async().await;
        let seen = seen.await;
        let came = |wanted: fn(&MonitorEvent) -> bool| seen.iter().any(wanted);
        assert!(came(|event| matches!(event, MonitorEvent::HandshakeSucceeded { .. })));
        assert!(matches!(seen.last(), Some(MonitorEvent::Stopped)), "{seen:?}");
    }
}
