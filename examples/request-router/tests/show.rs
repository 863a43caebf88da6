//! The show, over TCP and shared memory.

#[path = "../../common/run.rs"]
mod run;

use run::{Over, program, without_reader};

fn shows(over: Over) {
    let Some(addr) = over.addr() else { return };
    let said = program(env!("CARGO_BIN_EXE_request-router"), &["--addr", &addr]);
    let has = |line: &str| assert!(said.lines().any(|said| said == line), "no `{line}` in\n{said}");
    has("endless: expired");
    for part in 0..3_u64 {
        let squares: Vec<_> = (0..10).map(|at| (10 * part + at).pow(2).to_string()).collect();
        has(&format!("client {part}: {}", squares.join(" ")));
    }
}

#[test]
fn each_client_gets_its_replies_and_what_never_ends_expires_over_tcp() {
    shows(Over::Tcp);
}

#[test]
fn each_client_gets_its_replies_and_what_never_ends_expires_over_shared_memory() {
    shows(Over::SharedMemory);
}

#[test]
fn a_reader_that_goes_is_no_fault() {
    without_reader(env!("CARGO_BIN_EXE_request-router"), &[]);
}
