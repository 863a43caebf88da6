//! One `tracing` event for each fabric event.

use tracing::{debug, trace};

use crate::{Error, Event, Returned};

/// Tells of `event` in the domain `label`.
pub(super) fn tell(label: &str, event: &Event) {
    match event {
        Event::Connected { ep, peer } => {
            debug!(name: "connected", target: "fabric::event", domain = label, ep = ep.0, addr = %peer);
        }
        Event::Accepted { ep, listener, peer } => {
            debug!(name: "accepted", target: "fabric::event", domain = label, ep = ep.0, listener = listener.0, addr = %peer);
        }
        Event::AcceptFailed { listener, error } => {
            debug!(name: "acceptfailed", target: "fabric::event", domain = label, listener = listener.0, %error);
        }
        Event::Closed { ep, why } => {
            debug!(name: "closed", target: "fabric::event", domain = label, ep = ep.0, kind = ?why.kind(), error = %why);
        }
        Event::Sent { .. }
        | Event::Received { .. }
        | Event::RmaDone { .. }
        | Event::Multicast { .. } => {
            tell_data(label, event);
        }
    }
}

fn tell_data(label: &str, event: &Event) {
    match event {
        Event::Sent { ep, op, buf, result } => {
            let (bytes, kind) = (buf.len(), kind_of(result));
            trace!(name: "sent", target: "fabric::event", domain = label, ep = ep.0, op = op.0, bytes, kind);
        }
        Event::Received { ep, op, slot, imm } => {
            trace!(name: "received", target: "fabric::event", domain = label, ep = ep.0, op = op.0, bytes = slot.len(), imm);
        }
        Event::RmaDone { ep, op, returned, result } => {
            let (bytes, kind) = (bytes_of(returned), kind_of(result));
            trace!(name: "rmadone", target: "fabric::event", domain = label, ep = ep.0, op = op.0, bytes, kind);
        }
        Event::Multicast { group, op, slot } => {
            trace!(name: "multicast", target: "fabric::event", domain = label, group = group.0, op = op.0, bytes = slot.len());
        }
        _ => {}
    }
}

fn kind_of(result: &Result<(), Error>) -> Option<String> {
    result.as_ref().err().map(|error| format!("{:?}", error.kind()))
}

fn bytes_of(returned: &Returned) -> usize {
    match returned {
        Returned::Slot(slot) => slot.len(),
        Returned::SendBuf(buf) => buf.len(),
        Returned::Value(_) => 8,
    }
}
