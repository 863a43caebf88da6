//! Checks for what the bindings need, so that a missing package has one clear message instead of
//! a bindings generator's.

mod needs;

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=LIBCLANG_PATH");
    if let Some(problem) = needs::missing() {
        eprintln!("fabric-verbs cannot be built here: {problem}");
        std::process::exit(1);
    }
}
