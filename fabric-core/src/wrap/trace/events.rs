//! One `tracing` event for each fabric event.

use crate::{Error, Event, Returned};

macro_rules! tell {
    ($level:ident, $label:ident, $name:literal, $($fields:tt)*) => {
        tracing::$level!(name: $name, target: "fabric::event", domain = $label, $($fields)*)
    };
}

/// Tells of `event` in the domain `label`.
pub(super) fn tell(label: &str, event: &Event) {
    match event {
        Event::Connected { ep, peer } => {
            tell!(debug, label, "connected", ep = ep.0, addr = %peer);
        }
        Event::Accepted { ep, listener, peer } => {
            tell!(debug, label, "accepted", ep = ep.0, listener = listener.0, addr = %peer);
        }
        Event::AcceptFailed { listener, error } => {
            tell!(debug, label, "acceptfailed", listener = listener.0, %error);
        }
        Event::Closed { ep, why } => {
            tell!(debug, label, "closed", ep = ep.0, kind = ?why.kind(), error = %why);
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
            tell!(trace, label, "sent", ep = ep.0, op = op.0, bytes, kind);
        }
        Event::Received { ep, op, slot, imm } => {
            tell!(trace, label, "received", ep = ep.0, op = op.0, bytes = slot.len(), imm);
        }
        Event::RmaDone { ep, op, returned, result } => {
            let (bytes, kind) = (bytes_of(returned), kind_of(result));
            tell!(trace, label, "rmadone", ep = ep.0, op = op.0, bytes, kind);
        }
        Event::Multicast { group, op, slot } => {
            tell!(trace, label, "multicast", group = group.0, op = op.0, bytes = slot.len());
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
