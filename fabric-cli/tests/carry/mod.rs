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

const FILE_BYTES: usize = 64 << 20;
/// Below what is read from the sender's memory.
const EAGER_BYTES: usize = 32 << 10;

/// Carries a file in eager pieces and whole, by rendezvous.
pub(crate) fn in_pieces_and_whole(any: impl Fn() -> String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in");
    fs::write(&path, measurements()).unwrap();
    let file = path.to_str().unwrap();
    let pieces = ["--chunk", &EAGER_BYTES.to_string()];
    let eager = carry(&dir, &any(), file, FILE_BYTES / EAGER_BYTES, &pieces);
    check(&dir, &eager);
    fs::remove_file(dir.path().join("out")).unwrap();
    let whole = carry(&dir, &any(), file, 1, &[]);
    check(&dir, &whole);
    assert_eq!(eager.0.sha256(), whole.0.sha256());
}

/// Measurements as the demo sends them, over and over.
fn measurements() -> Vec<u8> {
    let once = include_bytes!("../../data/telemetry.csv");
    once.iter().copied().cycle().take(FILE_BYTES).collect()
}
