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

    fn admitted(packet: &[u8], credit: &mut Credit, stage: Stage) -> Result<(), String> {
        let peer = Addr::new("verbs", "h", Some(1));
        match admit::<Infallible>(packet, credit, stage, &peer) {
            Ok(kind) => {
                assert_eq!(kind, Kind::Part(Part::First { total: 0 }));
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn packets_are_counted() {
        let mut credit = Credit::new(1, 2);
        admitted(&packet(5), &mut credit, Stage::Open).unwrap();
        assert_eq!(credit.room(), 5);
        let more = admitted(&packet(5), &mut credit, Stage::Open).unwrap_err();
        assert!(more.contains("more than it may"), "{more}");
    }

    #[test]
    fn each_breach_is_named() {
        let whole = packet(2);
        for (bytes, stage, how) in [
            (&whole[1..], Stage::Open, "without a head"),
            (&whole[..], Stage::PeerEnded, "after its goodbye"),
            (&packet(1)[..], Stage::Open, "go back"),
        ] {
            let error = admitted(bytes, &mut Credit::new(1, 2), stage).unwrap_err();
            assert!(error.contains(how), "{error}");
        }
    }
}
