//! Sockets that a tokio runtime drives. One test, since it counts the threads of its process.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, MonitorEvent, Pull, Push, Rep, Req};
use tokio::runtime::{Builder, Runtime};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const ANYWHERE: &str = "tcp://127.0.0.1:0";

/// Threads of ours in this process.
fn own_threads() -> usize {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("comm")).unwrap_or_default()
    };
    let names = std::fs::read_dir("/proc/self/task").unwrap().map(name);
    names.filter(|name| name.trim() == "msg-patterns").count()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("it comes within the watchdog's time")
}

#[test]
fn a_runtime_drives_its_sockets_until_it_ends() {
    for addr in addrs() {
        round_trips_need_no_thread_of_ours(&addr);
    }
    deadlines_are_kept();
    blocking_calls_work_on_and_off_the_runtime();
    assert_eq!(own_threads(), 0);
    a_runtime_without_io_leaves_sockets_to_a_thread();
    a_thread_takes_over_when_the_runtime_ends();
}

/// Where to listen: over TCP, and over what this host's libfabric has.
fn addrs() -> Vec<String> {
    let mut addrs = vec![ANYWHERE.to_owned()];
    let shm = format!("ofi+shm://runtime-{}:0", std::process::id());
    let further = ["ofi+tcp://127.0.0.1:0".to_owned(), shm];
    let there = |addr: &String| Context::new().open_domain(&addr.parse().unwrap()).is_ok();
    addrs.extend(further.into_iter().filter(there));
    println!("over {addrs:?}");
    addrs
}

fn round_trips_need_no_thread_of_ours(addr: &str) {
    runtime().block_on(async {
        let context = Context::new();
        let rep = Rep::new(&context).unwrap();
        let req = Req::new(&context).unwrap();
        req.connect(&rep.bind(addr).unwrap().to_string()).unwrap();
        let server = tokio::spawn({
            let rep = rep.clone();
            async move {
                while let Ok(request) = rep.recv_async().await {
                    rep.send(request).unwrap();
                }
            }
        });
        for i in 0..1000_u32 {
            let reply = within(req.request_async(&i.to_le_bytes())).await.unwrap();
            assert_eq!(reply.first()[..], i.to_le_bytes());
            assert_eq!(own_threads(), 0);
        }
        rep.close_async().await;
        within(server).await.unwrap();
        assert_eq!(own_threads(), 0);
    });
}

/// A connection is tried again by itself, and a tail leaves although nobody sends any more.
fn deadlines_are_kept() {
    runtime().block_on(async {
        let context = Context::new();
        let pull = Pull::new(&context).unwrap();
        let addr = pull.bind(ANYWHERE).unwrap().to_string();
        pull.close_async().await;
        let push = Push::builder()
            .reconnect_interval(Some(Duration::from_millis(5)))
            .build(&context)
            .unwrap();
        let retries = push.monitor();
        push.connect(&addr).unwrap();
        for i in 0..100_u8 {
            push.send(&[i]).unwrap();
        }
        within(async {
            let retried = |event| matches!(event, MonitorEvent::ConnectRetried { .. });
            let mut count = 0;
            while count < 3 {
                count += usize::from(retries.try_next().is_some_and(retried));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        let pull = Pull::new(&context).unwrap();
        pull.bind(&addr).unwrap();
        for i in 0..100_u8 {
            assert_eq!(within(pull.recv_async()).await.unwrap().first()[..], [i]);
        }
        assert_eq!(own_threads(), 0);
    });
}

fn blocking_calls_work_on_and_off_the_runtime() {
    let runtime = runtime();
    let context = Context::new();
    let (push, pull) = runtime.block_on(async {
        let pull = Pull::new(&context).unwrap();
        let push = Push::new(&context).unwrap();
        push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
        for i in 0..100_u8 {
            push.send(&[i]).unwrap();
            let pull = pull.clone();
            // The runtime's own thread has to drive the other socket.
            let received = tokio::task::spawn_blocking(move || pull.recv_timeout(LONG).unwrap());
            assert_eq!(within(received).await.unwrap().first()[..], [i]);
        }
        (push, pull)
    });
    // Nobody runs the runtime now: calls drive their sockets themselves.
    for i in 0..100_u8 {
        push.send(&[i]).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
    }
    // One thread blocks in a socket that a task waits for as well.
    let blocking = thread::spawn({
        let pull = pull.clone();
        move || pull.recv_timeout(LONG).unwrap()
    });
    runtime.block_on(async {
        let waiting = tokio::spawn({
            let pull = pull.clone();
            async move { pull.recv_async().await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        push.send_async("one").await.unwrap();
        push.send_async("two").await.unwrap();
        within(waiting).await.unwrap();
        while !blocking.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        blocking.join().unwrap();
        push.close_async().await;
        pull.close_async().await;
    });
}

fn a_runtime_without_io_leaves_sockets_to_a_thread() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        let context = Context::new();
        let pull = Pull::new(&context).unwrap();
        let push = Push::new(&context).unwrap();
        push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
        push.send_async("hello").await.unwrap();
        assert_eq!(pull.recv_async().await.unwrap().first(), "hello");
        assert_eq!(own_threads(), 1);
    });
}

fn a_thread_takes_over_when_the_runtime_ends() {
    let runtime = runtime();
    let context = Context::new();
    let (push, pull, lone) = runtime.block_on(async {
        let (push, pull) = (Push::new(&context).unwrap(), Pull::new(&context).unwrap());
        push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
        push.send_async("before").await.unwrap();
        assert_eq!(within(pull.recv_async()).await.unwrap().first(), "before");
        let nobody = Pull::new(&context).unwrap();
        let addr = nobody.bind(ANYWHERE).unwrap().to_string();
        nobody.close_async().await;
        let lone = Push::builder().reconnect_interval(Some(Duration::from_millis(5)));
        let lone = lone.build(&context).unwrap();
        lone.connect(&addr).unwrap();
        (push, pull, lone)
    });
    let told = channel();
    let waiting = thread::spawn({
        let (pull, told) = (pull.clone(), told.0);
        move || {
            futures_lite::future::block_on(async {
                let mut message = Box::pin(pull.recv_async());
                assert!(futures_lite::future::poll_once(&mut message).await.is_none());
                told.send(()).unwrap();
                message.await.unwrap()
            })
        }
    });
    told.1.recv().unwrap();
    drop(runtime);
    push.send("after").unwrap();
    assert_eq!(waiting.join().unwrap().first(), "after");
    // It keeps deadlines, too: nobody calls this socket.
    let retries = lone.monitor();
    let mut count = 0;
    while count < 3 {
        let event = retries.next_timeout(LONG).expect("it is tried within the watchdog's time");
        count += usize::from(matches!(event, MonitorEvent::ConnectRetried { .. }));
    }
    for i in 0..100_u8 {
        push.send(&[i]).unwrap();
        assert_eq!(pull.recv_timeout(LONG).unwrap().first()[..], [i]);
    }
    push.close();
    pull.close();
}
