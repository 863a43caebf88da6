//! The text files of the workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that people write, as opposed to data and build products.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    /// From the root of the workspace, with forward slashes.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

/// The root of the workspace this was built from.
///
/// Asked at run time: a build directory may be shared by several copies of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = manifest_dir.and_then(|dir| dir.parent().map(Path::to_path_buf));
    parent.unwrap_or_else(|| PathBuf::from("."))
}

/// Every text file below `root`, sorted by path.
///
/// # Errors
/// When a directory or a file cannot be read, with its path.
pub(crate) fn text_files(root: &Path) -> io::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<TextFile>) -> io::Result<()> {
    for entry in fs::read_dir(dir).map_err(|error| about(dir, &error))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if is_ours(&path) {
                collect(root, &path, files)?;
            }
        } else if is_text(&path) {
            files.push(read(root, &path)?);
        }
    }
    Ok(())
}

fn read(root: &Path, path: &Path) -> io::Result<TextFile> {
    let text = fs::read_to_string(path).map_err(|error| about(path, &error))?;
    let relative = path.strip_prefix(root).unwrap_or(path);
    Ok(TextFile { path: relative.to_string_lossy().replace('\\', "/"), text })
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Not the repository's own data, and no build directory, whatever its name.
fn is_ours(dir: &Path) -> bool {
    let data = dir.file_name().is_some_and(|name| name == ".git" || name == "corpus");
    !data && !dir.join("CACHEDIR.TAG").exists()
}

fn is_text(path: &Path) -> bool {
    let by_extension = path.extension().and_then(|extension| extension.to_str());
    let by_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    matches!(by_extension, Some("rs" | "toml" | "md" | "sh" | "yml" | "yaml"))
        || matches!(by_name, "run" | ".gitignore" | "exceptions.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_contains_this_file() {
        let files = text_files(&workspace_root()).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/files.rs"));
        assert!(files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
