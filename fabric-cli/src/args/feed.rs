//! Where messages to send come from.

use std::path::PathBuf;

use clap::Args;

use crate::units::{parse_len, parse_some_len};

/// What to send; without any of these, standard input line by line.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Feed {
    /// Send each line of this file
    #[arg(long, value_name = "FILE", group = "source")]
    pub(crate) lines: Option<PathBuf>,
    /// Send this file as one message, or in pieces with --chunk
    #[arg(long, value_name = "FILE", group = "source")]
    pub(crate) file: Option<PathBuf>,
    /// Send --file in pieces of this size
    #[arg(long, value_name = "SIZE", requires = "file", value_parser = parse_some_len)]
    pub(crate) chunk: Option<usize>,
    /// Send N messages of --size
    #[arg(long, value_name = "N", group = "source")]
    pub(crate) repeat: Option<u64>,
    /// Size of the messages of --repeat
    #[arg(long, value_name = "SIZE", requires = "repeat", default_value = "64", value_parser = parse_len)]
    pub(crate) size: usize,
}
