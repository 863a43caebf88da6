//! What stands before the body of a request or reply, for those who carry it on: parts up to the
//! first empty one, which ends them (RFC 28, "request-reply envelope").
//!
//! On the wire these parts are one string of bytes, each behind its length; whoever answers gives it
//! back as it came.

use bytes::{Buf, Bytes};
use msg_proto::types::SocketType;
use msg_proto::wire::ENVELOPE_BYTES_MAX;
use smallvec::SmallVec;

use crate::Message;
use crate::engine::Net;
use crate::engine::peer::{Head, Outgoing};
use crate::monitor::PeerId;

/// The parts of a message.
type Parts = SmallVec<[Bytes; 1]>;

/// The message as it leaves for a socket of type `to`. A REP gets a request, if the message has an
/// envelope; one without it discards.
pub(crate) fn outgoing(message: Message, to: Option<SocketType>) -> Outgoing {
    if to != Some(SocketType::Rep) {
        return Outgoing::new(message, Head::None);
    }
    match split(message) {
        Ok((envelope, body)) => Outgoing::new(body, Head::Request { id: 0, envelope }),
        Err(message) => Outgoing::new(message, Head::None),
    }
}

/// Makes what is queued for a peer fit the type that it turned out to have.
pub(crate) fn fit_queue(net: &mut Net, peer: PeerId) {
    let to = kind(net, peer);
    if to != Some(SocketType::Rep) && net.peer(peer).queue.is_plain() {
        return;
    }
    for queued in net.take_queue(peer).into_messages() {
        net.peer_mut(peer).queue.push(outgoing(plain(queued), to));
    }
}

/// The type of a peer, once it is there.
#[inline]
pub(crate) fn kind(net: &Net, peer: PeerId) -> Option<SocketType> {
    net.peers.get(peer.0 as usize)?.info.map(|info| info.socket_type)
}

/// The message as it was handed in.
fn plain(outgoing: Outgoing) -> Message {
    match outgoing.head {
        Head::Request { envelope, .. } => join(envelope, outgoing.message.into_parts()),
        _ => outgoing.message,
    }
}

/// Envelope and body; the message as it was if it has none, or too long a one.
fn split(message: Message) -> Result<(Bytes, Message), Message> {
    let parts = message.parts();
    let at = parts.iter().position(Bytes::is_empty).filter(|at| at + 1 < parts.len());
    let len = |at| parts[..at].iter().map(|part| 2 + part.len()).sum::<usize>();
    let Some(at) = at.filter(|&at| len(at) <= ENVELOPE_BYTES_MAX) else { return Err(message) };
    let envelope = encode(&parts[..at]);
    let mut parts = message.into_parts();
    parts.drain(..=at);
    Ok((envelope, Message::of(parts.into())))
}

fn encode(parts: &[Bytes]) -> Bytes {
    let mut bytes = Vec::new();
    for part in parts {
        // The whole envelope is shorter than that.
        bytes.extend_from_slice(&(part.len() as u16).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.into()
}

/// The next part of an envelope.
fn next(rest: &mut Bytes) -> Option<Bytes> {
    let len = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
    if rest.len() < 2 + len {
        return None;
    }
    rest.advance(2);
    Some(rest.split_to(len))
}

/// Whether a reply came back with an envelope that can be read.
pub(crate) fn is_valid(envelope: &Bytes) -> bool {
    let mut rest = envelope.clone();
    while next(&mut rest).is_some() {}
    rest.is_empty()
}

/// The message of an envelope, the empty part and a body.
pub(crate) fn join(mut envelope: Bytes, body: impl IntoIterator<Item = Bytes>) -> Message {
    let mut parts: Parts = std::iter::from_fn(|| next(&mut envelope)).collect();
    parts.push(Bytes::new());
    parts.extend(body);
    Message::of(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: &[&'static str]) -> Message {
        Message::from_parts(parts.iter().copied())
    }

    #[test]
    fn an_envelope_ends_at_the_first_empty_part_and_comes_back_as_it_was() {
        for parts in [&["", "body"][..], &["a", "bb", "", "body", "", "more"], &["a", "", ""]] {
            let (envelope, body) = split(message(parts)).unwrap();
            assert!(is_valid(&envelope));
            assert_eq!(join(envelope, body.into_parts()), message(parts));
        }
        assert_eq!(split(message(&["", "body"])).unwrap().1.parts(), ["body"]);
    }

    #[test]
    fn without_an_empty_part_and_a_body_there_is_no_envelope() {
        for parts in [&["body"][..], &[""], &["a", "body"], &["a", ""]] {
            assert_eq!(split(message(parts)).unwrap_err(), message(parts));
        }
        let long = Message::from(vec![1; ENVELOPE_BYTES_MAX - 1]).with("").with("body");
        assert!(split(long).is_err());
    }

    #[test]
    fn an_envelope_that_is_cut_short_is_told() {
        let whole = encode(message(&["ab", "c"]).parts());
        let valid: Vec<usize> =
            (0..=whole.len()).filter(|len| is_valid(&whole.slice(..*len))).collect();
        assert_eq!(valid, [0, 4, 7]);
    }
}
