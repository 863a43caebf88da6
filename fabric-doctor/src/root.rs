//! Where files are read: below `/`, or below a directory that a test made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Nothing that is read here is larger; what is, is cut.
const BYTES_MAX: u64 = 32 << 20;

/// The directory that stands for `/`. Everything is only read.
#[derive(Debug, Clone)]
pub struct Root {
    dir: PathBuf,
}

/// Whose a file is, and what it lets others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Root {
    /// This host.
    pub fn host() -> Self {
        Self::tree("/")
    }

    /// A directory that looks like a host: it has `sys`, `proc`, `dev`, `etc` and so on, as far as
    /// a test cares.
    pub fn tree(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Whether this is the host that runs us, so that the kernel may be asked, too.
    pub(crate) fn is_host(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// A text without the white space around it. What cannot be read is as if it were not there:
    /// unreadable files are the rule where checks run unprivileged.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes(path)?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The number at the beginning of a text: decimal, or hexadecimal after `0x`.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        let text = self.read(path)?;
        let word = text.split_whitespace().next()?;
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    }

    /// All bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.at(path)).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The names in a directory, in an order for people: `mlx5_2` before `mlx5_10`.
    pub(crate) fn list(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(dir)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_by_key(|name| natural(name));
        names
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The last part of what a symbolic link points to.
    pub(crate) fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    pub(crate) fn owner(&self, path: &str) -> Option<Owner> {
        let facts = fs::metadata(self.at(path)).ok()?;
        Some(Owner { mode: facts.mode() & 0o777, uid: facts.uid(), gid: facts.gid() })
    }

    /// Whether a device file opens; it is closed at once.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn opens(&self, path: &str) -> io::Result<()> {
        OpenOptions::new().read(true).write(true).open(self.at(path)).map(drop)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }
}

/// The parts of a name, with its numbers as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_numbers_stand_in_the_order_of_the_numbers() {
        let mut names = ["mlx5_10", "mlx5_2", "a", "mlx5_2x", ""];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["", "a", "mlx5_2", "mlx5_2x", "mlx5_10"]);
    }

    #[test]
    fn numbers_are_read_as_the_kernel_writes_them() {
        let dir = tempfile::tempdir().unwrap();
        for (text, number) in [("0x1f\n", Some(31)), ("4: ACTIVE", None), ("12 a", Some(12))] {
            fs::write(dir.path().join("n"), text).unwrap();
            assert_eq!(Root::tree(dir.path()).number("/n"), number, "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        let root = Root::tree("/nonexistent");
        assert_eq!(root.read("/a"), None);
        assert!(root.list("/a").is_empty() && root.owner("/a").is_none());
        assert!(root.opens("/a").is_err() && !root.is_host() && Root::host().is_host());
    }
}
