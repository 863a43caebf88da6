//! Runs the built command and never leaves it behind.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Polls of a wait before it counts as hanging: two minutes on an idle machine.
const POLLS_MAX: usize = 12_000;
const POLL: Duration = Duration::from_millis(10);

/// A running `fabric`. Dropping it kills it.
pub(crate) struct Fabric {
    name: String,
    child: Child,
    pub(crate) out: Pipe,
    pub(crate) err: Pipe,
}

/// What a process wrote so far.
#[derive(Clone, Default)]
pub(crate) struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// A `fabric` that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// Starts `fabric` with these arguments and nothing on standard input.
pub(crate) fn fabric<T: AsRef<str>>(args: impl IntoIterator<Item = T>) -> Fabric {
    fabric_with(args, b"")
}

/// Starts `fabric` with `input` on standard input.
pub(crate) fn fabric_with<T: AsRef<str>>(
    args: impl IntoIterator<Item = T>,
    input: &[u8],
) -> Fabric {
    let (fabric, mut stdin) = fabric_open(args);
    let input = input.to_vec();
    // A process may end without reading its input.
    thread::spawn(move || drop(stdin.write_all(&input)));
    fabric
}

/// Starts `fabric` with its standard input open.
pub(crate) fn fabric_open<T: AsRef<str>>(
    args: impl IntoIterator<Item = T>,
) -> (Fabric, ChildStdin) {
    let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabric"));
    command.args(&args).env_remove("FABRIC_LOG");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let (out, err) = (Pipe::default(), Pipe::default());
    out.fill_from(child.stdout.take().unwrap());
    err.fill_from(child.stderr.take().unwrap());
    let name = args.into_iter().take(4).collect::<Vec<_>>().join(" ");
    (Fabric { name, child, out, err }, stdin)
}

/// Runs `fabric` to its end; the arguments are separated by spaces.
pub(crate) fn run(args: &str) -> Done {
    fabric(args.split_whitespace()).end()
}

impl Fabric {
    /// The address where it listens, as soon as it does.
    pub(crate) fn addr(&mut self) -> String {
        let mark = "listening on ";
        self.wait("an address", |fabric| fabric.err.text().contains(mark));
        let text = self.err.text();
        let line = text.lines().find(|line| line.contains(mark)).unwrap();
        line.split(mark).nth(1).unwrap().trim().to_owned()
    }

    /// Waits until `reached`.
    pub(crate) fn wait(&mut self, what: &str, reached: impl Fn(&Self) -> bool) {
        for _ in 0..POLLS_MAX {
            if reached(self) {
                return;
            }
            let ended = self.child.try_wait().unwrap();
            if let Some(status) = ended {
                self.out.join();
                self.err.join();
                assert!(reached(self), "{}: {status}: {}", self.name, self.err.text());
                return;
            }
            thread::sleep(POLL);
        }
        panic!("{} never came to {what}: {}", self.name, self.err.text());
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Done {
        for _ in 0..POLLS_MAX {
            if let Some(status) = self.child.try_wait().unwrap() {
                let (out, err) = (self.out.join(), self.err.join());
                let err = String::from_utf8(err).unwrap();
                assert!(!err.contains("panicked"), "{}: {err}", self.name);
                return Done { code: status.code(), out, err };
            }
            thread::sleep(POLL);
        }
        panic!("{} never ended: {}", self.name, self.err.text());
    }

    /// Ends it with `kill -9`; gives all it had written.
    pub(crate) fn kill(mut self) -> Vec<u8> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.out.join()
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Pipe {
    fn fill_from(&self, mut source: impl Read + Send + 'static) {
        let bytes = self.bytes.clone();
        let read = move || {
            let mut buf = vec![0; 64 << 10];
            while let Ok(len @ 1..) = source.read(&mut buf) {
                bytes.lock().unwrap().extend_from_slice(&buf[..len]);
            }
        };
        *self.reader.lock().unwrap() = Some(thread::spawn(read));
    }

    fn join(&self) -> Vec<u8> {
        if let Some(reader) = self.reader.lock().unwrap().take() {
            reader.join().unwrap();
        }
        self.bytes.lock().unwrap().clone()
    }

    /// What came so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// How much came so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.lock().unwrap().len()
    }
}

impl Done {
    /// It must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self
    }

    /// What it wrote, which must be text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// The one line of a run that failed. It says in words what is wrong; numbers of the host's errors
    /// stand behind them at most.
    #[track_caller]
    pub(crate) fn error_line(&self) -> &str {
        let mut lines = self.err.lines().filter(|line| !is_routine(line));
        let found = lines.next().unwrap_or_default();
        assert!(found.starts_with("fabric: ") && lines.next().is_none(), "{}", self.err);
        let words = found.split_once(" (").map_or(found, |(words, _)| words);
        assert!(!words.contains("os error") && !words.contains("errno"), "a bare number: {found}");
        found
    }

    /// The checksum in its summary.
    pub(crate) fn sha256(&self) -> &str {
        let line = self.err.lines().find_map(|line| line.strip_prefix("sha256 "));
        line.unwrap_or_else(|| panic!("no checksum: {}", self.err))
    }
}

/// Addresses and summaries are no errors.
fn is_routine(line: &str) -> bool {
    line.starts_with("fabric: listening on ") || line.contains(" messages, ")
}

/// Waits until `reached`, which is about something in this process.
pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..POLLS_MAX {
        if reached() {
            return;
        }
        thread::sleep(POLL);
    }
    panic!("never came to {what}");
}
