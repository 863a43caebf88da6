//! Builds ours and the drivers of the peers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cells::Cell;
use super::contender::{Driver, Kind};
use super::play::Ground;
use crate::process::{Cargo, target_dir};

/// Where the drivers stand.
const PEERS: &str = "bench/peers";

/// A peer that comes as a package of the distribution.
struct Package {
    name: &'static str,
    /// A file that is there when it is installed.
    file: &'static str,
}

const LIBZMQ: Package = Package { name: "libzmq3-dev", file: "/usr/include/zmq.h" };
const NNG: Package = Package { name: "libnng-dev", file: "/usr/include/nng/nng.h" };
const PINGPONG: Package = Package { name: "libfabric-bin", file: "/usr/bin/fi_pingpong" };

/// Everything that the cells need, built; `ours` says whether that includes this project. Peers that cannot be are left out with the reason.
///
/// # Errors
/// When ours cannot be built.
pub(super) fn ground(root: &Path, cells: &[Cell], ours: bool) -> Result<Ground, String> {
    if ours {
        // The library is loaded at run time: where there is none, only what goes over it is out.
        let build = Cargo::new(root, "build").args(["--profile", "bench", "-p", "fabric-cli"]);
        build.args(["--features", "libfabric,tokio"]).run()?;
    }
    let fabric = target_dir(root).join("release/fabric");
    let wanted: BTreeSet<Driver> = drivers_of(cells);
    let dir = target_dir(root).join("bench/peers");
    let all_built = wanted.is_empty() || build_rust(&root.join(PEERS), &dir, None).is_ok();
    let drivers = wanted.into_iter().map(|driver| (driver, build(root, &dir, driver, all_built)));
    let drivers: BTreeMap<_, _> = drivers.collect();
    let pingpong =
        if wants_pingpong(cells) { ensure(&PINGPONG) } else { Err("not asked for".into()) };
    for (driver, outcome) in &drivers {
        if let Err(why) = outcome {
            println!("{driver:?} is left out: {why}");
        }
    }
    Ok(Ground { fabric, drivers, pingpong, pin: pin() })
}

fn drivers_of(cells: &[Cell]) -> BTreeSet<Driver> {
    let contenders = cells.iter().flat_map(|cell| &cell.contenders);
    let driver = |kind: Kind| if let Kind::Driver(driver, _) = kind { Some(driver) } else { None };
    contenders.filter_map(|contender| driver(contender.kind())).collect()
}

fn wants_pingpong(cells: &[Cell]) -> bool {
    let mut contenders = cells.iter().flat_map(|cell| &cell.contenders);
    contenders.any(|contender| matches!(contender.kind(), Kind::Pingpong(_)))
}

/// Each side has a processor of its own where there are two.
fn pin() -> Option<(usize, usize)> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors >= 2).then_some((1, 0))
}

fn package_of(driver: Driver) -> Option<&'static str> {
    match driver {
        Driver::Raw => Some("raw-driver"),
        Driver::Zeromq => Some("zeromq-driver"),
        Driver::Rzmq => Some("rzmq-driver"),
        Driver::Iceoryx2 => Some("iceoryx2-driver"),
        Driver::Libzmq | Driver::Nng => None,
    }
}

/// In a workspace and a directory of its own: nothing of it is the product's business. All at once,
/// so that what they share is built once; where that fails, each by itself.
fn build_rust(peers: &Path, dir: &Path, package: Option<&str>) -> Result<(), String> {
    let build = Cargo::new(peers, "build").args(["--release", "--locked"]);
    let build = build.env("CARGO_TARGET_DIR", dir);
    match package {
        Some(name) => build.args(["-p", name]).run(),
        None => build.args(["--workspace"]).run(),
    }
}

fn build(root: &Path, dir: &Path, driver: Driver, all_built: bool) -> Result<PathBuf, String> {
    match (driver, package_of(driver)) {
        (_, Some(package)) => {
            if !all_built {
                build_rust(&root.join(PEERS), dir, Some(package))?;
            }
            Ok(dir.join("release").join(package))
        }
        (Driver::Nng, None) => build_c(root, dir, &NNG, "nng", &["-lnng", "-lpthread"]),
        (_, None) => build_c(root, dir, &LIBZMQ, "zmq", &["-lzmq"]),
    }
}

fn build_c(
    root: &Path,
    dir: &Path,
    package: &Package,
    name: &str,
    libraries: &[&str],
) -> Result<PathBuf, String> {
    ensure(package)?;
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let (source, program) = (root.join(format!("{PEERS}/c/{name}.c")), dir.join(name));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(&source).args(libraries);
    done("cc", cc.stdin(Stdio::null()))?;
    Ok(program)
}

/// Installs a package that is missing, if we may.
fn ensure(package: &Package) -> Result<(), String> {
    let Package { name, file } = package;
    if Path::new(file).exists() {
        return Ok(());
    }
    println!("installing {name}");
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "-q", name]);
    let installed = done("apt-get", apt.stdin(Stdio::null()).stdout(Stdio::null()));
    installed.map_err(|why| format!("{name} is missing: run `sudo apt-get install {name}` ({why})"))
}

fn done(name: &str, command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::super::cells::quick;
    use super::*;

    #[test]
    fn only_what_the_cells_need_is_built() {
        let cells: Vec<Cell> =
            quick().into_iter().filter(|cell| cell.name() == "bw 64 B").collect();
        assert_eq!(drivers_of(&cells), BTreeSet::from([Driver::Raw, Driver::Libzmq]));
        assert!(!wants_pingpong(&cells) && wants_pingpong(&quick()));
    }

    #[test]
    fn a_package_that_is_there_is_not_installed() {
        assert_eq!(ensure(&Package { name: "no-such-package", file: "/" }), Ok(()));
    }
}
