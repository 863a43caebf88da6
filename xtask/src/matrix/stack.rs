//! The user space of a release: a small root with the C library, the RDMA libraries and libfabric.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::grid::Stack;
use super::place::{Place, once};

const C_LIBRARY: &str = "libc6";

/// What has the same name in every release.
const PACKAGES: &[&str] = &[
    "libgcc-s1",
    "libatomic1",
    "libnl-3-200",
    "libnl-route-3-200",
    "libibverbs1",
    "ibverbs-providers",
    "libnuma1",
    "libpsm2-2",
    "libfabric1",
];

/// Where drivers of libibverbs are, in such a root.
pub(super) const DRIVERS: &str = "usr/lib/x86_64-linux-gnu/libibverbs";

/// An unpacked user space.
#[derive(Debug)]
pub(super) struct UserSpace {
    /// What to take for a root.
    pub(super) root: PathBuf,
    /// Names and versions of its packages.
    pub(super) packages: BTreeMap<String, String>,
}

/// Fetches and unpacks it, once.
///
/// # Errors
/// When a package cannot be fetched or unpacked.
pub(super) fn fetch(place: &Place, stack: &Stack) -> Result<UserSpace, String> {
    let dir = place.join(&format!("stacks/{}", stack.name))?;
    once(&dir, |part| unpack(place, stack, part))?;
    let list = dir.join("packages");
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    Ok(UserSpace { root: dir.join("root"), packages: versions(&text) })
}

fn unpack(place: &Place, stack: &Stack, dir: &Path) -> Result<(), String> {
    println!("matrix: fetching the user space of {}", stack.suite);
    let root = dir.join("root");
    let packages = [PACKAGES, stack.packages].concat();
    let mut lines = place.suite(stack.suite)?.unpack(&packages, &root)?;
    let suite = place.suite(stack.libc.unwrap_or(stack.suite))?;
    lines.extend(suite.unpack(&[C_LIBRARY], &root)?);
    link_loader(&root)?;
    let list = dir.join("packages");
    fs::write(&list, lines.join("\n")).map_err(|error| format!("{}: {error}", list.display()))
}

/// Programs name their loader by a path that newer packages leave to a link.
fn link_loader(root: &Path) -> Result<(), String> {
    for name in ["lib", "lib64"] {
        let link = root.join(name);
        if !link.exists() {
            symlink(Path::new("usr").join(name), &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
    }
    Ok(())
}

fn versions(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_list_is_a_package_and_its_version() {
        let known = versions("libc6 2.36-9+deb12u14\nlibibverbs1 44.0-2\n");
        assert_eq!(known["libibverbs1"], "44.0-2");
        assert_eq!(known.len(), 2);
    }

    #[test]
    fn a_root_without_the_loaders_directory_gets_a_link_to_it() {
        let root = std::env::temp_dir().join(format!("loader-{}", std::process::id()));
        fs::create_dir_all(root.join("lib64")).unwrap();
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        link_loader(&root).unwrap();
        assert!(root.join("lib").is_symlink() && !root.join("lib64").is_symlink());
        fs::remove_dir_all(&root).unwrap();
    }
}
