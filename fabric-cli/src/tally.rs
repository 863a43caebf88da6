//! Counts what passes, with a progress bar where somebody looks.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use msg_patterns::{Bytes, Counters};

use crate::digest::Digest;
use crate::report::{Style, Summary};

/// How often the bar moves.
const SHOW_INTERVAL: Duration = Duration::from_millis(100);

/// Messages and bytes so far.
#[derive(Debug)]
pub(crate) struct Tally {
    messages: u64,
    bytes: u64,
    failed: u64,
    first: Option<Instant>,
    digest: Digest,
    /// With the time it was last drawn.
    bar: Option<(ProgressBar, Instant)>,
}

impl Tally {
    /// Nothing yet. `total` is the number of messages where it is known.
    pub(crate) fn new(digest: Digest, style: Style, total: Option<u64>) -> Self {
        let bar = (style == Style::Text).then(|| bar(total)).flatten();
        let bar = bar.map(|bar| (bar, Instant::now()));
        Self { messages: 0, bytes: 0, failed: 0, first: None, digest, bar }
    }

    /// The clock runs from here; without it, from the first message counted.
    pub(crate) fn start(&mut self) {
        self.first.get_or_insert_with(Instant::now);
    }

    /// Counts a message.
    pub(crate) fn add(&mut self, parts: &[Bytes]) {
        self.start();
        self.messages += 1;
        self.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        self.digest.add(parts);
        self.show();
    }

    fn show(&mut self) {
        let Some((bar, shown)) = &mut self.bar else { return };
        if shown.elapsed() >= SHOW_INTERVAL {
            *shown = Instant::now();
            bar.set_position(self.messages);
            bar.set_message(indicatif::HumanBytes(self.bytes).to_string());
        }
    }

    /// Counts a request whose command failed.
    pub(crate) fn add_failed(&mut self) {
        self.failed += 1;
    }

    /// Messages so far.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Ends the count.
    pub(crate) fn finish(self, command: &str, counters: &Counters) -> Summary {
        if let Some((bar, _)) = &self.bar {
            bar.finish_and_clear();
        }
        Summary {
            command: command.into(),
            messages: self.messages,
            bytes: self.bytes,
            seconds: self.first.map_or(0.0, |first| first.elapsed().as_secs_f64()),
            dropped: counters.dropped,
            lost: counters.lost,
            redelivered: counters.redelivered,
            failed: self.failed,
            posts: if counters.sent > 0 { counters.posts } else { 0 },
            sent: counters.sent,
            sha256: self.digest.ordered(),
            sha256_sum: self.digest.unordered(),
        }
    }
}

/// A bar, unless messages or a file take the terminal's place.
fn bar(total: Option<u64>) -> Option<ProgressBar> {
    let visible = io::stderr().is_terminal() && !io::stdout().is_terminal();
    visible.then(|| match total {
        Some(total) => styled(
            ProgressBar::new(total),
            "{bar:30} {human_pos}/{human_len} messages {per_sec} {msg} {eta} left",
        ),
        None => styled(
            ProgressBar::new_spinner(),
            "{spinner} {human_pos} messages {per_sec} {msg} {elapsed}",
        ),
    })
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
