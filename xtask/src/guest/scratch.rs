//! Files that a guest needs while it runs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A directory of its own for a machine, emptied with it.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Below `cache`, named after this process.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(cache: &Path) -> Result<Self, String> {
        sweep(cache);
        let dir = cache.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Self(dir))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        let written = File::create(&path).and_then(|mut file| file.write_all(content));
        written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Removes what runs left behind that were killed.
fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix("run-").map(|id| Path::new("/proc").join(id));
        if process.is_some_and(|process| !process.exists()) {
            // Only room on the disk is lost when it stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only room on the disk is lost when it stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_behind_is_removed_and_nothing_else() {
        let cache = std::env::temp_dir().join(format!("scratch-{}", std::process::id()));
        // No process has this number.
        fs::create_dir_all(cache.join("run-4194305")).unwrap();
        fs::create_dir_all(cache.join("share")).unwrap();
        let scratch = Scratch::new(&cache).unwrap();
        scratch.write("a", b"b").unwrap();
        assert!(!cache.join("run-4194305").exists() && cache.join("share").exists());
        let dir = scratch.path().to_owned();
        drop(scratch);
        assert!(!dir.exists());
        fs::remove_dir_all(cache).unwrap();
    }
}
