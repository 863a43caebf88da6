//! The arguments of `fabric proxy`.

use clap::{Args, ValueEnum};

use super::{Ends, Queues};

/// What a proxy carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyKind {
    /// What publishers in front publish, to subscribers behind who asked for it
    Forwarder,
    /// What pushers in front push, to pullers behind in turn
    Streamer,
    /// Requests of whoever asks in front, to repliers behind in turn, and the replies back
    Queue,
}

impl ProxyKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forwarder => "forwarder",
            Self::Streamer => "streamer",
            Self::Queue => "queue",
        }
    }
}

/// At least one address in front and one behind.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProxyArgs {
    /// What to carry
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: ProxyKind,
    /// Listen there for publishers, pushers or who asks; may be repeated
    #[arg(long, value_name = "URL", required_unless_present = "front_connect")]
    front: Vec<String>,
    /// Connect to them there; may be repeated
    #[arg(long, value_name = "URL")]
    front_connect: Vec<String>,
    /// Listen there for subscribers, pullers or repliers; may be repeated
    #[arg(long, value_name = "URL", required_unless_present = "back_connect")]
    back: Vec<String>,
    /// Connect to them there; may be repeated
    #[arg(long, value_name = "URL")]
    back_connect: Vec<String>,
    /// Publish a copy of all that passes there, for `fabric sub`; who is too slow for it misses some
    #[arg(long, value_name = "URL")]
    pub(crate) capture: Option<String>,
    #[command(flatten)]
    pub(crate) queues: Queues,
}

impl ProxyArgs {
    pub(crate) fn front(&self) -> Ends {
        ends(&self.front, &self.front_connect)
    }

    pub(crate) fn back(&self) -> Ends {
        ends(&self.back, &self.back_connect)
    }
}

fn ends(bind: &[String], connect: &[String]) -> Ends {
    Ends { url: None, bind: bind.to_vec(), connect: connect.to_vec() }
}
