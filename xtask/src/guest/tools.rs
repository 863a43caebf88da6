//! Programs of the host that the guest is made with.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a program stands; also where only administrators look for programs.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = std::env::split_paths(&path);
    let admin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    usual.chain(admin).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// A command, without input, with messages in English.
pub(super) fn command(program: &str) -> Command {
    let mut command = Command::new(find(program).unwrap_or_else(|| program.into()));
    command.stdin(Stdio::null()).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Runs a program and returns what it wrote to standard output.
///
/// # Errors
/// When it cannot be started or fails, with what it wrote to standard error.
pub(super) fn output<S: AsRef<OsStr>>(
    program: &str,
    args: impl IntoIterator<Item = S>,
) -> Result<Vec<u8>, String> {
    finish(program, command(program).args(args))
}

/// The same in another directory.
///
/// # Errors
/// As [`output`].
pub(super) fn output_in<S: AsRef<OsStr>>(
    dir: &Path,
    program: &str,
    args: impl IntoIterator<Item = S>,
) -> Result<Vec<u8>, String> {
    finish(program, command(program).current_dir(dir).args(args))
}

/// The same as lines of text.
///
/// # Errors
/// As [`output`].
pub(super) fn lines<S: AsRef<OsStr>>(
    program: &str,
    args: impl IntoIterator<Item = S>,
) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(&output(program, args)?).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}

fn finish(program: &str, command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{program} failed ({}): {}", output.status, last.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_system_are_found_by_name() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no such program"), None);
    }

    #[test]
    fn a_failing_program_says_why() {
        let error = output("sh", ["-c", "echo first >&2; echo second >&2; exit 3"]).unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with("second"), "{error}");
        assert_eq!(lines("echo", ["a b"]).unwrap(), ["a b"]);
    }
}
