//! A report for people.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::report::{BwRow, FanoutRow, IdleRow, LatRow, Report, Rows};
use crate::{Bucket, Cost};

/// Widest bar of a histogram, in characters.
const BAR_CHARS: u64 = 40;

/// A report as text: one table, then what belongs beside it.
pub fn table(report: &Report) -> String {
    let mut text = match &report.rows {
        Rows::Lat(rows) => latencies(rows),
        Rows::Bw(rows) => lines(&BW_HEAD, rows.iter().map(bw)),
        Rows::Fanout(rows) => lines(&FANOUT_HEAD, rows.iter().map(fanout)),
        Rows::Idle(rows) => lines(&IDLE_HEAD, rows.iter().map(idle)),
    };
    for what in &report.not_available {
        text += &format!("\nnot available: {what}");
    }
    text
}

const LAT_HEAD: [&str; 11] = [
    "size",
    "round trips",
    "p50 µs",
    "p90 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "first µs",
    "CPU µs each (client + server)",
    "switches",
    "system calls",
];

const BW_HEAD: [&str; 8] = [
    "size",
    "messages",
    "messages/s",
    "GB/s",
    "CPU s/million (sender + receiver)",
    "switches each",
    "system calls each",
    "instructions each",
];

const FANOUT_HEAD: [&str; 8] = [
    "size",
    "subscribers",
    "published",
    "delivered/s",
    "GB/s",
    "lost",
    "CPU s/million (subscribers + publisher)",
    "switches each",
];

const IDLE_HEAD: [&str; 7] = [
    "silent peers",
    "KiB a peer (client + server)",
    "descriptors a peer",
    "set-ups/s",
    "size",
    "messages",
    "messages/s of the other one",
];

fn latencies(rows: &[LatRow]) -> String {
    let mut text = lines(&LAT_HEAD, rows.iter().map(lat));
    if let [row] = rows {
        text += "\n";
        text += &histogram(&row.histogram);
    }
    text
}

fn lat(row: &LatRow) -> Vec<String> {
    let times = row.round_trip_us;
    let mut cells = vec![size(row.size_bytes), whole(row.count as f64)];
    let all = [times.p50, times.p90, times.p99, times.p99_9, times.max];
    cells.extend(all.map(short));
    cells.push(row.first_reply_us.map_or_else(none, short));
    cells.extend(costs(&row.client, &row.server).into_iter().take(3));
    cells
}

fn bw(row: &BwRow) -> Vec<String> {
    let mut cells = vec![
        size(row.size_bytes),
        whole(row.count as f64),
        whole(row.messages_per_second),
        short(row.gigabytes_per_second),
    ];
    cells.extend(costs(&row.client, &row.server));
    cells
}

fn fanout(row: &FanoutRow) -> Vec<String> {
    let mut cells = vec![
        size(row.size_bytes),
        row.subscribers.to_string(),
        whole(row.count as f64),
        whole(row.delivered_per_second),
        short(row.gigabytes_per_second),
        whole(row.lost as f64),
    ];
    cells.extend(costs(&row.client, &row.server).into_iter().take(2));
    cells
}

fn idle(row: &IdleRow) -> Vec<String> {
    let (memory, descriptors) = (row.memory_bytes_per_peer, row.descriptors_per_peer);
    vec![
        row.peers.to_string(),
        pair(memory.client / 1024.0, memory.server / 1024.0),
        pair(descriptors.client, descriptors.server),
        row.set_ups_per_second.map_or_else(none, whole),
        size(row.size_bytes),
        whole(row.count as f64),
        whole(row.messages_per_second),
    ]
}

fn costs(client: &Cost, server: &Cost) -> [String; 4] {
    let both = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => none(),
        (a, b) => format!("{} + {}", a.map_or_else(none, short), b.map_or_else(none, short)),
    };
    [
        pair(client.cpu_seconds_per_million, server.cpu_seconds_per_million),
        pair(client.switches_per_message, server.switches_per_message),
        both(client.syscalls_per_message, server.syscalls_per_message),
        both(client.instructions_per_message, server.instructions_per_message),
    ]
}

fn lines(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(head.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn histogram(buckets: &[Bucket]) -> String {
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    let line = |bucket: &Bucket| {
        // Whatever happened at all shows.
        let bar = "#".repeat((bucket.count * BAR_CHARS).div_ceil(most) as usize);
        format!("{:>10} µs {:>9} {bar}", short(bucket.up_to_us), whole(bucket.count as f64))
    };
    let mut text = String::from("   up to      round trips");
    for bucket in buckets {
        text += "\n";
        text += &line(bucket);
    }
    text
}

fn none() -> String {
    "–".into()
}

fn pair(a: f64, b: f64) -> String {
    format!("{} + {}", short(a), short(b))
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => whole(value),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number in groups of three digits.
fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let first = digits.len() % 3;
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn numbers_are_readable() {
        let cases = [(0.0, "0.00"), (0.0444, "0.044"), (9.876, "9.88"), (12.34, "12.3")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        let cases = [(7.0, "7"), (123.0, "123"), (1234.4, "1,234"), (1e7, "10,000,000")];
        for (value, text) in cases {
            assert_eq!(whole(value), text);
        }
        assert_eq!([size(1), size(1024), size(1 << 20)], ["1 B", "1 KiB", "1 MiB"]);
    }

    #[test]
    fn what_cannot_be_counted_is_said_below() {
        let rows = Rows::Bw(vec![BwRow { size_bytes: 64, count: 3, ..BwRow::default() }]);
        let not_available = vec!["client: instructions: no counter".into()];
        let report = Report::new("tcp://h:1", Settings::default(), rows, not_available);
        let text = table(&report);
        assert!(
            text.contains("64 B")
                && text.ends_with("not available: client: instructions: no counter")
        );
    }

    #[test]
    fn the_smallest_bucket_still_shows() {
        let bucket = |up_to_us: f64, count: u64| Bucket { up_to_us, count };
        let text = histogram(&[bucket(1.0, 1), bucket(2.0, 1_000_000)]);
        let bars: Vec<usize> = text.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [0, 1, 40]);
    }
}
