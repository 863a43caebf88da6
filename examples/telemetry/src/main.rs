//! A telemetry fan-out: one station publishes readings, watchers come and go, and who comes late gets
//! the last reading of each sensor first.
//!
//! `cargo run -p telemetry` shows it. `telemetry publish ADDR` and `telemetry watch ADDR` are its two
//! halves, for as many hosts as there are.

#![forbid(unsafe_code)]

#[path = "../../common/say.rs"]
mod say;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use msg_patterns::{Context, Error, Message, OnFull, Pub, Sub};
use say::{ended, say};

const SENSORS: [&str; 4] =
    ["boiler/pressure", "boiler/temperature", "hall/humidity", "hall/temperature"];
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Parser)]
#[command(about = "Readings to watchers that come and go")]
struct Cli {
    /// Where station and watchers of the show meet
    #[arg(long, value_name = "URL", default_value = "tcp://127.0.0.1:0")]
    addr: String,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Publishes a reading of each sensor, once a second
    Publish {
        /// Where to listen
        addr: String,
        /// After so many rounds, end
        #[arg(long, default_value_t = 60)]
        rounds: u32,
    },
    /// Prints readings
    Watch {
        /// Where the station listens
        addr: String,
        /// Only of sensors whose names begin like this
        #[arg(default_value = "")]
        topic: String,
        /// After so many readings, end
        #[arg(long, default_value_t = 100)]
        count: u32,
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
        Some(Part::Publish { addr, rounds }) => publish(&context, &addr, rounds),
        Some(Part::Watch { addr, topic, count }) => {
            let watcher = Watcher::new(&context, &addr, &topic)?;
            (0..count).try_for_each(|_| Ok(say(watcher.next()?)?))
        }
    }
}

fn publish(context: &Context, addr: &str, rounds: u32) -> Result<(), Box<dyn std::error::Error>> {
    let station = Station::new(context, addr)?;
    say(format_args!("publishing at {}", station.addr()))?;
    for round in 0..rounds {
        station.publish(round)?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// One watcher is there from the beginning, another one comes before the last of ten rounds.
fn show(context: &Context, addr: &str) -> Result<(), Box<dyn std::error::Error>> {
    let station = Station::new(context, addr)?;
    let early = Watcher::new(context, &station.addr(), "boiler/")?;
    station.wait_for(1)?;
    (0..9).try_for_each(|round| station.publish(round))?;
    let late = Watcher::new(context, &station.addr(), "")?;
    station.wait_for(2)?;
    station.publish(9)?;
    report("early, boiler only", &early.take(2 * 10)?, &early)?;
    report("late, all sensors", &late.take(2 * SENSORS.len())?, &late)?;
    Ok(())
}

fn report(who: &str, readings: &[String], watcher: &Watcher) -> io::Result<()> {
    say(format_args!("{who}: {} readings, {} lost", readings.len(), watcher.0.lost()))?;
    readings.iter().try_for_each(|reading| say(format_args!("  {reading}")))
}

/// Whoever has readings.
struct Station(Pub);

impl Station {
    /// Remembers one reading of each sensor for those that come late. A watcher that does not read loses
    /// readings, and is told how many; it holds up nobody.
    fn new(context: &Context, addr: &str) -> Result<Self, Error> {
        let publisher =
            Pub::builder().history(SENSORS.len()).on_full(OnFull::Drop).build(context)?;
        publisher.bind(addr)?;
        Ok(Self(publisher))
    }

    fn addr(&self) -> String {
        self.0.last_endpoint().map(|addr| addr.to_string()).unwrap_or_default()
    }

    fn wait_for(&self, watchers: usize) -> Result<(), Error> {
        self.0.wait_matching(SENSORS[0], watchers, PATIENCE)
    }

    fn publish(&self, round: u32) -> Result<(), Error> {
        for (at, sensor) in SENSORS.iter().enumerate() {
            let value = format!("{} in round {round}", 20 + (at as u32 * 7 + round) % 10);
            self.0.send(Message::from_parts([(*sensor).to_owned(), value]))?;
        }
        Ok(())
    }
}

/// Whoever wants to know.
struct Watcher(Sub);

impl Watcher {
    fn new(context: &Context, addr: &str, topic: &str) -> Result<Self, Error> {
        let sub = Sub::new(context)?;
        sub.subscribe(topic)?;
        sub.connect(addr)?;
        Ok(Self(sub))
    }

    fn next(&self) -> Result<String, Error> {
        let message = self.0.recv_timeout(PATIENCE)?;
        let words = message.parts().iter().map(|part| String::from_utf8_lossy(part));
        Ok(words.collect::<Vec<_>>().join(": "))
    }

    fn take(&self, count: usize) -> Result<Vec<String>, Error> {
        (0..count).map(|_| self.next()).collect()
    }
}
