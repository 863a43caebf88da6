//! The subcommands.

mod perf;
mod proxy;
mod publish;
mod pull;
mod push;
mod receive;
mod reply;
mod request;
mod send;
mod softroce;
mod subscribe;
mod worker;

use crate::args::{Command, Global};
use crate::demo;
use crate::doctor;
use crate::exit::Failure;
use crate::top;

/// Runs a subcommand.
///
/// # Errors
/// Why it did not do everything.
pub(crate) fn run(command: Command, global: &Global) -> Result<(), Failure> {
    match command {
        Command::Pub(args) => publish::run(&args, global),
        Command::Sub(args) => subscribe::run(args, global),
        Command::Push(args) => push::run(&args, global),
        Command::Pull(args) => pull::run(&args, global),
        Command::Req(args) => request::run(&args, global),
        Command::Rep(args) => reply::run(&args, global),
        Command::Proxy(args) => proxy::run(&args, global),
        Command::Demo(args) => demo::run(&args, global),
        Command::Softroce(what) => softroce::run(&what),
        Command::Perf(args) => perf::run(&args, global),
        Command::Doctor(args) => doctor::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Worker(args) => worker::run(&args, global),
    }
}
