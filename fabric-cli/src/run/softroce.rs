//! `fabric softroce`.

use std::io::{self, Write as _};

use fabric_softroce::Link;
use msg_patterns::Error;
use serde::Serialize;

use crate::args::SoftRoce;
use crate::exit::Failure;

/// Does it, and prints the links that it is about.
///
/// # Errors
/// What the kernel or this host lacks, and what to do.
pub(crate) fn run(what: &SoftRoce) -> Result<(), Failure> {
    match what {
        SoftRoce::Add(args) => add(&args.interface, args.name.as_deref()),
        SoftRoce::Del(args) => Ok(fabric_softroce::remove(&args.name).map_err(Error::from)?),
        SoftRoce::List(args) => list(if args.json { as_json } else { as_text }),
    }
}

fn add(interface: &str, name: Option<&str>) -> Result<(), Failure> {
    let default = format!("rxe_{interface}");
    let made = fabric_softroce::add(name.unwrap_or(&default), interface).map_err(Error::from)?;
    print(&as_text(&made))
}

fn list(shown: fn(&Link) -> String) -> Result<(), Failure> {
    let links = fabric_softroce::links().map_err(Error::from)?;
    links.iter().try_for_each(|link| print(&shown(link)))
}

fn print(line: &str) -> Result<(), Failure> {
    writeln!(io::stdout().lock(), "{line}").map_err(Failure::io("standard output"))
}

fn as_text(link: &Link) -> String {
    let Link { name, interface, .. } = link;
    if link.active {
        format!("{name} on {interface}, active")
    } else {
        format!("{name} on {interface}, down until `ip link set {interface} up`")
    }
}

/// A link as programs read it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    interface: &'a str,
    active: bool,
}

fn as_json(link: &Link) -> String {
    let shown = Shown { name: &link.name, interface: &link.interface, active: link.active };
    // Strings and a truth value can always be written.
    serde_json::to_string(&shown).unwrap_or_default()
}
