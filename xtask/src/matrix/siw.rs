//! The kernel's iWARP driver, which the distribution does not build: from its source, against the
//! headers of its kernel. The source tree stays as it is, and so does this host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::place::{Place, once};
use crate::guest;

/// Where the driver is in the kernel's source.
const DRIVER: &str = "drivers/infiniband/sw/siw";

/// Builds it for a kernel of the distribution, once: `package` is `linux-image-…`.
///
/// # Errors
/// When headers or source cannot be fetched, or it does not build: then with what the compiler said
/// last.
pub(super) fn build(place: &Place, suite: &str, package: &str) -> Result<PathBuf, String> {
    let release = package.trim_start_matches("linux-image-");
    let dir = place.join(&format!("siw/{release}"))?;
    once(&dir, |part| make(place, suite, release, part))?;
    Ok(dir.join("siw.ko"))
}

fn make(place: &Place, suite: &str, release: &str, dir: &Path) -> Result<(), String> {
    println!("matrix: building siw for {release}");
    let suite = place.suite(suite)?;
    let headers = format!("linux-headers-{release}");
    let source = format!("linux-source-{}", guest::series(&format!("linux-image-{release}")));
    let needed = suite.dependencies(&headers)?;
    let ours = needed.iter().filter(|name| name.starts_with("linux-"));
    let mut packages: Vec<&str> = ours.map(String::as_str).collect();
    packages.extend([&*headers, &*source]);
    let root = dir.join("root");
    suite.unpack(&packages, &root)?;
    redirect(&root, &root.join("usr/src").join(&headers).join("Makefile"))?;
    let archive = root.join("usr/src").join(format!("{source}.tar.xz"));
    let member = format!("{source}/{DRIVER}");
    run(Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(dir).arg(&member))?;
    let driver = dir.join(&member);
    compile(&root.join("usr/src").join(&headers), &driver)?;
    let built = driver.join("siw.ko");
    fs::copy(&built, dir.join("siw.ko")).map_err(|error| about(&built, &error))?;
    fs::remove_dir_all(&root).map_err(|error| about(&root, &error))
}

/// Headers refer to each other by where they would be installed.
fn redirect(root: &Path, makefile: &Path) -> Result<(), String> {
    let text = fs::read_to_string(makefile).map_err(|error| about(makefile, &error))?;
    let here = format!("include {}/usr/src/", root.display());
    let text = text.replace("include /usr/src/", &here);
    fs::write(makefile, text).map_err(|error| about(makefile, &error))
}

fn compile(headers: &Path, driver: &Path) -> Result<(), String> {
    let mut command = Command::new("make");
    command.arg("-s").arg("-C").arg(headers).arg(format!("M={}", driver.display()));
    run(command.args(["CONFIG_RDMA_SIW=m", "modules"]))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.contains("rror"));
    let last = error.or_else(|| said.lines().last()).unwrap_or_default();
    Err(format!("{name} failed ({}): {last}", output.status))
}

fn about(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_not_installed_find_each_other() {
        let root = std::env::temp_dir().join(format!("headers-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let makefile = root.join("Makefile");
        fs::write(&makefile, "include /usr/src/linux-headers-6.1-common/Makefile\n").unwrap();
        redirect(&root, &makefile).unwrap();
        let text = fs::read_to_string(&makefile).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let here = root.display();
        assert_eq!(text, format!("include {here}/usr/src/linux-headers-6.1-common/Makefile\n"));
    }

    #[test]
    fn a_build_that_fails_says_the_first_error() {
        let script = "echo a.c:1: error: no such thing >&2; echo make: stop >&2; exit 2";
        let why = run(Command::new("sh").args(["-c", script])).unwrap_err();
        assert!(why.ends_with("a.c:1: error: no such thing"), "{why}");
    }
}
