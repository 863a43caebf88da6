//! `fabric pull`.

use msg_patterns::Pull;

use super::receive::receive_all;
use crate::args::{Global, PullArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::stage::{Side, Stage};
use crate::tally::Tally;

/// Pulls and writes out.
///
/// # Errors
/// Why it ended early.
pub(crate) fn run(args: &PullArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::new(global, &args.tuning)?;
    let mut output = Output::open(&args.store)?;
    let socket = stage.open(args.tuning.apply(Pull::builder()), &args.ends, Side::Bind)?;
    let mut tally = Tally::new(args.tuning.digest(), stage.style, args.tuning.count);
    let outcome = receive_all(&socket, &args.store, &args.tuning, &mut output, &mut tally);
    stage.finish("pull", socket, tally, outcome).map(drop)
}
