//! What is looked at first in a packet that arrived.

use fabric_core::{Addr, Error};

use crate::credit::Credit;
use crate::packet::{Head, Kind, Remote};
use crate::reasons::violation;
use crate::stage::Stage;

/// Checks the head of a packet from `peer`, whose endpoint is not closing, and counts it.
///
/// # Errors
/// `Protocol` when it has none, comes after a goodbye or breaks the rules of credit.
#[inline]
pub fn admit<R: Remote>(
    packet: &[u8],
    credit: &mut Credit,
    stage: Stage,
    peer: &Addr,
) -> Result<Kind<R>, Error> {
    let Some(Head { kind, granted }) = Head::decode(packet) else {
        return Err(violation(peer, &"a packet without a head"));
    };
    if stage == Stage::PeerEnded {
        return Err(violation(peer, &"a packet after its goodbye"));
    }
    match credit.on_arrived(kind.is_credited(), granted) {
        Ok(_) => Ok(kind),
        Err(breach) => Err(violation(peer, &breach)),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::packet::Part;

    fn packet(granted: u32) -> Vec<u8> {
        let kind = Kind::<Infallible>::Part(Part::First { total: 0 });
        Head { kind, granted }.encode().to_vec()
    }

    #[test]
    fn packets_are_counted_and_bad_ones_named() {
        let (mut credit, peer) = (Credit::new(1, 2), Addr::new("verbs", "h", Some(1)));
        let mut admit = |bytes: &[u8], stage| admit::<Infallible>(bytes, &mut credit, stage, &peer);
        let mut breaks = |bytes: &[u8], stage, how| {
            let error = admit(bytes, stage).unwrap_err();
            assert!(error.message().contains(how), "{error}");
        };
        breaks(&packet(2)[1..], Stage::Open, "without a head");
        breaks(&packet(2), Stage::PeerEnded, "after its goodbye");
        breaks(&packet(1), Stage::Open, "jump");
        assert_eq!(credit.room(), 2);
        let first = super::admit::<Infallible>(&packet(5), &mut credit, Stage::Open, &peer);
        assert_eq!(first.unwrap(), Kind::Part(Part::First { total: 0 }));
        assert_eq!(credit.room(), 5);
        let more = super::admit::<Infallible>(&packet(5), &mut credit, Stage::Open, &peer);
        assert!(more.unwrap_err().message().contains("more than it may"));
    }
}
