//! A work queue: a boss hands out tasks, workers do them, and a task that a crashed worker held goes to
//! another one.
//!
//! `cargo run -p work-queue` shows it, with processes for workers of which some crash. `work-queue boss`
//! and `work-queue worker` are its two halves, for as many hosts as there are.

#![forbid(unsafe_code)]

#[path = "../../common/say.rs"]
mod say;

use std::collections::BTreeMap;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::{Parser, Subcommand};
use msg_patterns::{Context, Error, Message, Pull, Push, Rep, Req};
use say::{ended, say};

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Parser)]
#[command(about = "Tasks for workers that may crash")]
struct Cli {
    /// Where the boss of the show listens
    #[arg(long, value_name = "URL", default_value = "tcp://127.0.0.1:0")]
    addr: String,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Hands out tasks and prints the results
    Boss {
        /// Where to listen for workers
        tasks: String,
        /// Where to listen for their results
        results: String,
        #[arg(long, default_value_t = 1000)]
        count: u64,
    },
    /// Does tasks until it is stopped
    Worker {
        /// Where the boss hands out tasks
        tasks: String,
        /// Where it wants the results
        results: String,
        /// Crash with this task in hand
        #[arg(long, value_name = "N")]
        crash_at: Option<u64>,
    },
}

fn main() -> ExitCode {
    ended(run())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let cli = Cli::parse();
    let context = Context::new();
    match cli.part {
        None => show(&context, &cli.addr),
        Some(Part::Boss { tasks, results, count }) => {
            let boss = Boss::new(&context, &tasks, &results)?;
            say(format_args!(
                "tasks at {}, results at {}",
                boss.tasks_addr(),
                boss.results_addr()
            ))?;
            let done = boss.have_done(count)?;
            let mut results = done.results.iter();
            Ok(results.try_for_each(|(task, result)| say(format_args!("{task}: {result}")))?)
        }
        Some(Part::Worker { tasks, results, crash_at }) => {
            Ok(work(&context, &tasks, &results, crash_at)?)
        }
    }
}

/// Five workers do 200 tasks; three of them crash, each with a task in hand.
fn show(context: &Context, addr: &str) -> Result<(), Box<dyn std::error::Error>> {
    const COUNT: u64 = 200;
    const CRASHES: [Option<u64>; 5] = [None, Some(1), None, Some(2), Some(3)];
    let boss = Boss::new(context, addr, addr)?;
    let mut workers = Vec::new();
    for crash_at in CRASHES {
        workers.extend(Worker::start(&boss, crash_at));
    }
    boss.wait_for(workers.len())?;
    let done = boss.have_done(COUNT)?;
    let sum: u64 = done.results.values().sum();
    let crashed = workers.iter_mut().filter(|worker| worker.is_to_crash).map(Worker::has_crashed);
    let crashed = crashed.filter(|crashed| *crashed).count();
    say(format_args!(
        "{} of {COUNT} tasks done, {crashed} of {} workers crashed",
        done.results.len(),
        workers.len()
    ))?;
    say(format_args!("the squares add up to {sum}"))?;
    Ok(say(format_args!("{} results came twice", done.again))?)
}

/// Hands out tasks, and confirms results.
struct Boss {
    tasks: Push,
    results: Rep,
}

/// What came back.
struct Done {
    results: BTreeMap<u64, u64>,
    /// Results of tasks that were done before: their worker crashed between the two steps of `work`.
    again: u64,
}

impl Boss {
    /// Keeps each task until its worker says that it is done.
    fn new(context: &Context, tasks_at: &str, results_at: &str) -> Result<Self, Error> {
        let tasks = Push::builder().acknowledge(true).build(context)?;
        tasks.bind(tasks_at)?;
        let results = Rep::new(context)?;
        results.bind(results_at)?;
        Ok(Self { tasks, results })
    }

    fn tasks_addr(&self) -> String {
        self.tasks.last_endpoint().map(|addr| addr.to_string()).unwrap_or_default()
    }

    fn results_addr(&self) -> String {
        self.results.last_endpoint().map(|addr| addr.to_string()).unwrap_or_default()
    }

    /// Waits until so many have come.
    fn wait_for(&self, workers: usize) -> Result<(), &'static str> {
        let events = self.tasks.monitor();
        while self.tasks.peers().iter().filter(|peer| peer.up).count() < workers {
            events.next_timeout(PATIENCE).ok_or("too few workers came")?;
        }
        Ok(())
    }

    fn have_done(&self, count: u64) -> Result<Done, Error> {
        for task in 0..count {
            self.tasks.send_timeout(task.to_string(), PATIENCE)?;
        }
        let mut done = Done { results: BTreeMap::new(), again: 0 };
        while (done.results.len() as u64) < count {
            let message = self.results.recv_timeout(PATIENCE)?;
            self.results.send("")?;
            let mut numbers = message.parts().iter().filter_map(|part| number(part));
            let (Some(task), Some(result)) = (numbers.next(), numbers.next()) else { continue };
            done.again += u64::from(done.results.insert(task, result).is_some());
        }
        Ok(done)
    }
}

/// Squares numbers. First the boss confirms that it has the result, then the task counts as done: a crash
/// in between does the task twice, and loses nothing.
fn work(context: &Context, tasks: &str, results: &str, crash_at: Option<u64>) -> Result<(), Error> {
    let pull = Pull::builder().recv_hwm(4).build(context)?;
    pull.connect(tasks)?;
    let req = Req::new(context)?;
    req.connect(results)?;
    for at in 0.. {
        let task = pull.recv()?;
        if Some(at) == crash_at {
            std::process::abort();
        }
        let Some(number) = number(task.first()) else { continue };
        let result = Message::from_parts([number.to_string(), (number * number).to_string()]);
        req.request(result, PATIENCE)?;
        pull.ack()?;
    }
    Ok(())
}

fn number(part: &[u8]) -> Option<u64> {
    std::str::from_utf8(part).ok()?.parse().ok()
}

/// A process of the show. It ends with it.
struct Worker {
    process: Child,
    is_to_crash: bool,
}

impl Worker {
    fn start(boss: &Boss, crash_at: Option<u64>) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.args(["worker", &boss.tasks_addr(), &boss.results_addr()]);
        command.args(crash_at.map(|at| format!("--crash-at={at}")));
        let process = command.stdin(Stdio::null()).spawn().ok()?;
        Some(Self { process, is_to_crash: crash_at.is_some() })
    }

    /// Waits for its end, which is near if it is to crash.
    fn has_crashed(&mut self) -> bool {
        self.process.wait().is_ok_and(|ended| !ended.success())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
