//! Where received messages go.

use std::path::PathBuf;

use clap::Args;

/// What to do with what comes; without any of these, one line each on standard output, the parts of
/// a message with a tab in between.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Store {
    /// Write the bytes as they are, with nothing in between
    #[arg(long, conflicts_with_all = ["json", "out_dir"])]
    pub(crate) raw: bool,
    /// Write one JSON object a line: {"n", "bytes", "parts": [{"bytes", "text" or "hex"}]}
    #[arg(long, conflicts_with = "out_dir")]
    pub(crate) json: bool,
    /// Write to this file instead; as --raw does, unless --json is given
    #[arg(long, value_name = "FILE", conflicts_with = "out_dir")]
    pub(crate) output: Option<PathBuf>,
    /// Write each message to a file of its own there: 1, 2, 3…
    #[arg(long, value_name = "DIR")]
    pub(crate) out_dir: Option<PathBuf>,
    /// Write nothing; for counting and checksums
    #[arg(long, conflicts_with_all = ["raw", "json", "output", "out_dir"])]
    pub(crate) discard: bool,
    /// Leave out the first part of messages that have several, such as the topic
    #[arg(long)]
    pub(crate) body: bool,
    /// Gather output while messages keep coming. Faster, but what is gathered is lost if this
    /// process is killed, though a pusher was told that it was processed
    #[arg(long)]
    pub(crate) buffered: bool,
    /// End when every peer that came has gone
    #[arg(long)]
    pub(crate) until_gone: bool,
}
