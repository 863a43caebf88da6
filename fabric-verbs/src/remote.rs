//! Reading and writing memory of the peer, and letting it do the same here.

use std::ptr::NonNull;

use fabric_core::{
    Access, Atomics, EpId, Error, ErrorKind, Event, Exposure, OpId, Rejected, RemoteKey, Returned,
    Rma, SendBuf, Slot,
};
use fabric_link::{Reason, posts};

use crate::domain::VerbsDomain;
use crate::endpoint::Outgoing;
use crate::limits::{PACKET_BYTES, REGIONS_MAX, REGISTER_BYTES_MIN, RMA_BYTES_MAX, SEGMENTS_MAX};
use crate::outbound;
use crate::region::{self, Opened};
use crate::status;
use crate::sys::{Mapped, Region, Rights};
use crate::works::{Piece, Source, Target, Task, Work};

/// What is read or written, and by whom.
#[derive(Debug, Clone, Copy)]
struct Span {
    ep: EpId,
    key: RemoteKey,
    offset: u64,
    len: usize,
}

/// The peer's place for a span.
#[derive(Debug, Clone, Copy)]
struct Place {
    addr: u64,
    key: u32,
}

impl VerbsDomain {
    fn check_expose(&mut self, ep: EpId, mem: &Exposure, access: Access) -> Result<(), Error> {
        self.usable(ep)?;
        posts::check_exposure(mem, access, self.driver.regions.len(), REGIONS_MAX)
    }

    fn check_read(&mut self, ep: EpId, into: &Slot, len: usize) -> Result<(), Error> {
        posts::check_read(into, len, RMA_BYTES_MAX)?;
        self.check_room(ep)
    }

    fn check_write(&mut self, ep: EpId, buf: &SendBuf) -> Result<(), Error> {
        posts::check_write(buf, RMA_BYTES_MAX, SEGMENTS_MAX)?;
        self.check_room(ep)
    }

    /// Where a span lies at the peer, if the key is unchanged, this connection's, and covers it.
    fn place(&mut self, span: Span) -> Option<Place> {
        let (_, endpoint) = self.driver.table.endpoint_of(span.ep)?;
        let key = region::unseal(&span.key, endpoint.salt)?;
        let end = span.offset.checked_add(span.len as u64)?;
        let addr = span.key.addr.checked_add(span.offset)?;
        (end <= span.key.len).then_some(Place { addr, key })
    }

    /// The peer would refuse this, so it does not get to see it: the operation and the endpoint end
    /// as if it had.
    fn deny(&mut self, ep: EpId, op: OpId, returned: Returned) {
        let Some((index, endpoint)) = self.driver.table.endpoint_of(ep) else { return };
        let (result, why) = (Err(status::denied(&endpoint.peer)), status::denied(&endpoint.peer));
        self.driver.events.push_back(Event::RmaDone { ep, op, returned, result });
        self.driver.end(index, why, Some(Reason::Access));
    }

    fn push(&mut self, ep: EpId, work: Work) {
        if let Some((index, endpoint)) = self.driver.table.endpoint_of(ep) {
            endpoint.ops += 1;
            endpoint.works.push(work);
            self.driver.table.mark_dirty(index);
        }
    }

    /// An operation without bytes reaches nothing, so nobody is asked.
    fn done_at_once(&mut self, ep: EpId, op: OpId, returned: Returned) {
        self.driver.events.push_back(Event::RmaDone { ep, op, returned, result: Ok(()) });
    }

    fn target(&mut self, into: &mut Slot, len: usize) -> Result<(Target, Vec<Region>), Error> {
        let start = into.buffer_mut().as_ptr();
        if let Some(key) = self.driver.registry.key_of(start, len) {
            return Ok((Target::Slot { addr: start as u64, key }, Vec::new()));
        }
        if len <= PACKET_BYTES {
            return Ok((Target::Packet, Vec::new()));
        }
        let region = Region::new(&self.driver.queues, start, len, Rights::LOCAL)
            .map_err(|error| status::register_error(error, len))?;
        let target = Target::Slot { addr: start as u64, key: region.local_key() };
        Ok((target, vec![region]))
    }

    fn source(&mut self, buf: &SendBuf, len: usize) -> Result<(Source, Vec<Region>), Error> {
        if let Some(pieces) = outbound::pieces(buf, &self.driver.registry) {
            return Ok((Source::Pieces(pieces.to_vec()), Vec::new()));
        }
        if len <= PACKET_BYTES
            && let Some(mut packet) = self.driver.out.take(len)
        {
            packet.slot.set_len(len);
            buf.copy_to(&mut packet.slot.buffer_mut()[..len]);
            return Ok((Source::Packet(packet), Vec::new()));
        }
        match self.register_pieces(buf) {
            Some(found) if len >= REGISTER_BYTES_MIN => Ok(found),
            _ => self.stage(buf, len),
        }
    }

    /// Registers what does not lie in registered pools; `None` when the host does not let it.
    fn register_pieces(&mut self, buf: &SendBuf) -> Option<(Source, Vec<Region>)> {
        let (mut pieces, mut regions) = (Vec::new(), Vec::new());
        for bytes in buf.segments().iter().map(|segment| segment.filled()) {
            let key = match self.driver.registry.key_of(bytes.as_ptr(), bytes.len()) {
                Some(key) => key,
                None if bytes.is_empty() => continue,
                None => {
                    let queues = &self.driver.queues;
                    let region =
                        Region::new(queues, bytes.as_ptr(), bytes.len(), Rights::SEND).ok()?;
                    let key = region.local_key();
                    regions.push(region);
                    key
                }
            };
            pieces.push(Piece { addr: bytes.as_ptr() as u64, len: bytes.len(), key });
        }
        Some((Source::Pieces(pieces), regions))
    }

    fn stage(&mut self, buf: &SendBuf, len: usize) -> Result<(Source, Vec<Region>), Error> {
        let host = |text| Error::new(ErrorKind::Host, text);
        let mut slot =
            Slot::alloc(len).map_err(|error| host("no memory for a write").with_source(error))?;
        slot.set_len(len);
        buf.copy_to(slot.buffer_mut());
        let start = slot.filled().as_ptr();
        let region = Region::new(&self.driver.queues, start, len, Rights::SEND)
            .map_err(|error| status::register_error(error, len))?;
        let key = region.local_key();
        Ok((Source::Staged { slot, key }, vec![region]))
    }

    fn write(
        &mut self,
        span: Span,
        buf: SendBuf,
        imm: Option<u32>,
    ) -> Result<OpId, Rejected<SendBuf>> {
        if let Err(error) = self.check_write(span.ep, &buf) {
            return Err(Rejected::new(buf, error));
        }
        let Span { ep, len, .. } = span;
        let op = self.driver.new_op();
        let Some(place) = self.place(span) else {
            self.deny(ep, op, Returned::SendBuf(buf));
            return Ok(op);
        };
        if len == 0 && imm.is_none() {
            self.done_at_once(ep, op, Returned::SendBuf(buf));
            return Ok(op);
        }
        let (source, regions) = match self.source(&buf, len) {
            Ok(found) => found,
            Err(error) => return Err(Rejected::new(buf, error)),
        };
        let task = Task::Write { buf, source, imm };
        self.push(ep, work(op, task, place, len, regions));
        if let (0, Some(value)) = (len, imm)
            && let Some((_, endpoint)) = self.driver.table.endpoint_of(ep)
        {
            endpoint.out.push_back(Outgoing::Immediate { op, value });
        }
        Ok(op)
    }

    fn atomic(&mut self, ep: EpId, key: RemoteKey, offset: u64, task: Task) -> Result<OpId, Error> {
        posts::check_word(offset)?;
        self.check_room(ep)?;
        let op = self.driver.new_op();
        match self.place(Span { ep, key, offset, len: 8 }) {
            Some(place) => self.push(ep, work(op, task, place, 8, Vec::new())),
            None => self.deny(ep, op, Returned::Value(0)),
        }
        Ok(op)
    }

    /// Opens memory to the peer of one endpoint.
    fn open_memory(
        &mut self,
        ep: EpId,
        start: NonNull<u8>,
        len: usize,
        access: Access,
    ) -> Result<Opened, Error> {
        let rights = region::rights(access);
        if let Some(window) = self.driver.open_window(ep, start.as_ptr(), len, rights) {
            return Ok(Opened::Window(window));
        }
        Region::new(&self.driver.queues, start.as_ptr(), len, rights)
            .map(Opened::Region)
            .map_err(|error| status::register_error(error, len))
    }

    fn seal(&mut self, ep: EpId, start: NonNull<u8>, len: usize, opened: &Opened) -> RemoteKey {
        let salt = self.driver.table.endpoint_of(ep).map_or(0, |(_, endpoint)| endpoint.salt);
        let nonce = self.driver.regions.new_nonce();
        region::seal(start.as_ptr() as u64, len as u64, opened.remote_key(), nonce, salt)
    }

    fn expose_slot(&mut self, ep: EpId, mut slot: Slot, access: Access) -> Exposing {
        let len = slot.capacity();
        let start = NonNull::from(slot.buffer_mut()).cast::<u8>();
        match self.open_memory(ep, start, len, access) {
            Ok(opened) => {
                let key = self.seal(ep, start, len, &opened);
                let mapped = Mapped::new(start, len);
                self.driver.regions.insert((ep, key), opened, mapped, (Exposure::Slot(slot), None));
                Ok(key)
            }
            Err(error) => Err(Rejected::new(Exposure::Slot(slot), error)),
        }
    }

    /// Shared bytes may lie where the host lets no device read, as in a program's constants; then a
    /// copy is exposed, which nobody can tell apart.
    fn expose_bytes(&mut self, ep: EpId, bytes: bytes::Bytes, access: Access) -> Exposing {
        let len = bytes.len();
        let mut start = NonNull::from(&bytes[..]).cast::<u8>();
        let mut copy = None;
        let mut opened = self.open_memory(ep, start, len, access);
        if opened.is_err()
            && let Ok(mut slot) = Slot::alloc(len)
            && slot.append(&bytes)
        {
            start = NonNull::from(slot.buffer_mut()).cast::<u8>();
            opened = self.open_memory(ep, start, len, access);
            copy = Some(slot);
        }
        match opened {
            Ok(opened) => {
                let key = self.seal(ep, start, len, &opened);
                let (mapped, memory) = (Mapped::new(start, len), Exposure::Bytes(bytes));
                self.driver.regions.insert((ep, key), opened, mapped, (memory, copy));
                Ok(key)
            }
            Err(error) => Err(Rejected::new(Exposure::Bytes(bytes), error)),
        }
    }
}

type Exposing = Result<RemoteKey, Rejected<Exposure>>;

impl Rma for VerbsDomain {
    /// Registers the memory, which takes a system call and time that grows with its length.
    fn expose(&mut self, ep: EpId, mem: Exposure, access: Access) -> Exposing {
        if let Err(error) = self.check_expose(ep, &mem, access) {
            return Err(Rejected::new(mem, error));
        }
        match mem {
            Exposure::Slot(slot) => self.expose_slot(ep, slot, access),
            Exposure::Bytes(bytes) => self.expose_bytes(ep, bytes, access),
        }
    }

    fn revoke(&mut self, key: &RemoteKey) -> Result<Exposure, Error> {
        self.driver.regions.remove(key).ok_or_else(posts::unknown_key)
    }

    fn load(&mut self, key: &RemoteKey, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.driver.regions.load(key, offset, to)
    }

    fn store(&mut self, key: &RemoteKey, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.driver.regions.store(key, offset, from)
    }

    fn post_read(
        &mut self,
        ep: EpId,
        from: RemoteKey,
        offset: u64,
        mut into: Slot,
        len: usize,
    ) -> Result<OpId, Rejected<Slot>> {
        if let Err(error) = self.check_read(ep, &into, len) {
            return Err(Rejected::new(into, error));
        }
        let op = self.driver.new_op();
        let Some(place) = self.place(Span { ep, key: from, offset, len }) else {
            self.deny(ep, op, Returned::Slot(into));
            return Ok(op);
        };
        if len == 0 {
            into.set_len(0);
            self.done_at_once(ep, op, Returned::Slot(into));
            return Ok(op);
        }
        match self.target(&mut into, len) {
            Ok((target, regions)) => {
                let task = Task::Read { slot: into, target };
                self.push(ep, work(op, task, place, len, regions));
                Ok(op)
            }
            Err(error) => Err(Rejected::new(into, error)),
        }
    }

    fn post_write(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let len = buf.len();
        self.write(Span { ep, key: to, offset, len }, buf, None)
    }

    /// The value travels in a message of its own behind the bytes: not every transport has room for
    /// one with a write.
    fn post_write_imm(
        &mut self,
        ep: EpId,
        to: RemoteKey,
        offset: u64,
        buf: SendBuf,
        imm: u32,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let len = buf.len();
        self.write(Span { ep, key: to, offset, len }, buf, Some(imm))
    }
}

impl Atomics for VerbsDomain {
    fn compare_swap(
        &mut self,
        ep: EpId,
        at: RemoteKey,
        offset: u64,
        compare: u64,
        swap: u64,
    ) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Task::Swap { compare, swap })
    }

    fn fetch_add(&mut self, ep: EpId, at: RemoteKey, offset: u64, add: u64) -> Result<OpId, Error> {
        self.atomic(ep, at, offset, Task::Add { add })
    }
}

impl VerbsDomain {
    /// # Errors
    /// `Misuse` when the endpoint cannot be used.
    fn usable(&mut self, ep: EpId) -> Result<(), Error> {
        let found = self.driver.table.endpoint_of(ep);
        found
            .filter(|(_, endpoint)| endpoint.is_usable())
            .map(|_| ())
            .ok_or_else(posts::unknown_endpoint)
    }
}

fn work(op: OpId, task: Task, place: Place, len: usize, regions: Vec<Region>) -> Work {
    let Place { addr, key } = place;
    Work { op, task, addr, key, len, posted: 0, landed: 0, fault: None, _regions: regions }
}
