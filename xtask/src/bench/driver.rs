//! Figures of the drivers of `bench/peers`.

use serde_json::Value;

use super::cells::{Cell, Test};
use super::metric::{Metric, Sample};

/// What both sides said, as a sample.
///
/// # Errors
/// When a figure is missing.
pub(super) fn sample(cell: &Cell, server: &Value, client: &Value) -> Result<Sample, String> {
    match cell.test {
        Test::Lat => trips(client),
        Test::Bw => stream(cell, server, client),
        Test::Fanout => fanout(cell, server, client),
        Test::Idle => idle(server, client),
    }
}

fn trips(client: &Value) -> Result<Sample, String> {
    let (seconds, count) = (number(client, "seconds")?, number(client, "count")?);
    let mut sample = Sample::new(seconds);
    let times = [
        (Metric::MinUs, "min_us"),
        (Metric::P50Us, "p50_us"),
        (Metric::P90Us, "p90_us"),
        (Metric::P99Us, "p99_us"),
        (Metric::P99_9Us, "p99_9_us"),
        (Metric::MaxUs, "max_us"),
        (Metric::FirstReplyUs, "first_reply_us"),
    ];
    for (metric, name) in times {
        sample.put(metric, Some(number(client, name)?));
    }
    sample.put(Metric::MeanUs, Some(seconds * 1e6 / count));
    sample.put(Metric::ClientCpuPerMillion, Some(number(client, "cpu_s")? * 1e6 / count));
    sample.put(Metric::ClientSwitches, Some(number(client, "switches")? / count));
    Ok(sample)
}

fn stream(cell: &Cell, server: &Value, client: &Value) -> Result<Sample, String> {
    let mut sample = Sample::new(number(server, "seconds")?);
    sample.put_rate(number(server, "count")?, cell.size);
    sample.put(Metric::CpuPerMillion, Some(cpu(server)? + cpu(client)?));
    sample.put(Metric::ClientCpuPerMillion, Some(cpu(client)?));
    let switches = number(client, "switches")? / number(client, "count")?;
    sample.put(Metric::ClientSwitches, Some(switches));
    Ok(sample)
}

fn fanout(cell: &Cell, server: &Value, client: &Value) -> Result<Sample, String> {
    let mut sample = Sample::new(number(client, "seconds")?);
    sample.put_rate(number(client, "count")?, cell.size);
    sample.put(Metric::CpuPerMillion, Some(cpu(server)? + cpu(client)?));
    let lost = 1.0 - number(client, "delivered")? / number(client, "expected")?;
    sample.put(Metric::Lost, Some(lost));
    Ok(sample)
}

fn idle(server: &Value, client: &Value) -> Result<Sample, String> {
    let mut sample = Sample::new(number(server, "seconds")?);
    sample.put_rate(number(server, "count")?, 0);
    sample.figures.remove(&Metric::GigabytesPerSecond);
    sample.put(Metric::ServerKib, Some(number(server, "bytes_per_peer")? / 1024.0));
    sample.put(Metric::ClientKib, Some(number(client, "bytes_per_peer")? / 1024.0));
    sample.put(Metric::SetUps, server["set_ups_s"].as_f64());
    Ok(sample)
}

/// Processor seconds for a million messages.
fn cpu(side: &Value) -> Result<f64, String> {
    Ok(number(side, "cpu_s")? * 1e6 / number(side, "count")?)
}

/// A figure that must be there.
///
/// # Errors
/// When it is not.
pub(super) fn number(value: &Value, name: &str) -> Result<f64, String> {
    value[name].as_f64().ok_or_else(|| format!("no figure {name}: {value}"))
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
    fn a_stream_is_timed_by_its_receiver_and_paid_by_both() {
        let server = json!({ "seconds": 2.0, "count": 1000, "cpu_s": 0.001, "switches": 0 });
        let client = json!({ "seconds": 1.0, "count": 1000, "cpu_s": 0.003, "switches": 500 });
        let figures = sample(&cell("bw 64 B"), &server, &client).unwrap().figures;
        assert_eq!(figures[&Metric::MessagesPerSecond], 500.0);
        assert_eq!(figures[&Metric::CpuPerMillion], 4.0);
        assert_eq!(figures[&Metric::ClientSwitches], 0.5);
    }

    #[test]
    fn what_did_not_arrive_is_a_share() {
        let server = json!({ "seconds": 2.0, "count": 8, "cpu_s": 0.0, "switches": 0 });
        let mut client = server.clone();
        (client["delivered"], client["expected"]) = (json!(75), json!(100));
        let figures = sample(&cell("fanout 64 B x 8"), &server, &client).unwrap().figures;
        assert_eq!(figures[&Metric::Lost], 0.25);
    }

    #[test]
    fn a_missing_figure_is_an_error() {
        let error = sample(&cell("lat 64 B"), &json!({}), &json!({ "count": 1 })).unwrap_err();
        assert!(error.contains("seconds"), "{error}");
    }
}
