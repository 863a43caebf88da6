//! Where things are, below the build directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guest;
use crate::process::target_dir;
use crate::suite::Suite;

/// The directory of the matrix.
#[derive(Debug)]
pub(super) struct Place {
    /// The workspace.
    pub(super) workspace: PathBuf,
    dir: PathBuf,
    share: PathBuf,
}

impl Place {
    /// Of this workspace's build directory.
    pub(super) fn new(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            dir: target_dir(workspace).join("matrix"),
            share: guest::share_dir(workspace),
        }
    }

    /// Everything in one directory.
    #[cfg(test)]
    pub(super) fn below(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { workspace: dir.clone(), share: dir.join("share"), dir }
    }

    /// A release of the distribution; its lists are fetched once.
    ///
    /// # Errors
    /// When they cannot be.
    pub(super) fn suite(&self, name: &str) -> Result<Suite, String> {
        Suite::open(&self.dir.join("suites").join(name), name)
    }

    /// Something below it; directories above are made.
    ///
    /// # Errors
    /// When they cannot be.
    pub(super) fn join(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.dir.join(path);
        let above = path.parent().unwrap_or(&self.dir);
        fs::create_dir_all(above).map_err(|error| format!("{}: {error}", above.display()))?;
        Ok(path)
    }

    /// What the guest of a row writes, as it is seen here; the guest sees it as [`seen`].
    pub(super) fn results(&self, row: &str) -> PathBuf {
        self.share.join("matrix").join(row)
    }
}

/// What the guest of a row writes, as it is seen there.
pub(super) fn seen(row: &str) -> String {
    format!("/share/matrix/{row}")
}

/// Removes a directory with all that is in it, if it is there.
///
/// # Errors
/// When it stays.
pub(super) fn remove(dir: &Path) -> Result<(), String> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Does something to a directory that is not there yet; it appears when all of it is done.
///
/// # Errors
/// As `make`, and when the directory cannot be put in its place.
pub(super) fn once(
    dir: &Path,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    if dir.exists() {
        return Ok(());
    }
    let part = dir.with_extension("part");
    remove(&part)?;
    fs::create_dir_all(&part).map_err(|error| format!("{}: {error}", part.display()))?;
    make(&part)?;
    fs::rename(&part, dir).map_err(|error| format!("{}: {error}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_is_made_again_and_what_is_complete_is_not() {
        let dir = std::env::temp_dir().join(format!("once-{}", std::process::id()));
        assert!(once(&dir, |_| Err("cut short".into())).is_err() && !dir.exists());
        let make = |part: &Path| fs::write(part.join("a"), []).map_err(|error| error.to_string());
        once(&dir, make).unwrap();
        assert!(dir.join("a").exists());
        once(&dir, |_| Err("made again".into())).unwrap();
        remove(&dir).unwrap();
        remove(&dir).unwrap();
    }
}
