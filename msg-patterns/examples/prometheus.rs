//! A service whose figures Prometheus scrapes: it publishes a tick ten times a second.
//!
//! Run with `cargo run -p msg-patterns --features metrics --example prometheus`, and look with
//! `curl http://127.0.0.1:9464/metrics`. It ends with its standard input.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use msg_patterns::{Context, Pub, Sub};

const TICK: Duration = Duration::from_millis(100);

/// Longest time to wait for a request, so that one client cannot hold up the others for long.
const REQUEST_TIME: Duration = Duration::from_secs(5);

#[allow(dead_code, reason = "the test runs a script of its own")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Before the first socket: what is counted without a recorder is lost.
    let recorder = PrometheusBuilder::new().install_recorder()?;
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:9464")?;
    println!("http://{}/metrics", listener.local_addr()?);
    let scraped = context.clone();
    thread::spawn(move || serve(&listener, &scraped, &recorder));
    thread::spawn(move || tick(&context));
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn tick(context: &Context) -> Result<(), msg_patterns::Error> {
    let publisher = Pub::builder().name("ticks").build(context)?;
    let addr = publisher.bind("tcp://127.0.0.1:0")?;
    let sub = Sub::builder().name("listener").build(context)?;
    sub.subscribe("")?;
    sub.connect(&addr.to_string())?;
    loop {
        publisher.send("tick")?;
        while sub.try_recv().is_ok() {}
        thread::sleep(TICK);
    }
}

/// Answers scrapes for as long as there is a listener.
pub(crate) fn serve(listener: &TcpListener, context: &Context, recorder: &PrometheusHandle) {
    for stream in listener.incoming().flatten() {
        // A client that goes away is no matter of ours.
        drop(answer(stream, context, recorder));
    }
}

fn answer(mut stream: TcpStream, context: &Context, recorder: &PrometheusHandle) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    for line in BufReader::new((&mut stream).take(8 << 10)).lines() {
        if line?.is_empty() {
            break;
        }
    }
    context.publish_metrics();
    recorder.run_upkeep();
    let body = recorder.render();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
