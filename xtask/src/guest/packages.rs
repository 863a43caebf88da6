//! Packages of the distribution: what must be installed, and what is only fetched and unpacked.

use std::fs;
use std::path::{Path, PathBuf};

use super::tools;

/// Something the guest or its making needs, and the package that has it.
struct Need {
    has: fn() -> bool,
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need { has: || has_program("qemu-system-x86_64"), package: "qemu-system-x86" },
    Need { has: || has_program("depmod"), package: "kmod" },
    Need { has: || has_program("xz"), package: "xz-utils" },
    Need { has: || has_program("setpriv"), package: "util-linux" },
    Need { has: || has_program("ip"), package: "iproute2" },
    Need { has: || has_program("tc"), package: "iproute2" },
    Need { has: || has_program("rdma"), package: "iproute2" },
    Need { has: || has_program("ibv_devinfo"), package: "ibverbs-utils" },
    Need { has: || has_program("rping"), package: "rdmacm-utils" },
    Need { has: || has_program("ib_send_lat"), package: "perftest" },
    // The user-space half of soft-RoCE.
    Need {
        has: || Path::new("/etc/libibverbs.d/rxe.driver").exists(),
        package: "ibverbs-providers",
    },
];

/// What programs that use RDMA are built with.
const HEADERS: &[Need] = &[
    Need { has: || has_program("cc"), package: "gcc" },
    Need { has: || has_program("pkg-config"), package: "pkg-config" },
    Need { has: || has_header("infiniband/verbs.h"), package: "libibverbs-dev" },
    Need { has: || has_header("rdma/rdma_cma.h"), package: "librdmacm-dev" },
    // The bindings' generator reads the headers with it, and knows no newer ones.
    Need { has: || libclang().is_some(), package: "libclang-14-dev" },
    // Has the compiler's own headers.
    Need { has: || libclang().is_some(), package: "clang-14" },
];

/// What counts system calls and instructions.
const COUNTERS: &[Need] = &[
    Need { has: || has_program("perf"), package: "linux-perf" },
    Need { has: || has_program("valgrind"), package: "valgrind" },
];

/// Makes sure that the host has what it takes; installs what is missing when allowed to.
///
/// # Errors
/// With the command that installs what is missing, or with why it failed.
pub(super) fn ensure_host() -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" {
        return Err("the guest shares the host's programs and is a PC: this needs x86-64".into());
    }
    ensure(NEEDS)
}

/// Makes sure that programs that use RDMA can be built; as [`ensure_host`].
///
/// # Errors
/// As [`ensure_host`].
pub(super) fn ensure_headers() -> Result<(), String> {
    ensure(HEADERS)
}

/// Makes sure that programs can be counted; as [`ensure_host`].
///
/// # Errors
/// As [`ensure_host`].
pub(super) fn ensure_counters() -> Result<(), String> {
    ensure(COUNTERS)
}

/// Where a libclang is that the bindings' generator can use, unless the user names one.
pub(super) fn libclang() -> Option<PathBuf> {
    let named = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let usual = [14, 15, 13].map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/lib")));
    let mut found = usual.into_iter().filter(|dir| has_libclang(dir));
    named.or_else(|| found.next())
}

fn has_libclang(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with("libclang.so") || name.starts_with("libclang-"))
}

fn ensure(needs: &[Need]) -> Result<(), String> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_root() || tools::find("apt-get").is_none() {
        return Err(format!("missing on this host: run `sudo apt-get install {list}`"));
    }
    println!("guest: installing {list}");
    install(&missing)?;
    let still = self::missing(needs);
    if still.is_empty() { Ok(()) } else { Err(format!("still missing: {}", still.join(" "))) }
}

/// Fetches a package without installing it and unpacks it below `into`, once.
///
/// # Errors
/// When it cannot be fetched or unpacked.
pub(super) fn unpacked(into: &Path, package: &str) -> Result<PathBuf, String> {
    let dir = into.join(package);
    if dir.exists() {
        return Ok(dir);
    }
    println!("guest: fetching {package}");
    // Another run may be fetching it, too.
    let parts = into.join(format!("{package}.part-{}", std::process::id()));
    fs::create_dir_all(&parts).map_err(|error| format!("{}: {error}", parts.display()))?;
    let fetched = fetch(&parts, package).and_then(|()| {
        fs::rename(&parts, &dir).map_err(|error| format!("{}: {error}", dir.display()))
    });
    if fetched.is_err() {
        // Fails only if there is nothing to remove.
        let _ = fs::remove_dir_all(&parts);
    }
    if dir.exists() { Ok(dir) } else { fetched.map(|()| dir) }
}

fn fetch(into: &Path, package: &str) -> Result<(), String> {
    download(into, package)?;
    let archive = archive_in(into)?;
    tools::output_in(into, "dpkg", ["-x".as_ref(), archive.as_os_str(), ".".as_ref()])?;
    fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))
}

/// Lists that are older than the archive name files that are gone.
fn download(into: &Path, package: &str) -> Result<(), String> {
    let download = || tools::output_in(into, "apt-get", ["download", "-q", package]).map(drop);
    match download() {
        Err(_) if is_root() => update().and_then(|()| download()),
        Err(why) => Err(format!("{why}; `sudo apt-get update` may help")),
        Ok(()) => Ok(()),
    }
}

fn update() -> Result<(), String> {
    tools::output("apt-get", ["update", "-q"]).map(drop)
}

/// The names of all packages that begin with `prefix` and apt could fetch.
///
/// # Errors
/// When apt cannot be asked.
pub(super) fn names(prefix: &str) -> Result<Vec<String>, String> {
    let known = tools::lines("apt-cache", ["pkgnames", prefix])?;
    if !known.is_empty() || !is_root() {
        return Ok(known);
    }
    update()?;
    tools::lines("apt-cache", ["pkgnames", prefix])
}

fn has_program(program: &str) -> bool {
    tools::find(program).is_some()
}

fn has_header(path: &str) -> bool {
    Path::new("/usr/include").join(path).exists()
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    let mut packages: Vec<_> =
        needs.iter().filter(|need| !(need.has)()).map(|need| need.package).collect();
    packages.dedup();
    packages
}

fn is_root() -> bool {
    tools::lines("id", ["-u"]).is_ok_and(|lines| lines.first().is_some_and(|id| id == "0"))
}

fn install(packages: &[&str]) -> Result<(), String> {
    update()?;
    let options = ["install", "-y", "-q", "--no-install-recommends"];
    tools::output("apt-get", options.iter().chain(packages)).map(|_| ())
}

fn archive_in(dir: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let archive = paths.find(|path| path.extension().is_some_and(|end| end == "deb"));
    archive.ok_or_else(|| format!("apt-get download left no package in {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_once_however_much_of_it_is_missing() {
        let mut packages: Vec<_> = NEEDS.iter().map(|need| need.package).collect();
        packages.dedup();
        let count = packages.len();
        packages.sort_unstable();
        packages.dedup();
        assert_eq!(packages.len(), count);
    }

    #[test]
    fn an_unpacked_package_is_not_fetched_again() {
        let dir = std::env::temp_dir().join(format!("unpacked-{}", std::process::id()));
        fs::create_dir_all(dir.join("no-such-package")).unwrap();
        let found = unpacked(&dir, "no-such-package");
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, Ok(dir.join("no-such-package")));
    }
}
