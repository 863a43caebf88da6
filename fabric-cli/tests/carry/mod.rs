//! Files that travel between two processes.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{Done, fabric};

/// Pushes `file` to a puller that listens at `any` and writes `out` in `dir`; both must end well.
/// `chunk` is empty, or an option of `push` for pieces, of which there are `count`.
pub(crate) fn carry(
    dir: &TempDir,
    any: &str,
    file: &str,
    count: usize,
    chunk: &[&str],
) -> (Done, Done) {
    let out = dir.path().join("out");
    let count = count.to_string();
    let args = ["pull", any, "-n", &count, "--checksum", "--output"];
    let mut pull = fabric(args.into_iter().chain([out.to_str().unwrap()]));
    let addr = pull.addr();
    let args = ["push", &addr, "--checksum", "--file", file];
    let pushed = fabric(args.into_iter().chain(chunk.iter().copied())).end().ok();
    (pushed, pull.end().ok())
}

/// `in` and `out` in `dir` are the same, for both processes too.
pub(crate) fn check(dir: &TempDir, (pushed, pulled): &(Done, Done)) {
    assert_eq!(pushed.sha256(), pulled.sha256());
    let same = |a: &Path, b: &Path| fs::read(a).unwrap() == fs::read(b).unwrap();
    assert!(same(&dir.path().join("in"), &dir.path().join("out")), "the files differ");
}
