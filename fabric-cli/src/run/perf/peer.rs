//! The serving side as a process of its own: this program once more.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::exit::Failure;
use crate::report::Line;

/// How long it may take to listen, also on a machine that is busy.
const START_TIME: Duration = Duration::from_secs(60);

/// How long what it said last takes to get here once it has ended.
const LAST_WORDS_TIME: Duration = Duration::from_millis(200);

/// The serving side. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Peer {
    child: Child,
    said: Receiver<String>,
}

impl Peer {
    /// Starts it.
    ///
    /// # Errors
    /// `Failed` when it cannot be started.
    pub(super) fn start(addr: &str) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("this program"))?;
        let mut command = Command::new(program);
        command.args(["perf", "serve", addr, "--report", "json"]);
        command.args(["--die-with-parent", &std::process::id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::io("the serving side"))?;
        let (sender, said) = channel();
        if let Some(stderr) = child.stderr.take() {
            thread::spawn(move || listen(stderr, &sender));
        }
        Ok(Self { child, said })
    }

    /// Where it listens, as soon as it does.
    ///
    /// # Errors
    /// `Failed` with what it said when it ends before.
    pub(super) fn addr(&mut self) -> Result<String, Failure> {
        let mut last = String::new();
        loop {
            match self.said.recv_timeout(START_TIME) {
                Ok(text) => match serde_json::from_str(&text) {
                    Ok(Line::Listening { addr }) => return Ok(addr),
                    _ => last = text,
                },
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::new(own_words(&last))),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::TimedOut("the serving side does not start".into()));
                }
            }
        }
    }

    /// What it said last, if it has ended.
    pub(super) fn last_words(&mut self) -> Option<String> {
        let mut last = None;
        loop {
            match self.said.recv_timeout(LAST_WORDS_TIME) {
                Ok(text) => last = Some(text),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        Some(last.map_or(status, |text| own_words(&text).to_owned()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both do nothing when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Without the name of the program, which this one will put in front again.
fn own_words(text: &str) -> &str {
    text.strip_prefix("fabric: ").unwrap_or(text)
}

fn listen(stderr: ChildStderr, sender: &Sender<String>) {
    for text in BufReader::new(stderr).lines().map_while(Result::ok) {
        if sender.send(text).is_err() {
            return;
        }
    }
}
