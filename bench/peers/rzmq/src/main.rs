//! The `rzmq` crate on tokio's default runtime, as its documentation shows.

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Args, Held, Meter, Times, fail, go, ready, wait_end, wait_go};
use rzmq::{Context, Msg, Socket, SocketType, ZmqError};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Long enough for a connection to be there: sends before fail or are dropped.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Times that a first send is tried.
const TRIES_MAX: u32 = 3000;

fn main() {
    let args = Args::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
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
    let context = Context::new()?;
    match args.role.as_str() {
        "lat-server" => serve_trips(args, &context).await,
        "lat-client" => measure_trips(args, &context).await,
        "bw-server" => receive(args, &context).await,
        "bw-client" => send(args, &context).await,
        "idle-server" => serve_silent(args, &context).await,
        "idle-client" => connect_silent(args, &context).await,
        other => fail(format!("no such role: {other}")),
    }
}

async fn end() {
    // It only fails when the runtime ends, and then this ends, too.
    let _ = spawn_blocking(wait_end).await;
}

async fn bound(args: &Args, context: &Context, kind: SocketType) -> Result<Socket, ZmqError> {
    let socket = context.socket(kind)?;
    socket.bind(&args.url()).await?;
    ready();
    Ok(socket)
}

async fn connected(args: &Args, context: &Context, kind: SocketType) -> Result<Socket, ZmqError> {
    let socket = context.socket(kind)?;
    socket.connect(&args.url()).await?;
    Ok(socket)
}

/// Tries until there is a connection.
async fn send_first(socket: &Socket, message: impl Fn() -> Msg) -> Result<(), ZmqError> {
    let mut tries = 0;
    while let Err(error) = socket.send(message()).await {
        tries += 1;
        if tries > TRIES_MAX {
            return Err(error);
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn serve_trips(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let socket = bound(args, context, SocketType::Rep).await?;
    for _ in 0..args.total() {
        let request = socket.recv().await?;
        socket.send(request).await?;
    }
    println!("{{}}");
    end().await;
    Ok(())
}

async fn measure_trips(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let socket = connected(args, context, SocketType::Req).await?;
    let body = Bytes::from(vec![b'x'; args.size]);
    let mut times = Times::new(args);
    for done in 0..args.total() {
        let asked = Instant::now();
        if done == 0 {
            send_first(&socket, || Msg::from_bytes(body.clone())).await?;
        } else {
            socket.send(Msg::from_bytes(body.clone())).await?;
        }
        socket.recv().await?;
        times.add(asked);
    }
    times.report();
    Ok(())
}

async fn receive(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let socket = bound(args, context, SocketType::Pull).await?;
    receive_all(args, &socket).await?.stream(args.count);
    Ok(())
}

/// Receives everything; the meter has run since the last message that warms up.
async fn receive_all(args: &Args, socket: &Socket) -> Result<Meter, ZmqError> {
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        socket.recv().await?;
    }
    Ok(meter)
}

async fn send(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let socket = connected(args, context, SocketType::Push).await?;
    sleep(SETTLE_TIME).await;
    send_all(args, &socket).await?.stream(args.count);
    end().await;
    Ok(())
}

async fn send_all(args: &Args, socket: &Socket) -> Result<Meter, ZmqError> {
    let body = Bytes::from(vec![b'x'; args.size]);
    let mut meter = Meter::begin();
    for done in 0..args.total() {
        if done == args.warm() {
            meter = Meter::begin();
        }
        socket.send(Msg::from_bytes(body.clone())).await?;
    }
    Ok(meter)
}

async fn serve_silent(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let socket = bound(args, context, SocketType::Pull).await?;
    socket.recv().await?;
    let before = Held::now();
    socket.recv().await?;
    let first = Instant::now();
    for _ in 1..args.peers {
        socket.recv().await?;
    }
    let (greetings, grown) = (first.elapsed(), before.grown());
    go();
    let meter = receive_all(args, &socket).await?;
    meter.idle(args.count, args.peers, grown, greetings);
    Ok(())
}

async fn connect_silent(args: &Args, context: &Context) -> Result<(), ZmqError> {
    let active = greet(args, context).await?;
    sleep(SETTLE_TIME).await;
    let before = Held::now();
    let mut silent = Vec::with_capacity(args.peers);
    for _ in 0..args.peers {
        silent.push(greet(args, context).await?);
    }
    let _ = spawn_blocking(wait_go).await;
    let grown = before.grown();
    let meter = send_all(args, &active).await?;
    meter.silent(args.peers, grown);
    end().await;
    Ok(())
}

async fn greet(args: &Args, context: &Context) -> Result<Socket, ZmqError> {
    let socket = connected(args, context, SocketType::Push).await?;
    send_first(&socket, || Msg::from_static(b"h")).await?;
    Ok(socket)
}
