use proptest::prelude::*;

use super::*;

fn place() -> impl Strategy<Value = (u32, Place)> {
    let key =
        any::<[u64; 4]>().prop_map(|[addr, len, key, nonce]| RemoteKey { addr, len, key, nonce });
    (0..=CHUNK_BYTES as u32, key, any::<u64>(), any::<u64>()).prop_map(
        |(len, key, offset, rest)| (len, Place { key, offset, rest: rest.max(len.into()) }),
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    let id = || 1..=u64::MAX;
    let reason = prop_oneof![Just(Reason::Access), Just(Reason::NoReceive), Just(Reason::Protocol)];
    prop_oneof![
        Just(Frame::Bye),
        any::<u32>().prop_map(|len| Frame::Message { len }),
        (id(), place()).prop_map(|(id, (len, at))| Frame::Read { id, len, at }),
        (id(), 0..=CHUNK_BYTES as u32).prop_map(|(id, len)| Frame::ReadData { id, len }),
        (id(), place()).prop_map(|(id, (len, at))| Frame::Write { id, len, at }),
        (id(), place(), any::<u32>()).prop_map(|(id, (len, at), imm)| Frame::WriteImm {
            id,
            len,
            at,
            imm
        }),
        id().prop_map(|id| Frame::WriteDone { id }),
        (id(), place(), any::<u64>(), any::<u64>()).prop_map(|(id, (_, at), compare, swap)| {
            Frame::CompareSwap { id, key: at.key, offset: at.offset, compare, swap }
        }),
        (id(), place(), any::<u64>()).prop_map(|(id, (_, at), add)| Frame::FetchAdd {
            id,
            key: at.key,
            offset: at.offset,
            add
        }),
        (id(), any::<u64>()).prop_map(|(id, before)| Frame::AtomicDone { id, before }),
        (any::<u64>(), reason).prop_map(|(id, reason)| Frame::Nak { id, reason }),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(frame in frame()) {
        let head = frame.encode();
        prop_assert_eq!(head_bytes(head.bytes()[0]), Ok(head.bytes().len()));
        prop_assert_eq!(Frame::decode(head.bytes()), Ok(frame));
    }

    #[test]
    fn a_head_cut_short_is_a_violation(frame in frame(), cut in 0usize..HEAD_BYTES_MAX) {
        let head = frame.encode();
        if cut < head.bytes().len() {
            prop_assert!(Frame::decode(&head.bytes()[..cut]).is_err());
        }
    }
}

#[test]
fn bytes_either_decode_to_a_frame_that_encodes_back_or_are_refused() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some(len) = bytes.first().and_then(|kind| head_bytes(*kind).ok()) else { return };
        let Some(head) = bytes.get(..len) else { return };
        if let Ok(frame) = Frame::decode(head) {
            assert_eq!(frame.encode().bytes(), head);
        }
    });
}

#[test]
fn each_rule_of_the_table_is_kept() {
    let check = |at: usize, value: u8, frame: Frame| {
        let mut bytes = frame.encode().bytes().to_vec();
        bytes[at] = value;
        Frame::decode(&bytes).unwrap_err()
    };
    let done = Frame::WriteDone { id: 1 };
    assert_eq!(check(0, 99, done), Violation::Kind(99));
    assert_eq!(check(1, 1, done), Violation::Reserved);
    assert_eq!(check(3, 1, done), Violation::Reserved);
    assert_eq!(check(4, 1, done), Violation::Length { kind: 6, len: 1 });
    assert_eq!(check(8, 0, done), Violation::Id { kind: 6, id: 0 });
    assert_eq!(check(8, 7, Frame::Message { len: 0 }), Violation::Id { kind: 1, id: 7 });
    let nak = Frame::Nak { id: 1, reason: Reason::Access };
    assert_eq!(check(1, 0, nak), Violation::Reason(0));
}
