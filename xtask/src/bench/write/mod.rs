//! The report: `target/bench/report.{json,md,html}` with its plots.

mod html;
mod markdown;
mod plots;
mod tables;

use std::fs;
use std::path::Path;

use super::results::Results;
use super::targets::Verdict;
use crate::process::target_dir;
use crate::report::Outcome;

/// Writes everything and says how it went.
pub(super) fn all(root: &Path, results: &Results) -> Outcome {
    let dir = target_dir(root).join("bench");
    let plots = plots::all(results)?;
    let json = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
    let mut files = vec![
        ("report.json".to_owned(), json),
        ("report.md".to_owned(), markdown::report(results, &plots)),
        ("report.html".to_owned(), html::report(results, &plots)),
    ];
    files.extend(plots.iter().map(|plot| (plot.file(), plot.svg.clone())));
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("{}", tables::targets(results).text());
    Ok(format!("{}; see {}", summary(results), dir.join("report.html").display()))
}

/// How many targets are met.
fn summary(results: &Results) -> String {
    let count = |verdict| results.targets.iter().filter(|one| one.verdict == verdict).count();
    let (aim, met) = (count(Verdict::AimMet), count(Verdict::Met));
    let (not_met, not_measured) = (count(Verdict::NotMet), count(Verdict::NotMeasured));
    let cells = results.cells.len();
    format!(
        "{cells} cells in {} s: {} targets met, {aim} of them with their aim, {not_met} not met, \
         {not_measured} not measured",
        results.seconds,
        aim + met
    )
}

#[cfg(test)]
mod testing {
    use super::super::cells::all;
    use super::super::contender::Contender::{Fabric, Libzmq, RawTcp, RawTcpBatch};
    use super::super::metric::{Metric, Sample};
    use super::super::play::Ground;
    use super::super::results::Results;
    use super::super::targets;

    /// Results with a figure of every kind that plots and tables show.
    pub(super) fn results() -> Results {
        let ground = Ground {
            fabric: "fabric".into(),
            drivers: [].into(),
            pingpong: Err("not asked for".into()),
            pin: Some((1, 0)),
        };
        let mut results = Results::new(&ground, 2);
        for (at, cell) in all().iter().enumerate() {
            for contender in [Fabric, RawTcp, RawTcpBatch, Libzmq] {
                if !cell.contenders.contains(&contender) {
                    continue;
                }
                let value = (at + 1) as f64 * if contender == Fabric { 2.0 } else { 1.0 };
                let mut sample = Sample::new(1.0);
                for metric in [Metric::P50Us, Metric::P99Us, Metric::MessagesPerSecond] {
                    sample.put(metric, Some(value));
                }
                results.add(cell, contender, &sample);
                results.add(cell, contender, &sample);
            }
        }
        results.fail(&all()[0], Libzmq, "it <broke>".into());
        results.judge(&targets::all().unwrap());
        results
    }
}

#[cfg(test)]
mod tests {
    use super::testing::results;
    use super::*;

    #[test]
    fn every_target_is_counted_once() {
        let results = results();
        let text = summary(&results);
        let numbers: Vec<usize> = text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, _, met, _, not_met, not_measured] = numbers[..] else { panic!("{text}") };
        assert_eq!(met + not_met + not_measured, results.targets.len(), "{text}");
    }
}
