//! Sockets used by tasks: on several executors, over several fabrics.

#[macro_use]
mod support;

mod cancel;
mod life;
mod mixed;
mod patterns;
mod proxies;
mod ready;
mod streams;
