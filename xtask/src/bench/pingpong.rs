//! libfabric's `fi_pingpong` (fi_pingpong(1)): the provider's own figure. It spins, and says means.

use std::fs;

use super::cells::Cell;
use super::metric::{Metric, Sample};
use super::pair::{Side, play_quiet};

/// Plays `count` round trips.
///
/// # Errors
/// What went wrong.
pub(super) fn play(
    cell: &Cell,
    provider: &str,
    count: u64,
    port: u16,
    pin: Option<(usize, usize)>,
) -> Result<Sample, String> {
    let size = cell.size.to_string();
    let (count_text, port_text) = (count.to_string(), port.to_string());
    let common = ["-p", provider, "-e", kind(provider), "-I", &count_text, "-S", &size];
    let server = ["-B", &port_text];
    let client = ["-P", &port_text, "127.0.0.1"];
    let side = |more: &[&str], processor: Option<usize>| Side {
        program: "fi_pingpong".into(),
        args: common.iter().chain(more).map(|arg| (*arg).to_owned()).collect(),
        processor,
    };
    let server = side(&server, pin.map(|(_, server)| server));
    let client = side(&client, pin.map(|(client, _)| client));
    let lines = play_quiet(&server, &client, || is_listening(port))?;
    sample(&lines, count)
}

/// The kind of endpoints that ours uses with that provider, too.
fn kind(provider: &str) -> &'static str {
    if provider == "shm" { "rdm" } else { "msg" }
}

/// The table has a head and a line: bytes, sent, acknowledged, total, time, MB/s, µs a transfer
/// (half a round trip), transfers a second.
fn sample(lines: &[String], count: u64) -> Result<Sample, String> {
    let line = lines.last().ok_or("it says nothing")?;
    let transfer = line.split_whitespace().nth(6).and_then(|cell| cell.parse::<f64>().ok());
    let transfer = transfer.ok_or_else(|| format!("no figures: {line}"))?;
    let mut sample = Sample::new(2.0 * transfer * count as f64 / 1e6);
    sample.put(Metric::MeanUs, Some(2.0 * transfer));
    Ok(sample)
}

/// Whether anything on this host listens at the port: asking it would take its place in the queue.
fn is_listening(port: u16) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    tables.into_iter().flatten().any(|table| listens_in(&table, port))
}

/// Fields of proc_net_tcp: number, local address and port in hexadecimal, remote, state; 0A listens.
fn listens_in(table: &str, port: u16) -> bool {
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().and_then(|local| local.rsplit_once(':'));
        let at_port = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
        at_port && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_half_a_round_trip() {
        let lines = [
            "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec",
            "64      2k      =2k      250k        0.05s      5.05    12.60       0.08",
        ];
        let sample = sample(&lines.map(String::from), 2000).unwrap();
        assert_eq!(sample.figures[&Metric::MeanUs], 25.2);
        assert!((sample.seconds - 0.0504).abs() < 1e-9);
    }

    #[test]
    fn a_listening_port_is_seen_in_the_table() {
        let table = "  sl  local_address rem_address   st\n\
                     0: 0100007F:1F90 00000000:0000 0A 0\n\
                     1: 0100007F:1F91 0100007F:1F90 01 0\n";
        assert!(listens_in(table, 8080) && !listens_in(table, 8081) && !listens_in(table, 1));
    }
}
