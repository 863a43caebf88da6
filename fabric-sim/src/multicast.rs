//! Multicast groups: a datagram goes to every other member, and is lost where no receive is posted.

use std::collections::VecDeque;
use std::net::IpAddr;

use fabric_core::{Addr, EpId, Error, ErrorKind, Event, GroupId, OpId, Rejected, SendBuf};

use crate::Bug;
use crate::dom::Dom;
use crate::net::Net;
use crate::packet::Due;
use crate::status;

/// The endpoint that the ends of datagrams name: there is none.
const NO_EP: EpId = EpId(u64::MAX);

/// A group that a domain joined.
pub(crate) struct Member {
    /// The group's address.
    place: IpAddr,
    posted: VecDeque<(OpId, SendBuf)>,
    /// On its way here.
    inbox: VecDeque<Datagram>,
    dropped: u64,
}

struct Datagram {
    due: Due,
    /// The domain it came from.
    from: u64,
    bytes: Vec<u8>,
}

impl Net {
    pub(crate) fn join_group(&mut self, dom: u64, addr: &Addr) -> Result<GroupId, Error> {
        self.check_usable(dom, addr)?;
        let place = addr.host().parse().ok().filter(IpAddr::is_multicast);
        let place = place.or(self.has(Bug::JoinsHosts).then_some(IpAddr::from([0; 4])));
        let place = place.ok_or_else(|| {
            let text = format!("{addr} is no multicast group: use an address like 239.1.2.3");
            Error::new(ErrorKind::Address, text)
        })?;
        if self.has(Bug::JoinsOnce) && !self.joined_once.insert((dom, place)) {
            return Err(Error::new(ErrorKind::Address, "this group was joined before"));
        }
        let id = GroupId(self.fresh_id());
        let member = Member { place, posted: VecDeque::new(), inbox: VecDeque::new(), dropped: 0 };
        if let Some(dom) = self.doms.get_mut(&dom) {
            dom.groups.insert(id, member);
        }
        Ok(id)
    }

    pub(crate) fn leave_group(&mut self, dom: u64, group: GroupId) -> Result<(), Error> {
        let bug = self.options.bug;
        let Some(state) = self.doms.get_mut(&dom) else { return Err(not_joined()) };
        let left = match bug {
            Some(Bug::LeaveKeepsHearing) => state.groups.get_mut(&group).map(Member::take_posted),
            _ => state.groups.remove(&group).map(|mut member| member.take_posted()),
        };
        let posted = match left {
            None if bug == Some(Bug::LeavesTwice) => return Ok(()),
            left => left.ok_or_else(not_joined)?,
        };
        if bug == Some(Bug::LosesCastsOnLeave) {
            return Ok(());
        }
        for (op, buf) in posted {
            state.report(Event::Sent { ep: NO_EP, op, buf, result: Err(status::flushed()) });
        }
        Ok(())
    }

    pub(crate) fn post_multicast(
        &mut self,
        dom: u64,
        group: GroupId,
        buf: SendBuf,
    ) -> Result<OpId, Rejected<SendBuf>> {
        let op = self.fresh_op();
        if let Err(error) = self.check_datagram(dom, group, &buf) {
            return Err(Rejected::new(buf, error));
        }
        if let Some(member) = self.member(dom, group) {
            member.posted.push_back((op, buf));
        }
        Ok(op)
    }

    pub(crate) fn dropped(&mut self, dom: u64, group: GroupId) -> Result<u64, Error> {
        self.member(dom, group).map(|member| member.dropped).ok_or_else(not_joined)
    }

    /// Hands over the datagrams that `dom` posted.
    pub(crate) fn flush_groups(&mut self, dom: u64) {
        let Some(state) = self.doms.get(&dom) else { return };
        let groups: Vec<GroupId> = state.groups.keys().copied().collect();
        for group in groups {
            while let Some((op, buf)) =
                self.member(dom, group).and_then(|member| member.posted.pop_front())
            {
                self.cast(dom, group, op, buf);
            }
        }
    }

    /// Takes in the datagrams that have arrived at `dom`.
    pub(crate) fn deliver_datagrams(&mut self, dom: u64) {
        let Some(state) = self.doms.get(&dom) else { return };
        let groups: Vec<GroupId> = state.groups.keys().copied().collect();
        for group in groups {
            while let Some(datagram) = self.next_datagram(dom, group) {
                self.hear(dom, group, &datagram.bytes);
            }
        }
    }

    /// Whether a poll of `dom` may bring or take a datagram.
    pub(crate) fn has_datagrams(&self, dom: u64, state: &Dom) -> bool {
        state.groups.values().any(|member| {
            let front = member.inbox.front();
            !member.posted.is_empty()
                || front.is_some_and(|datagram| {
                    self.counts(dom, datagram.due) && !self.cut.contains(&(datagram.from, dom))
                })
        })
    }

    fn check_datagram(&mut self, dom: u64, group: GroupId, buf: &SendBuf) -> Result<(), Error> {
        let (bytes, segments) = (buf.len(), buf.segments().len());
        let (bytes_max, segments_max) =
            (self.options.limits.datagram_bytes_max, self.options.limits.segments_max);
        let (depth, bug) = (self.options.limits.send_depth, self.options.bug);
        let Some(member) = self.member(dom, group) else {
            return if bug == Some(Bug::CastsForStrangers) { Ok(()) } else { Err(not_joined()) };
        };
        if bytes > bytes_max && bug != Some(Bug::IgnoresMtu) {
            return Err(status::over_limit("bytes", bytes, bytes_max));
        }
        if segments > segments_max {
            return Err(status::over_limit("segments", segments, segments_max));
        }
        if member.posted.len() >= depth && bug != Some(Bug::IgnoresGroupDepth) {
            return Err(status::full("datagrams are in flight", depth));
        }
        Ok(())
    }

    /// One datagram to all other members.
    fn cast(&mut self, dom: u64, group: GroupId, op: OpId, buf: SendBuf) {
        let bytes = self.bytes_of(&buf);
        let mut others = self.others(dom, group);
        if self.has(Bug::ReachesOneMember) {
            others.truncate(1);
        }
        if others.is_empty() && self.has(Bug::KeepsUnheardCasts) {
            return;
        }
        for (to, member) in others {
            let datagram = Datagram { due: self.draw_due(to), from: dom, bytes: bytes.clone() };
            self.carry_datagram(to, member, datagram);
        }
        if self.has(Bug::ReportsCastTwice) {
            let again = Event::Sent { ep: NO_EP, op, buf: SendBuf::new(), result: Ok(()) };
            self.report(dom, again);
        }
        self.report(dom, Event::Sent { ep: NO_EP, op, buf, result: Ok(()) });
    }

    fn carry_datagram(&mut self, to: u64, member: GroupId, datagram: Datagram) {
        let silent = self.has(Bug::CastsStaySilent);
        let Some(dom) = self.doms.get_mut(&to) else { return };
        if let Some(member) = dom.groups.get_mut(&member) {
            member.inbox.push_back(datagram);
        }
        if !silent {
            dom.bell.ring();
        }
    }

    fn bytes_of(&self, buf: &SendBuf) -> Vec<u8> {
        let mut bytes = match buf.segments().first() {
            Some(first) if self.has(Bug::CastsFirstSegmentOnly) => first.filled().to_vec(),
            _ => buf.to_vec(),
        };
        let is_largest = bytes.len() == self.options.limits.datagram_bytes_max;
        if is_largest && self.has(Bug::CutsLargeDatagrams) {
            bytes.pop();
        }
        bytes
    }

    fn others(&self, dom: u64, group: GroupId) -> Vec<(u64, GroupId)> {
        let place = self.doms.get(&dom).and_then(|dom| dom.groups.get(&group)).map(|m| m.place);
        let (mixes, echoes) = (self.has(Bug::MixesGroups), self.has(Bug::EchoesMulticast));
        let all = self.doms.iter().flat_map(|(id, dom)| dom.groups.iter().map(|it| (*id, it)));
        all.filter(|(_, (id, member))| {
            (Some(member.place) == place || mixes) && (**id != group || echoes)
        })
        .map(|(dom, (id, _))| (dom, *id))
        .collect()
    }

    fn next_datagram(&mut self, dom: u64, group: GroupId) -> Option<Datagram> {
        let front = self.doms.get(&dom)?.groups.get(&group)?.inbox.front()?;
        if !self.is_due(dom, front.due) || self.cut.contains(&(front.from, dom)) {
            return None;
        }
        self.member(dom, group)?.inbox.pop_front()
    }

    fn hear(&mut self, dom: u64, group: GroupId, bytes: &[u8]) {
        let Some((op, mut slot)) = self.take_recv(dom) else { return self.drop_one(dom, group) };
        let fits = bytes.len().min(slot.capacity());
        if fits < bytes.len() && !self.has(Bug::TruncatesDatagrams) {
            if let Some(dom) = self.doms.get_mut(&dom) {
                dom.recvs.push_front((op, slot));
            }
            return self.drop_one(dom, group);
        }
        slot.buffer_mut()[..fits].copy_from_slice(&bytes[..fits]);
        slot.set_len(fits);
        let op = if self.has(Bug::NamesNoReceive) { self.fresh_op() } else { op };
        self.report(dom, Event::Multicast { group, op, slot });
    }

    fn drop_one(&mut self, dom: u64, group: GroupId) {
        let counts = !self.has(Bug::DropsUncounted);
        if let Some(member) = self.member(dom, group) {
            member.dropped += u64::from(counts);
        }
    }

    fn member(&mut self, dom: u64, group: GroupId) -> Option<&mut Member> {
        self.doms.get_mut(&dom)?.groups.get_mut(&group)
    }
}

impl Member {
    fn take_posted(&mut self) -> VecDeque<(OpId, SendBuf)> {
        std::mem::take(&mut self.posted)
    }
}

fn not_joined() -> Error {
    Error::misuse("there is no such group here: it was left or never joined")
}
