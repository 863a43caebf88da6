//! The measuring side: a plan becomes a report.

use std::time::Duration;

use crate::cost::Usage;
use crate::plan::{Amount, Level, Op, Plan, Task, Test};
use crate::progress::Progress;
use crate::report::{BothSides, BwRow, FanoutRow, IdleRow, LatRow, Report, Rows};
use crate::session::Session;
use crate::socket::{bw, fanout, idle, lat, tasks};
use crate::{Cost, Error, bare, host};

/// Messages of the first of the runs that find out how many fit a time limit.
const FIRST_COUNT: u64 = 64;
/// How many times more messages the next of these runs has, at most.
const GROWTH_MAX: u64 = 16;
/// A run is long enough from this part of the time limit on.
const LONG_ENOUGH: f64 = 0.5;
/// Most messages of a run in which the kernel counts.
const COUNTED_MAX: u64 = 20_000;

/// Measures by `plan` with who serves at `addr`.
///
/// # Errors
/// When the plan makes no sense, either side fails, or nothing moves for a minute.
pub fn run(addr: &str, plan: &Plan, progress: &dyn Progress) -> Result<Report, Error> {
    plan.check()?;
    if let Some((ours, _)) = plan.settings.pin {
        host::pin(ours)?;
    }
    let session = Session::connect(addr, progress)?;
    let mut measuring =
        Measuring { session, plan, rows: Rows::of(plan.test), not_available: Vec::new() };
    for &size in &plan.sizes {
        measuring.size(size)?;
    }
    let Measuring { rows, not_available, .. } = measuring;
    Ok(Report::new(addr, plan.settings, rows, not_available))
}

struct Measuring<'a> {
    session: Session<'a>,
    plan: &'a Plan,
    rows: Rows,
    not_available: Vec<String>,
}

/// What a run found out, with what each side used.
struct Outcome<T> {
    found: T,
    seconds: f64,
    client: Spent,
    server: Spent,
}

/// What one side used, and for how many messages.
struct Spent {
    usage: Usage,
    messages: u64,
}

impl Measuring<'_> {
    fn size(&mut self, size: usize) -> Result<(), Error> {
        match self.plan.test {
            Test::Lat | Test::Bw => self.row(size, 1),
            Test::Fanout | Test::Idle => {
                self.plan.peers.iter().try_for_each(|&peers| self.row(size, peers))
            }
        }
    }

    fn row(&mut self, size: usize, peers: usize) -> Result<(), Error> {
        match self.plan.test {
            Test::Lat => self.lat(size),
            Test::Bw => self.bw(size),
            Test::Fanout => self.fanout(size, peers),
            Test::Idle => self.idle(size, peers),
        }
    }

    fn lat(&mut self, size: usize) -> Result<(), Error> {
        let (task, done) = self.timed(size, 1, Self::round_trips)?;
        let counted = self.counted(task, Self::round_trips)?;
        let (times, first_reply) = &done.found;
        let row = LatRow {
            size_bytes: size,
            count: times.count(),
            seconds: done.seconds,
            round_trip_us: times.summary(),
            histogram: times.buckets(),
            first_reply_us: first_reply.map(|time| time.as_secs_f64() * 1e6),
            client: done.client.cost(Some(&counted.client)),
            server: done.server.cost(Some(&counted.server)),
        };
        if let Rows::Lat(rows) = &mut self.rows {
            rows.push(row);
        }
        Ok(())
    }

    fn bw(&mut self, size: usize) -> Result<(), Error> {
        let (task, done) = self.timed(size, 1, Self::stream)?;
        let counted = self.counted(task, Self::stream)?;
        let messages_per_second = task.count as f64 / done.seconds;
        let row = BwRow {
            size_bytes: size,
            count: task.count,
            seconds: done.seconds,
            messages_per_second,
            gigabytes_per_second: messages_per_second * size as f64 / 1e9,
            client: done.client.cost(Some(&counted.client)),
            server: done.server.cost(Some(&counted.server)),
        };
        if let Rows::Bw(rows) = &mut self.rows {
            rows.push(row);
        }
        Ok(())
    }

    fn fanout(&mut self, size: usize, subscribers: usize) -> Result<(), Error> {
        let (task, done) = self.timed(size, subscribers, Self::publish)?;
        let (arrived, timed, dropped) = done.found;
        let delivered_per_second = timed as f64 / done.seconds;
        let row = FanoutRow {
            size_bytes: size,
            subscribers,
            count: task.count,
            delivered: arrived,
            lost: (task.total() * subscribers as u64).saturating_sub(arrived),
            dropped,
            seconds: done.seconds,
            delivered_per_second,
            gigabytes_per_second: delivered_per_second * size as f64 / 1e9,
            client: done.client.cost(None),
            server: done.server.cost(None),
        };
        if let Rows::Fanout(rows) = &mut self.rows {
            rows.push(row);
        }
        Ok(())
    }

    fn idle(&mut self, size: usize, peers: usize) -> Result<(), Error> {
        // How long the stream takes hardly depends on who is silent, and memory that an earlier run
        // used would be used again.
        let (task, _) = self.timed(size, 1, Self::silence)?;
        let task = Task { peers, ..task };
        let done = self.silence(task)?;
        let found = done.found;
        let made = (peers > 1).then(|| (peers - 1) as f64 / found.greeting_seconds);
        let row = IdleRow {
            peers,
            memory_bytes_per_peer: BothSides { client: found.client.0, server: found.server.0 },
            descriptors_per_peer: BothSides { client: found.client.1, server: found.server.1 },
            set_ups_per_second: made,
            size_bytes: size,
            count: found.streamed.messages,
            messages_per_second: task.count as f64 / done.seconds,
        };
        if let Rows::Idle(rows) = &mut self.rows {
            rows.push(row);
        }
        Ok(())
    }

    /// Plays the run that the plan asks for. Where it gives a time, the run is repeated with more
    /// messages until it took long enough.
    fn timed<T>(
        &self,
        size: usize,
        peers: usize,
        play: impl Fn(&Self, Task) -> Result<Outcome<T>, Error>,
    ) -> Result<(Task, Outcome<T>), Error> {
        let task = |count: u64| Task::new(self.plan, size, peers, count);
        let limit = match self.plan.amount {
            Amount::Count(count) => return Ok((task(count), play(self, task(count))?)),
            Amount::Time(limit) => limit.as_secs_f64(),
        };
        let mut count = FIRST_COUNT;
        loop {
            let outcome = play(self, task(count))?;
            // The very first run may just have met with a stall.
            let judged = count > FIRST_COUNT || outcome.seconds >= limit;
            if judged && outcome.seconds >= limit * LONG_ENOUGH {
                return Ok((task(count), outcome));
            }
            let fits = count as f64 * limit / outcome.seconds.max(1e-9);
            count = (fits as u64).clamp(count + 1, count.saturating_mul(GROWTH_MAX));
        }
    }

    /// The same run, shorter, with the kernel counting.
    fn counted<T>(
        &mut self,
        task: Task,
        play: impl Fn(&Self, Task) -> Result<Outcome<T>, Error>,
    ) -> Result<Outcome<T>, Error> {
        let count = task.count.min(COUNTED_MAX);
        let task = Task { counted: true, count, warm: count / 10 + 1, ..task };
        let outcome = play(self, task)?;
        self.note("client", &outcome.client.usage);
        self.note("server", &outcome.server.usage);
        Ok(outcome)
    }

    fn note(&mut self, side: &str, usage: &Usage) {
        for what in &usage.not_counted {
            let text = format!("{side}: {what}");
            if !self.not_available.contains(&text) {
                self.not_available.push(text);
            }
        }
    }

    fn round_trips(&self, task: Task) -> Result<Outcome<LatFound>, Error> {
        self.begin(&task);
        self.session.play(task, |run| {
            let of_sockets =
                |found: lat::Found| (found.times, found.usage, Some(found.first_reply));
            let (times, usage, first_reply) = match task.settings.level {
                Level::Socket => of_sockets(lat::measure(run)?),
                Level::Tasks => of_sockets(tasks::measure(run)?),
                Level::Domain => {
                    let found = bare::measure(run)?;
                    (found.times, found.usage, None)
                }
            };
            let there = run.figures()?;
            let server = Spent { usage: there.usage, messages: there.messages };
            let (seconds, messages) = (usage.seconds, task.count);
            let client = Spent { usage, messages };
            Ok(Outcome { found: (times, first_reply), seconds, client, server })
        })
    }

    fn stream(&self, task: Task) -> Result<Outcome<()>, Error> {
        self.begin(&task);
        self.session.play(task, |run| {
            let usage = match task.settings.level {
                Level::Domain => bare::measure(run)?.usage,
                Level::Socket | Level::Tasks => bw::measure(run)?,
            };
            let there = run.figures()?;
            // Remote memory is moved from this side alone: the other one has no clock for it.
            let here = task.settings.op != Op::Send;
            let seconds = if here { usage.seconds } else { there.usage.seconds };
            let client = Spent { usage, messages: task.count };
            let server = Spent { usage: there.usage, messages: there.messages };
            Ok(Outcome { found: (), seconds, client, server })
        })
    }

    fn publish(&self, task: Task) -> Result<Outcome<(u64, u64, u64)>, Error> {
        self.begin(&task);
        self.session.play(task, |run| {
            let found = fanout::measure(run)?;
            let there = run.figures()?;
            let seconds = found.usage.seconds;
            let client = Spent { usage: found.usage, messages: found.timed };
            let published = there.messages * task.peers as u64;
            let server = Spent { usage: there.usage, messages: published };
            Ok(Outcome {
                found: (found.arrived, found.timed, there.dropped),
                seconds,
                client,
                server,
            })
        })
    }

    fn silence(&self, task: Task) -> Result<Outcome<idle::Found>, Error> {
        self.begin(&task);
        let found = self.session.play(task, idle::measure)?;
        let seconds = found.streamed.usage.seconds;
        let nothing = || Spent { usage: Usage::default(), messages: 0 };
        Ok(Outcome { found, seconds, client: nothing(), server: nothing() })
    }

    fn begin(&self, task: &Task) {
        let of = match task.test {
            Test::Fanout => format!(", {} subscribers", task.peers),
            Test::Idle => format!(", {} silent peers", task.peers),
            Test::Lat | Test::Bw => String::new(),
        };
        let each = if task.test == Test::Fanout { task.peers as u64 } else { 1 };
        let what = format!("{} bytes{of}", task.size);
        self.session.progress.begin(&what, task.count.saturating_mul(each));
    }
}

/// Times, and the time to the first reply where it is known.
type LatFound = (crate::times::Times, Option<Duration>);

impl Spent {
    fn cost(&self, counted: Option<&Self>) -> Cost {
        Cost::of(&self.usage, self.messages, counted.map(|run| (&run.usage, run.messages)))
    }
}
