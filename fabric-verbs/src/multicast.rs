//! Unreliable one-to-many datagrams: a queue pair of its own for each group that was joined.
//!
//! Datagrams carry a mark and the sender's token, by which members leave out what is foreign and
//! what is their own. They are copied on their way out and in.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use fabric_core::{
    Addr, EpId, Error, ErrorKind, Event, GroupId, Multicast, OpId, Rejected, SendBuf,
};
use fabric_link::posts::check_segments;
use smallvec::smallvec;

use crate::buffers::{Own, Packet};
use crate::choice;
use crate::domain::VerbsDomain;
use crate::driver::Driver;
use crate::limits::SEGMENTS_MAX;
use crate::resolve;
use crate::status::{self, Verdict};
use crate::sys::{
    AddressHandle, CmEvent, CmKind, Completion, Id, Op, QpPlan, RecvWr, Rights, Space, Wr,
};

/// Marks the cookies of groups. No id of a connection has this bit.
const GROUP: u64 = 1 << 62;
/// Marks receives of groups in completions.
pub(crate) const GROUP_RECV: u64 = 1 << 62;
/// Marks sends to groups in completions.
pub(crate) const GROUP_SEND: u64 = 1 << 61;

/// Completions name the group and, below these bits, the receive or the count of sends.
const NUMBER_SHIFT: u32 = 16;
const LOW: u64 = (1 << NUMBER_SHIFT) - 1;

/// What the device puts in front of a received datagram.
const ROUTE_BYTES: usize = 40;
/// Mark and token in front of the message.
const HEAD_BYTES: usize = 16;
const MARK: [u8; 8] = *b"FABmcst1";

/// Receives of one group. What finds none is lost, as any datagram may be.
const RECEIVES: usize = 64;
/// Sends of one group in flight.
const SENDS: usize = 32;

/// The endpoint that multicast events name: there is none.
const NO_EP: EpId = EpId(u64::MAX);

/// A group that was joined, or is about to be.
struct Group {
    /// First, so that the queue pair is gone before its buffers.
    link: Id,
    addr: SocketAddr,
    token: u64,
    way: Option<Way>,
    /// Messages that wait for the group to be joined or for room.
    waiting: VecDeque<(OpId, SendBuf)>,
    /// With their counts, oldest first.
    sending: VecDeque<(u64, Packet)>,
    next_seq: u64,
    /// Its place in completions.
    number: u64,
    receiving: Vec<Option<Packet>>,
    memory: Own,
    is_dead: bool,
    dropped: u64,
}

/// How to send to a group.
struct Way {
    handle: Arc<AddressHandle>,
    qp: u32,
    qkey: u32,
}

/// All groups of a domain.
#[derive(Default)]
pub(crate) struct Groups {
    open: HashMap<u64, Group>,
    next: u64,
}

impl Groups {
    /// Whether a cookie is that of a group, joined or not.
    pub(crate) fn names(&self, cookie: u64) -> bool {
        cookie & GROUP != 0
    }
}

impl Driver {
    fn join_group(&mut self, group: &Addr) -> Result<GroupId, Error> {
        let addr = group_address(group, self.options.scheme)?;
        let failed = |error| status::listen_error(error, group);
        self.groups.next += 1;
        let number = self.groups.next;
        let mut link = Id::new(&self.channel, GROUP | number, Space::Datagram).map_err(failed)?;
        link.bind(SocketAddr::new(self.local_ip(addr)?, 0)).map_err(failed)?;
        if !link.is_on(self.queues.device()) {
            let text = format!("{group} is not reached by {}", self.queues.device().name());
            return Err(Error::new(ErrorKind::Unreachable, text));
        }
        let plan = QpPlan { send_depth: SENDS, recv_depth: RECEIVES, sges: 1, inline_bytes: 0 };
        link.create_qp(&self.queues, plan).map_err(failed)?;
        let bytes = ROUTE_BYTES + HEAD_BYTES + self.datagram_bytes_max();
        let memory = Own::new(&self.queues, bytes, RECEIVES + SENDS, Rights::LOCAL)?;
        let mut joined = Group {
            link,
            addr,
            token: fastrand::u64(..),
            way: None,
            waiting: VecDeque::new(),
            sending: VecDeque::new(),
            next_seq: 0,
            number,
            receiving: (0..RECEIVES).map(|_| None).collect(),
            memory,
            is_dead: false,
            dropped: 0,
        };
        if self.room < RECEIVES {
            return Err(Error::new(ErrorKind::Full, "the device has no room for another group"));
        }
        self.room -= RECEIVES;
        for index in 0..RECEIVES {
            joined.offer(index);
        }
        if let Err(error) = joined.link.join(addr, GROUP | number) {
            self.room += RECEIVES;
            self.drop_group(joined);
            return Err(failed(error));
        }
        self.groups.open.insert(number, joined);
        Ok(GroupId(number))
    }

    /// An address of the device in the group's family.
    fn local_ip(&self, group: SocketAddr) -> Result<std::net::IpAddr, Error> {
        let locals = choice::addresses(self.queues.device(), &self.channel);
        choice::source_for(group.ip(), &locals).ok_or_else(|| {
            let text =
                format!("{} has no address of the family of {group}", self.queues.device().name());
            Error::new(ErrorKind::Address, text)
        })
    }

    fn leave_group(&mut self, group: GroupId) -> Result<(), Error> {
        let mut left = self.groups.open.remove(&group.0).ok_or_else(not_joined)?;
        if left.way.is_some()
            && let Err(error) = left.link.leave(left.addr)
        {
            tracing::debug!(%error, "the group is left without a word");
        }
        for (op, buf) in std::mem::take(&mut left.waiting) {
            let why = Error::new(ErrorKind::Flushed, "this side left the group");
            self.events.push_back(Event::Sent { ep: NO_EP, op, buf, result: Err(why) });
        }
        self.room += RECEIVES + left.sending.len();
        self.drop_group(left);
        Ok(())
    }

    fn drop_group(&mut self, mut group: Group) {
        if let Err(error) = group.link.destroy_qp() {
            self.keep_for_ever(group, &error);
        }
    }

    /// Leaves all groups, in time for what they are made from.
    pub(crate) fn drop_groups(&mut self) {
        for (_, group) in std::mem::take(&mut self.groups.open) {
            self.drop_group(group);
        }
    }

    pub(crate) fn on_group_event(&mut self, event: &CmEvent) {
        let number = event.cookie & !GROUP;
        let queues = self.queues.clone();
        let Some(group) = self.groups.open.get_mut(&number) else { return };
        match &event.kind {
            CmKind::Joined(route) => match route.handle(&queues) {
                Ok(handle) => {
                    let (qp, qkey) = (route.qp, route.qkey);
                    group.way = Some(Way { handle: Arc::new(handle), qp, qkey });
                }
                Err(error) => group.fail(&error),
            },
            CmKind::JoinFailed | CmKind::Failed | CmKind::DeviceRemoved => {
                group.fail(&format!("error {}", event.status));
            }
            _ => {}
        }
        self.flush_group(number);
    }

    /// Sends what waits, as far as there is room.
    fn flush_group(&mut self, number: u64) {
        let Some(group) = self.groups.open.get_mut(&number) else { return };
        while let Some((op, buf)) = group.waiting.pop_front() {
            let result = if group.is_dead {
                Err(Error::new(ErrorKind::Host, "the group could not be joined: see the log"))
            } else if group.way.is_none() || group.sending.len() >= SENDS || self.room == 0 {
                return group.waiting.push_front((op, buf));
            } else {
                let sent = group.send(&buf);
                self.room -= usize::from(sent.is_ok());
                sent
            };
            self.events.push_back(Event::Sent { ep: NO_EP, op, buf, result });
        }
    }

    /// Sends what waits in any group.
    pub(crate) fn flush_groups(&mut self) {
        if self.groups.open.is_empty()
            || self.groups.open.values().all(|group| group.waiting.is_empty())
        {
            return;
        }
        let numbers: Vec<u64> = self.groups.open.keys().copied().collect();
        for number in numbers {
            self.flush_group(number);
        }
    }

    pub(crate) fn on_group_completion(&mut self, completion: &Completion) {
        // One that was left and its queue pair destroyed is not found, whoever has its number now.
        let number = (completion.id & !(GROUP_RECV | GROUP_SEND)) >> NUMBER_SHIFT;
        let Some(group) = self.groups.open.get_mut(&number) else { return };
        if completion.id & GROUP_RECV != 0 {
            let index = (completion.id & LOW) as usize;
            let Some(mut packet) = group.receiving.get_mut(index).and_then(Option::take) else {
                return;
            };
            packet.slot.set_len(completion.bytes.min(packet.slot.capacity()));
            let is_good = completion.status == 0;
            if is_good && let Some(message) = group.message(packet.slot.filled()) {
                self.deliver_datagram(GroupId(number), &message);
            }
            drop(packet);
            if let Some(group) = self.groups.open.get_mut(&number) {
                group.offer(index);
            }
            return;
        }
        let seq = completion.id & LOW;
        if let Some(last) = group.sending.iter().position(|(sent, _)| *sent == seq) {
            group.sending.drain(..=last);
            self.room += last + 1;
        }
        let peer = resolve::addr_in(self.options.scheme, group.addr);
        if let Verdict::Bad(error) = status::verdict(completion, &peer) {
            group.fail(&error);
        }
        self.flush_group(number);
    }

    fn deliver_datagram(&mut self, group: GroupId, message: &[u8]) {
        let Some(mut posted) = self.recvs.take() else { return self.drop_datagram(group) };
        if message.len() > posted.slot.capacity() {
            self.recvs.untake(posted);
            return self.drop_datagram(group);
        }
        posted.slot.buffer_mut()[..message.len()].copy_from_slice(message);
        posted.slot.set_len(message.len());
        self.events.push_back(Event::Multicast { group, op: posted.op, slot: posted.slot });
    }

    /// Without a slot it is lost, as any datagram may be.
    fn drop_datagram(&mut self, group: GroupId) {
        if let Some(group) = self.groups.open.get_mut(&group.0) {
            group.dropped += 1;
        }
    }

    /// Bytes of a message that one datagram takes.
    fn datagram_bytes_max(&self) -> usize {
        self.mtu_bytes.saturating_sub(HEAD_BYTES)
    }
}

impl Group {
    fn send(&mut self, buf: &SendBuf) -> Result<(), Error> {
        let (Some(way), Some(mut packet)) = (&self.way, self.memory.take()) else {
            return Err(Error::new(ErrorKind::Full, "the group's buffers are in use"));
        };
        let len = buf.len();
        packet.slot.set_len(HEAD_BYTES + len);
        let bytes = packet.slot.buffer_mut();
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..HEAD_BYTES].copy_from_slice(&self.token.to_le_bytes());
        buf.copy_to(&mut bytes[HEAD_BYTES..HEAD_BYTES + len]);
        let op = Op::Datagram { to: way.handle.clone(), qp: way.qp, qkey: way.qkey };
        let id = GROUP_SEND | self.number << NUMBER_SHIFT | self.next_seq;
        let wr = Wr { id, op, sges: smallvec![packet.sge()], signal: true };
        let posted = self.link.post_one(wr);
        posted.map_err(|error| status::host_error(error, "sending to a group"))?;
        self.sending.push_back((self.next_seq, packet));
        self.next_seq = (self.next_seq + 1) & LOW;
        Ok(())
    }

    /// Posts a receive at its place.
    fn offer(&mut self, index: usize) {
        let Some(mut packet) = self.memory.take() else { return };
        let len = packet.slot.capacity();
        let id = GROUP_RECV | self.number << NUMBER_SHIFT | index as u64;
        let recv = RecvWr { id, to: packet.room_sge(len) };
        match self.link.post_recv(recv) {
            Ok(()) => self.receiving[index] = Some(packet),
            Err(error) => tracing::debug!(%error, "a group has a receive less"),
        }
    }

    /// The message in a datagram of another member.
    fn message(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (head, message) = datagram.get(ROUTE_BYTES..)?.split_at_checked(HEAD_BYTES)?;
        let is_own = head[8..] == self.token.to_le_bytes();
        (head[..8] == MARK && !is_own).then(|| message.to_vec())
    }

    fn fail(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!(group = %self.addr, %why, "the group cannot be used");
        self.is_dead = true;
    }
}

impl Multicast for VerbsDomain {
    /// Starts to join: what is sent before the network agreed waits for that, and what others send
    /// until then does not arrive.
    fn join(&mut self, group: &Addr) -> Result<GroupId, Error> {
        self.driver.join_group(group)
    }

    fn leave(&mut self, group: GroupId) -> Result<(), Error> {
        self.driver.leave_group(group)
    }

    fn post_multicast(&mut self, group: GroupId, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        let (len, len_max) = (buf.len(), self.driver.datagram_bytes_max());
        let depth = fabric_core::Domain::caps(self).send_depth;
        let error = match self.driver.groups.open.get(&group.0) {
            None => not_joined(),
            Some(_) if len > len_max => {
                Error::misuse(format!("{len} bytes do not fit a datagram of {len_max}"))
            }
            Some(open) if open.waiting.len() >= depth => Error::new(
                ErrorKind::Full,
                format!("{depth} messages wait for the group: poll first"),
            ),
            Some(_) => match check_segments(&buf, SEGMENTS_MAX) {
                Ok(()) => {
                    let op = self.driver.new_op();
                    if let Some(open) = self.driver.groups.open.get_mut(&group.0) {
                        open.waiting.push_back((op, buf));
                    }
                    return Ok(op);
                }
                Err(error) => error,
            },
        };
        Err(Rejected::new(buf, error))
    }

    fn dropped(&mut self, group: GroupId) -> Result<u64, Error> {
        self.driver.groups.open.get(&group.0).map(|group| group.dropped).ok_or_else(not_joined)
    }
}

/// The group that `addr` names. Its port means nothing.
fn group_address(addr: &Addr, scheme: &str) -> Result<SocketAddr, Error> {
    resolve::check_scheme(addr, scheme)?;
    let ip: Option<std::net::IpAddr> = addr.host().parse().ok();
    ip.filter(std::net::IpAddr::is_multicast).map(|ip| SocketAddr::new(ip, 0)).ok_or_else(|| {
        let text = format!("{addr} is no multicast group: use an address like 239.1.2.3");
        Error::new(ErrorKind::Address, text)
    })
}

fn not_joined() -> Error {
    Error::misuse("there is no such group: it was left already")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_can_be_joined() {
        let group = |text: &str| {
            group_address(&text.parse().unwrap(), "verbs").map_err(|error| error.kind())
        };
        assert_eq!(group("verbs://239.1.2.3"), Ok("239.1.2.3:0".parse().unwrap()));
        assert_eq!(group("verbs://10.0.0.1:5"), Err(ErrorKind::Address));
        assert_eq!(group("verbs://rxe0"), Err(ErrorKind::Address));
        assert_eq!(group("tcp://239.1.2.3"), Err(ErrorKind::Unsupported));
    }
}
