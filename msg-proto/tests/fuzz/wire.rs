//! The decoder of frames.

use bolero::check;
use msg_proto::wire::{Frame, Frames, HEAD_BYTES, lone_part};

use crate::script::Script;

#[test]
fn any_bytes_decode_or_fail_and_what_decodes_encodes_to_the_same_bytes() {
    check!().for_each(|bytes: &[u8]| check_message(bytes));
}

#[test]
fn nearly_right_frames_decode_or_fail_and_what_decodes_encodes_to_the_same_bytes() {
    check!().for_each(|bytes: &[u8]| check_message(&nearly_right(&mut Script::new(bytes))));
}

/// Follows the frames of a message to its end or its first fault. Frames borrow from the message:
/// that nothing is allocated for them is in the types.
fn check_message(message: &[u8]) {
    let mut rest = message;
    for found in Frames::new(message) {
        let lone = match found {
            Ok(Frame::Part { more: false, body }) => Some(body),
            _ => None,
        };
        assert_eq!(lone_part(rest), lone, "both decoders agree");
        let Ok(frame) = found else {
            assert_eq!(Frame::decode(rest).map(|_| ()), found.map(|_| ()));
            return;
        };
        let encoded = frame.encode();
        let (head, tail) = (encoded.head(), encoded.tail);
        assert!(encoded.len() >= HEAD_BYTES);
        rest = rest.strip_prefix(head).expect("the head that was decoded");
        rest = rest.strip_prefix(tail).expect("the tail that was decoded");
    }
    assert!(rest.is_empty());
}

const KINDS: [u8; 18] =
    [1, 2, 3, 4, 5, 6, 0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32];

/// Frames with heads that are mostly in order, so that random input gets as far as the bodies.
fn nearly_right(script: &mut Script<'_>) -> Vec<u8> {
    let mut message = Vec::new();
    while let Some(pick) = script.byte() {
        let kind = KINDS[usize::from(pick) % KINDS.len()];
        let slip = script.byte().unwrap_or(0);
        let mut body = if kind == 1 && slip < 200 { b"MPAT".to_vec() } else { vec![] };
        body.extend_from_slice(script.bytes(80));
        let len = body.len() as u32;
        let (flags, reserved, len) = match slip {
            0..120 => (0, 0, len),
            120..240 => (1, 0, len),
            240..245 => (slip, 0, len),
            245..250 => (0, slip, len),
            250..253 => (0, 0, len.wrapping_sub(1)),
            253.. => (0, 0, len + 1),
        };
        message.extend_from_slice(&[kind, flags, reserved, 0]);
        message.extend_from_slice(&len.to_le_bytes());
        message.extend_from_slice(&body);
    }
    message
}
