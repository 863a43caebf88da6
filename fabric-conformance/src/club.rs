//! Domains that are members of multicast groups. Datagrams may be lost, so cases send again until
//! somebody hears.

use fabric_core::{Addr, Domain, EpId, Error, GroupId, Multicast, OpId, Rejected, SendBuf, Slot};

use crate::Harness;
use crate::node::{Node, SLOT_BYTES, Sent};

/// The endpoint that the ends of datagrams name.
const NO_EP: EpId = EpId(u64::MAX);
/// Polls before a datagram that nobody heard is sent again.
const PATIENCE: u32 = 5;
/// Polls without effect after which nothing more is under way.
const QUIET: u32 = 30;

/// A domain in a group, with what it heard and was told.
pub(crate) struct Member<D> {
    pub(crate) node: Node<D>,
    pub(crate) group: GroupId,
    /// What it heard, in which group.
    pub(crate) heard: Vec<(GroupId, Vec<u8>)>,
    /// Datagrams that came back.
    pub(crate) sent: Vec<Sent>,
    /// Receives that have not come back.
    pub(crate) offered: Vec<OpId>,
    /// Bytes of the receive that takes the place of a used one; 0 for none.
    pub(crate) slot_bytes: usize,
}

impl<D: Domain> Member<D> {
    pub(crate) fn new(domain: D, group: &Addr) -> Self {
        let mut node = Node::new(domain);
        let group = multicast(&mut node).join(group).expect("a fresh group can be joined");
        let (heard, sent, offered) = (Vec::new(), Vec::new(), Vec::new());
        Self { node, group, heard, sent, offered, slot_bytes: SLOT_BYTES }
    }

    /// The ability that these cases need, and run only with.
    pub(crate) fn groups(&mut self) -> &mut dyn Multicast {
        multicast(&mut self.node)
    }

    pub(crate) fn offer(&mut self, count: usize) {
        for _ in 0..count {
            let slot = Slot::alloc(self.slot_bytes).expect("memory for a case");
            self.offered.push(self.node.offer_slot(slot));
        }
    }

    pub(crate) fn post(&mut self, buf: SendBuf) -> Result<OpId, Rejected<SendBuf>> {
        let group = self.group;
        self.groups().post_multicast(group, buf)
    }

    pub(crate) fn dropped(&mut self) -> Result<u64, Error> {
        let group = self.group;
        self.groups().dropped(group)
    }

    pub(crate) fn has_heard(&self, text: &[u8]) -> bool {
        self.heard.iter().any(|(_, heard)| heard == text)
    }

    /// Polls once, and takes what came.
    fn turn(&mut self) -> bool {
        let came = self.node.turn();
        while let Some(heard) = self.node.heard() {
            let at = self.offered.iter().position(|op| *op == heard.op);
            self.offered.swap_remove(at.expect("a datagram names a receive that was posted"));
            self.heard.push((heard.group, heard.slot.filled().to_vec()));
            if self.slot_bytes > 0 {
                self.offer(1);
            }
        }
        while let Some(sent) = self.node.sent() {
            assert_eq!(sent.ep, NO_EP, "a datagram has no endpoint");
            self.sent.push(sent);
        }
        came
    }
}

fn multicast<D: Domain>(node: &mut Node<D>) -> &mut dyn Multicast {
    node.domain.multicast().expect("caps().multicast says that it is offered")
}

pub(crate) fn fresh_group<H: Harness>(harness: &H) -> Addr {
    harness.fresh_group().expect("a harness whose domains offer multicast names groups")
}

/// Members that are polled together, all in one group.
pub(crate) struct Club<D> {
    pub(crate) members: Vec<Member<D>>,
    pub(crate) addr: Addr,
    polls_max: u32,
}

impl<D: Domain> Club<D> {
    pub(crate) fn new<H: Harness<Domain = D>>(harness: &H, count: usize) -> Self {
        let addr = fresh_group(harness);
        let members = (0..count).map(|_| Member::new(harness.domain(), &addr)).collect();
        Self { members, addr, polls_max: harness.polls_max() }
    }

    /// As `new`, each member with receives.
    pub(crate) fn ready<H: Harness<Domain = D>>(harness: &H, count: usize) -> Self {
        let mut club = Self::new(harness, count);
        club.members.iter_mut().for_each(|member| member.offer(8));
        club
    }

    /// One member sends `text` again and again until `done`.
    pub(crate) fn cast_until(
        &mut self,
        what: &str,
        from: usize,
        text: &[u8],
        mut done: impl FnMut(&mut [Member<D>]) -> bool,
    ) {
        let mut polls = 0;
        while !done(&mut self.members) {
            if polls % PATIENCE == 0 {
                self.cast(from, text);
            }
            self.step(polls);
            polls += 1;
            assert!(polls <= self.polls_max, "sent for {polls} polls in vain: {what}");
        }
    }

    /// One member sends `text` until all of `to` heard it.
    pub(crate) fn tell(&mut self, from: usize, to: &[usize], text: &[u8]) {
        let all = |members: &mut [Member<D>]| to.iter().all(|&to| members[to].has_heard(text));
        self.cast_until("the other members hear a datagram", from, text, all);
    }

    /// Polls until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut [Member<D>]) -> bool) {
        let mut idle = 0;
        while !done(&mut self.members) {
            idle = if self.step(idle) { 0 } else { idle + 1 };
            assert!(idle <= self.polls_max, "waited for {idle} polls in vain: {what}");
        }
    }

    /// Polls until nothing has come for a while.
    pub(crate) fn settle(&mut self) {
        let mut idle = 0;
        while idle < QUIET {
            idle = if self.step(idle) { 0 } else { idle + 1 };
        }
    }

    fn cast(&mut self, from: usize, text: &[u8]) {
        // One that is full has enough on its way.
        if let Err(rejected) = self.members[from].post(bytes::Bytes::copy_from_slice(text).into()) {
            assert_eq!(rejected.error.kind(), fabric_core::ErrorKind::Full, "{}", rejected.error);
        }
        self.members[from].node.domain.flush();
    }

    /// Polls each member; if nothing came, one of them naps.
    fn step(&mut self, turn: u32) -> bool {
        let mut came = false;
        for member in &mut self.members {
            came |= member.turn();
        }
        let count = self.members.len();
        if !came && let Some(member) = self.members.get_mut(turn as usize % count.max(1)) {
            member.node.nap();
        }
        came
    }
}
