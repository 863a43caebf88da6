//! Links coming up, going down, and what their machines ask for.

use fabric_core::{Addr, EpId, Error as FabricError, ListenerId};
use msg_proto::credit::Room;
use msg_proto::fault::Fault;
use msg_proto::link::{Heartbeat, Link, LinkAction, LinkConfig, PeerInfo};
use msg_proto::wire::{self, Frame};

use super::peer::{Assembly, Origin, Peer};
use super::{Core, Net};
use crate::monitor::{MonitorEvent, PeerId};
use crate::options::Options;
use crate::roles::Role;

impl<R: Role> Core<R> {
    pub(crate) fn on_connected(&mut self, port: usize, ep: EpId) {
        let Some(&peer) = self.net.ports[port].by_ep.get(&ep) else {
            return self.net.ports[port].domain.close(ep);
        };
        let (addr, provider, device) = self.net.path_of(peer);
        self.net.tell(&MonitorEvent::Connected { peer, addr, provider, device });
        self.open_link(peer, ep);
    }

    pub(crate) fn on_accepted(&mut self, port: usize, ep: EpId, _at: ListenerId, addr: Addr) {
        if self.net.closing || self.net.peers.len() >= self.net.options.peers_max {
            self.net.counters.refused += 1;
            return self.net.ports[port].domain.close(ep);
        }
        let key = self.net.peers.insert(Peer::new(addr, port, Origin::Accepted));
        let peer = PeerId(key as u32);
        self.net.ports[port].by_ep.insert(ep, peer);
        let (addr, provider, device) = self.net.path_of(peer);
        self.net.tell(&MonitorEvent::Accepted { peer, addr, provider, device });
        if let Some(fault) = self.role.turns_away() {
            self.net.peer_mut(peer).ep = Some(ep);
            return self.net.send_refusal(peer, fault);
        }
        self.open_link(peer, ep);
    }

    fn open_link(&mut self, peer: PeerId, ep: EpId) {
        let now = self.net.now();
        self.net.epoch_next = self.net.epoch_next.wrapping_add(1);
        let epoch = self.net.epoch_next;
        let entry = self.net.peer_mut(peer);
        entry.ep = Some(ep);
        entry.epoch = epoch;
        entry.said_bye = false;
        #[cfg(feature = "metrics")]
        {
            entry.opened = now;
        }
        let config = self.net.link_config(peer);
        self.net.peer_mut(peer).link = Some(Link::new(config, now));
        self.drain_link(peer);
        self.net.note_deadline(peer);
    }

    /// Does what the link of `peer` asks for.
    pub(crate) fn drain_link(&mut self, peer: PeerId) {
        while let Some(action) = self.net.next_action(peer) {
            match action {
                LinkAction::Up(info) => self.on_up(peer, info),
                other => self.net.do_action(peer, other),
            }
        }
    }

    fn on_up(&mut self, peer: PeerId, info: PeerInfo) {
        let entry = self.net.peer_mut(peer);
        entry.info = Some(info);
        let identity = entry.identity.clone();
        self.net.counters.connects += 1;
        #[cfg(feature = "metrics")]
        self.net.observe_handshake(peer);
        self.net.tell(&MonitorEvent::HandshakeSucceeded { peer, identity });
        self.net.reset_backoff(peer);
        self.net.note_deadline(peer);
        let leaving = self.net.peer(peer).leaving.is_some();
        if leaving {
            self.net.pump(peer);
        } else {
            self.role.on_up(&mut self.net, peer);
            self.on_writable(peer);
        }
        if leaving || (self.net.closing && !self.role.is_pending()) {
            self.net.goodbye_if_drained(peer);
        }
    }

    pub(crate) fn on_closed(&mut self, port: usize, ep: EpId, why: &FabricError) {
        let Some(peer) = self.net.ports[port].by_ep.remove(&ep) else { return };
        let was_up = self.net.peer(peer).is_up();
        let dropped = self.net.tear_down(peer);
        if was_up {
            self.net.counters.disconnects += 1;
            #[cfg(feature = "metrics")]
            self.net.observe_connection(peer);
            let why = why.to_string();
            self.net.tell(&MonitorEvent::Disconnected { peer, why, dropped });
        }
        let accepted = !self.net.peer(peer).is_connector();
        let last = accepted || self.is_ending(peer);
        // A leaving peer was taken from the role when it left.
        if (was_up || last) && self.net.peer(peer).leaving.is_none() {
            self.role.on_gone(&mut self.net, peer, last);
        }
        if accepted {
            self.net.remove_if_read(peer);
        } else if last {
            self.net.drop_inbox(peer);
            self.net.forget(peer);
        } else {
            self.net.try_again(peer, was_up, why);
            self.end_stopped();
        }
    }
}

fn acks(options: &Options) -> u8 {
    if options.acknowledge { wire::abilities::ACKS } else { 0 }
}

impl Net {
    fn path_of(&self, peer: PeerId) -> (Addr, &'static str, String) {
        let path = self.path(peer);
        (path.addr.clone(), path.provider, path.device.to_owned())
    }

    fn link_config(&self, peer: PeerId) -> LinkConfig {
        let options = &self.options;
        LinkConfig {
            socket_type: self.kind,
            abilities: self.abilities | acks(options) | self.reads(peer),
            abilities_needed: acks(options),
            instance: self.instance,
            message_bytes_max: options.message_bytes_max as u64,
            window: Room {
                messages: self.window_messages(peer),
                bytes: Options::limit(options.recv_hwm_bytes),
            },
            handshake_timeout: options.handshake_timeout,
            heartbeat: (!options.heartbeat_interval.is_zero()).then(|| Heartbeat {
                interval: options.heartbeat_interval,
                timeout: options.heartbeat_timeout.unwrap_or(options.heartbeat_interval),
                ttl: options.heartbeat_ttl,
            }),
        }
    }

    fn reads(&self, peer: PeerId) -> u8 {
        let rma = self.ports[self.peer(peer).port].domain.caps().rma;
        if rma.is_some() { wire::abilities::READS } else { 0 }
    }

    fn next_action(&mut self, peer: PeerId) -> Option<LinkAction> {
        self.peers.get_mut(peer.0 as usize)?.link.as_mut()?.poll_action()
    }

    fn do_action(&mut self, peer: PeerId, action: LinkAction) {
        match action {
            LinkAction::SendHello => self.send_hello(peer),
            LinkAction::SendPing { ttl_tenths } => {
                self.control(peer, &Frame::Ping { ttl_tenths, context: b"" });
            }
            LinkAction::SendPong { context, len } => {
                self.control(peer, &Frame::Pong { context: &context[..usize::from(len)] });
            }
            LinkAction::SendCredit(Room { messages, bytes }) => {
                self.control(peer, &Frame::Credit { messages, bytes });
            }
            LinkAction::SendBye => self.control(peer, &Frame::Bye),
            LinkAction::Refuse(fault) => self.send_refusal(peer, fault),
            LinkAction::Close => self.close_ep(peer),
            // `Core::drain_link` takes it.
            LinkAction::Up(_) => {}
        }
    }

    fn send_hello(&mut self, peer: PeerId) {
        let config = self.link_config(peer);
        let identity = self.options.identity.clone();
        self.control(peer, &Frame::Hello(config.hello(&identity)));
    }

    /// Sends grants that have become due.
    pub(crate) fn send_credit(&mut self, peer: PeerId) {
        while let Some(action) = self.next_action(peer) {
            self.do_action(peer, action);
        }
    }

    fn send_refusal(&mut self, peer: PeerId, fault: Fault) {
        self.counters.refused += 1;
        self.tell(&MonitorEvent::Refused { peer, fault, by_peer: false });
        self.control(peer, &Frame::Error { code: fault.code(), text: fault.text() });
        self.flush();
        self.after_refusal(peer, fault);
        self.close_ep(peer);
    }

    /// Ends the link with an error told to the peer.
    pub(crate) fn refuse(&mut self, peer: PeerId, fault: Fault) {
        self.revoke_allowances();
        if let Some(link) = &mut self.peer_mut(peer).link {
            link.refuse(fault);
        }
        self.send_credit(peer);
    }

    /// Closes the connection of `peer`, if it has one; the rest follows with its event.
    pub(crate) fn close_ep(&mut self, peer: PeerId) {
        self.revoke_allowances();
        let entry = self.peer_mut(peer);
        if let Some(link) = &mut entry.link {
            link.on_gone();
        }
        if let Some(ep) = entry.ep {
            let port = entry.port;
            self.ports[port].domain.close(ep);
        }
    }

    pub(crate) fn note_deadline(&mut self, peer: PeerId) {
        let at = self.peer(peer).link.as_ref().and_then(Link::poll_timeout);
        self.note(at);
    }

    /// Forgets everything that belonged to the connection; says how many messages were dropped.
    fn tear_down(&mut self, peer: PeerId) -> u64 {
        self.leave_batch(peer);
        self.revoke_offers(peer);
        let entry = self.peer_mut(peer);
        entry.ep = None;
        entry.link = None;
        entry.info = None;
        entry.in_flight = 0;
        entry.unposted.clear();
        entry.assembly = Assembly::default();
        // What was still being read from the peer's memory will not come any more.
        let unread = entry.inbox.drop_pending();
        self.count_dropped(peer, unread);
        unread + self.drop_begun(peer) + self.drop_for_accepted(peer)
    }

    fn revoke_offers(&mut self, peer: PeerId) {
        let entry = self.peer_mut(peer);
        let (port, offers) = (entry.port, std::mem::take(&mut entry.offers));
        if let Some(rma) = self.ports[port].domain.rma() {
            for key in offers.values() {
                drop(rma.revoke(key));
            }
        }
    }

    /// A message that had partly left was counted as sent and is lost with the connection; sending
    /// it again could deliver it twice.
    fn drop_begun(&mut self, peer: PeerId) -> u64 {
        let begun = self.peer_mut(peer).queue.drop_begun();
        if begun { self.lose(peer, 1) } else { 0 }
    }

    /// An accepted peer's queues end with its connection (LIFE-16); what a peer sent before it said
    /// goodbye stays to be received.
    fn drop_for_accepted(&mut self, peer: PeerId) -> u64 {
        if self.peer(peer).is_connector() {
            return 0;
        }
        let entry = self.peer_mut(peer);
        let said_bye = entry.said_bye;
        let queued = self.take_queue(peer).len();
        let unread = if said_bye { 0 } else { self.empty_inbox(peer) };
        self.count_dropped(peer, unread);
        unread + self.lose(peer, queued)
    }

    /// Counts messages that did not leave; with acknowledgement the role still has them.
    fn lose(&mut self, peer: PeerId, count: u64) -> u64 {
        if self.options.acknowledge {
            return 0;
        }
        self.count_dropped(peer, count);
        count
    }

    /// Removes a peer that is gone once everything it left was received.
    pub(crate) fn remove_if_read(&mut self, peer: PeerId) {
        let gone = self.peers.get(peer.0 as usize).is_some_and(|entry| {
            entry.ep.is_none() && !entry.is_connector() && entry.inbox.is_empty()
        });
        if gone {
            #[cfg(feature = "metrics")]
            self.publish_end(peer);
            self.peers.remove(peer.0 as usize);
        }
    }

    /// Says goodbye to a peer once everything accepted for it has left.
    pub(crate) fn goodbye_if_drained(&mut self, peer: PeerId) {
        self.revoke_allowances();
        let entry = self.peer_mut(peer);
        let drained = entry.queue.is_empty() && entry.offers.is_empty();
        if drained && entry.link.is_none() {
            return self.close_ep(peer);
        }
        if let Some(link) = entry.link.as_mut().filter(|_| drained) {
            link.close();
        }
        self.send_credit(peer);
    }
}
