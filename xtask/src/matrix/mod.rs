//! `cargo xtask matrix`: kernels against user-space stacks of RDMA, each pair run in a guest.
//!
//! docs/matrix.md says what a cell does and what it takes.

mod boot;
mod cell;
mod grid;
mod place;
mod programs;
mod reading;
mod report;
mod siw;
mod stack;
mod store;

use std::fs;
use std::path::Path;

use crate::circumstances::commit;
use crate::report::Outcome;
use grid::{Choice, ROWS, Row, Stack};
use place::Place;
use report::Report;
use store::Store;

/// `cargo xtask matrix [OPTIONS]`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this cell, such as 6.12/56, or a row or column of them: 6.12/*; may be repeated
    #[arg(long = "cell", value_name = "KERNEL/STACK")]
    cells: Vec<Choice>,
    /// Run cells again that have run
    #[arg(long)]
    fresh: bool,
    /// Only fetch and build what the cells take
    #[arg(long)]
    prepare: bool,
}

/// Runs the chosen cells that have not run yet, then writes the reports of all that have.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let place = Place::new(root);
    let store = Store::new(place.join("cells")?);
    if arguments.fresh {
        forget(&place, &store, &arguments.cells)?;
    }
    let work = work(&store, &arguments.cells);
    if arguments.prepare {
        return prepare(&place, &work);
    }
    if !work.is_empty() {
        let (programs, commit) = (programs::build(&place)?, commit());
        for (row, stacks) in work {
            boot::run(&place, &store, (row, &stacks), (&programs, &commit))?;
            write(&place, &store)?;
        }
    }
    let report = write(&place, &store)?;
    println!("{}", report::markdown(&report));
    report.verdict(&arguments.cells)
}

fn prepare(place: &Place, work: &[(&'static Row, Vec<&'static Stack>)]) -> Outcome {
    for (row, stacks) in work {
        boot::prepare(place, row, stacks)?;
    }
    programs::build(place)?;
    Ok(format!("{} rows can run", work.len()))
}

fn forget(place: &Place, store: &Store, choices: &[Choice]) -> Result<(), String> {
    for row in ROWS {
        for stack in grid::chosen(row, choices) {
            store.forget(row, stack)?;
            store::clear(&place.results(row.name), stack)?;
        }
    }
    Ok(())
}

/// What is chosen and has not run, row by row.
fn work(store: &Store, choices: &[Choice]) -> Vec<(&'static Row, Vec<&'static Stack>)> {
    let missing = |row: &'static Row| {
        let mut stacks = grid::chosen(row, choices);
        stacks.retain(|stack| !store.has(row, stack));
        (row, stacks)
    };
    ROWS.iter().map(missing).filter(|(_, stacks)| !stacks.is_empty()).collect()
}

fn write(place: &Place, store: &Store) -> Result<Report, String> {
    let report = Report::new(store.all());
    let json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    for (name, text) in [("report.json", json), ("report.md", report::markdown(&report))] {
        let file = place.join(name)?;
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::cell::samples::good;
    use super::*;

    #[test]
    fn what_has_run_is_not_run_again() {
        let dir = std::env::temp_dir().join(format!("work-{}", std::process::id()));
        let store = Store::new(dir.clone());
        let choices = vec!["6.12/*".parse().unwrap()];
        let names = |store: &Store| {
            let work = work(store, &choices).into_iter().flat_map(|(_, stacks)| stacks);
            work.map(|stack| stack.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&store), ["33", "44", "56", "newest"]);
        store.keep(&good("6.12", "44")).unwrap();
        assert_eq!(names(&store), ["33", "56", "newest"]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
