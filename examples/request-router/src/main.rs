//! A request router: clients ask, workers that are free get one request each, and a request that is not
//! answered by its deadline is answered by the router.
//!
//! `cargo run -p request-router` shows it. `request-router route`, `work` and `ask` are its parts, for as
//! many hosts as there are.

#![forbid(unsafe_code)]

mod route;
#[path = "../../common/say.rs"]
mod say;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand};
use msg_patterns::{Context, Dealer, Error, Req, RoutingId};
use route::{EXPIRED, READY, Router};
use say::{ended, say};

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the show asks for and no worker gets done.
const ENDLESS: &str = "endless";

#[derive(Parser)]
#[command(about = "Requests with deadlines, given to workers that are free")]
struct Cli {
    /// Where the router of the show listens
    #[arg(long, value_name = "URL", default_value = "tcp://127.0.0.1:0")]
    addr: String,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Stands between clients and workers
    Route {
        /// Where to listen
        addr: String,
        /// Milliseconds from request to deadline
        #[arg(long, default_value_t = 1000)]
        deadline_ms: u64,
    },
    /// Squares numbers
    Work {
        /// Where the router listens
        addr: String,
    },
    /// Asks for the square of a number
    Ask {
        /// Where the router listens
        addr: String,
        /// The number
        number: String,
    },
}

fn main() -> ExitCode {
    ended(run())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let cli = Cli::parse();
    let context = Context::new();
    match cli.part {
        None => show(&context, &cli.addr),
        Some(Part::Route { addr, deadline_ms }) => {
            let router = Router::new(&context, &addr, Duration::from_millis(deadline_ms))?;
            say(format_args!("routing at {}", router.addr()))?;
            router.run();
            Ok(())
        }
        Some(Part::Work { addr }) => {
            work(&worker(&context, &addr)?);
            Ok(())
        }
        Some(Part::Ask { addr, number }) => Ok(say(ask(&client(&context, &addr)?, &number)?)?),
    }
}

/// Three workers get thirty requests from three clients; one request never ends.
fn show(context: &Context, addr: &str) -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new(context, addr, Duration::from_millis(500))?;
    let addr = router.addr();
    let routing = thread::spawn(move || router.run());
    let mut workers = Vec::new();
    for _ in 0..3 {
        let worker = worker(context, &addr)?;
        workers.push(thread::spawn(move || work(&worker)));
    }
    let mut clients = Vec::new();
    for part in 0..3_u64 {
        let client = client(context, &addr)?;
        clients.push(thread::spawn(move || {
            (0..10).map(|at| ask(&client, &(10 * part + at).to_string())).collect()
        }));
    }
    say(format_args!("{ENDLESS}: {}", ask(&client(context, &addr)?, ENDLESS)?))?;
    for (part, client) in clients.into_iter().enumerate() {
        let replies: Result<Vec<String>, Error> = client.join().expect("a client does not panic");
        say(format_args!("client {part}: {}", replies?.join(" ")))?;
    }
    context.shutdown();
    routing.join().expect("the router does not panic");
    workers.into_iter().for_each(|worker| worker.join().expect("a worker does not panic"));
    Ok(())
}

fn client(context: &Context, addr: &str) -> Result<Req, Error> {
    let client = Req::new(context)?;
    client.connect(addr)?;
    Ok(client)
}

fn ask(client: &Req, number: &str) -> Result<String, Error> {
    let reply = client.request(number, PATIENCE)?;
    Ok(match reply.first() {
        expired if expired == EXPIRED => "expired".to_owned(),
        square => String::from_utf8_lossy(square).into_owned(),
    })
}

/// One that has told the router that it is free.
fn worker(context: &Context, addr: &str) -> Result<Dealer, Error> {
    let worker = Dealer::new(context)?;
    worker.connect(addr)?;
    worker.send(READY)?;
    Ok(worker)
}

/// Until the context shuts down. What stands before a request goes back with its reply.
fn work(worker: &Dealer) {
    while let Ok(request) = worker.recv() {
        let Some((client, number)) = RoutingId::split(request) else { continue };
        let number = String::from_utf8_lossy(number.first()).parse::<u64>();
        let reply = match number {
            Ok(number) => (number * number).to_string(),
            // It works on and on.
            Err(_) => continue,
        };
        if worker.send(client.before(reply)).is_err() {
            return;
        }
    }
}
