//! libfabric of a newer release of the distribution, with the C library that it needs.
//!
//! Packages are fetched with apt, by lists of its own, and unpacked below `target`; nothing of the
//! host is changed. Programs of this host run with them through their loader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::target_dir;
use crate::suite::Suite;

/// The release that has it.
pub(super) const SUITE: &str = "trixie";

/// The library, what it links, and its headers.
const PACKAGES: &[&str] = &[
    "libc6",
    "libgcc-s1",
    "libnl-3-200",
    "libnl-route-3-200",
    "libibverbs1",
    "ibverbs-providers",
    "libnuma1",
    "libpsm2-2",
    "librdmacm1t64",
    "libfabric1",
    "libfabric-dev",
];

/// What must be installed on this host.
const INSTALLED: &[(&str, &str)] = &[
    ("usr/lib/x86_64-linux-gnu/libfabric.so.1", "libfabric1"),
    ("usr/include/rdma/fabric.h", "libfabric-dev"),
];

/// The unpacked packages.
#[derive(Debug)]
pub(super) struct Newer {
    root: PathBuf,
}

/// Makes sure that this host has libfabric; installs it when allowed to.
///
/// # Errors
/// With the command that installs what is missing.
pub(super) fn ensure_installed() -> Result<(), String> {
    let is_missing = |file: &str| !Path::new("/").join(file).exists();
    let missing: Vec<&str> = INSTALLED
        .iter()
        .filter(|(file, _)| is_missing(file))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    // A fresh host knows of no packages; the next command says what is wrong if this does not help.
    let _ = run(Command::new("apt-get").args(["update", "-q"]));
    let options = ["install", "-y", "-q", "--no-install-recommends"];
    let installed = run(Command::new("apt-get").args(options).args(&missing));
    installed.map_err(|why| {
        format!("missing on this host: run `sudo apt-get install {}` ({why})", missing.join(" "))
    })
}

impl Newer {
    /// Fetches and unpacks it, once.
    ///
    /// # Errors
    /// When it cannot be fetched: there is no apt, or no way to the mirror.
    pub(super) fn fetch(root: &Path) -> Result<Self, String> {
        let dir = target_dir(root).join("libfabric");
        let unpacked = dir.join(SUITE);
        if !unpacked.exists() {
            let parts = dir.join(format!("{SUITE}.part-{}", std::process::id()));
            let fetched = fetch_into(&parts);
            let moved = fetched.and_then(|()| {
                fs::rename(parts.join("root"), &unpacked).map_err(|error| error.to_string())
            });
            // Also what is left after a success: lists and archives.
            let cleared = fs::remove_dir_all(&parts);
            moved?;
            cleared.map_err(|error| format!("{}: {error}", parts.display()))?;
        }
        Ok(Self { root: unpacked })
    }

    /// Runs a program of this host with it.
    pub(super) fn command(&self, program: &Path) -> Command {
        let lib = self.root.join("usr/lib/x86_64-linux-gnu");
        let loader = self.root.join("usr/lib64/ld-linux-x86-64.so.2");
        let mut command = Command::new(&loader);
        command.arg("--library-path").arg(&lib).arg(program);
        // For programs that start themselves again, and for the headers.
        let words = format!("{} --library-path {}", loader.display(), lib.display());
        command.env("FABRIC_TEST_LOADER", words);
        command.env("LIBFABRIC_INCLUDE_DIR", self.root.join("usr/include"));
        command
    }
}

fn fetch_into(dir: &Path) -> Result<(), String> {
    println!("fetching libfabric of {SUITE}");
    Suite::open(dir, SUITE)?.unpack(PACKAGES, &dir.join("root")).map(drop)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
}
