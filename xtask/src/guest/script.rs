//! What the guest's shell is told: settings and the command.

use std::path::Path;

/// The link, as `main.sh` makes it.
pub(super) const DEVICE: &str = "rxe0";

/// The link's IPv4 address, and that of the interface without one.
pub(crate) const ADDRESS: &str = "10.9.0.1";
pub(crate) const SPARE_ADDRESS: &str = "10.9.1.1";

/// What `main.sh` needs to know to make a link of its own.
pub(super) fn settings(modules: &Path) -> String {
    let modules = quoted(&modules.to_string_lossy());
    let network = "NETWORK=pair";
    format!("MODULES={modules}\n{network}\nADDRESS={ADDRESS}\nSPARE_ADDRESS={SPARE_ADDRESS}\n")
}

/// What it needs to know to make the link of a machine at a wire.
pub(super) fn node_settings(modules: &Path, address: &str) -> String {
    let modules = quoted(&modules.to_string_lossy());
    format!("MODULES={modules}\nNETWORK=wire\nADDRESS={address}\n")
}

/// A script that runs `command` in `dir` with the given variables, each `NAME=VALUE`.
pub(super) fn command(dir: &Path, variables: &[String], command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
    surroundings(dir, variables) + "exec " + &words.join(" ") + "\n"
}

/// A script that goes to `dir` and sets variables, each `NAME=VALUE`.
pub(super) fn surroundings(dir: &Path, variables: &[String]) -> String {
    let mut script = format!("cd {}\n", quoted(&dir.to_string_lossy()));
    for (name, value) in variables.iter().filter_map(|variable| variable.split_once('=')) {
        script += &format!("export {name}={}\n", quoted(value));
    }
    script
}

/// One word for a shell, whatever it contains.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::tools;

    #[test]
    fn a_shell_gets_the_words_as_they_are() {
        let words = ["printf", "%s|", "it's", "$HOME `x` \"y\"", ""].map(str::to_owned);
        let script = command(Path::new("/"), &["A=b=c d".to_owned()], &words);
        let output = tools::output("sh", ["-c", &script]).unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "it's|$HOME `x` \"y\"||");
        assert!(script.contains("export A='b=c d'\n"));
    }
}
