//! The show, over TCP and shared memory.

#[path = "../../common/run.rs"]
mod run;

use run::{Over, program, without_reader};

fn shows(over: Over) {
    let Some(addr) = over.addr() else { return };
    let said = program(env!("CARGO_BIN_EXE_work-queue"), &["--addr", &addr]);
    let has = |line: &str| assert!(said.lines().any(|said| said == line), "no `{line}` in\n{said}");
    has("200 of 200 tasks done, 3 of 5 workers crashed");
    has(&format!("the squares add up to {}", (0..200_u64).map(|task| task * task).sum::<u64>()));
}

#[test]
fn tasks_of_crashed_workers_are_done_by_others_over_tcp() {
    shows(Over::Tcp);
}

#[test]
fn tasks_of_crashed_workers_are_done_by_others_over_shared_memory() {
    shows(Over::SharedMemory);
}

#[test]
fn a_reader_that_goes_is_no_fault() {
    without_reader(env!("CARGO_BIN_EXE_work-queue"), &[]);
}
