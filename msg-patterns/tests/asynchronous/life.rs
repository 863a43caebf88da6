//! Closing and ending.

use futures_util::future::join_all;
use msg_patterns::{Context, ErrorKind, Linger, Pull, Push};

use crate::support::{Fickle, On};

const MESSAGES: u32 = 500;

/// A pusher with so many messages accepted, and their puller.
fn full(on: &On, context: &Context) -> (Push, Pull) {
    let pull = Pull::builder().recv_hwm(100).build(&on.net.context()).unwrap();
    let addr = pull.bind(on.net.any()).unwrap().to_string();
    let push = Push::builder().send_hwm(0).build(context).unwrap();
    push.connect(&addr).unwrap();
    (0..MESSAGES).for_each(|i| push.send(&i.to_le_bytes()).unwrap());
    (push, pull)
}

async fn all_arrive(pull: &Pull) {
    for i in 0..MESSAGES {
        assert_eq!(pull.recv_async().await.unwrap().first()[..], i.to_le_bytes());
    }
}

everywhere! {
    async fn closing_delivers_what_was_accepted(on) {
        let (push, pull) = full(&on, &on.net.context());
        let closed = on.spawn(push.close_async());
        all_arrive(&pull).await;
        closed.await;
    }

    async fn a_close_goes_on_when_its_future_is_dropped(on) {
        let context = on.net.context();
        let (push, pull) = full(&on, &context);
        assert!(Fickle::new(push.close_async(), 1).await.is_none());
        all_arrive(&pull).await;
        // Waits until the socket has left the context.
        on.beside(move || context.terminate()).await;
    }

    async fn a_blocking_close_takes_over(on) {
        let (push, pull) = full(&on, &on.net.context());
        let other = push.clone();
        assert!(Fickle::new(push.close_async(), 1).await.is_none());
        let closed = on.beside(move || other.close());
        all_arrive(&pull).await;
        closed.await;
    }

    async fn a_close_ends_with_its_linger(on) {
        let push = Push::builder()
            .linger(Linger::For(std::time::Duration::from_millis(20)))
            .build(&on.net.context())
            .unwrap();
        let pull = Pull::new(&on.net.context()).unwrap();
        let nobody = pull.bind(on.net.any()).unwrap().to_string();
        pull.close_async().await;
        push.connect(&nobody).unwrap();
        push.send_async("never sent").await.unwrap();
        let counted = push.clone();
        push.close_async().await;
        assert_eq!(counted.counters().dropped, 1);
    }

    async fn closing_ends_all_waiting_futures(on) {
        let pull = Pull::new(&on.net.context()).unwrap();
        pull.bind(on.net.any()).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let pull = pull.clone();
            let receiver = async move { pull.recv_async().await.unwrap_err().kind() };
            waiting.push(on.spawn_waiting(receiver).await);
        }
        pull.close_async().await;
        assert_eq!(join_all(waiting).await, [ErrorKind::Terminated; 3]);
    }

    async fn the_end_of_a_context_ends_all_waiting_futures(on) {
        let context = on.net.context();
        let push = Push::new(&context).unwrap();
        push.bind(on.net.any()).unwrap();
        let waiting = {
            let push = push.clone();
            on.spawn_waiting(async move { push.send_async("x").await.unwrap_err() }).await
        };
        on.beside(move || context.shutdown()).await;
        let refused = waiting.await;
        assert_eq!((refused.kind(), &refused.message.first()[..]), (ErrorKind::Terminated, &b"x"[..]));
    }

    async fn a_port_is_free_once_its_socket_is_closed(on) {
        let context = on.net.context();
        let mut addr = on.net.any().to_owned();
        for _ in 0..3 {
            let pull = Pull::new(&context).unwrap();
            addr = pull.bind(&addr).unwrap().to_string();
            pull.close_async().await;
        }
    }
}
