use std::collections::VecDeque;

use fabric_core::{Access, Addr, EpId, Exposure, Pool, RemoteKey};
use proptest::prelude::*;

use super::*;
use crate::endpoint::{Scratch, Shared};
use crate::events::Events;
use crate::frame::Place;
use crate::limits::READ_AHEAD_BYTES;
use crate::requests::{Requests, Work};
use crate::writer::Writer;

const SLOT_BYTES: usize = 700;
const SLOTS: usize = 8;
const EP: EpId = EpId(1);

/// Frames of the corpus name this key.
const NONCE: u64 = 0x1234;

/// A stream that comes in pieces, and then nothing.
struct Cuts {
    bytes: VecDeque<u8>,
    /// How many bytes each read gives at most, over and over.
    cuts: Vec<usize>,
    at: usize,
}

impl Read for Cuts {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let cut = self.cuts.get(self.at % self.cuts.len().max(1)).copied().unwrap_or(1);
        self.at += 1;
        if self.bytes.is_empty() {
            return Err(IoKind::WouldBlock.into());
        }
        let len = buf.len().min(cut.max(1));
        self.bytes.read(&mut buf[..len])
    }

    fn read_vectored(&mut self, bufs: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        let mut all = vec![0; wanted];
        let got = self.read(&mut all)?;
        let mut from = &all[..got];
        for buf in bufs {
            let len = from.len().min(buf.len());
            buf[..len].copy_from_slice(&from[..len]);
            from = &from[len..];
        }
        Ok(got)
    }
}

/// A reader with all it needs, and a pool to count slots by.
struct Fixture {
    reader: Reader,
    requests: Requests,
    writer: Writer,
    shared: Shared,
    peer: Addr,
    pool: Pool,
    key: RemoteKey,
}

impl Fixture {
    fn new() -> Self {
        let mut shared = Shared {
            recvs: Recvs::new(SLOTS),
            regions: Regions::default(),
            events: Events::default(),
            scratch: Scratch::default(),
            message_bytes_max: SLOT_BYTES,
        };
        let exposed = Exposure::Slot(Slot::alloc(1000).unwrap());
        let key = shared.regions.insert(EP, exposed, Access::ALL, NONCE);
        let (mut requests, mut writer) = (Requests::default(), Writer::default());
        requests.push(OpId(1), Work::read(Slot::alloc(600_000).unwrap(), key, 0, 600_000));
        requests.push(OpId(2), Work::write(bytes::Bytes::from_static(b"x").into(), key, 0, None));
        requests.push(OpId(3), Work::atomic(Frame::FetchAdd { id: 3, key, offset: 0, add: 1 }));
        requests.issue(&mut writer);
        let (peer, pool) = (Addr::new("tcp", "h", Some(1)), Pool::new(SLOT_BYTES, SLOTS).unwrap());
        Self { reader: Reader::default(), requests, writer, shared, peer, pool, key }
    }

    fn post(&mut self) {
        if let Some(slot) = self.pool.take() {
            self.shared.recvs.post(Posted { op: OpId(9), slot });
        }
    }

    fn turn(&mut self, from: &mut Cuts) -> Result<Turn, End> {
        let mut cx = Context {
            ep: EP,
            peer: &self.peer,
            requests: &mut self.requests,
            writer: &mut self.writer,
            shared: &mut self.shared,
        };
        let turn = Turn { readable: true, ends: true, starved: false };
        self.reader.turn(from, &mut cx, turn)
    }

    /// Messages received since the last call.
    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        self.shared.events.take(&mut events, usize::MAX);
        let message = |event| match event {
            Event::Received { slot, imm: None, .. } => Some(slot.filled().to_vec()),
            _ => None,
        };
        events.into_iter().filter_map(message).collect()
    }
}

/// Lets a reader have `bytes` in pieces, and posts so many slots at first and whenever it wants one.
fn read_all(bytes: &[u8], cuts: &[usize], slots: usize) -> (Vec<Vec<u8>>, Option<End>) {
    let mut fixture = Fixture::new();
    let mut from = Cuts { bytes: bytes.iter().copied().collect(), cuts: cuts.to_vec(), at: 0 };
    let mut received = Vec::new();
    (0..slots).for_each(|_| fixture.post());
    loop {
        match fixture.turn(&mut from) {
            Ok(turn) if turn.starved => (0..slots).for_each(|_| fixture.post()),
            Ok(turn) if !turn.readable => break,
            Ok(_) => {}
            Err(end) => return (received, Some(end)),
        }
        received.extend(fixture.received());
        assert!(fixture.reader.spill.len() <= READ_AHEAD_BYTES.max(SLOT_BYTES) + 2 * HEADER_BYTES);
    }
    received.extend(fixture.received());
    fixture.reader.finish(&mut fixture.shared.recvs);
    drop(fixture.shared);
    assert_eq!(fixture.pool.free(), SLOTS, "a slot is lost");
    (received, None)
}

/// Bytes and the way they are cut from one input, for a fuzzer that knows bytes only.
fn check_bytes(input: &[u8]) {
    let Some((cuts, bytes)) = input.split_first_chunk::<4>() else { return };
    let slots = usize::from(cuts[0]) % SLOTS + 1;
    read_all(bytes, &cuts.map(|cut| usize::from(cut) * 3 + 1), slots);
}

#[test]
fn no_bytes_in_any_cuts_break_the_reader() {
    bolero::check!().for_each(check_bytes);
}

/// A valid frame with its payload, about memory of the fixture.
fn frame(key: RemoteKey) -> impl Strategy<Value = Vec<u8>> {
    let place = (0u64..1200, 0u32..1200)
        .prop_map(move |(offset, len)| (len, Place { key, offset, rest: len.into() }));
    let id = 1u64..5;
    let with = |frame: Frame, len: u32| {
        let mut bytes = frame.encode().bytes().to_vec();
        bytes.resize(bytes.len() + len as usize, 0xA5);
        bytes
    };
    prop_oneof![
        8 => (0u32..=700).prop_map(move |len| with(Frame::Message { len }, len)),
        2 => (id.clone(), place.clone())
            .prop_map(move |(id, (len, at))| with(Frame::Read { id, len, at }, 0)),
        2 => (id.clone(), place.clone())
            .prop_map(move |(id, (len, at))| with(Frame::Write { id, len, at }, len)),
        2 => (id.clone(), place, any::<u32>())
            .prop_map(move |(id, (len, at), imm)| with(Frame::WriteImm { id, len, at, imm }, len)),
        1 => Just(with(Frame::ReadData { id: 1, len: 256 << 10 }, 256 << 10)),
        1 => id.clone().prop_map(move |id| with(Frame::WriteDone { id }, 0)),
        1 => id.prop_map(move |id| with(Frame::AtomicDone { id, before: 7 }, 0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_arrive_whole_whatever_the_cuts(
        sizes in prop::collection::vec(0usize..=SLOT_BYTES, 0..40),
        // Where another frame comes first, what follows lies elsewhere than in a fresh slot.
        follows_a_read in prop::collection::vec(any::<bool>(), 40),
        cuts in prop::collection::vec(1usize..3000, 1..6),
        slots in 1..=SLOTS,
    ) {
        let messages: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(at, size)| vec![at as u8; *size]).collect();
        let mut stream = Vec::new();
        let at = Place { key: Fixture::new().key, offset: 0, rest: 1 };
        let read = Frame::Read { id: 1, len: 1, at }.encode();
        for (message, follows_a_read) in messages.iter().zip(follows_a_read) {
            stream.extend_from_slice(if follows_a_read { read.bytes() } else { &[] });
            let head = Frame::Message { len: message.len() as u32 }.encode();
            stream.extend_from_slice(head.bytes());
            stream.extend_from_slice(message);
        }
        let (received, end) = read_all(&stream, &cuts, slots);
        prop_assert!(end.is_none());
        prop_assert_eq!(received, messages);
    }

    #[test]
    fn valid_frames_about_memory_never_break_the_reader(
        seeds in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        cuts in prop::collection::vec(1usize..3000, 1..6),
        slots in 1..=SLOTS,
        frames in prop::collection::vec(frame(Fixture::new().key), 1..20),
    ) {
        let stream: Vec<u8> = seeds.iter().flat_map(|seed| seed.get(&frames).clone()).collect();
        read_all(&stream, &cuts, slots);
    }
}

#[test]
fn a_lone_small_message_costs_one_read() {
    let mut fixture = Fixture::new();
    fixture.post();
    let mut bytes = Frame::Message { len: 5 }.encode().bytes().to_vec();
    bytes.extend_from_slice(b"hello");
    let mut from = Cuts { bytes: bytes.into(), cuts: vec![10_000], at: 0 };
    let mut cx = Context {
        ep: EP,
        peer: &fixture.peer,
        requests: &mut fixture.requests,
        writer: &mut fixture.writer,
        shared: &mut fixture.shared,
    };
    let turn = Turn { readable: true, ends: false, starved: false };
    let turn = fixture.reader.turn(&mut from, &mut cx, turn).unwrap();
    assert_eq!((from.at, turn.readable), (1, false));
    assert_eq!(fixture.received(), [b"hello"]);
}

#[test]
fn a_stream_of_full_messages_costs_a_read_each_and_stays_in_its_slots() {
    let mut fixture = Fixture::new();
    let mut bytes = Vec::new();
    for _ in 0..SLOTS {
        fixture.post();
        bytes.extend_from_slice(Frame::Message { len: SLOT_BYTES as u32 }.encode().bytes());
        bytes.extend_from_slice(&[1; SLOT_BYTES]);
    }
    let mut from = Cuts { bytes: bytes.into(), cuts: vec![usize::MAX], at: 0 };
    fixture.turn(&mut from).unwrap();
    assert_eq!(fixture.received().len(), SLOTS);
    // One more says that there is nothing.
    assert!(from.at <= SLOTS + 1, "{} reads", from.at);
    assert_eq!(fixture.reader.spill.capacity(), 0);
}
