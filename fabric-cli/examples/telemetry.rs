//! Writes the measurements that `fabric demo` sends, the same each time:
//! `cargo run -p fabric-cli --example telemetry > fabric-cli/data/telemetry.csv`.
//!
//! Twelve machines of three halls report temperature, power and vibration every ten seconds for a
//! little over twenty minutes. Values wander around what is normal for the machine, drawn from a
//! generator with a fixed seed.

use std::io::{self, Write as _};

/// Lines of the file without its head.
const LINES: u32 = 4680;
const START_S: u64 = 1_760_000_000;
const SENSORS: [(&str, &str, i64, i64); 3] = [
    ("temperature", "C", 68_000, 900),
    ("power", "W", 410_000, 6000),
    ("vibration", "mm/s", 2100, 70),
];

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(telemetry().as_bytes())
}

/// The whole file.
pub(crate) fn telemetry() -> String {
    let mut dice = Dice(0x5eed);
    let mut drift = [[0_i64; 3]; 12];
    let head = "time,hall,machine,sensor,value,unit\n".to_owned();
    (0..LINES).fold(head, |text, line| text + &row(line, &mut drift, &mut dice))
}

fn row(line: u32, drift: &mut [[i64; 3]; 12], dice: &mut Dice) -> String {
    let (sensor, machine) = ((line % 3) as usize, (line / 3 % 12) as usize);
    let time = START_S + u64::from(line / 36) * 10;
    let (name, unit, normal, spread) = SENSORS[sensor];
    let wander = &mut drift[machine][sensor];
    *wander = *wander * 9 / 10 + dice.roll(spread);
    let milli = normal + machine as i64 * spread + *wander;
    let value = format!("{}.{:03}", milli / 1000, milli.rem_euclid(1000));
    format!("{time},hall-{},m{:02},{name},{value},{unit}\n", machine / 4 + 1, machine + 1)
}

/// A linear congruential generator: plain, and the same everywhere.
struct Dice(u64);

impl Dice {
    /// A number from `-spread` to `spread`.
    fn roll(&mut self, spread: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % (2 * spread + 1) - spread
    }
}
