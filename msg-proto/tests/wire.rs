//! Every frame through the wire format and back.

use msg_proto::wire::{
    CONTEXT_BYTES_MAX, ENVELOPE_BYTES_MAX, Frame, Frames, Hello, IDENTITY_BYTES_MAX, KEY_BYTES,
    TEXT_BYTES_MAX, VERSION, VERSION_MIN, WireError,
};
use proptest::prelude::*;

/// What a frame can be made of.
#[derive(Debug, Clone)]
struct Parts {
    flag: bool,
    words: [u64; 4],
    bytes: Vec<u8>,
    text: String,
}

const KINDS: usize = 18;

/// The frame of each kind that `parts` makes.
fn frame(kind: usize, parts: &Parts) -> Frame<'_> {
    let Parts { flag, words: [a, b, ..], bytes, text } = parts;
    let (flag, a, b) = (*flag, *a, *b);
    let upto = |max: usize| &bytes[..bytes.len().min(max)];
    match kind {
        0 => Frame::Hello(hello(parts)),
        1 => Frame::Error { code: a as u16, text },
        2 => Frame::Ping { ttl_tenths: a as u16, context: upto(CONTEXT_BYTES_MAX) },
        3 => Frame::Pong { context: upto(CONTEXT_BYTES_MAX) },
        4 => Frame::Credit { messages: a, bytes: b },
        5 => Frame::Bye,
        6 => Frame::Part { more: flag, body: bytes },
        7 => Frame::Fragment { more: flag, total: a, body: bytes },
        8 => Frame::Continue { body: bytes },
        9 => Frame::Offer { more: flag, id: a, len: b, key: key(parts) },
        10 => Frame::Done { id: a, failed: flag },
        11 => Frame::Subscribe { history: flag, topic: bytes },
        12 => Frame::Cancel { topic: bytes },
        13 => Frame::Dropped { count: a },
        14 => Frame::Settled,
        15 => Frame::Request { id: a, envelope: upto(ENVELOPE_BYTES_MAX) },
        16 => Frame::Reply { id: a, envelope: upto(ENVELOPE_BYTES_MAX) },
        17 => Frame::Ack { count: a },
        _ => unreachable!("there are {KINDS} kinds"),
    }
}

/// The inverse of `frame`: does not compile when a kind is missing there.
fn kind(frame: &Frame<'_>) -> usize {
    match frame {
        Frame::Hello(_) => 0,
        Frame::Error { .. } => 1,
        Frame::Ping { .. } => 2,
        Frame::Pong { .. } => 3,
        Frame::Credit { .. } => 4,
        Frame::Bye => 5,
        Frame::Part { .. } => 6,
        Frame::Fragment { .. } => 7,
        Frame::Continue { .. } => 8,
        Frame::Offer { .. } => 9,
        Frame::Done { .. } => 10,
        Frame::Subscribe { .. } => 11,
        Frame::Cancel { .. } => 12,
        Frame::Dropped { .. } => 13,
        Frame::Settled => 14,
        Frame::Request { .. } => 15,
        Frame::Reply { .. } => 16,
        Frame::Ack { .. } => 17,
    }
}

fn hello(parts: &Parts) -> Hello<'_> {
    let [a, b, c, d] = parts.words;
    Hello {
        version: a as u16,
        version_min: b as u16,
        socket_type: c as u8,
        abilities: d as u8,
        ttl_tenths: (a >> 16) as u16,
        instance: a,
        message_bytes_max: b,
        credit_messages: c,
        credit_bytes: d,
        identity: &parts.bytes[..parts.bytes.len().min(IDENTITY_BYTES_MAX)],
    }
}

fn key(parts: &Parts) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for (to, word) in key.chunks_exact_mut(8).zip(parts.words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    key
}

fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let encoded = frame.encode();
    let bytes = [encoded.head(), encoded.tail].concat();
    assert_eq!(encoded.len(), bytes.len());
    bytes
}

fn parts() -> impl Strategy<Value = Parts> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(any::<u8>(), 250..260),
        prop::collection::vec(any::<u8>(), 4090..4100),
    ];
    let text = "\\PC{0,40}".prop_filter("fits", |text| text.len() <= TEXT_BYTES_MAX);
    (any::<bool>(), any::<[u64; 4]>(), bytes, text).prop_map(|(flag, words, bytes, text)| Parts {
        flag,
        words,
        bytes,
        text,
    })
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(kind_wanted in 0..KINDS, parts in parts()) {
        let frame = frame(kind_wanted, &parts);
        prop_assert_eq!(kind(&frame), kind_wanted);
        let bytes = encode(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok((frame, bytes.len())));
    }

    #[test]
    fn a_run_of_frames_decodes_to_the_same_run(kinds in prop::collection::vec(0..KINDS, 0..20),
                                               parts in parts()) {
        let frames: Vec<_> = kinds.iter().map(|kind| frame(*kind, &parts)).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
        let found: Result<Vec<_>, _> = Frames::new(&bytes).collect();
        prop_assert_eq!(found, Ok(frames));
    }

    #[test]
    fn a_frame_cut_anywhere_is_truncated(kind in 0..KINDS, parts in parts(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&frame(kind, &parts));
        let cut = &bytes[..cut.index(bytes.len())];
        prop_assert_eq!(Frame::decode(cut), Err(WireError::Truncated));
    }
}

#[test]
fn bodies_over_their_limit_are_refused() {
    let bytes = vec![b'x'; ENVELOPE_BYTES_MAX + 1];
    let text = std::str::from_utf8(&bytes[..=TEXT_BYTES_MAX]).unwrap();
    let parts = Parts { flag: false, words: [0; 4], bytes: vec![], text: String::new() };
    let identity = &bytes[..=IDENTITY_BYTES_MAX];
    for long in [
        Frame::Hello(Hello { identity, ..hello(&parts) }),
        Frame::Error { code: 1, text },
        Frame::Request { id: 1, envelope: &bytes },
        Frame::Reply { id: 1, envelope: &bytes },
    ] {
        assert_eq!(Frame::decode(&encode(&long)), Err(WireError::Length), "{}", kind(&long));
    }
}

/// The format itself: a change here is a change of the version.
#[test]
fn the_bytes_of_every_frame() {
    let parts = Parts {
        flag: true,
        words: [0x0101, 0x0202_0202, 0x03, 0x04],
        bytes: b"octets\0\xff".to_vec(),
        text: "why".into(),
    };
    let mut table = format!("versions {VERSION_MIN} to {VERSION}\n");
    for kind in 0..KINDS {
        let frame = frame(kind, &parts);
        let debug = format!("{frame:?}");
        let name = debug.split([' ', '(']).next().unwrap_or_default();
        let hex: Vec<_> = encode(&frame).iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<_> = hex.chunks(16).map(|line| line.join(" ")).collect();
        table += &format!("{name:10}{}\n", lines.join("\n          "));
    }
    insta::assert_snapshot!(table);
}
