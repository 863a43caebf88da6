//! The guest's kernel: a stock one of the distribution, unpacked but not installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::{packages, tools};
use crate::suite::Suite;

/// A kernel with its modules.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// What the machine boots.
    pub(super) image: PathBuf,
    /// What `uname -r` will say.
    pub(super) release: String,
    /// The directory that holds `lib/modules`.
    pub(super) base: PathBuf,
}

/// The newest kernel of `series`, such as `6.1`: an unpacked one if there is any, otherwise from
/// the distribution.
///
/// # Errors
/// When apt's sources have none, or it cannot be fetched or unpacked.
pub(super) fn of_series(cache: &Path, series: &str) -> Result<Kernel, String> {
    let package = match newest(&directories(cache), series) {
        Some(package) => package,
        None => offered(series)?,
    };
    open(&packages::unpacked(cache, &package)?)
}

/// The newest kernel of a release of the distribution, of whatever series: its package, unpacked like
/// those of [`of_series`].
///
/// # Errors
/// When the release has none, or it cannot be fetched or unpacked.
pub(super) fn of_release(cache: &Path, suite: &Suite) -> Result<String, String> {
    let package = suite.dependencies("linux-image-amd64")?.into_iter().find(|name| is_image(name));
    let package = package.ok_or("the release has no linux-image-*-amd64")?;
    let dir = cache.join(&package);
    if !dir.exists() {
        println!("guest: fetching {package}");
        let parts = parts(&package, &suite.dependencies(&package)?);
        let incomplete = cache.join(format!("{package}.part-{}", std::process::id()));
        suite.unpack(&parts.iter().map(String::as_str).collect::<Vec<_>>(), &incomplete)?;
        fs::rename(&incomplete, &dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    Ok(package)
}

/// The series that a package is of: `6.12` for `linux-image-6.12.118+deb13-amd64`.
pub(crate) fn series(package: &str) -> String {
    let version = package.trim_start_matches("linux-image-");
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn is_image(name: &str) -> bool {
    is_of(name, &series(name))
}

/// Newer packages have image and modules in packages of their own.
fn parts(package: &str, dependencies: &[String]) -> Vec<String> {
    let version = package.trim_start_matches("linux-image");
    let ours = dependencies.iter().filter(|name| name.ends_with(version));
    std::iter::once(package).chain(ours.map(String::as_str)).map(str::to_owned).collect()
}

impl Kernel {
    /// Where the modules are.
    pub(super) fn modules(&self) -> PathBuf {
        self.base.join("lib/modules")
    }

    /// The files of the given modules and of those they need, in the order in which to load them.
    /// What is built in has none, and neither has what is `optional` and not there.
    ///
    /// # Errors
    /// When the kernel has no such module.
    pub(super) fn module_files(
        &self,
        modules: &[&str],
        optional: &[&str],
    ) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        for module in modules {
            let needed = match self.needed_by(module) {
                Err(_) if optional.contains(module) => Vec::new(),
                needed => needed?,
            };
            for file in needed {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    fn needed_by(&self, module: &str) -> Result<Vec<PathBuf>, String> {
        let base = self.base.to_string_lossy();
        let args = ["--show-depends", "-d", &base, "-S", &self.release, module];
        let lines = tools::lines("modprobe", args)?;
        let files = lines.iter().filter_map(|line| line.strip_prefix("insmod "));
        Ok(files.map(|file| PathBuf::from(file.trim())).collect())
    }
}

fn offered(series: &str) -> Result<String, String> {
    let names = packages::names(&format!("linux-image-{series}"))?;
    newest(&names, series).ok_or_else(|| {
        format!(
            "apt's sources offer no linux-image-{series}.*-amd64: add a Debian suite that has it \
             (for 6.1 and 6.12: bookworm-security or bookworm-backports), or run `apt-get update`"
        )
    })
}

/// The package with the highest version among those of the series.
fn newest(names: &[String], series: &str) -> Option<String> {
    let ours = names.iter().filter(|name| is_of(name, series));
    ours.max_by_key(|name| numbers(name)).cloned()
}

/// Stock flavour, signed: `linux-image-6.1.0-57-amd64` is of 6.1, `linux-image-6.1-amd64` only
/// refers to one, and those for clouds have no soft-RoCE.
fn is_of(name: &str, series: &str) -> bool {
    let version = name.strip_prefix("linux-image-").and_then(|rest| rest.strip_suffix("-amd64"));
    let rest = version.and_then(|version| version.strip_prefix(series)?.strip_prefix('.'));
    rest.is_some_and(|rest| !rest.contains("cloud") && !rest.contains("-rt"))
}

fn numbers(name: &str) -> Vec<u64> {
    let digits = name.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

fn directories(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn open(base: &Path) -> Result<Kernel, String> {
    merge_usr(base)?;
    let release = file_name(&first(&base.join("lib/modules"), "")?);
    let kernel = Kernel { image: image(base, &release)?, release, base: base.to_owned() };
    if !kernel.modules().join(&kernel.release).join("modules.dep.bin").exists() {
        tools::output("depmod", [&*base_option(base), &*kernel.release])?;
    }
    Ok(kernel)
}

/// Newer packages have it beside its modules.
fn image(base: &Path, release: &str) -> Result<PathBuf, String> {
    let newer = base.join("lib/modules").join(release).join("vmlinuz");
    if newer.exists() { Ok(newer) } else { first(&base.join("boot"), "vmlinuz-") }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn base_option(base: &Path) -> String {
    format!("--basedir={}", base.display())
}

/// Newer packages have their modules in `usr/lib`.
fn merge_usr(base: &Path) -> Result<(), String> {
    if base.join("lib").exists() {
        return Ok(());
    }
    let linked = std::os::unix::fs::symlink("usr/lib", base.join("lib"));
    linked.map_err(|error| format!("{}/lib: {error}", base.display()))
}

fn first(dir: &Path, prefix: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut entries = entries.flatten();
    let found = entries.find(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    found.map(|entry| entry.path()).ok_or_else(|| format!("{}: no {prefix}*", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stock_kernel_of_the_series_is_chosen() {
        let names = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-57-amd64",
            "linux-image-6.1.0-58-cloud-amd64",
            "linux-image-6.1.0-59-rt-amd64",
            "linux-image-6.1.0-60-amd64-unsigned",
            "linux-image-6.1-amd64",
            "linux-image-6.12.117+deb12-amd64",
        ]
        .map(str::to_owned);
        assert_eq!(newest(&names, "6.1").unwrap(), "linux-image-6.1.0-57-amd64");
        assert_eq!(newest(&names, "6.12").unwrap(), "linux-image-6.12.117+deb12-amd64");
        assert_eq!(newest(&names, "5.10"), None);
    }

    #[test]
    fn a_kernel_in_parts_is_fetched_with_them_and_nothing_else() {
        let package = "linux-image-7.2.13+deb14-amd64";
        let dependencies =
            ["linux-base", "kmod", "linux-binary-7.2.13+deb14-amd64"].map(str::to_owned);
        assert_eq!(parts(package, &dependencies), [package, "linux-binary-7.2.13+deb14-amd64"]);
        assert_eq!(series(package), "7.2");
        assert_eq!(series("linux-image-5.10.0-46-amd64"), "5.10");
        assert!(is_image(package) && !is_image("linux-image-amd64") && !is_image("kmod"));
    }

    #[test]
    fn an_image_beside_its_modules_is_found_too() {
        let base = std::env::temp_dir().join(format!("kernel-{}", std::process::id()));
        let modules = base.join("lib/modules/7.2");
        for dir in [&modules, &base.join("boot")] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(base.join("boot/vmlinuz-7.2"), []).unwrap();
        assert_eq!(image(&base, "7.2").unwrap(), base.join("boot/vmlinuz-7.2"));
        fs::write(modules.join("vmlinuz"), []).unwrap();
        assert_eq!(image(&base, "7.2").unwrap(), modules.join("vmlinuz"));
        fs::remove_dir_all(&base).unwrap();
    }
}
