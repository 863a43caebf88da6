//! The `zeromq` crate on tokio's runtime of one thread, where it is fastest.

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Args, Held, Meter, Times, fail, go, ready, wait_end, wait_go};
use tokio::task::{JoinSet, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};
use zeromq::{
    PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, Socket, SocketRecv, SocketSend,
    SubSocket, ZmqError, ZmqMessage,
};

/// Long enough for subscriptions to arrive.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Whoever waits longer for a message has missed the end, since its publisher drops.
const END_TIME: Duration = Duration::from_secs(5);

fn main() {
    let args = Args::read();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(play(&args)),
        Err(error) => fail(error),
    };
    if let Err(error) = outcome {
        fail(error);
    }
    // Its tasks would keep the runtime from ending.
    std::process::exit(0);
}

async fn play(args: &Args) -> Result<(), ZmqError> {
    match args.role.as_str() {
        "lat-server" => serve_trips(args).await,
        "lat-client" => measure_trips(args).await,
        "bw-server" => receive(args).await,
        "bw-client" => send(args).await,
        "fanout-server" => publish(args).await,
        "fanout-client" => subscribe(args).await,
        "idle-server" => serve_silent(args).await,
        "idle-client" => connect_silent(args).await,
        other => fail(format!("no such role: {other}")),
    }
}

fn body(args: &Args) -> Bytes {
    Bytes::from(vec![b'x'; args.size])
}

async fn end() {
    // It only fails when the runtime ends, and then this ends, too.
    let _ = spawn_blocking(wait_end).await;
}

async fn serve_trips(args: &Args) -> Result<(), ZmqError> {
    let mut socket = RepSocket::new();
    socket.bind(&args.url()).await?;
    ready();
    for _ in 0..args.total() {
        let request = socket.recv().await?;
        socket.send(request).await?;
    }
    println!("{{}}");
    end().await;
    Ok(())
}

async fn measure_trips(args: &Args) -> Result<(), ZmqError> {
    let mut socket = ReqSocket::new();
    socket.connect(&args.url()).await?;
    let body = body(args);
    let mut times = Times::new(args);
    for _ in 0..args.total() {
        let asked = Instant::now();
        socket.send(ZmqMessage::from(body.clone())).await?;
        socket.recv().await?;
        times.add(asked);
    }
    times.report();
    Ok(())
}

async fn receive(args: &Args) -> Result<(), ZmqError> {
    let mut socket = PullSocket::new();
    socket.bind(&args.url()).await?;
    ready();
    receive_all(args, &mut socket).await?.stream(args.count);
    Ok(())
}

/// Receives everything; the meter has run since the last message that warms up.
async fn receive_all(args: &Args, socket: &mut PullSocket) -> Result<Meter, ZmqError> {
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        socket.recv().await?;
    }
    Ok(meter)
}

async fn send(args: &Args) -> Result<(), ZmqError> {
    let mut socket = PushSocket::new();
    socket.connect(&args.url()).await?;
    send_all(args, &mut socket).await?.stream(args.count);
    end().await;
    Ok(())
}

async fn send_all(args: &Args, socket: &mut PushSocket) -> Result<Meter, ZmqError> {
    let body = body(args);
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        socket.send(ZmqMessage::from(body.clone())).await?;
    }
    Ok(meter)
}

/// Its publisher drops for slow subscribers, so the end is said until nobody needs it any more.
async fn publish(args: &Args) -> Result<(), ZmqError> {
    let mut socket = PubSocket::new();
    socket.bind(&args.url()).await?;
    ready();
    let _ = spawn_blocking(wait_go).await;
    sleep(SETTLE_TIME).await;
    let body = body(args);
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        socket.send(ZmqMessage::from(body.clone())).await?;
    }
    meter.stream(args.count * args.peers as u64);
    let ended = tokio::spawn(end());
    while !ended.is_finished() {
        socket.send(ZmqMessage::from(Bytes::new())).await?;
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

async fn subscribe(args: &Args) -> Result<(), ZmqError> {
    let mut listeners = JoinSet::new();
    for _ in 0..args.peers {
        let mut socket = SubSocket::new();
        socket.subscribe("").await?;
        socket.connect(&args.url()).await?;
        listeners.spawn(listen(socket, args.warm()));
    }
    go();
    let (mut came, mut timed, mut first) = (0, 0, None::<Meter>);
    while let Some(Ok(heard)) = listeners.join_next().await {
        came += heard.came;
        timed += heard.timed;
        first = Meter::earlier(first, heard.meter);
    }
    let meter = first.unwrap_or_else(Meter::begin);
    meter.fanout(came, args.total() * args.peers as u64, timed);
    Ok(())
}

/// What one subscriber heard.
struct Heard {
    came: u64,
    timed: u64,
    meter: Option<Meter>,
}

async fn listen(mut socket: SubSocket, warm: u64) -> Heard {
    let mut heard = Heard { came: 0, timed: 0, meter: None };
    while let Ok(Ok(message)) = timeout(END_TIME, socket.recv()).await {
        if message.get(0).is_none_or(Bytes::is_empty) {
            break;
        }
        heard.came += 1;
        match heard.meter {
            Some(_) => heard.timed += 1,
            None if heard.came >= warm => heard.meter = Some(Meter::begin()),
            None => {}
        }
    }
    heard
}

async fn serve_silent(args: &Args) -> Result<(), ZmqError> {
    let mut socket = PullSocket::new();
    socket.bind(&args.url()).await?;
    ready();
    socket.recv().await?;
    let before = Held::now();
    socket.recv().await?;
    let first = Instant::now();
    for _ in 1..args.peers {
        socket.recv().await?;
    }
    let (greetings, grown) = (first.elapsed(), before.grown());
    go();
    let meter = receive_all(args, &mut socket).await?;
    meter.idle(args.count, args.peers, grown, greetings);
    Ok(())
}

async fn connect_silent(args: &Args) -> Result<(), ZmqError> {
    let mut active = greet(args).await?;
    sleep(Duration::from_millis(50)).await;
    let before = Held::now();
    let mut silent = Vec::with_capacity(args.peers);
    for _ in 0..args.peers {
        silent.push(greet(args).await?);
        yield_now().await;
    }
    let _ = spawn_blocking(wait_go).await;
    let grown = before.grown();
    let meter = send_all(args, &mut active).await?;
    meter.silent(args.peers, grown);
    end().await;
    Ok(())
}

async fn greet(args: &Args) -> Result<PushSocket, ZmqError> {
    let mut socket = PushSocket::new();
    socket.connect(&args.url()).await?;
    socket.send(ZmqMessage::from(Bytes::from_static(b"h"))).await?;
    Ok(socket)
}
