//! What a program says, perhaps to nobody any more.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Writes a line to standard output.
///
/// # Errors
/// When nobody reads it any more (`| head`), which is a reason to end but no fault: see [`ended`].
pub(crate) fn say(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// How a program ends that ended so.
pub(crate) fn ended(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Err(error) if !has_no_reader(&*error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn has_no_reader(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
