//! The way to one peer, and what the provider holds for it.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use fabric_core::{EpId, Error};
use slab::Slab;

use crate::bequest::{self, Watched};
use crate::limits::NUDGE_AFTER;
use crate::side::Side;
use crate::status;
use crate::stock::{Packet, Stock};
use crate::sys::{Code, Contexts, Endpoint, Opened};

/// An endpoint of the provider's, with the channel beside it where it has no connection.
pub(crate) struct Link {
    pub(crate) endpoint: Endpoint,
    pub(crate) side: Option<Side>,
    last_sent: Option<Instant>,
    watched: Option<Watched>,
}

/// What a provider has and will give back in a completion.
pub(crate) struct Flight {
    /// Whose it is.
    pub(crate) ep: EpId,
    pub(crate) packet: Packet,
    pub(crate) state: Aloft,
}

/// What the provider has a packet for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aloft {
    Sending,
    Receiving,
    /// Nothing any more: it was read, and is about to be posted again.
    Read,
}

/// How sending went.
pub(crate) enum Sent {
    /// The provider copied it.
    Copied,
    /// It comes back in a completion.
    InFlight,
    /// There is no room for now.
    Later(Packet),
}

/// What all links of a domain share. Dropped in order: the memory after what it is registered with.
pub(crate) struct Wires {
    pub(crate) flights: Slab<Flight>,
    pub(crate) contexts: Contexts,
    pub(crate) stock: Stock,
    pub(crate) inject_bytes: usize,
    /// Where small messages get their head.
    pub(crate) draft: Vec<u8>,
    /// The last reading of the clock.
    pub(crate) clock: Instant,
    pub(crate) opened: Arc<Opened>,
}

impl Link {
    pub(crate) fn new(endpoint: Endpoint, side: Option<Side>) -> Self {
        Self { endpoint, side, last_sent: None, watched: None }
    }

    /// Both ends know each other.
    pub(crate) fn on_met(&mut self) {
        if let (Some(side), Some(peer)) = (&self.side, self.endpoint.peer_name()) {
            self.watched = bequest::watch(side.as_fd(), self.endpoint.name(), peer);
        }
    }

    /// Packets were sent, between the last reading of the clock and now. A peer that may have fallen
    /// asleep is woken, as the provider does not. It has not if it can be sure to see these within
    /// [`NUDGE_AFTER`] of earlier ones: hence the time from before those were sent until after these
    /// were.
    pub(crate) fn on_sent(&mut self, clock: &mut Instant) {
        let Some(side) = &mut self.side else { return };
        let before = std::mem::replace(clock, Instant::now());
        let is_fresh = |last: Instant| clock.saturating_duration_since(last) < NUDGE_AFTER;
        if !self.last_sent.replace(before).is_some_and(is_fresh) {
            side.nudge();
        }
    }
}

impl Wires {
    /// Posts the receives of a new endpoint.
    ///
    /// # Errors
    /// `Host` when there is no memory, and what the provider says.
    pub(crate) fn stock_up(
        &mut self,
        endpoint: &Endpoint,
        ep: EpId,
        count: usize,
    ) -> Result<(), Error> {
        for packet in self.stock.take_many(count, &self.opened)? {
            if let Err((packet, code)) = self.post_receive(endpoint, ep, packet) {
                self.stock.give_back(packet);
                return Err(status::host_error(code, "posting receives"));
            }
        }
        Ok(())
    }

    /// Gives a packet to the provider to receive into.
    ///
    /// # Errors
    /// The packet with what the provider says.
    pub(crate) fn post_receive(
        &mut self,
        endpoint: &Endpoint,
        ep: EpId,
        packet: Packet,
    ) -> Result<(), (Packet, Code)> {
        let index = self.flights.insert(Flight { ep, packet, state: Aloft::Read });
        self.post_again(endpoint, index)
    }

    /// The same with one that was read and left where it is.
    ///
    /// # Errors
    /// As [`Wires::post_receive`].
    pub(crate) fn post_again(
        &mut self,
        endpoint: &Endpoint,
        index: usize,
    ) -> Result<(), (Packet, Code)> {
        let Flight { packet, state, .. } = &mut self.flights[index];
        *state = Aloft::Receiving;
        let desc = packet.desc;
        match endpoint.recv(packet.slot.buffer_mut(), desc, &mut self.contexts, index) {
            Ok(()) => Ok(()),
            Err(code) => Err((self.flights.remove(index).packet, code)),
        }
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// What the provider says; the packet is gone then.
    pub(crate) fn send(
        &mut self,
        endpoint: &Endpoint,
        ep: EpId,
        packet: Packet,
    ) -> Result<Sent, Code> {
        if packet.slot.len() <= self.inject_bytes {
            return match endpoint.inject(packet.slot.filled()) {
                Ok(()) => {
                    self.stock.give_back(packet);
                    Ok(Sent::Copied)
                }
                Err(Code::AGAIN) => Ok(Sent::Later(packet)),
                Err(code) => {
                    self.stock.give_back(packet);
                    Err(code)
                }
            };
        }
        let index = self.flights.insert(Flight { ep, packet, state: Aloft::Sending });
        let packet = &self.flights[index].packet;
        match endpoint.send(packet.slot.filled(), packet.desc, &mut self.contexts, index) {
            Ok(()) => Ok(Sent::InFlight),
            Err(code) => {
                let packet = self.flights.remove(index).packet;
                if code == Code::AGAIN {
                    return Ok(Sent::Later(packet));
                }
                self.stock.give_back(packet);
                Err(code)
            }
        }
    }

    /// Takes everything back that belonged to endpoints which the provider has closed.
    pub(crate) fn recall(&mut self, is_closed: impl Fn(EpId) -> bool) {
        let gone: Vec<usize> = self
            .flights
            .iter()
            .filter(|(_, flight)| is_closed(flight.ep))
            .map(|(index, _)| index)
            .collect();
        for index in gone {
            let packet = self.flights.remove(index).packet;
            self.stock.give_back(packet);
        }
    }
}
