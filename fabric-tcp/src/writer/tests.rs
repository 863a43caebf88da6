use fabric_core::{Access, Error, ErrorKind as Kind, Exposure, RemoteKey, Segment, Slot};
use proptest::prelude::*;

use super::*;
use crate::frame::{CHUNK_BYTES, HEADER_BYTES, head_bytes};
use crate::requests::Work;

const EP: EpId = EpId(1);
const KEY: RemoteKey = RemoteKey { addr: 0, len: 1, key: 2, nonce: 3 };

/// A kernel that takes so many bytes per call, over and over; 0 means that it has no room.
struct Kernel {
    taken: Vec<u8>,
    takes: Vec<usize>,
    calls: usize,
}

impl Kernel {
    fn new(takes: &[usize]) -> Self {
        Self { taken: Vec::new(), takes: takes.to_vec(), calls: 0 }
    }
}

impl Write for Kernel {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let room = self.takes[self.calls % self.takes.len()];
        self.calls += 1;
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let len = all.len().min(room);
        self.taken.extend_from_slice(&all[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Fixture {
    writer: Writer,
    requests: Requests,
    regions: Regions,
    events: Events,
}

impl Fixture {
    fn flush(&mut self, kernel: &mut Kernel) -> Flushed {
        let mut memory = Memory { requests: &mut self.requests, regions: &self.regions };
        self.writer.flush(EP, kernel, &mut memory, &mut self.events).unwrap()
    }

    fn flush_all(&mut self, kernel: &mut Kernel) {
        while self.flush(kernel) != Flushed::All {}
    }

    fn message(&mut self, op: u64, bytes: &[u8]) {
        self.writer.push_message(OpId(op), Bytes::copy_from_slice(bytes).into());
    }

    fn write(&mut self, op: u64, len: usize) {
        let work = Work::write(Bytes::from(vec![op as u8; len]).into(), KEY, 0, None);
        self.requests.push(OpId(op), work);
        self.requests.issue(&mut self.writer);
    }

    /// Operations reported as sent, and whether they left.
    fn sent(&mut self) -> Vec<(u64, bool)> {
        let mut events = Vec::new();
        self.events.take(&mut events, usize::MAX);
        let sent = |event| match event {
            Event::Sent { op, result, .. } => Some((op.0, result.is_ok())),
            _ => None,
        };
        events.into_iter().filter_map(sent).collect()
    }
}

/// The frames of a stream with the beginning of each payload.
fn frames(mut stream: &[u8]) -> Vec<(Frame, Option<u8>)> {
    let mut found = Vec::new();
    while !stream.is_empty() {
        let (head, rest) = stream.split_at(head_bytes(stream[0]).unwrap());
        let frame = Frame::decode(head).unwrap();
        let payload = match frame {
            Frame::Message { len } | Frame::ReadData { len, .. } | Frame::Write { len, .. } => len,
            _ => 0,
        };
        let (payload, rest) = rest.split_at(payload as usize);
        found.push((frame, payload.first().copied()));
        stream = rest;
    }
    found
}

#[test]
fn many_messages_leave_in_one_write() {
    let mut fixture = Fixture::default();
    (0..50).for_each(|op| fixture.message(op, b"small"));
    let mut kernel = Kernel::new(&[usize::MAX]);
    assert_eq!(fixture.flush(&mut kernel), Flushed::All);
    assert_eq!((kernel.calls, frames(&kernel.taken).len()), (1, 50));
    assert_eq!(fixture.sent(), (0..50).map(|op| (op, true)).collect::<Vec<_>>());
}

#[test]
fn a_message_passes_between_the_chunks_of_a_write_and_a_later_write_does_not() {
    let mut fixture = Fixture::default();
    fixture.write(1, 2 * CHUNK_BYTES);
    fixture.message(2, &[2]);
    fixture.write(3, 1);
    fixture.message(4, &[4]);
    let mut kernel = Kernel::new(&[usize::MAX]);
    fixture.flush_all(&mut kernel);
    let order: Vec<_> = frames(&kernel.taken).iter().map(|(_, first)| first.unwrap()).collect();
    assert_eq!(order, [1, 2, 1, 3, 4]);
}

#[test]
fn a_write_that_never_blocks_still_leaves_a_turn_to_others() {
    let mut fixture = Fixture::default();
    fixture.write(1, 3 * WRITE_BYTES_PER_FLUSH);
    assert_eq!(fixture.flush(&mut Kernel::new(&[usize::MAX])), Flushed::Budget);
}

#[test]
fn what_is_half_written_when_all_ends_is_completed_and_the_rest_comes_back() {
    let mut fixture = Fixture::default();
    fixture.message(1, b"first");
    fixture.message(2, b"second");
    let mut kernel = Kernel::new(&[HEADER_BYTES + 2, 0]);
    assert_eq!(fixture.flush(&mut kernel), Flushed::Blocked);
    let mut memory = Memory { requests: &mut fixture.requests, regions: &fixture.regions };
    let why = || Error::new(Kind::Flushed, "test");
    let writer = std::mem::take(&mut fixture.writer);
    let kept = writer.finish(EP, 100, &mut memory, &mut fixture.events, why);
    assert_eq!(kept.unwrap(), b"rst");
    assert_eq!(fixture.sent(), [(1, true), (2, false)]);
}

#[test]
fn an_exposure_that_ends_is_copied_where_half_written_and_refused_where_not_begun() {
    let mut fixture = Fixture::default();
    let mut slot = Slot::alloc(8).unwrap();
    slot.buffer_mut().fill(7);
    let key = fixture.regions.insert(EP, Exposure::Slot(slot), Access::READ, 1);
    let region = fixture.regions.find(&key).unwrap();
    assert!(fixture.writer.push_data(1, region, 0, 8));
    assert!(fixture.writer.push_data(2, region, 0, 8));
    let mut kernel = Kernel::new(&[HEADER_BYTES + 3, 0, usize::MAX]);
    fixture.flush(&mut kernel);
    fixture.writer.forget(region, fixture.regions.bytes(region).unwrap());
    fixture.regions.remove(&key);
    fixture.flush_all(&mut kernel);
    let found = frames(&kernel.taken);
    assert_eq!(found[0], (Frame::ReadData { id: 1, len: 8 }, Some(7)));
    assert_eq!(found[1].0, Frame::Nak { id: 2, reason: Reason::Access });
}

proptest! {
    #[test]
    fn partial_writes_at_any_byte_give_the_same_stream(
        messages in prop::collection::vec(prop::collection::vec(0usize..40, 0..4), 0..20),
        takes in prop::collection::vec(0usize..60, 1..6),
    ) {
        prop_assume!(takes.iter().any(|take| *take > 0));
        let (mut fixture, mut whole) = (Fixture::default(), Vec::new());
        for (op, segments) in messages.iter().enumerate() {
            let mut buf = SendBuf::new();
            for len in segments {
                buf.push(Segment::Bytes(Bytes::from(vec![op as u8; *len])));
            }
            whole.extend_from_slice(Frame::Message { len: buf.len() as u32 }.encode().bytes());
            whole.extend(buf.to_vec());
            fixture.writer.push_message(OpId(op as u64), buf);
        }
        let mut kernel = Kernel::new(&takes);
        fixture.flush_all(&mut kernel);
        prop_assert_eq!(kernel.taken, whole);
        prop_assert_eq!(fixture.sent().len(), messages.len());
    }
}
