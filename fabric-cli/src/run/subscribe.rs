//! `fabric sub`.

use msg_patterns::Sub;

use super::receive::receive_all;
use crate::args::{Ends, Global, SubArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Subscribes and writes out.
///
/// # Errors
/// Why it ended early.
pub(crate) fn run(args: SubArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let mut output = Output::open(&args.store)?;
    let builder = args.tuning.apply(Sub::builder());
    let (ends, topics) = split(args.url, args.topics, args.bind, args.connect);
    let socket = stage.open(builder, &ends, Side::Connect)?;
    for topic in &topics {
        socket.subscribe(topic)?;
    }
    let mut tally = Tally::new(args.tuning.digest(), stage.style, args.tuning.count);
    let outcome = receive_all(&socket, &args.store, &args.tuning, &mut output, &mut tally);
    stage.finish("sub", socket, tally, outcome).map(drop)
}

/// With `--bind` or `--connect`, the first positional argument is a topic like the others. No topic
/// at all means every message.
fn split(
    first: Option<String>,
    mut topics: Vec<String>,
    bind: Vec<String>,
    connect: Vec<String>,
) -> (Ends, Vec<String>) {
    let mut url = first;
    if !(bind.is_empty() && connect.is_empty()) {
        topics.extend(url.take());
    }
    if topics.is_empty() {
        topics.push(String::new());
    }
    (Ends { url, bind, connect }, topics)
}
