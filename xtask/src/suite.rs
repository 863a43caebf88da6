//! A release of the distribution, seen through lists of its own: packages are fetched and unpacked,
//! nothing of this host is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The release that has no security updates of its own, since it is never released.
const UNSTABLE: &str = "sid";

/// A release, and where its lists are.
#[derive(Debug)]
pub(crate) struct Suite {
    dir: PathBuf,
}

impl Suite {
    /// The release `name`, with its lists and archives below `dir`. Lists that are there are used.
    ///
    /// # Errors
    /// When a directory cannot be made, or the lists cannot be fetched.
    pub(crate) fn open(dir: &Path, name: &str) -> Result<Self, String> {
        let suite = Self { dir: dir.to_owned() };
        for sub in ["lists/partial", "cache/archives/partial", "archives"] {
            let path = dir.join(sub);
            fs::create_dir_all(&path).map_err(|error| about(&path, &error))?;
        }
        let sources = dir.join("sources.list");
        if !sources.exists() {
            let complete = dir.join("sources.part");
            fs::write(&complete, self::sources(name)).map_err(|error| about(&complete, &error))?;
            run(suite.apt("apt-get", &complete).args(["update", "-q"]))?;
            fs::rename(&complete, &sources).map_err(|error| about(&sources, &error))?;
        }
        Ok(suite)
    }

    /// Fetches packages and unpacks them below `into`. Returns a line for each: name and version.
    ///
    /// # Errors
    /// When one is not in the release, or cannot be fetched or unpacked.
    pub(crate) fn unpack(&self, packages: &[&str], into: &Path) -> Result<Vec<String>, String> {
        let archives = self.dir.join("archives");
        self.download(packages, &archives)?;
        fs::create_dir_all(into).map_err(|error| about(into, &error))?;
        let mut lines = Vec::new();
        for archive in entries(&archives)? {
            lines.push(version(&archive)?);
            run(Command::new("dpkg").arg("-x").arg(&archive).arg(into))?;
            fs::remove_file(&archive).map_err(|error| about(&archive, &error))?;
        }
        lines.sort_unstable();
        Ok(lines)
    }

    /// The names of the packages on which `package` depends directly.
    ///
    /// # Errors
    /// When apt cannot be asked, or knows no such package.
    pub(crate) fn dependencies(&self, package: &str) -> Result<Vec<String>, String> {
        let mut command = self.apt("apt-cache", &self.sources());
        command.args(["depends", "--important", package]).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| format!("apt-cache: {error}"))?;
        if !output.status.success() {
            return Err(format!("apt-cache knows no package {package} ({})", output.status));
        }
        Ok(depended(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Lists that are older than the archive name files that are gone.
    fn download(&self, packages: &[&str], into: &Path) -> Result<(), String> {
        let download = || {
            let mut command = self.apt("apt-get", &self.sources());
            run(command.current_dir(into).args(["download", "-q"]).args(packages))
        };
        download().or_else(|_| {
            run(self.apt("apt-get", &self.sources()).args(["update", "-q"]))?;
            download()
        })
    }

    fn sources(&self) -> PathBuf {
        self.dir.join("sources.list")
    }

    /// apt with lists, sources and caches of its own.
    fn apt(&self, program: &str, sources: &Path) -> Command {
        let mut command = Command::new(program);
        let settings = [
            ("Dir::Etc::sourcelist", sources.to_owned()),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::State::lists", self.dir.join("lists")),
            ("Dir::State::status", "/dev/null".into()),
            ("Dir::Cache", self.dir.join("cache")),
            ("APT::Sandbox::User", "root".into()),
        ];
        for (name, value) in settings {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        }
        command
    }
}

fn sources(name: &str) -> String {
    let main = format!("deb [signed-by={KEYRING}] {MIRROR} {name} main\n");
    if name == UNSTABLE {
        return main;
    }
    main + &format!("deb [signed-by={KEYRING}] {MIRROR}-security {name}-security main\n")
}

/// `  Depends: name`, and `  Depends: <virtual>` for what several packages are.
fn depended(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.filter(|name| !name.starts_with('<')).map(str::to_owned).collect()
}

fn version(archive: &Path) -> Result<String, String> {
    let mut command = Command::new("dpkg-deb");
    let output = command.arg("-W").arg("--showformat=${Package} ${Version}").arg(archive).output();
    let output = output.map_err(|error| format!("dpkg-deb: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{} is no package", archive.display()))
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| about(dir, &error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    Ok(paths)
}

fn about(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_comes_with_its_security_updates_if_it_has_any() {
        let lines = sources("bullseye");
        assert_eq!(lines.lines().count(), 2);
        assert!(lines.contains("-security bullseye-security main"));
        assert_eq!(sources("sid").lines().count(), 1);
    }

    #[test]
    fn only_what_is_a_package_is_depended_on() {
        let text = "linux-image-amd64\n  Depends: linux-base\n  Depends: <initramfs>\n    \
                    initramfs-tools\n |Depends: kmod\n  Recommends: apparmor\n";
        assert_eq!(depended(text), ["linux-base"]);
    }
}
