//! Runs the cells of a row: one guest for all of them, or several when one of them ends it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cell::Cell;
use super::grid::{self, Link, Row, Stack};
use super::place::{Place, seen};
use super::stack::{self, DRIVERS, UserSpace};
use super::store::{Store, clear};
use super::{reading, siw};
use crate::circumstances::now;
use crate::guest::{self, Failure, Options, quoted};

const CELL: &str = include_str!("cell.sh");

/// More than a cell takes when each of its steps runs into its limit.
const CELL_TIME_MAX_S: u64 = 900;

const MEMORY_MIB: u32 = 2048;

/// What a row needs on this host.
struct Ground<'a> {
    place: &'a Place,
    row: &'static Row,
    programs: &'a Path,
    commit: &'a str,
    series: String,
    /// The driver to load first, if it is not the kernel's own.
    module: Option<PathBuf>,
    spaces: BTreeMap<&'static str, UserSpace>,
}

/// Fetches and builds what a row takes besides our programs.
///
/// # Errors
/// When something cannot be fetched or built.
pub(super) fn prepare(
    place: &Place,
    row: &'static Row,
    stacks: &[&'static Stack],
) -> Result<(), String> {
    spaces(place, stacks)?;
    let package = kernel(place, row)?;
    module(place, row, &package).map(drop)
}

/// Runs the given stacks on the row's kernel and keeps what came of them.
///
/// # Errors
/// When something cannot be fetched or written. What goes wrong in a guest is kept as its cell's.
pub(super) fn run(
    place: &Place,
    store: &Store,
    (row, stacks): (&'static Row, &[&'static Stack]),
    (programs, commit): (&Path, &str),
) -> Result<(), String> {
    let (package, spaces) = (kernel(place, row)?, spaces(place, stacks)?);
    let series = guest::series(&package);
    let mut ground = Ground { place, row, programs, commit, series, module: None, spaces };
    match module(place, row, &package) {
        Ok(module) => ground.module = module,
        Err(why) => return ground.keep_all(store, stacks, &format!("no driver: {why}")),
    }
    let mut left = ground.keep_done(store, stacks)?;
    while !left.is_empty() {
        let outcome = ground.boot(&left)?;
        left = ground.keep(store, &left, &outcome)?;
    }
    Ok(())
}

fn kernel(place: &Place, row: &Row) -> Result<String, String> {
    guest::fetch_kernel(&place.workspace, &place.suite(row.suite)?)
}

fn module(place: &Place, row: &Row, package: &str) -> Result<Option<PathBuf>, String> {
    match row.link {
        Link::Rxe => Ok(None),
        Link::Siw => siw::build(place, row.suite, package).map(Some),
    }
}

/// Those of the stacks, and of strangers whose drivers are tried with them.
fn spaces(
    place: &Place,
    stacks: &[&'static Stack],
) -> Result<BTreeMap<&'static str, UserSpace>, String> {
    let strangers = stacks.iter().filter_map(|stack| grid::stack(stack.stranger));
    let all = stacks.iter().copied().chain(strangers);
    all.map(|stack| Ok((stack.name, stack::fetch(place, stack)?))).collect()
}

impl Ground<'_> {
    fn boot(&self, stacks: &[&Stack]) -> Result<Result<u8, Failure>, String> {
        let results = self.place.results(self.row.name);
        for stack in stacks {
            clear(&results, stack)?;
        }
        for name in ["unprepared", "prepared"] {
            remove_file(&results.join(name))?;
        }
        let names: Vec<_> = stacks.iter().map(|stack| stack.name).collect();
        println!("matrix: kernel {} with rdma-core {}", self.row.name, names.join(", "));
        let options = Options {
            kernel: self.series.clone(),
            timeout_s: Some(CELL_TIME_MAX_S * names.len() as u64),
            memory_mib: MEMORY_MIB,
            variables: Vec::new(),
        };
        let command = ["sh", "-c", &self.script(stacks)].map(str::to_owned);
        Ok(guest::run(&self.place.workspace, &options, &command))
    }

    fn script(&self, stacks: &[&Stack]) -> String {
        let (device, driver, interface, address) = match self.row.link {
            Link::Rxe => ("rxe0", "rxe", "roce0", guest::ADDRESS),
            Link::Siw => ("siw0", "siw", "roce1", guest::SPARE_ADDRESS),
        };
        let mut script = String::new();
        for (name, value) in [
            ("RESULTS", &*seen(self.row.name)),
            ("PROGRAMS", &self.programs.to_string_lossy()),
            ("COMMIT", self.commit),
            ("DEVICE", device),
            ("DRIVER", driver),
            ("INTERFACE", interface),
            ("ADDRESS", address),
            ("DRIVERS", DRIVERS),
        ] {
            script += &format!("{name}={}\n", quoted(value));
        }
        script += CELL;
        if let Some(module) = &self.module {
            script += &format!("prepared siw {}\n", quoted(&module.to_string_lossy()));
        }
        for stack in stacks {
            let roots = [self.root(stack.name), self.root(stack.stranger)];
            script += &format!("cell {} {}\n", quoted(stack.name), roots.join(" "));
        }
        script + "exit 0\n"
    }

    fn root(&self, stack: &str) -> String {
        let space = self.spaces.get(stack);
        space.map_or_else(|| "''".to_owned(), |space| quoted(&space.root.to_string_lossy()))
    }

    /// Keeps what a run that was interrupted had done, and says what is left.
    fn keep_done(
        &self,
        store: &Store,
        stacks: &[&'static Stack],
    ) -> Result<Vec<&'static Stack>, String> {
        let results = self.place.results(self.row.name);
        let is_done = |stack: &&&'static Stack| reading::is_done(&results.join(stack.name));
        for stack in stacks.iter().filter(is_done) {
            store.keep(&self.cell(stack, None))?;
        }
        Ok(stacks.iter().filter(|stack| !is_done(stack)).copied().collect())
    }

    /// Keeps what the guest did, and says what is left. A guest that ended in a cell leaves those
    /// after it for the next one; one that did not even begin with a cell is the end of them all.
    fn keep(
        &self,
        store: &Store,
        stacks: &[&'static Stack],
        outcome: &Result<u8, Failure>,
    ) -> Result<Vec<&'static Stack>, String> {
        let results = self.place.results(self.row.name);
        let why = why(&results, outcome);
        let begun = |stack: &&'static Stack| reading::is_begun(&results.join(stack.name));
        let (ran, left): (Vec<_>, Vec<_>) = stacks.iter().copied().partition(begun);
        if ran.is_empty() {
            self.keep_all(store, stacks, &why)?;
            return Ok(Vec::new());
        }
        for stack in ran {
            let done = reading::is_done(&results.join(stack.name));
            store.keep(&self.cell(stack, (!done).then(|| why.clone())))?;
        }
        Ok(left)
    }

    fn keep_all(&self, store: &Store, stacks: &[&Stack], why: &str) -> Result<(), String> {
        stacks.iter().try_for_each(|stack| store.keep(&self.cell(stack, Some(why.to_owned()))))
    }

    fn cell(&self, stack: &Stack, failure: Option<String>) -> Cell {
        let results = self.place.results(self.row.name);
        let space = self.spaces.get(stack.name);
        let read = reading::cell(&results.join(stack.name));
        // What did not begin left no word of its own.
        let begun = read.taken_at > 0;
        Cell {
            taken_at: if begun { read.taken_at } else { now() },
            commit: if begun { read.commit.clone() } else { self.commit.to_owned() },
            kernel: self.row.name.to_owned(),
            stack: stack.name.to_owned(),
            release: reading::said(&results, "release"),
            version: reading::said(&results, "version"),
            packages: space.map(|space| space.packages.clone()).unwrap_or_default(),
            failure,
            ..read
        }
    }
}

/// Why a cell did not come to its end.
fn why(results: &Path, outcome: &Result<u8, Failure>) -> String {
    if results.join("unprepared").exists() {
        return format!("no device: {}", reading::said(results, "prepared").replace('\n', "; "));
    }
    match outcome {
        Ok(code) => format!("the guest's script ended with {code}"),
        Err(failure) => failure.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn remove_file(file: &Path) -> Result<(), String> {
    if file.exists() { std::fs::remove_file(file).map_err(|e| e.to_string()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::grid::{ROWS, STACKS};
    use super::*;

    struct Trial {
        dir: PathBuf,
        place: Place,
        store: Store,
    }

    impl Trial {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("boot-{name}-{}", std::process::id()));
            // The results are below the build directory, which may be set for all.
            let place = Place::below(&dir);
            Self { store: Store::new(dir.join("cells")), place, dir }
        }

        fn ground(&self, module: Option<PathBuf>) -> Ground<'_> {
            let row = if module.is_some() { &ROWS[4] } else { &ROWS[2] };
            let space = |name: &str| UserSpace {
                root: format!("/roots/{name}").into(),
                packages: BTreeMap::new(),
            };
            let spaces = STACKS.iter().map(|stack| (stack.name, space(stack.name))).collect();
            let series = "6.12".to_owned();
            let programs = Path::new("/programs");
            Ground { place: &self.place, row, programs, commit: "abc", series, module, spaces }
        }

        fn wrote(&self, stack: &str, file: &str) {
            let dir = self.place.results("6.12").join(stack);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(file), []).unwrap();
        }
    }

    impl Drop for Trial {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }

    fn all() -> Vec<&'static Stack> {
        STACKS.iter().collect()
    }

    #[test]
    fn a_guest_is_told_its_device_and_a_root_for_each_cell() {
        let trial = Trial::new("script");
        let script = trial.ground(None).script(&all()[1..2]);
        assert!(script.contains("DEVICE='rxe0'\n") && !script.contains("prepared siw"));
        assert!(script.ends_with("cell '44' '/roots/44' '/roots/33'\nexit 0\n"), "{script}");
        let script = trial.ground(Some("/siw.ko".into())).script(&all()[..1]);
        assert!(script.contains("DEVICE='siw0'\n") && script.contains("prepared siw '/siw.ko'\n"));
    }

    #[test]
    fn a_shell_understands_the_script() {
        let trial = Trial::new("shell");
        let script = trial.ground(Some("/it's.ko".into())).script(&all());
        let status = std::process::Command::new("sh").args(["-n", "-c", &script]).status();
        assert!(status.unwrap().success(), "{script}");
    }

    #[test]
    fn a_guest_that_dies_in_a_cell_costs_that_cell_only() {
        let trial = Trial::new("dies");
        trial.wrote("33", "done");
        trial.wrote("44", "ended");
        let outcome = Err(Failure::Guest("the kernel panicked: at once\nmore".into()));
        let left = trial.ground(None).keep(&trial.store, &all(), &outcome).unwrap();
        assert_eq!(left, all()[2..]);
        let failures: Vec<_> = trial.store.all().into_iter().map(|cell| cell.failure).collect();
        assert_eq!(failures, [None, Some("the kernel panicked: at once".to_owned())]);
    }

    #[test]
    fn a_guest_that_never_begins_is_the_end_of_all_its_cells() {
        let trial = Trial::new("never");
        let outcome = Err(Failure::Guest("no link".into()));
        let left = trial.ground(None).keep(&trial.store, &all(), &outcome).unwrap();
        assert!(left.is_empty());
        assert!(trial.store.all().iter().all(|cell| cell.failure.as_deref() == Some("no link")));
        assert_eq!(trial.store.all().len(), STACKS.len());
    }

    #[test]
    fn what_was_done_before_an_interruption_is_not_run_again() {
        let trial = Trial::new("again");
        trial.wrote("33", "done");
        trial.wrote("44", "ended");
        let left = trial.ground(None).keep_done(&trial.store, &all()).unwrap();
        assert_eq!(left, all()[1..]);
        assert_eq!(trial.store.all().len(), 1);
    }

    #[test]
    fn a_device_that_cannot_be_made_says_what_the_kernel_said() {
        let trial = Trial::new("unprepared");
        let results = trial.place.results("6.12");
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("unprepared"), []).unwrap();
        fs::write(results.join("prepared"), "insmod: no\nsiw: bad symbol\n").unwrap();
        assert_eq!(why(&results, &Ok(1)), "no device: insmod: no; siw: bad symbol");
    }
}
