//! How the command ends.

use std::fmt;
use std::io;
use std::process::ExitCode;

use msg_patterns::{Error, ErrorKind, SendError};

/// Why a run did not succeed. Usage errors are reported before a run begins, with code 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Something failed; one line that says what to do.
    Failed(String),
    /// A time limit passed before everything, or anything, came or left.
    TimedOut(String),
    /// A signal asked to end.
    Interrupted,
    /// Whoever read the output is gone: an end, not an error.
    OutputClosed,
}

impl Failure {
    /// A failure with its one line.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// A failure to read or write what `name` names.
    pub(crate) fn io(name: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(format!("{name}: {error}")),
        }
    }

    /// The code that scripts see.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::TimedOut(_) => 3,
            Self::Interrupted => INTERRUPTED,
            Self::OutputClosed => 0,
        }
    }

    /// The line for standard error, if there is something to say.
    pub(crate) fn line(&self) -> Option<String> {
        match self {
            Self::Failed(text) | Self::TimedOut(text) => Some(one_line(text)),
            Self::Interrupted | Self::OutputClosed => None,
        }
    }
}

/// Ended by a signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// The part of `--help` about exit codes.
pub(crate) const CODES: &str = "\
Exit codes:
  0    everything asked for was done
  1    something failed; one line on standard error says what to do
  2    the command line makes no sense
  3    the time limit passed: nothing came, or not everything came or left
  130  ended by Ctrl-C or SIGTERM, after a clean close within linger";

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        Self::from(failure.code())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut => Self::TimedOut(error.to_string()),
            // Only the signal handler ends sockets that are in use.
            ErrorKind::Terminated => Self::Interrupted,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        error.error.into()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(Failure::new("a\n  b").line().as_deref(), Some("a b"));
    }

    #[test]
    fn a_closed_output_is_no_error() {
        let closed = Failure::io("out")(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((closed.code(), closed.line()), (0, None));
    }
}
