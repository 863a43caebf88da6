//! What cannot be built on every host, and what that means for the workspace's tasks.

use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

#[path = "../../fabric-verbs/build/needs.rs"]
mod needs;

/// Tells the bindings' generator where its libclang is.
pub(crate) const LIBCLANG_VARIABLE: &str = "LIBCLANG_PATH";

/// Features that need the RDMA libraries, whatever crate has them.
const RDMA_FEATURES: &[&str] = &["verbs", "softroce"];

/// The crate that needs libraries of the system, and why it cannot be built here, if so.
pub(crate) fn verbs() -> Option<(&'static str, String)> {
    needs::missing(libclang().as_deref()).map(|why| ("fabric-verbs", why))
}

/// The directory of libclang that the bindings' generator is told to take: the user's choice, or the
/// newest one that it understands where it would take a newer one by itself.
pub(crate) fn libclang() -> Option<PathBuf> {
    let named = std::env::var_os(LIBCLANG_VARIABLE).map(PathBuf::from);
    named.or_else(|| older(&needs::installed()))
}

fn older(installed: &[u32]) -> Option<PathBuf> {
    let newest = |max: u32| installed.iter().copied().filter(|version| *version <= max).max();
    if newest(u32::MAX) == newest(needs::CLANG_MAX) {
        return None;
    }
    newest(needs::CLANG_MAX).map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/lib")))
}

/// All features of the workspace's crates but those that need the RDMA libraries, for `--features`.
/// None if cargo does not say.
pub(crate) fn other_features(root: &Path) -> Vec<String> {
    let mut command = MetadataCommand::new();
    command.no_deps().manifest_path(root.join("Cargo.toml"));
    let packages = command.exec().map(|metadata| metadata.packages).unwrap_or_default();
    let mut features = Vec::new();
    for package in &packages {
        let names = package.features.keys().map(String::as_str);
        let others = names.filter(|name| !RDMA_FEATURES.contains(name));
        features.extend(others.map(|name| format!("{}/{name}", package.name)));
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_pointed_to_an_old_libclang_only_when_it_would_take_a_newer_one() {
        assert_eq!(older(&[14, 19]), Some("/usr/lib/llvm-14/lib".into()));
        assert_eq!(older(&[14, 15, 16]), Some("/usr/lib/llvm-15/lib".into()));
        assert_eq!(older(&[14]), None);
        assert_eq!(older(&[19]), None);
        assert_eq!(older(&[]), None);
    }

    #[test]
    fn features_are_named_with_their_crates_and_those_of_rdma_are_not_among_them() {
        let features = other_features(&crate::files::workspace_root());
        assert!(features.iter().any(|feature| feature == "msg-patterns/tcp"), "{features:?}");
        assert!(!features.iter().any(|feature| feature.ends_with("/verbs")), "{features:?}");
    }
}
