//! Two processes that measure together, each on a processor of its own.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A turn that takes longer hangs.
const WATCHDOG: Duration = Duration::from_secs(90);

/// How long a process may take to go when it is not needed any more.
const LEAVE_TIME: Duration = Duration::from_secs(3);
const LEAVE_POLL: Duration = Duration::from_millis(2);

/// A process to start.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// The processor it stays on.
    pub(super) processor: Option<usize>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    name: String,
}

/// What a process said, by its place.
enum Said {
    Line(usize, String),
    Complaint(usize, String),
    Silence(usize),
}

/// Plays both sides by the contract of `bench/peers`; the figures of the server and of the client.
///
/// # Errors
/// What went wrong, in one line.
pub(super) fn play(server: &Side, client: &Side) -> Result<(Value, Value), String> {
    let mut stage = Stage::new();
    stage.start(server)?;
    stage.wait_for("READY")?;
    stage.start(client)?;
    let mut figures = stage.figures(2)?;
    stage.leave();
    match (figures.pop(), figures.pop()) {
        (Some(client), Some(server)) => Ok((server, client)),
        _ => Err("a side has no figures".into()),
    }
}

/// Plays a process that does everything itself; its figures.
///
/// # Errors
/// As `play`.
pub(super) fn play_alone(side: &Side) -> Result<Value, String> {
    let mut stage = Stage::new();
    stage.start(side)?;
    let figures = stage.figures(1)?.pop();
    stage.leave();
    figures.ok_or_else(|| "there are no figures".into())
}

/// Runs a server that says nothing until its client is done; what the client wrote.
///
/// # Errors
/// As `play`.
pub(super) fn play_quiet(
    server: &Side,
    client: &Side,
    is_ready: impl Fn() -> bool,
) -> Result<Vec<String>, String> {
    let mut stage = Stage::new();
    stage.start(server)?;
    while !is_ready() {
        stage.check_time()?;
        thread::sleep(LEAVE_POLL);
    }
    stage.start(client)?;
    let lines = stage.all_lines(1)?;
    stage.leave();
    Ok(lines)
}

struct Stage {
    processes: Vec<Process>,
    sender: Sender<Said>,
    said: Receiver<Said>,
    complaints: Vec<String>,
    end: Instant,
}

impl Stage {
    fn new() -> Self {
        let (sender, said) = channel();
        let (processes, complaints) = (Vec::new(), Vec::new());
        Self { processes, sender, said, complaints, end: Instant::now() + WATCHDOG }
    }

    fn start(&mut self, side: &Side) -> Result<(), String> {
        let mut command = command(side);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = side.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let place = self.processes.len();
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.processes.push(Process { child, stdin, name });
        self.complaints.push(String::new());
        self.listen(err, move |line| Said::Complaint(place, line), None);
        self.listen(out, move |line| Said::Line(place, line), Some(place));
        Ok(())
    }

    fn listen(
        &self,
        source: Option<impl Read + Send + 'static>,
        said: impl Fn(String) -> Said + Send + 'static,
        silence: Option<usize>,
    ) {
        let (Some(source), sender) = (source, self.sender.clone()) else { return };
        thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                drop(sender.send(said(line)));
            }
            if let Some(place) = silence {
                drop(sender.send(Said::Silence(place)));
            }
        });
    }

    fn check_time(&self) -> Result<Duration, String> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(format!("no end after {} s", WATCHDOG.as_secs()))
        } else {
            Ok(left)
        }
    }

    fn next(&mut self) -> Result<Said, String> {
        match self.said.recv_timeout(self.check_time()?) {
            Ok(said) => Ok(said),
            Err(RecvTimeoutError::Timeout) => self.check_time().and(Err("no end".into())),
            Err(RecvTimeoutError::Disconnected) => Err("nobody says anything any more".into()),
        }
    }

    fn wait_for(&mut self, word: &str) -> Result<(), String> {
        loop {
            match self.next()? {
                Said::Line(_, line) if line == word => return Ok(()),
                Said::Line(..) => {}
                Said::Complaint(place, line) => self.complaints[place] = line,
                Said::Silence(place) => return Err(self.ended(place)),
            }
        }
    }

    /// The last object of each of so many processes, in their order.
    fn figures(&mut self, sides: usize) -> Result<Vec<Value>, String> {
        let mut figures: Vec<Option<Value>> = vec![None; sides];
        while figures.iter().any(Option::is_none) {
            match self.next()? {
                Said::Line(place, line) if line == "GO" => self.let_go(1 - place.min(1)),
                Said::Line(place, line) => {
                    let value = serde_json::from_str(&line);
                    figures[place] = Some(value.map_err(|_| format!("no figures: {line}"))?);
                }
                Said::Complaint(place, line) => self.complaints[place] = line,
                Said::Silence(place) if figures[place].is_none() => return Err(self.ended(place)),
                Said::Silence(_) => {}
            }
        }
        Ok(figures.into_iter().flatten().collect())
    }

    /// Everything that a process writes until it ends.
    fn all_lines(&mut self, of: usize) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        loop {
            match self.next()? {
                Said::Line(place, line) if place == of => lines.push(line),
                Said::Silence(place) if place == of && lines.is_empty() => {
                    return Err(self.ended(of));
                }
                Said::Silence(place) if place == of => return Ok(lines),
                Said::Complaint(place, line) => self.complaints[place] = line,
                _ => {}
            }
        }
    }

    fn let_go(&mut self, place: usize) {
        if let Some(stdin) = self.processes.get_mut(place).and_then(|one| one.stdin.as_mut()) {
            // Whoever ended meanwhile says so by its silence.
            drop(stdin.write_all(b"g").and_then(|()| stdin.flush()));
        }
    }

    fn ended(&mut self, place: usize) -> String {
        // What it wrote last may be on its way.
        while let Ok(said) = self.said.recv_timeout(LEAVE_POLL * 20) {
            if let Said::Complaint(place, line) = said {
                self.complaints[place] = line;
            }
        }
        let name = &self.processes[place].name;
        let why = self.complaints.iter().rev().find(|line| !line.is_empty());
        format!("{name} ended early: {}", why.map_or("it says nothing", String::as_str))
    }

    /// Lets everybody end, which some need to tidy up behind them.
    fn leave(&mut self) {
        for process in &mut self.processes {
            process.stdin = None;
        }
        let end = Instant::now() + LEAVE_TIME;
        while self.processes.iter_mut().any(Process::is_running) && Instant::now() < end {
            thread::sleep(LEAVE_POLL);
        }
    }
}

impl Process {
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both do nothing when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(side: &Side) -> Command {
    let Some(processor) = side.processor else {
        let mut command = Command::new(&side.program);
        command.args(&side.args);
        return command;
    };
    let mut command = Command::new("taskset");
    command.args(["-c", &processor.to_string()]).arg(&side.program).args(&side.args);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Side {
        Side { program: "sh".into(), args: vec!["-c".into(), script.into()], processor: None }
    }

    #[test]
    fn both_sides_give_their_figures() {
        let server = shell("echo READY; head -c 1 >&2; echo '{\"a\":1}'; cat >&2");
        let client = shell("echo GO; echo '{\"b\":2}'; cat >&2");
        let (server, client) = play(&server, &client).unwrap();
        assert_eq!((&server["a"], &client["b"]), (&1.into(), &2.into()));
    }

    #[test]
    fn who_ends_early_is_named_with_its_last_words() {
        let error = play_alone(&shell("echo first >&2; echo no luck >&2; exit 1")).unwrap_err();
        assert_eq!(error, "sh ended early: no luck");
    }

    #[test]
    fn a_quiet_server_is_waited_for() {
        let lines = play_quiet(&shell("cat"), &shell("echo a; echo b"), || true).unwrap();
        assert_eq!(lines, ["a", "b"]);
    }
}
