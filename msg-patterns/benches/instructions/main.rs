//! Hot paths to count instructions of: `cargo xtask instructions` runs each under callgrind.
//!
//! `instructions NAME` runs one path with everything set up; only what happens inside [`measured`]
//! counts, on the thread that does it. The last line of output says how often it happened. Fabrics
//! tell a time that stands still, so that batches do not depend on how slow the simulated processor
//! is.

mod layers;
mod sockets;
mod stepped;

/// A path by its name, and what one of it is.
type Path = (&'static str, fn() -> u64);

const PATHS: &[Path] = &[
    ("encode", layers::encode),
    ("decode", layers::decode),
    ("recycle", layers::recycle),
    ("turn", sockets::turn),
    ("push", sockets::push),
    ("pull", sockets::pull),
    ("stream", sockets::stream),
    ("stream_many", sockets::stream_many),
    ("publish", sockets::publish),
    ("deliver", sockets::deliver),
    ("publish_64", sockets::publish_64),
    ("round_trip", sockets::round_trip),
];

fn main() {
    let name = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    match name {
        None => PATHS.iter().for_each(|(name, _)| println!("{name}")),
        Some(name) => match PATHS.iter().find(|(known, _)| *known == name) {
            Some((_, run)) => println!("{}", run()),
            None => std::process::exit(2),
        },
    }
}

/// Runs what counts. Its name is what callgrind looks for.
#[inline(never)]
pub(crate) fn measured<T>(run: impl FnOnce() -> T) -> T {
    run()
}
