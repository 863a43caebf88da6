//! The rules of `docs/patterns.md` as tests, each over every fabric here.

#[macro_use]
mod support;

mod calls;
mod closing;
mod dealer;
mod deviations;
mod endpoints;
mod extras;
mod generic;
mod heartbeat;
mod hwm;
mod life;
mod monitor;
mod pair;
mod peers;
mod pipe;
mod pipe_ack;
mod poll;
mod process;
mod proxy;
mod publish;
mod pubsub;
mod reply;
mod request;
mod request_again;
mod router;
mod router_notify;
mod sockets;
mod subscribe;
mod threads;
mod xpub;
mod xsub;
