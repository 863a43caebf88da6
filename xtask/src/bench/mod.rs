//! `cargo xtask bench`: ours and the peers, measured in turns on this machine, and judged.

mod amount;
mod cells;
mod contender;
mod driver;
mod metric;
mod ours;
mod pair;
mod pingpong;
mod play;
mod prepare;
mod results;
mod targets;
mod write;

use std::path::Path;
use std::time::Instant;

use crate::report::Outcome;
use amount::Amounts;
use cells::Cell;
use play::Ground;
use results::Results;

/// How to compare.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Fewer cells, three repetitions: for every day
    #[arg(long)]
    quick: bool,
    /// Only cells whose name contains this, such as "lat 64 B" or "fanout"
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// How often each contender has its turn [default: 5, with --quick 3]
    #[arg(long, value_name = "N")]
    repetitions: Option<usize>,
    /// Length of one turn in milliseconds [default: 350, with --quick 250]
    #[arg(long, value_name = "MS")]
    turn_ms: Option<u64>,
    /// Measure with the `fabric` that was built before, as it is
    #[arg(long)]
    no_build: bool,
}

impl Arguments {
    fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 5 }).max(1)
    }

    fn turn_seconds(&self) -> f64 {
        let ms = self.turn_ms.unwrap_or(if self.quick { 250 } else { 350 });
        ms.max(1) as f64 / 1e3
    }

    fn cells(&self) -> Vec<Cell> {
        let all = if self.quick { cells::quick() } else { cells::all() };
        let wanted = |cell: &Cell| self.only.as_ref().is_none_or(|only| cell.name().contains(only));
        all.into_iter().filter(wanted).collect()
    }
}

/// Measures, judges and writes the report.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let cells = arguments.cells();
    if cells.is_empty() {
        let names: Vec<String> = cells::all().iter().map(Cell::name).collect();
        return Err(format!("no cell has that in its name; there are: {}", names.join(", ")));
    }
    let ground = prepare::ground(root, &cells, !arguments.no_build)?;
    let started = Instant::now();
    let mut results = Results::new(&ground, arguments.repetitions());
    let mut amounts = Amounts::new(arguments.turn_seconds());
    for (at, cell) in cells.iter().enumerate() {
        println!("[{}/{}] {}", at + 1, cells.len(), cell.name());
        measure(cell, &ground, &mut amounts, &mut results);
    }
    results.seconds = started.elapsed().as_secs();
    results.judge(&targets::all()?);
    write::all(root, &results)
}

/// Everybody has a turn, then everybody again: what disturbs the machine disturbs all alike.
fn measure(cell: &Cell, ground: &Ground, amounts: &mut Amounts, results: &mut Results) {
    for turn in 0..results.repetitions {
        for &contender in &cell.contenders {
            if results.is_out(cell, contender) {
                continue;
            }
            let count = amounts.count(cell, contender, |count| ground.play(cell, contender, count));
            let sample = count.and_then(|count| ground.play(cell, contender, count));
            match sample {
                Ok(sample) => results.add(cell, contender, &sample),
                Err(why) => {
                    eprintln!("    {} is out (turn {}): {why}", contender.name(), turn + 1);
                    results.fail(cell, contender, why);
                }
            }
        }
    }
}
