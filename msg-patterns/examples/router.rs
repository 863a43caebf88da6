//! A router between clients and workers: each worker gets one request at a time, and each client the
//! reply to its own.
//!
//! Run with `cargo run -p msg-patterns --example router`.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use msg_patterns::{Context, Dealer, Error, Message, Req, Router, RoutingId};

const PATIENCE: Duration = Duration::from_secs(30);
const READY: &str = "ready";
const WORKERS: usize = 2;

pub(crate) fn main() -> Result<(), Error> {
    let context = Context::new();
    let router = Router::new(&context)?;
    let addr = router.bind("tcp://127.0.0.1:0")?.to_string();
    let routing = thread::spawn(move || route(&router));

    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let worker = Dealer::builder().identity(format!("worker {number}")).build(&context)?;
        worker.connect(&addr)?;
        worker.send(READY)?;
        workers.push(thread::spawn(move || work(&worker)));
    }
    let client = Req::new(&context)?;
    client.connect(&addr)?;
    let askers = [1, 2, 3, 4].map(|number: u64| {
        let client = client.clone();
        thread::spawn(move || client.request(number.to_string(), PATIENCE))
    });
    for asker in askers {
        println!("{:?}", asker.join().expect("an asker does not panic")?);
    }
    context.shutdown();
    routing.join().expect("the router does not panic");
    workers.into_iter().for_each(|worker| worker.join().expect("a worker does not panic"));
    Ok(())
}

/// Gives requests to workers that are free, until the context shuts down.
fn route(router: &Router) {
    let mut free = VecDeque::<RoutingId>::new();
    let mut waiting = VecDeque::<Message>::new();
    while let Ok((from, message)) = router.recv() {
        if from.is_request() {
            waiting.push_back(from.before(message));
        } else {
            pass_reply(router, message);
            free.push_back(from);
        }
        while !free.is_empty() && !waiting.is_empty() {
            if let (Some(worker), Some(request)) = (free.pop_front(), waiting.pop_front()) {
                // Without `mandatory` it is no error that somebody has left meanwhile.
                drop(router.send_to(&worker, request));
            }
        }
    }
}

/// Sends what a worker answered to whoever asked. Its first word is no answer.
fn pass_reply(router: &Router, message: Message) {
    if let Some((client, reply)) = RoutingId::split(message).filter(|(id, _)| id.is_request()) {
        drop(router.send_to(&client, reply));
    }
}

/// Squares numbers until the context shuts down. What stands before a request goes back with its
/// reply.
fn work(worker: &Dealer) {
    while let Ok(request) = worker.recv() {
        let Some((client, number)) = RoutingId::split(request) else { continue };
        let number: u64 = String::from_utf8_lossy(number.first()).parse().unwrap_or(0);
        if worker.send(client.before((number * number).to_string())).is_err() {
            return;
        }
    }
}
