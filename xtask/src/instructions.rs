//! `cargo xtask instructions`: what the hot paths cost, in instructions.
//!
//! Each path of the benchmark `instructions` of msg-patterns runs under callgrind, which counts
//! exactly, however busy the machine is, and the count is compared with the baseline beside the
//! benchmark. A path that costs more than 5 % more fails, until `--accept` puts the new counts into
//! the baseline with the reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::Cargo;
use crate::report::{Outcome, Problem, verdict};

const BASELINE: &str = "msg-patterns/benches/instructions/baseline.txt";
const HEAD: &str = "\
# Instructions for one of each path, as `cargo xtask instructions` counts them. Written by
# `cargo xtask instructions --accept REASON`: path, count, why it rose when it last did.
";
/// How much a count may rise, in percent.
const RISE_MAX: f64 = 5.0;

/// Runs of each path, of which the cheapest counts: what the background thread does does not.
const RUNS: usize = 3;

/// A count of the baseline and why it rose when it last did.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    count: f64,
    note: String,
}

/// What to do with the counts.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write the counts to the baseline, with this reason beside those that rose
    #[arg(long, value_name = "REASON")]
    accept: Option<String>,
    /// Also say which functions the instructions of this path are in
    #[arg(long, value_name = "PATH")]
    split: Option<String>,
}

/// Counts and compares.
pub(crate) fn main(root: &Path, arguments: &Arguments) -> Outcome {
    if !has_valgrind() {
        return Err("valgrind is not installed: its package has the same name".to_owned());
    }
    let counts = count(root)?;
    if let Some(path) = &arguments.split {
        split(root, path)?;
    }
    match &arguments.accept {
        Some(reason) => accept(root, &counts, reason),
        None => compare(root, &counts),
    }
}

/// As a step among others: where valgrind is missing nothing is counted, and that is said.
pub(crate) fn step(root: &Path) -> Outcome {
    if has_valgrind() {
        compare(root, &count(root)?)
    } else {
        Ok("nothing was counted: valgrind is not installed".to_owned())
    }
}

fn has_valgrind() -> bool {
    let mut command = Command::new("valgrind");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn count(root: &Path) -> Result<BTreeMap<String, f64>, String> {
    let program = build(root)?;
    let names = output(&mut Command::new(&program))?;
    let counted = names.lines().map(|name| {
        let runs = (0..RUNS).map(|_| count_one(root, &program, name));
        let least = runs.reduce(|least, run| Ok(least?.min(run?)));
        Ok((name.to_owned(), least.unwrap_or(Ok(0.0))?))
    });
    counted.collect()
}

/// Builds the benchmark; gives its path.
fn build(root: &Path) -> Result<PathBuf, String> {
    let built = Cargo::new(root, "build")
        .args(["--release", "--package", "msg-patterns", "--bench", "instructions"])
        .args(["--message-format", "json-render-diagnostics"])
        .output()?;
    let program = built.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    program.ok_or_else(|| "cargo did not say where the benchmark is".to_owned())
}

/// Instructions for one of a path.
fn count_one(root: &Path, program: &Path, name: &str) -> Result<f64, String> {
    let directory = root.join("target/instructions");
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let profile = profile_of(root, name);
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .arg(name)
        .stderr(Stdio::null());
    let told = output(&mut valgrind)?;
    let times = told.lines().last().and_then(|line| line.trim().parse::<f64>().ok());
    let text = std::fs::read_to_string(&profile).map_err(|error| error.to_string())?;
    match (times, total(&text)) {
        (Some(times), Some(total)) if times > 0.0 && total > 0.0 => Ok(total / times),
        _ => Err(format!("callgrind counted nothing for {name}")),
    }
}

fn profile_of(root: &Path, name: &str) -> PathBuf {
    root.join(format!("target/instructions/{name}.callgrind"))
}

/// The number of instructions in a profile.
fn total(profile: &str) -> Option<f64> {
    let found = |line: &str| line.strip_prefix("totals:").map(|count| count.trim().parse().ok());
    profile.lines().find_map(found)?
}

/// Prints in which functions the instructions of a path are.
fn split(root: &Path, path: &str) -> Result<(), String> {
    let mut annotate = Command::new("callgrind_annotate");
    annotate.arg("--auto=no").arg(profile_of(root, path));
    println!("{}", output(&mut annotate)?);
    Ok(())
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{name}: {error}"))
}

fn compare(root: &Path, counts: &BTreeMap<String, f64>) -> Outcome {
    let text = std::fs::read_to_string(root.join(BASELINE)).map_err(|error| error.to_string())?;
    let known = parse(&text)?;
    for (name, count) in counts {
        let before = known.get(name).map_or(f64::NAN, |known| known.count);
        println!("{name:12} {count:9.1}  baseline {before:9.1}");
    }
    verdict(&problems(&known, counts), format!("{} paths within {RISE_MAX} %", counts.len()))
}

fn problems(known: &BTreeMap<String, Known>, counts: &BTreeMap<String, f64>) -> Vec<Problem> {
    let instead = "make it cheaper, or `cargo xtask instructions --accept REASON`";
    let found = |(name, count): (&String, &f64)| match known.get(name) {
        None => Some(Problem::new(name, "is not in the baseline", instead)),
        Some(known) => rise(known.count, *count).map(|what| Problem::new(name, what, instead)),
    };
    counts.iter().filter_map(found).collect()
}

fn rise(before: f64, now: f64) -> Option<String> {
    let percent = (now / before - 1.0) * 100.0;
    (now > before * (1.0 + RISE_MAX / 100.0))
        .then(|| format!("takes {now:.1} instructions, {percent:.1} % over the {before:.1} known"))
}

fn accept(root: &Path, counts: &BTreeMap<String, f64>, reason: &str) -> Outcome {
    let path = root.join(BASELINE);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let renewed = renew(&parse(&text)?, counts, reason);
    std::fs::write(&path, write(&renewed)).map_err(|error| error.to_string())?;
    Ok(format!("{} counts are in {BASELINE}", renewed.len()))
}

fn renew(
    known: &BTreeMap<String, Known>,
    counts: &BTreeMap<String, f64>,
    reason: &str,
) -> BTreeMap<String, Known> {
    let renewed = counts.iter().map(|(name, &count)| {
        let note = match known.get(name) {
            Some(known) if rise(known.count, count).is_none() => known.note.clone(),
            _ => reason.to_owned(),
        };
        (name.clone(), Known { count, note })
    });
    renewed.collect()
}

fn write(known: &BTreeMap<String, Known>) -> String {
    let mut text = HEAD.to_owned();
    for (name, Known { count, note }) in known {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:12} {count:9.1}  {note}");
    }
    text
}

fn parse(text: &str) -> Result<BTreeMap<String, Known>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<(String, Known), String> {
    let mut words = line.split_whitespace();
    let (name, count) = (words.next(), words.next().and_then(|word| word.parse().ok()));
    match (name, count) {
        (Some(name), Some(count)) => {
            let note = words.collect::<Vec<_>>().join(" ");
            Ok((name.to_owned(), Known { count, note }))
        }
        _ => Err(format!("{BASELINE} has a line that is no count: {line}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, f64)]) -> BTreeMap<String, f64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn a_rise_of_more_than_five_percent_and_an_unknown_path_are_problems() {
        let known = parse("# head\npush 100.0 because\npull 200.0\n").unwrap();
        let places = |now: &[(&str, f64)]| -> Vec<String> {
            problems(&known, &counts(now)).into_iter().map(|problem| problem.place).collect()
        };
        assert!(places(&[("push", 105.0), ("pull", 10.0)]).is_empty());
        assert_eq!(places(&[("push", 105.1), ("pull", 211.0)]), ["pull", "push"]);
        assert_eq!(places(&[("new", 1.0)]), ["new"]);
    }

    #[test]
    fn the_reason_stands_beside_what_rose() {
        let known = parse("push 100.0 old reason\npull 200.0 other\n").unwrap();
        let renewed = renew(&known, &counts(&[("push", 90.0), ("pull", 300.0)]), "safer");
        assert_eq!(parse(&write(&renewed)).unwrap(), renewed);
        let notes: Vec<_> = renewed.values().map(|known| known.note.as_str()).collect();
        assert_eq!(notes, ["safer", "old reason"]);
    }

    #[test]
    fn the_total_of_a_profile_is_found() {
        assert_eq!(total("events: Ir\nsummary: 7\nfn=a\ntotals: 1234\n"), Some(1234.0));
        assert_eq!(total("events: Ir\n"), None);
        assert!(parse("push many\n").is_err());
    }
}
