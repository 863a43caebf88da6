//! Files arrive as they were.

mod common;

use std::fs;
use std::path::Path;

use common::{Done, fabric};
use tempfile::TempDir;

const FILE_BYTES: usize = 64 << 20;

/// A file that repeats itself nowhere near a piece's length.
fn random_file(dir: &TempDir, bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let words = (0..bytes / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let path = dir.path().join("in");
    fs::write(&path, words.collect::<Vec<u8>>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn carry(dir: &TempDir, file: &str, count: usize, chunk: &[&str]) -> (Done, Done) {
    let out = dir.path().join("out");
    let count = count.to_string();
    let args = ["pull", "tcp://127.0.0.1:0", "-n", &count, "--checksum", "--output"];
    let mut pull = fabric(args.into_iter().chain([out.to_str().unwrap()]));
    let addr = pull.addr();
    let args = ["push", &addr, "--checksum", "--file", file];
    let pushed = fabric(args.into_iter().chain(chunk.iter().copied())).end().ok();
    (pushed, pull.end().ok())
}

fn check(dir: &TempDir, (pushed, pulled): &(Done, Done)) {
    assert_eq!(pushed.sha256(), pulled.sha256());
    let same = |a: &Path, b: &Path| fs::read(a).unwrap() == fs::read(b).unwrap();
    assert!(same(&dir.path().join("in"), &dir.path().join("out")), "the files differ");
}

#[test]
fn a_file_arrives_as_one_message_and_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let file = random_file(&dir, FILE_BYTES);
    let whole = carry(&dir, &file, 1, &[]);
    check(&dir, &whole);
    let pieces = carry(&dir, &file, FILE_BYTES / (64 << 10), &["--chunk", "64KiB"]);
    check(&dir, &pieces);
    assert_eq!(whole.0.sha256(), pieces.0.sha256());
}

#[test]
fn the_last_piece_may_be_short() {
    let dir = tempfile::tempdir().unwrap();
    let file = random_file(&dir, 100_000);
    check(&dir, &carry(&dir, &file, 4, &["--chunk", "30000"]));
}

#[test]
fn a_published_file_arrives_without_its_topic() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (random_file(&dir, 1 << 20), dir.path().join("out"));
    let publish = ["pub", "tcp://127.0.0.1:0", "--topic", "f", "-w", "1", "--checksum", "--file"];
    let mut publisher = fabric(publish.into_iter().chain([file.as_str()]));
    let addr = publisher.addr();
    let sub = ["sub", &addr, "f", "-n", "1", "--body", "--checksum", "--output"];
    let subscribed = fabric(sub.into_iter().chain([out.to_str().unwrap()])).end().ok();
    check(&dir, &(publisher.end().ok(), subscribed));
}
