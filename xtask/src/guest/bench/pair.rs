//! Two processes of a contender, each on a processor of its own.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use super::contender::{Contender, Mode, Place};

/// No turn takes nearly as long.
const TIME_MAX_S: &str = "180";

/// How often the client tries to find its server, and how long it rests in between.
const TRIES: usize = 20;
const REST: Duration = Duration::from_millis(500);

static NEXT_PORT: AtomicU16 = AtomicU16::new(18_600);

/// Runs both ends, the client under `wrapper`, and returns what the client and the wrapper wrote.
///
/// # Errors
/// When the client never succeeds, with the last thing it said.
pub(super) fn run(
    place: &Place,
    contender: Contender,
    mode: Mode,
    trips: u32,
    wrapper: &[&str],
) -> Result<String, String> {
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    let server = contender.server(place, mode, trips, port);
    let _server = Server::start(place.cpus.1, &server)?;
    let client = contender.client(place, mode, trips, port);
    let mut said = String::new();
    for _ in 0..TRIES {
        thread::sleep(REST);
        match attempt(place.cpus.0, wrapper, &client)? {
            Ok(output) => return Ok(output),
            Err(output) => said = output,
        }
    }
    Err(format!("`{}` fails:\n{said}", client.join(" ")))
}

/// The client's output, or what it said when it failed.
fn attempt(cpu: u32, wrapper: &[&str], words: &[String]) -> Result<Result<String, String>, String> {
    let mut command = on(cpu);
    command.args(["timeout", TIME_MAX_S]).args(wrapper).args(words).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("taskset: {error}"))?;
    let (out, err) = (output.stdout, output.stderr);
    let said = [out, err].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok(if output.status.success() { Ok(said) } else { Err(said) })
}

fn on(cpu: u32) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]);
    command
}

/// Stopped when it is dropped, unless it ended by itself.
struct Server(Child);

impl Server {
    fn start(cpu: u32, words: &[String]) -> Result<Self, String> {
        let mut command = on(cpu);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("taskset: {error}"))
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if self.has_ended() {
                return;
            }
            thread::sleep(REST);
        }
        // Fails only when it has ended meanwhile.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
