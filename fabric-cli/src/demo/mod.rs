//! `fabric demo`: all three patterns between processes of this machine, every delivery checked.

mod crew;
mod data;
mod pipeline;
mod player;
mod publish;
mod service;
mod table;

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use msg_patterns::Addr;

use crate::args::{DemoArgs, Global};
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crew::Crew;
use data::Data;
use table::{Row, table};

/// How long the children may take to go after a signal. They are killed, so it is short.
const GRACE: Duration = Duration::from_secs(3);

type Act = fn(&Crew, &Data) -> Result<Vec<Row>, Failure>;

const ACTS: [Act; 3] = [publish::play, pipeline::play, service::play];

/// Plays the patterns one after another and prints one table.
///
/// # Errors
/// What did not arrive, or which process failed.
pub(crate) fn run(args: &DemoArgs, _global: &Global) -> Result<(), Failure> {
    let interrupt = Interrupt::listen(GRACE, || {})?;
    let data = Data::load(args.input.as_deref())?;
    let crew = Crew::new(args, interrupt, data.bytes())?;
    let started = Instant::now();
    let mut rows = Vec::new();
    let played: Result<(), Failure> = ACTS.iter().try_for_each(|act| {
        rows.extend(act(&crew, &data)?);
        Ok(())
    });
    print(&rows, &data, &crew, started.elapsed())?;
    played?;
    verdict(&rows)
}

fn print(rows: &[Row], data: &Data, crew: &Crew, took: Duration) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = format!(
        "{}\n{}: {} lines, {} bytes; {} processes over {}, {:.1} s",
        table(rows),
        data.name(),
        data.lines().len(),
        data.bytes(),
        rows.len(),
        Addr::new(crew.addr.scheme(), crew.addr.host(), None),
        took.as_secs_f64()
    );
    writeln!(out, "{text}").map_err(Failure::io("standard output"))
}

fn verdict(rows: &[Row]) -> Result<(), Failure> {
    let failed: Vec<String> = rows.iter().filter_map(Row::failure).collect();
    if failed.is_empty() {
        let mut out = io::stdout().lock();
        return writeln!(out, "everything arrived").map_err(Failure::io("standard output"));
    }
    Err(Failure::new(format!("not everything arrived: {}", failed.join("; "))))
}
