//! The libraries of user space, as files: what they are, where they look for drivers, what they
//! speak. The names of a library's symbol versions stand in it as text, so nothing is loaded.

use std::collections::BTreeMap;

use serde::Serialize;

use super::process::Process;
use crate::root::Root;

/// The RDMA libraries that a program would get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// `libibverbs.so.1`.
    pub verbs: Option<Library>,
    /// `librdmacm.so.1`.
    pub cm: Option<Library>,
    /// `libfabric.so.1`.
    pub libfabric: Option<Library>,
    /// Other directories that have a `libibverbs.so.1`, too.
    pub other_verbs: Vec<String>,
    /// Where the verbs library looks for the names of drivers.
    pub config_dir: Option<String>,
    /// Whether that directory is there.
    pub has_config_dir: bool,
    /// The drivers named there.
    pub configured: Vec<String>,
    /// The files of drivers that the library can take.
    pub drivers: Vec<String>,
    /// The files of drivers of other versions.
    pub other_drivers: Vec<String>,
    /// The level of the library's interface with its drivers.
    pub driver_level: Option<u64>,
    /// The newest level of the library's interface with programs: `1.14`.
    pub level: Option<String>,
    /// Packages of a distribution or vendor that are installed, with their versions.
    pub packages: BTreeMap<String, String>,
    /// The vendor's name for its own stack, if there is one.
    pub vendor: Option<String>,
    /// Whether packages are Debian's.
    #[serde(skip)]
    dpkg: bool,
}

/// A library's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Where it was found.
    pub path: String,
    /// The file behind the link: its name tells the version.
    pub file: String,
}

const PACKAGES: &[&str] = &[
    "rdma-core",
    "libibverbs1",
    "ibverbs-providers",
    "librdmacm1",
    "libfabric1",
    "libfabric-bin",
    "mlnx-ofed-all",
    "mlnx-ofed-basic",
    "mlnx-ofed-kernel-dkms",
    "doca-ofed",
    "doca-ofed-userspace",
];

/// What dpkg has installed.
const DPKG: &str = "/var/lib/dpkg/status";

/// Where libraries are, behind what the environment and `ld.so.conf` say.
const USUAL: &[&str] = &["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

impl Stack {
    pub(crate) fn read(root: &Root, process: &Process) -> Self {
        let dirs = dirs(root, process);
        let verbs = library(root, &dirs, "libibverbs.so.1");
        let spoken = verbs.as_ref().map(|library| Spoken::read(root, &library.path));
        let plugins =
            spoken.as_ref().map(|spoken| plugins(root, spoken, &dirs)).unwrap_or_default();
        let spoken = spoken.unwrap_or_default();
        let matching = |name: &String| level_of(name) == spoken.driver_level;
        let (drivers, other_drivers) = plugins.into_iter().partition(matching);
        let listed = spoken.config_dir.as_ref().map(|dir| root.list(dir)).unwrap_or_default();
        Self {
            cm: library(root, &dirs, "librdmacm.so.1"),
            libfabric: library(root, &dirs, "libfabric.so.1"),
            other_verbs: others(root, &dirs, verbs.as_ref()),
            has_config_dir: spoken.config_dir.as_ref().is_some_and(|dir| root.exists(dir)),
            configured: listed.iter().filter_map(|file| stem(file)).collect(),
            config_dir: spoken.config_dir,
            driver_level: spoken.driver_level,
            level: spoken.level,
            drivers,
            other_drivers,
            packages: packages(root),
            vendor: vendor(root),
            dpkg: root.exists(DPKG),
            verbs,
        }
    }

    /// The file of a driver that the library can take.
    pub(crate) fn driver_file(&self, provider: &str) -> Option<&String> {
        self.drivers.iter().find(|file| is_of(file, provider))
    }

    /// The file of that driver in another version.
    pub(crate) fn other_driver_file(&self, provider: &str) -> Option<&String> {
        self.other_drivers.iter().find(|file| is_of(file, provider))
    }

    pub(crate) fn names_driver(&self, provider: &str) -> bool {
        self.configured.iter().any(|name| name == provider)
    }

    /// The command that installs packages, by their names for Debian and for others.
    pub(crate) fn install(&self, debian: &str, others: &str) -> String {
        self.manage("install", debian, "install", others)
    }

    /// The command that installs packages anew.
    pub(crate) fn reinstall(&self, debian: &str, others: &str) -> String {
        self.manage("install --reinstall", debian, "reinstall", others)
    }

    /// The command that brings packages to their newest version.
    pub(crate) fn upgrade(&self, debian: &str, others: &str) -> String {
        self.manage("install --only-upgrade", debian, "upgrade", others)
    }

    fn manage(&self, apt: &str, debian: &str, dnf: &str, others: &str) -> String {
        if self.dpkg { format!("apt-get {apt} {debian}") } else { format!("dnf {dnf} {others}") }
    }
}

impl Library {
    /// The version that its file's name tells: `44.0` of `libibverbs.so.1.14.44.0`.
    pub fn version(&self) -> Option<&str> {
        let numbers = self.file.split_once(".so.")?.1;
        let rest = numbers.splitn(3, '.').nth(2)?;
        (!rest.is_empty()).then_some(rest)
    }

    /// Whether it is from before rdma-core: `libibverbs.so.1.0.0`.
    pub(crate) fn is_legacy(&self) -> bool {
        self.file.ends_with(".so.1.0.0")
    }
}

/// What a library says of itself.
#[derive(Default)]
struct Spoken {
    config_dir: Option<String>,
    /// With `%s` for the driver's name.
    pattern: Option<String>,
    driver_level: Option<u64>,
    level: Option<String>,
}

impl Spoken {
    fn read(root: &Root, path: &str) -> Self {
        let texts = texts(&root.bytes(path).unwrap_or_default());
        let find = |wanted: &dyn Fn(&str) -> bool| texts.iter().find(|text| wanted(text)).cloned();
        let private = texts.iter().filter_map(|text| text.strip_prefix("IBVERBS_PRIVATE_"));
        let levels = texts.iter().filter_map(|text| text.strip_prefix("IBVERBS_1."));
        let newest = levels.filter_map(|minor| minor.parse::<u64>().ok()).max();
        Self {
            config_dir: find(&|text| text.starts_with('/') && text.ends_with("/libibverbs.d")),
            pattern: find(&|text| text.starts_with('/') && text.contains("/lib%s-rdmav")),
            driver_level: private.filter_map(|level| level.parse().ok()).max(),
            level: newest.map(|minor| format!("1.{minor}")),
        }
    }
}

/// The longest name or path that is looked for.
const TEXT_BYTES_MAX: usize = 256;

/// The texts in a file that look like names of versions or like paths.
fn texts(bytes: &[u8]) -> Vec<String> {
    let printable = |byte: &u8| byte.is_ascii_graphic();
    let words = bytes.split(|byte| !printable(byte));
    let wanted = |word: &&[u8]| {
        (9..TEXT_BYTES_MAX).contains(&word.len())
            && (word.starts_with(b"IBVERBS_") || word.starts_with(b"/"))
    };
    words.filter(wanted).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn dirs(root: &Root, process: &Process) -> Vec<String> {
    let asked = process.variable("LD_LIBRARY_PATH").unwrap_or_default();
    let mut dirs: Vec<_> = asked.split(':').map(str::to_owned).collect();
    for file in root.list("/etc/ld.so.conf.d") {
        let text = root.read(&format!("/etc/ld.so.conf.d/{file}")).unwrap_or_default();
        dirs.extend(text.lines().map(|line| line.trim().to_owned()));
    }
    dirs.extend(USUAL.iter().map(|dir| (*dir).to_owned()));
    dirs.retain(|dir| dir.starts_with('/'));
    dirs
}

fn library(root: &Root, dirs: &[String], name: &str) -> Option<Library> {
    let dir = dirs.iter().find(|dir| root.exists(&format!("{dir}/{name}")))?;
    let path = format!("{dir}/{name}");
    let file = root.link_name(&path).unwrap_or_else(|| name.to_owned());
    Some(Library { path, file })
}

/// The same file under two names of a directory is not another one.
fn others(root: &Root, dirs: &[String], first: Option<&Library>) -> Vec<String> {
    let Some(first) = first else { return Vec::new() };
    let ours = root.bytes(&first.path);
    let paths = dirs.iter().map(|dir| format!("{dir}/libibverbs.so.1"));
    let differ = |path: &String| root.exists(path) && root.bytes(path) != ours;
    let mut others: Vec<_> = paths.filter(differ).collect();
    others.dedup();
    others
}

/// The files of drivers in the directory that the library names, or else below those of libraries.
fn plugins(root: &Root, spoken: &Spoken, dirs: &[String]) -> Vec<String> {
    let named = spoken.pattern.as_ref().and_then(|path| path.rsplit_once('/'));
    let named = named.map(|(dir, _)| vec![dir.to_owned()]);
    let below = || dirs.iter().map(|dir| format!("{dir}/libibverbs")).collect();
    let found = named.unwrap_or_else(below).into_iter().flat_map(|dir| root.list(&dir));
    let mut files: Vec<_> = found.filter(|file| level_of(file).is_some()).collect();
    files.dedup();
    files
}

/// `libmlx5-rdmav34.so` is of level 34.
fn level_of(file: &str) -> Option<u64> {
    file.rsplit_once("-rdmav")?.1.strip_suffix(".so")?.parse().ok()
}

fn is_of(file: &str, provider: &str) -> bool {
    let name = file.strip_prefix("lib").and_then(|rest| rest.split_once("-rdmav"));
    name.is_some_and(|(name, _)| name == provider)
}

fn stem(file: &str) -> Option<String> {
    file.strip_suffix(".driver").map(str::to_owned)
}

fn packages(root: &Root) -> BTreeMap<String, String> {
    let status = root.read(DPKG).unwrap_or_default();
    let installed = status.split("\n\n").filter(|block| block.contains("ok installed"));
    let field = |block: &str, name: &str| {
        let mut lines = block.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(field, _)| *field == name).map(|(_, value)| value.to_owned())
    };
    let wanted = |block: &str| {
        let name = field(block, "Package").filter(|name| PACKAGES.contains(&name.as_str()))?;
        Some((name, field(block, "Version")?))
    };
    installed.filter_map(wanted).collect()
}

/// Vendors' stacks come with a script that tells their name.
fn vendor(root: &Root) -> Option<String> {
    let script = root.read("/usr/bin/ofed_info")?;
    let words = script.split(|c: char| c.is_whitespace() || "\"'`:;".contains(c));
    let names = ["MLNX_OFED_LINUX-", "OFED-internal-", "DOCA-OFED-", "OFED-"];
    let mut named = words.filter(|word| names.iter().any(|name| word.starts_with(name)));
    Some(named.next().unwrap_or("OFED of unknown version").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_names_of_files() {
        let library = |file: &str| Library { path: String::new(), file: file.into() };
        assert_eq!(library("libibverbs.so.1.14.44.0").version(), Some("44.0"));
        assert_eq!(library("libibverbs.so.1").version(), None);
        assert!(library("libibverbs.so.1.0.0").is_legacy());
        assert_eq!(level_of("libmlx5-rdmav34.so"), Some(34));
        assert_eq!(level_of("libmlx5-rdmavx.so"), None);
        assert_eq!(level_of("libmlx5-rdmav34.so.bak"), None);
        assert!(is_of("libmlx5-rdmav34.so", "mlx5") && !is_of("libmlx5x-rdmav34.so", "mlx5"));
    }

    #[test]
    fn texts_are_found_between_other_bytes() {
        let bytes = b"\x7fELF\0IBVERBS_1.1\0/etc/libibverbs.d\0/a\0IBVERBS_PRIVATE_34\0\xff";
        assert_eq!(texts(bytes), ["IBVERBS_1.1", "/etc/libibverbs.d", "IBVERBS_PRIVATE_34"]);
    }
}
