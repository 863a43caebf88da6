//! `fabric perf` as a contender.

use serde_json::Value;

use super::cells::{Cell, Mode, Test};
use super::driver::number;
use super::metric::{Metric, Sample};

/// Its command line.
pub(super) fn args(cell: &Cell, count: u64, pin: Option<(usize, usize)>) -> Vec<String> {
    let test = match cell.test {
        Test::Lat => "lat",
        Test::Bw => "bw",
        Test::Fanout => "fanout",
        Test::Idle => "idle",
    };
    let mut args: Vec<String> =
        ["perf", test, "--json", "--report", "none"].map(String::from).into();
    args.extend(["--size".into(), cell.size.to_string(), "--count".into(), count.to_string()]);
    match cell.test {
        Test::Fanout => args.extend(["--subscribers".into(), cell.peers.to_string()]),
        Test::Idle => args.extend(["--peers".into(), cell.peers.to_string()]),
        Test::Lat | Test::Bw => {}
    }
    if let Some(level) = level(cell.mode) {
        args.extend(["--level".into(), level.into()]);
    }
    if !matches!(cell.mode, Mode::Sleeping | Mode::Tasks | Mode::Domain) {
        args.push("--busy-poll".into());
    }
    if let Some(addr) = addr(cell.mode) {
        args.extend(["--addr".into(), addr.into()]);
    }
    if let Some((client, server)) = pin {
        args.extend(["--pin".into(), format!("{client},{server}")]);
    }
    args
}

/// What it measures, if not sockets.
fn level(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Tasks => Some("tasks"),
        Mode::Domain | Mode::DomainSpinning | Mode::OfiTcpDomain | Mode::OfiShmDomain => {
            Some("domain")
        }
        Mode::Sleeping | Mode::Spinning | Mode::OfiTcp | Mode::OfiShm | Mode::SharedMemory => None,
    }
}

/// Where it listens, if not at its own TCP fabric.
fn addr(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::OfiTcp | Mode::OfiTcpDomain => Some("ofi+tcp://127.0.0.1:0"),
        Mode::OfiShm | Mode::OfiShmDomain | Mode::SharedMemory => Some("ofi+shm://bench:0"),
        Mode::Sleeping | Mode::Tasks | Mode::Spinning | Mode::Domain | Mode::DomainSpinning => None,
    }
}

/// Its report, as a sample.
///
/// # Errors
/// When a figure is missing.
pub(super) fn sample(cell: &Cell, report: &Value) -> Result<Sample, String> {
    let row = &report["rows"][0];
    let figure = |name: &str| number(row, name);
    let cost = |side: &str, name: &str| row[side][name].as_f64();
    let cpu = |side: &str| cost(side, "cpu_seconds_per_million");
    let seconds = match cell.test {
        Test::Idle => figure("count")? / figure("messages_per_second")?,
        _ => figure("seconds")?,
    };
    let mut sample = Sample::new(seconds);
    match cell.test {
        Test::Lat => times(row, &mut sample)?,
        Test::Bw => sample.put_rate(figure("count")?, cell.size),
        Test::Fanout => {
            sample.put_rate(figure("delivered_per_second")? * seconds, cell.size);
            let all = figure("delivered")? + figure("lost")?;
            sample.put(Metric::Lost, Some(figure("lost")? / all));
        }
        Test::Idle => silent(row, &mut sample)?,
    }
    if matches!(cell.test, Test::Bw | Test::Fanout) {
        sample.put(Metric::CpuPerMillion, cpu("client").zip(cpu("server")).map(|(a, b)| a + b));
    }
    if matches!(cell.test, Test::Lat | Test::Bw) {
        sample.put(Metric::ClientCpuPerMillion, cpu("client"));
        sample.put(Metric::ClientSwitches, cost("client", "switches_per_message"));
        sample.put(Metric::ClientSyscalls, cost("client", "syscalls_per_message"));
    }
    Ok(sample)
}

fn times(row: &Value, sample: &mut Sample) -> Result<(), String> {
    let named = [
        (Metric::MinUs, "min"),
        (Metric::P50Us, "p50"),
        (Metric::P90Us, "p90"),
        (Metric::P99Us, "p99"),
        (Metric::P99_9Us, "p99_9"),
        (Metric::MaxUs, "max"),
        (Metric::MeanUs, "mean"),
    ];
    for (metric, name) in named {
        sample.put(metric, Some(number(&row["round_trip_us"], name)?));
    }
    sample.put(Metric::FirstReplyUs, row["first_reply_us"].as_f64());
    Ok(())
}

fn silent(row: &Value, sample: &mut Sample) -> Result<(), String> {
    let memory = &row["memory_bytes_per_peer"];
    sample.put(Metric::ServerKib, Some(number(memory, "server")? / 1024.0));
    sample.put(Metric::ClientKib, Some(number(memory, "client")? / 1024.0));
    sample.put(Metric::SetUps, row["set_ups_per_second"].as_f64());
    sample.put(Metric::MessagesPerSecond, Some(number(row, "messages_per_second")?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cells::all;
    use super::*;

    fn cell(name: &str) -> Cell {
        all().into_iter().find(|cell| cell.name() == name).unwrap()
    }

    #[test]
    fn the_command_line_says_what_the_cell_is() {
        let args = |name| args(&cell(name), 7, Some((1, 0))).join(" ");
        assert!(
            args("lat 64 B, domain spinning")
                .ends_with("--count 7 --level domain --busy-poll --pin 1,0")
        );
        assert!(
            args("lat 64 B, ofi+tcp domain")
                .contains("--level domain --busy-poll --addr ofi+tcp://")
        );
        assert!(args("fanout 4 KiB x 64").contains("--size 4096 --count 7 --subscribers 64"));
    }

    #[test]
    fn a_row_becomes_a_sample() {
        let cost = |cpu: f64| {
            json!({ "cpu_seconds_per_million": cpu, "switches_per_message": 1.0,
                                      "syscalls_per_message": null })
        };
        let row = json!({ "seconds": 2.0, "count": 100, "client": cost(1.0), "server": cost(2.0) });
        let figures = sample(&cell("bw 64 B"), &json!({ "rows": [row] })).unwrap().figures;
        assert_eq!(
            (figures[&Metric::MessagesPerSecond], figures[&Metric::CpuPerMillion]),
            (50.0, 3.0)
        );
        assert!(!figures.contains_key(&Metric::ClientSyscalls));
    }
}
