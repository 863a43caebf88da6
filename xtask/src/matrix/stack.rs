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
    link(&root)?;
    let list = dir.join("packages");
    fs::write(&list, lines.join("\n")).map_err(|error| format!("{}: {error}", list.display()))
}

/// Links that packages make when they are installed: a loader where programs look for it, if its
/// package leaves that to the distribution's layout, and the one of several that has the name.
const LINKS: &[(&str, &str)] = &[
    ("lib", "/usr/lib"),
    ("lib64", "/usr/lib64"),
    (
        "usr/lib/x86_64-linux-gnu/libpsm_infinipath.so.1",
        "/usr/lib/libpsm1/libpsm_infinipath.so.1.16",
    ),
];

fn link(root: &Path) -> Result<(), String> {
    for (name, to) in LINKS {
        let link = root.join(name);
        if !link.exists() && root.join(to.trim_start_matches('/')).exists() {
            symlink(to, &link).map_err(|error| format!("{}: {error}", link.display()))?;
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
    fn links_are_made_where_packages_leave_them_to_their_scripts() {
        let root = std::env::temp_dir().join(format!("links-{}", std::process::id()));
        for dir in ["lib64", "usr/lib/libpsm1", "usr/lib/x86_64-linux-gnu", "usr/lib64"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        fs::write(root.join(&LINKS[2].1[1..]), []).unwrap();
        link(&root).unwrap();
        let is_link = |name: &str| root.join(name).is_symlink();
        let made = LINKS.iter().map(|(name, _)| is_link(name)).collect::<Vec<_>>();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(made, [true, false, true]);
    }
}
