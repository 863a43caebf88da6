//! The corpora are where the targets look for them, and still say what they were written for.

use std::fs;
use std::path::{Path, PathBuf};

use msg_proto::wire::{Frame, Frames};

const TARGETS: [&str; 4] = [
    "link__no_peer_brings_a_link_to_panic_overdraw_or_hoard",
    "topics__no_subscriber_gets_over_its_limits_or_into_anothers_messages",
    "wire__any_bytes_decode_or_fail_and_what_decodes_encodes_to_the_same_bytes",
    "wire__nearly_right_frames_decode_or_fail_and_what_decodes_encodes_to_the_same_bytes",
];

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/__fuzz__")
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(dir().join(target).join("corpus")).expect("the target's corpus");
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let mut found: Vec<_> =
        fs::read_dir(dir()).unwrap().map(|dir| dir.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, TARGETS);
    assert!(TARGETS.iter().all(|target| !corpus(target).is_empty()));
}

#[test]
fn the_corpus_of_frames_has_every_kind_and_every_fault() {
    let mut found: Vec<String> = Vec::new();
    for message in corpus(TARGETS[2]) {
        found.extend(Frames::new(&message).map(|frame| name(&frame)));
    }
    found.sort();
    found.dedup();
    insta::assert_snapshot!(found.join("\n"));
}

fn name<E: std::fmt::Debug>(frame: &Result<Frame<'_>, E>) -> String {
    let debug = match frame {
        Ok(frame) => format!("{frame:?}"),
        Err(error) => format!("WireError::{error:?}"),
    };
    debug.split(['(', ' ']).next().unwrap_or_default().into()
}
