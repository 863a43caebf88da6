//! One process of the demo.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::crew::Crew;
use super::table::Row;
use crate::exit::Failure;
use crate::report::{Line, Summary};

/// How often a wait looks whether the demo is to go on.
const POLL: Duration = Duration::from_millis(50);

/// A running process. Dropping it kills it.
pub(crate) struct Player<'a> {
    crew: &'a Crew,
    name: String,
    child: Child,
    said: Receiver<Said>,
    last_text: String,
}

/// A line on the standard error of a process.
enum Said {
    Line(Line),
    Text(String),
}

impl<'a> Player<'a> {
    /// Starts this program with `args`, separated by spaces, and then `file` if there is one.
    ///
    /// # Errors
    /// `Failed` when it cannot be started.
    pub(crate) fn start(
        crew: &'a Crew,
        name: &str,
        args: &str,
        file: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(&crew.program);
        command.args(args.split_whitespace()).args(file);
        command.args(["--report", "json", "--die-with-parent", &std::process::id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::io(name))?;
        let (sender, said) = channel();
        if let Some(stderr) = child.stderr.take() {
            thread::spawn(move || listen(stderr, &sender));
        }
        Ok(Self { crew, name: name.into(), child, said, last_text: String::new() })
    }

    /// The address where it listens, as soon as it does.
    ///
    /// # Errors
    /// `Failed` when it ends before, or `Interrupted`.
    pub(crate) fn addr(&mut self) -> Result<String, Failure> {
        self.wait_for(|line| match line {
            Line::Listening { addr } => Some(addr),
            _ => None,
        })
    }

    /// Its row in the table, when it has ended well.
    ///
    /// # Errors
    /// `Failed` when it ended otherwise or not in time, or `Interrupted`.
    pub(crate) fn row(&mut self, pattern: &'static str, did: &str) -> Result<Row, Failure> {
        let summary = self.summary()?;
        Ok(Row::new(pattern, &self.name, did, summary))
    }

    fn summary(&mut self) -> Result<Summary, Failure> {
        let summary = self.wait_for(|line| match line {
            Line::Summary(summary) => Some(summary),
            _ => None,
        })?;
        self.wait_end()?;
        Ok(summary)
    }

    fn wait_for<T>(&mut self, wanted: impl Fn(Line) -> Option<T>) -> Result<T, Failure> {
        loop {
            match self.said.recv_timeout(POLL) {
                Ok(Said::Line(Line::Note { text }) | Said::Text(text)) => self.last_text = text,
                Ok(Said::Line(line)) => {
                    if let Some(found) = wanted(line) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.crew.go_on(&self.name)?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.broken()),
            }
        }
    }

    fn wait_end(&mut self) -> Result<(), Failure> {
        loop {
            match self.child.try_wait().map_err(Failure::io(&self.name))? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(self.broken()),
                None => self.crew.go_on(&self.name)?,
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn broken(&mut self) -> Failure {
        while let Ok(said) = self.said.recv_timeout(POLL) {
            if let Said::Text(text) = said {
                self.last_text = text;
            }
        }
        let text = format!("{} ended too early: {}", self.name, self.last_text);
        if self.crew.interrupt.is_hit() { Failure::Interrupted } else { Failure::new(text) }
    }
}

impl Drop for Player<'_> {
    fn drop(&mut self) {
        // Both do nothing when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn listen(stderr: ChildStderr, sender: &Sender<Said>) {
    for text in BufReader::new(stderr).lines().map_while(Result::ok) {
        let said = match serde_json::from_str(&text) {
            Ok(line) => Said::Line(line),
            Err(_) => Said::Text(text),
        };
        if sender.send(said).is_err() {
            return;
        }
    }
}
