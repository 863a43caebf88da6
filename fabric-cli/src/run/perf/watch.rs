//! A progress bar where somebody looks.

use std::io::{self, IsTerminal as _};

use fabric_perf::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::Style;

const TEMPLATE: &str = "{msg:24} {bar:30} {human_pos}/{human_len} {per_sec} {eta} left";

/// Shows how far a run is.
#[derive(Debug)]
pub(super) struct Watch(ProgressBar);

impl Watch {
    /// A bar on a terminal, otherwise nothing.
    pub(super) fn new(style: Style) -> Self {
        let shown = style == Style::Text && io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self(match ProgressStyle::with_template(TEMPLATE) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Leaves no trace.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Watch {
    fn begin(&self, what: &str, total: u64) {
        self.0.reset();
        self.0.set_length(total);
        self.0.set_message(what.to_owned());
    }

    fn at(&self, done: u64) {
        self.0.set_position(done);
    }
}
