//! `fabric top`: what the sockets of a running process do now, by its metrics.

mod http;
mod rates;
mod screen;
mod text;

use std::io::{self, IsTerminal as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::exit::Failure;
use crate::units::parse_time;
use http::Endpoint;
use rates::{Row, Rows, Scrape};

/// Shortest time between two looks: rates of less are noise.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the process shows its metrics, like http://127.0.0.1:9464/metrics (docs/metrics.md)
    #[arg(value_name = "URL", value_parser = Endpoint::parse)]
    endpoint: Endpoint,
    /// Time between two looks
    #[arg(short, long, value_name = "TIME", value_parser = parse_interval, default_value = "1s")]
    interval: Duration,
    /// End after so many tables
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    /// Show the links of each socket, too: peer, fabric, provider and device
    #[arg(short, long)]
    peers: bool,
    /// Print one JSON object a look instead of tables: {"sockets": […], "peers": […]}
    #[arg(long)]
    json: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let time = parse_time(text)?;
    if time < INTERVAL_MIN { Err("must be at least 50ms".into()) } else { Ok(time) }
}

/// Shows tables until there were enough, or a signal comes.
///
/// # Errors
/// When there are no metrics at the address, or nobody reads the output any more.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let mut before = look(&args.endpoint)?;
    let mut shown = 0;
    while args.count.is_none_or(|count| shown < count) {
        thread::sleep(args.interval);
        let now = look(&args.endpoint)?;
        show(args, &now.since(&before))?;
        before = now;
        shown += 1;
    }
    Ok(())
}

fn look(endpoint: &Endpoint) -> Result<Scrape, Failure> {
    let body = endpoint.get().map_err(|why| Failure::new(format!("{endpoint}: {why}")))?;
    let samples = text::parse(&body).map_err(|why| Failure::new(format!("{endpoint}: {why}")))?;
    let scrape = Scrape::new(samples, Instant::now());
    if scrape.is_empty() {
        let text = "no sockets there: is it a process with msg-patterns' metrics that has some?";
        return Err(Failure::new(format!("{endpoint}: {text}")));
    }
    Ok(scrape)
}

fn show(args: &TopArgs, rows: &Rows) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = if args.json { json(rows) } else { tables(args, rows, out.is_terminal()) };
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::io("standard output"))
}

fn json(rows: &Rows) -> String {
    // Strings and numbers can always be written.
    serde_json::to_string(rows).unwrap_or_default()
}

fn tables(args: &TopArgs, rows: &Rows, terminal: bool) -> String {
    // To the upper left corner of an empty screen (ECMA-48: CUP and ED).
    let mut text = String::from(if terminal { "\x1b[H\x1b[2J" } else { "" });
    text.push_str(&screen::table(&rows.sockets));
    if args.peers && !rows.peers.is_empty() {
        text.push('\n');
        text.push_str(&screen::table(&rows.peers));
    }
    text
}

/// Something that is one line of a table.
trait Line {
    /// What stands above.
    const HEADER: &'static [&'static str];
    /// What stands in it. Words come first.
    const WORDS: usize;
    /// The cells.
    fn cells(&self) -> Vec<String>;
}

impl Line for Row<rates::Socket> {
    const HEADER: &'static [&'static str] = &[
        "socket",
        "type",
        "up",
        "in/s",
        "bytes in/s",
        "out/s",
        "bytes out/s",
        "queued",
        "dropped/s",
        "lost/s",
        "retries/s",
    ];
    const WORDS: usize = 2;

    fn cells(&self) -> Vec<String> {
        let of = &self.figures;
        vec![
            self.socket.clone(),
            self.socket_type.clone(),
            format!("{} of {}", of.peers_up, of.peers),
            screen::rate(of.received),
            screen::bytes(of.received_bytes),
            screen::rate(of.sent),
            screen::bytes(of.sent_bytes),
            screen::count(of.queued),
            screen::rate(of.dropped),
            screen::rate(of.lost),
            screen::rate(of.retries),
        ]
    }
}

impl Line for Row<rates::Peer> {
    const HEADER: &'static [&'static str] = &[
        "socket",
        "peer",
        "address",
        "provider",
        "device",
        "up",
        "in/s",
        "out/s",
        "queued",
        "dropped/s",
        "lost/s",
    ];
    const WORDS: usize = 6;

    fn cells(&self) -> Vec<String> {
        let of = &self.figures;
        vec![
            self.socket.clone(),
            of.peer.clone(),
            of.address.clone(),
            of.provider.clone(),
            of.device.clone(),
            String::from(if of.up { "yes" } else { "no" }),
            screen::rate(of.received),
            screen::rate(of.sent),
            screen::count(of.queued),
            screen::rate(of.dropped),
            screen::rate(of.lost),
        ]
    }
}
