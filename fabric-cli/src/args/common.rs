//! Addresses and settings, which all sockets have.

use std::time::Duration;

use clap::Args;
use msg_patterns::{Builder, Linger, Socket};

use crate::digest::Digest;
use crate::units::{parse_len, parse_some_len, parse_time};

/// Where to bind and connect.
#[derive(Debug, Clone, Args)]
pub(crate) struct Ends {
    /// Address: pub, pull and rep listen there, sub, push and req connect there
    #[arg(value_name = "URL", required_unless_present_any = ["bind", "connect"])]
    pub(crate) url: Option<String>,
    /// Listen there; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) bind: Vec<String>,
    /// Connect there; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) connect: Vec<String>,
}

/// Settings of any socket, and when to end.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Tuning {
    /// End after N messages
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Wait no longer than this for each message to come or leave
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,
    /// Print the SHA-256 of all data at the end
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Print the sum of the SHA-256 of each message, which does not depend on their order
    #[arg(long)]
    pub(crate) checksum_sum: bool,
    #[command(flatten)]
    pub(crate) queues: Queues,
}

/// Settings of any socket.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Queues {
    /// Messages queued for each peer, on either side; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 1000)]
    hwm: usize,
    /// Bytes queued for each peer, on either side; 0 is no limit
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_len)]
    hwm_bytes: usize,
    /// How long to wait at the end for peers to take what is left; without it as long as --timeout
    /// says, else as long as it takes, but 5s after a signal
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) linger: Option<Duration>,
    /// Largest message to send or take
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_some_len)]
    pub(crate) max_size: usize,
    /// Ask peers for a sign of life this often, and drop those that give none
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    heartbeat: Option<Duration>,
    /// Poll for so long before sleeping: faster, at the price of a core
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    busy_poll: Option<Duration>,
}

/// How long a run may take to end after a signal when `--linger` does not say.
const GRACE: Duration = Duration::from_secs(5);

impl Queues {
    /// A builder with these settings; `timeout` is how long to wait at the end where they don't say.
    pub(crate) fn apply<S: Socket>(
        &self,
        builder: Builder<S>,
        timeout: Option<Duration>,
    ) -> Builder<S> {
        builder
            .send_hwm(self.hwm)
            .recv_hwm(self.hwm)
            .send_hwm_bytes(self.hwm_bytes)
            .recv_hwm_bytes(self.hwm_bytes)
            .message_bytes_max(self.max_size)
            .linger(self.linger.or(timeout).map_or(Linger::Forever, Linger::For))
            .heartbeat_interval(self.heartbeat.unwrap_or_default())
            .busy_poll(self.busy_poll.unwrap_or_default())
    }

    /// How long a run may take to end after a signal.
    pub(crate) fn grace(&self) -> Duration {
        self.linger.unwrap_or(GRACE)
    }
}

impl Tuning {
    /// A builder with these settings.
    pub(crate) fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S> {
        self.queues.apply(builder, self.timeout)
    }

    /// The checksums asked for.
    pub(crate) fn digest(&self) -> Digest {
        Digest::new(self.checksum, self.checksum_sum)
    }
}
