//! Soft-RoCE links.

use clap::{Args, Subcommand};

/// What to do with soft-RoCE links. Everybody may list; the rest takes `CAP_NET_ADMIN`.
#[derive(Debug, Subcommand)]
pub(crate) enum SoftRoce {
    /// Make a link on an Ethernet interface; it stays until it is removed or the host goes down
    Add(AddArgs),
    /// Remove a link; whoever uses it loses it
    Del(DelArgs),
    /// List the links and the interfaces that they are on
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Interface that the packets take, such as eth0; `ip link` lists them
    pub(crate) interface: String,
    /// Name of the device; by default rxe_ and the interface's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DelArgs {
    /// Name of the device, as listed
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Write one JSON object a line: {"name", "interface", "active"}
    #[arg(long)]
    pub(crate) json: bool,
}
