//! Every crate takes the lints of the workspace.

use super::Tree;
use crate::report::Problem;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let packages = manifests.filter(|file| file.text.lines().any(|line| line == "[package]"));
    let without = packages.filter(|file| !takes_lints(&file.text));
    let problem = |path: &str| {
        let instead = "write `workspace = true` under `[lints]`";
        Problem::new(path, "does not take the lints of the workspace", instead)
    };
    without.map(|file| problem(&file.path)).collect()
}

fn takes_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::on;

    #[test]
    fn lints_come_from_the_workspace() {
        assert_eq!(on(check, "a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n"), []);
        assert_eq!(on(check, "a/b/Cargo.toml", "[workspace]\n"), []);
        assert_eq!(on(check, "Cargo.toml", "[workspace]\n"), []);
    }

    #[test]
    fn a_crate_with_its_own_lints_is_named() {
        for text in ["", "[lints]\n\n[features]\n", "[lints.rust]\nworkspace = true\n"] {
            let text = &format!("[package]\n{text}");
            assert_eq!(on(check, "a/Cargo.toml", text)[0].place, "a/Cargo.toml");
        }
    }
}
