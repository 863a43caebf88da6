//! What is said on standard error, for people or as JSON.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{HumanBytes, HumanCount};
use msg_patterns::ProxyStats;
use serde::{Deserialize, Serialize};

/// Who reads standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// People.
    Text,
    /// Programs: one JSON object a line, each with an `event`.
    Json,
    /// Nobody: only the error line that ends a run.
    None,
}

/// One thing said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Line {
    /// A peer can connect there.
    Listening {
        /// Address with its real port.
        addr: String,
    },
    /// Something that does not end the run.
    Note {
        /// One line.
        text: String,
    },
    /// The end of the run.
    Summary(Summary),
    /// The end of a proxy's run.
    Passage(Passage),
}

/// What a proxy did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Passage {
    /// The kind of proxy.
    pub(crate) kind: String,
    /// From its begin to a signal.
    pub(crate) seconds: f64,
    /// Messages passed on from front to back, and their bytes.
    pub(crate) to_back: u64,
    pub(crate) to_back_bytes: u64,
    /// The same from back to front; subscriptions count.
    pub(crate) to_front: u64,
    pub(crate) to_front_bytes: u64,
    /// Messages that could not be passed on to anybody.
    pub(crate) refused: u64,
    /// Messages dropped by either side, or held at the end.
    pub(crate) dropped: u64,
    /// Copies that were captured, and those that were not.
    pub(crate) captured: u64,
    pub(crate) not_captured: u64,
}

impl Passage {
    pub(crate) fn new(kind: &str, seconds: f64, stats: &ProxyStats, dropped: u64) -> Self {
        Self {
            kind: kind.into(),
            seconds,
            to_back: stats.to_back.messages,
            to_back_bytes: stats.to_back.bytes,
            to_front: stats.to_front.messages,
            to_front_bytes: stats.to_front.bytes,
            refused: stats.refused,
            dropped: dropped + stats.to_back.held + stats.to_front.held,
            captured: stats.captured,
            not_captured: stats.not_captured,
        }
    }

    fn text(&self) -> String {
        let way = |messages, bytes| format!("{}, {}", count(messages), HumanBytes(bytes));
        let to_back = way(self.to_back, self.to_back_bytes);
        let mut text = format!("fabric proxy {}: {to_back} to the back", self.kind);
        if self.to_front > 0 {
            text += &format!(", {} to the front", way(self.to_front, self.to_front_bytes));
        }
        text += &format!(" in {}", show_time(self.seconds));
        if self.captured > 0 {
            text += &format!(", {} captured", HumanCount(self.captured));
        }
        text + &named(&[
            (self.refused, "refused"),
            (self.dropped, "dropped"),
            (self.not_captured, "not captured"),
        ])
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The subcommand.
    pub(crate) command: String,
    /// Messages sent or received; for `req` and `rep`, answered requests.
    pub(crate) messages: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// From the first of them to the end.
    pub(crate) seconds: f64,
    /// Dropped on this side.
    pub(crate) dropped: u64,
    /// Dropped by publishers for this subscriber.
    pub(crate) lost: u64,
    /// Given to another peer because the first one left.
    pub(crate) redelivered: u64,
    /// Requests whose command failed.
    pub(crate) failed: u64,
    /// Fabric messages that carried what was sent; 0 for who only receives.
    pub(crate) posts: u64,
    /// Messages that these carried.
    pub(crate) sent: u64,
    /// SHA-256 of all bytes in order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sha256: Option<String>,
    /// The sum of the SHA-256 of each message, whatever their order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sha256_sum: Option<String>,
}

impl Line {
    /// Says it.
    pub(crate) fn say(&self, style: Style) {
        match style {
            Style::Text => say(&self.text()),
            Style::Json => say(&serde_json::to_string(self).unwrap_or_default()),
            Style::None => {}
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Listening { addr } => format!("fabric: listening on {addr}"),
            Self::Note { text } => format!("fabric: note: {text}"),
            Self::Summary(summary) => summary.text(),
            Self::Passage(passage) => passage.text(),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!(
            "fabric {}: {}, {} in {}",
            self.command,
            count(self.messages),
            HumanBytes(self.bytes),
            show_time(self.seconds)
        );
        if let Some(rates) = self.rates() {
            text += &format!(" ({rates})");
        }
        if self.posts > 0 {
            text += &format!(", {:.1} messages per post", self.sent as f64 / self.posts as f64);
        }
        text += &self.troubles();
        for (name, sum) in [("sha256", &self.sha256), ("sha256-sum", &self.sha256_sum)] {
            text += &sum.as_ref().map_or(String::new(), |sum| format!("\n{name} {sum}"));
        }
        text
    }

    /// Rates, unless there was no time to measure one.
    fn rates(&self) -> Option<String> {
        if self.seconds <= 0.0 || self.messages == 0 {
            return None;
        }
        let bytes = HumanBytes((self.bytes as f64 / self.seconds) as u64);
        // A single message has no rate of its own.
        if self.messages == 1 {
            return Some(format!("{bytes}/s"));
        }
        let messages = HumanCount((self.messages as f64 / self.seconds) as u64);
        Some(format!("{messages} messages/s, {bytes}/s"))
    }

    fn troubles(&self) -> String {
        named(&[
            (self.dropped, "dropped"),
            (self.lost, "lost"),
            (self.redelivered, "redelivered"),
            (self.failed, "failed commands"),
        ])
    }
}

fn count(messages: u64) -> String {
    let word = if messages == 1 { "message" } else { "messages" };
    format!("{} {word}", HumanCount(messages))
}

/// Those of the counts that there is something to say of.
fn named(counts: &[(u64, &str)]) -> String {
    let named = counts.iter().filter(|(count, _)| *count > 0);
    named.map(|(count, name)| format!(", {} {name}", HumanCount(*count))).collect()
}

fn show_time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time < Duration::from_secs(1) => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// Writes a line to standard error; nobody listening is no error.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let (messages, bytes, seconds) = (2000, 128_000, 0.5);
        Summary { command: "push".into(), messages, bytes, seconds, ..Summary::default() }
    }

    #[test]
    fn a_summary_names_what_happened_and_no_more() {
        let text = summary().text();
        assert_eq!(
            text,
            "fabric push: 2,000 messages, 125.00 KiB in 500.0 ms (4,000 messages/s, 250.00 KiB/s)"
        );
        let lossy = Summary { lost: 3, posts: 100, sent: 2000, ..summary() };
        assert!(lossy.text().ends_with("20.0 messages per post, 3 lost"), "{}", lossy.text());
    }

    #[test]
    fn a_passage_names_both_ways_where_there_are_two() {
        let (to_back, to_back_bytes, seconds) = (1, 5, 2.0);
        let one =
            Passage { kind: "queue".into(), to_back, to_back_bytes, seconds, ..Default::default() };
        assert_eq!(one.text(), "fabric proxy queue: 1 message, 5 B to the back in 2.00 s");
        let both = Passage { to_front: 2, to_front_bytes: 7, captured: 3, dropped: 1, ..one };
        let expected = "fabric proxy queue: 1 message, 5 B to the back, 2 messages, 7 B to the front \
                        in 2.00 s, 3 captured, 1 dropped";
        assert_eq!(both.text(), expected);
    }

    #[test]
    fn a_line_of_json_reads_back() {
        let line = Line::Summary(Summary { sha256: Some("ab".into()), ..summary() });
        let json = serde_json::to_string(&line).unwrap();
        assert!(
            json.starts_with(r#"{"event":"summary","command":"push","messages":2000"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Line>(&json).unwrap(), line);
    }
}
