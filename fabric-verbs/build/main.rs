//! Checks for what the bindings need, so that a missing package has one clear message instead of
//! a bindings generator's.

mod needs;

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=LIBCLANG_PATH");
    let libclang = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    if let Some(problem) = needs::missing(libclang.as_deref()) {
        eprintln!("fabric-verbs cannot be built here: {problem}");
        std::process::exit(1);
    }
}
