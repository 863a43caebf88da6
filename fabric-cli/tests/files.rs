//! Files arrive as they were.

mod carry;
mod common;

use std::fs;

use carry::{carry, check};
use common::fabric;
use tempfile::TempDir;

const ANY: &str = "tcp://127.0.0.1:0";
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

#[test]
fn a_file_arrives_as_one_message_and_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let file = random_file(&dir, FILE_BYTES);
    let whole = carry(&dir, ANY, &file, 1, &[]);
    check(&dir, &whole);
    let pieces = carry(&dir, ANY, &file, FILE_BYTES / (64 << 10), &["--chunk", "64KiB"]);
    check(&dir, &pieces);
    assert_eq!(whole.0.sha256(), pieces.0.sha256());
}

#[test]
fn the_last_piece_may_be_short() {
    let dir = tempfile::tempdir().unwrap();
    let file = random_file(&dir, 100_000);
    check(&dir, &carry(&dir, ANY, &file, 4, &["--chunk", "30000"]));
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
