//! Hosts made of small files, so that every finding can be shown anywhere.
//!
//! A `.tree` file has a line for each file: its path, a colon, its text; or, after `->`, where a
//! link points. Text on several lines stands indented below the path.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use fabric_doctor::{Earlier, Options, Report, Root, SCHEMES, examine};
use tempfile::TempDir;

/// A host. Each change gives the changed host.
pub(crate) struct Tree {
    dir: TempDir,
}

/// One RoCE port on `ens2`, in order.
pub(crate) fn roce() -> Tree {
    Tree::empty().with(include_str!("roce.tree"))
}

/// The same on an InfiniBand fabric.
pub(crate) fn infiniband() -> Tree {
    roce().with(include_str!("infiniband.tree"))
}

/// A second RoCE port on `eth1`.
pub(crate) fn two_cards() -> Tree {
    roce().with(include_str!("second.tree"))
}

/// No RDMA at all.
pub(crate) fn plain() -> Tree {
    Tree::empty().with(include_str!("plain.tree"))
}

/// A soft-RoCE link on `eth0`, in order.
pub(crate) fn soft() -> Tree {
    plain().with(include_str!("soft.tree"))
}

impl Tree {
    fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With all that a tree's text names.
    pub(crate) fn with(self, tree: &str) -> Self {
        let mut last = None;
        for line in tree.lines().filter(|line| !line.starts_with('#')) {
            match (line.strip_prefix('/'), &last) {
                (Some(_), _) => last = Some(self.entry(line)),
                (None, Some(path)) => append(path, line.strip_prefix("  ").unwrap_or(line)),
                (None, None) => panic!("text without a path: {line}"),
            }
        }
        self
    }

    /// With this text in this file.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// Without this file or directory.
    pub(crate) fn without(self, path: &str) -> Self {
        let at = self.at(path);
        let gone = if at.is_dir() { fs::remove_dir_all(at) } else { fs::remove_file(at) };
        gone.unwrap();
        self
    }

    /// With these permissions.
    pub(crate) fn mode(self, path: &str, mode: u32) -> Self {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// With a limit of locked memory for the process, in bytes.
    pub(crate) fn locked(self, bytes: &str) -> Self {
        let files = "Max open files            65536                65536                files";
        let locked = format!("Max locked memory         {bytes}              {bytes}    bytes");
        self.file("/proc/self/limits", &format!("{files}\n{locked}\n"))
    }

    /// What the doctor says.
    pub(crate) fn report(&self) -> Report {
        self.report_with(Options::default())
    }

    /// What the doctor says with the way to a peer.
    pub(crate) fn report_to(&self, peer: &str) -> Report {
        let target = Some(peer.parse().unwrap());
        self.report_with(Options { target, ..Options::default() })
    }

    /// What the doctor says after what it said earlier.
    pub(crate) fn report_after(&self, earlier: &Report) -> Report {
        let earlier = Some(Earlier::parse(&earlier.to_json().unwrap()).unwrap());
        self.report_with(Options { earlier, ..Options::default() })
    }

    /// What the doctor says with these options; every scheme is compiled in.
    pub(crate) fn report_with(&self, options: Options<'_>) -> Report {
        examine(&Root::tree(self.dir.path()), &Options { built: SCHEMES.to_vec(), ..options })
    }

    fn entry(&self, line: &str) -> PathBuf {
        if let Some((path, to)) = line.split_once(" -> ") {
            let at = self.at(path);
            symlink(to, &at).unwrap();
            return at;
        }
        let (path, text) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        self.write(path, text)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let at = self.at(path);
        fs::write(&at, format!("{text}\n")).unwrap();
        if path.starts_with("/dev/") {
            fs::set_permissions(&at, fs::Permissions::from_mode(0o666)).unwrap();
        }
        at
    }

    fn at(&self, path: &str) -> PathBuf {
        let at = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        at
    }
}

fn append(path: &Path, line: &str) {
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{}{line}\n", before.trim_start_matches('\n'))).unwrap();
}
