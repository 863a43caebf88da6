//! The show, over TCP and shared memory.

#[path = "../../common/run.rs"]
mod run;

use run::{Over, program, without_reader};

fn shows(over: Over) {
    let Some(addr) = over.addr() else { return };
    let said = program(env!("CARGO_BIN_EXE_telemetry"), &["--addr", &addr]);
    let has = |line: &str| assert!(said.lines().any(|said| said == line), "no `{line}` in\n{said}");
    has("early, boiler only: 20 readings, 0 lost");
    has("late, all sensors: 8 readings, 0 lost");
    for round in 0..10 {
        let readings = said.lines().filter(|line| line.ends_with(&format!(" in round {round}")));
        let late = if round >= 8 { 4 } else { 0 };
        assert_eq!(readings.count(), 2 + late, "round {round} in\n{said}");
    }
}

#[test]
fn who_comes_late_gets_the_last_round_first_over_tcp() {
    shows(Over::Tcp);
}

#[test]
fn who_comes_late_gets_the_last_round_first_over_shared_memory() {
    shows(Over::SharedMemory);
}

#[test]
fn a_reader_that_goes_is_no_fault() {
    without_reader(env!("CARGO_BIN_EXE_telemetry"), &[]);
}
