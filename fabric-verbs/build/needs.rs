//! What building this crate needs besides Rust. The workspace's tasks ask the same, so that they
//! leave the crate out where it cannot be built.

use std::path::Path;
use std::process::{Command, Stdio};

/// The newest libclang that the bindings' generator understands.
pub(crate) const CLANG_MAX: u32 = 15;

const INSTALL: &str =
    "apt-get install libibverbs-dev librdmacm-dev pkg-config clang-14 libclang-14-dev";

/// What is missing on this host and how to get it, in one line. `named` is the directory of libclang
/// that the generator is told to take, if any.
pub(crate) fn missing(named: Option<&Path>) -> Option<String> {
    check_pkg_config().and_then(|()| check_libclang(named)).err()
}

fn check_pkg_config() -> Result<(), String> {
    for library in ["libibverbs", "librdmacm"] {
        let mut probe = Command::new("pkg-config");
        probe.args(["--exists", library]).stdout(Stdio::null()).stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            return Err(format!("{library} and its headers are not installed: {INSTALL}"));
        }
    }
    Ok(())
}

fn check_libclang(named: Option<&Path>) -> Result<(), String> {
    if let Some(path) = named {
        return match version_of(path) {
            Some(version) if version > CLANG_MAX => Err(format!(
                "LIBCLANG_PATH names libclang {version}, the bindings need {CLANG_MAX} at most: \
                 {INSTALL}, then LIBCLANG_PATH=/usr/lib/llvm-14/lib"
            )),
            _ => Ok(()),
        };
    }
    match installed().into_iter().max() {
        None => Err(format!("libclang is not installed: {INSTALL}")),
        Some(newest) if newest > CLANG_MAX => Err(format!(
            "libclang {newest} is installed and would be taken, the bindings need {CLANG_MAX} at \
             most: {INSTALL}, then set LIBCLANG_PATH=/usr/lib/llvm-14/lib"
        )),
        Some(_) => Ok(()),
    }
}

/// The versions of LLVM with a libclang, as Debian and its kin lay them out; others set
/// `LIBCLANG_PATH`.
pub(crate) fn installed() -> Vec<u32> {
    let Ok(dirs) = std::fs::read_dir("/usr/lib") else { return Vec::new() };
    let libs = dirs.flatten().map(|dir| dir.path().join("lib"));
    libs.filter(|lib| has_libclang(lib)).filter_map(|lib| version_of(&lib)).collect()
}

fn has_libclang(dir: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(dir) else { return false };
    let mut names = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with("libclang") && name.contains(".so") && !name.contains("cpp"))
}

/// The version in a path such as `/usr/lib/llvm-14/lib`.
fn version_of(path: &Path) -> Option<u32> {
    let text = path.to_string_lossy();
    let behind = text.split("llvm-").nth(1)?;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
