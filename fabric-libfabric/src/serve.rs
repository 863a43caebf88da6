//! Serving what peers want to do with memory that is exposed to them.

use fabric_core::Error;
use fabric_link::{HEAD_BYTES, Reason};

use crate::driver::Driver;
use crate::endpoint::{Answer, Endpoint, Farewell};
use crate::limits::PIECES_MAX;
use crate::packet::{Reach, Step, word};
use crate::region::{Regions, Wish};
use crate::status;
use crate::stock::Packet;

/// Why a request ends the endpoint.
enum Refusal {
    /// It makes no sense.
    Senseless(&'static str),
    /// The memory is not exposed for this.
    Denied,
}

impl Driver {
    /// A request came.
    ///
    /// # Errors
    /// Why the endpoint ends, and what to tell the peer.
    pub(crate) fn on_request(
        &mut self,
        index: usize,
        step: Step,
        packet: &Packet,
    ) -> Result<(), (Error, Farewell)> {
        let Some(endpoint) = self.table.endpoint(index) else { return Ok(()) };
        let body = packet.slot.filled().get(HEAD_BYTES..).unwrap_or_default();
        match answer(endpoint, &mut self.regions, step, body) {
            Ok(answer) => {
                endpoint.answers.push_back(answer);
                Ok(())
            }
            Err(Refusal::Senseless(how)) => {
                let why = status::violation(&endpoint.peer, &how);
                Err((why, Farewell::plain(Reason::Protocol)))
            }
            Err(Refusal::Denied) => {
                let piece = match step {
                    Step::Read { piece } | Step::Write { piece } | Step::Atomic { piece } => piece,
                    _ => u32::MAX,
                };
                Err((status::trespassed(&endpoint.peer), Farewell::denied(piece)))
            }
        }
    }
}

fn answer(
    endpoint: &Endpoint,
    regions: &mut Regions,
    step: Step,
    body: &[u8],
) -> Result<Answer, Refusal> {
    if endpoint.answers.len() >= PIECES_MAX {
        return Err(Refusal::Senseless("more requests than it may have under way"));
    }
    let (reach, rest) =
        Reach::decode(body).ok_or(Refusal::Senseless("a request without a reach"))?;
    let check = |wish, len: u64| {
        let end = reach.at.checked_add(len);
        let is_inside = reach.at >= reach.start && end.is_some_and(|end| end <= reach.end);
        let is_allowed = is_inside && regions.allows(endpoint.id, &reach, wish);
        if is_allowed { Ok(()) } else { Err(Refusal::Denied) }
    };
    match step {
        Step::Read { piece } => {
            let (len, _) = word(rest).ok_or(Refusal::Senseless("a read without a length"))?;
            if len > (endpoint.packet_bytes - HEAD_BYTES) as u64 {
                return Err(Refusal::Senseless("a read of more than a packet"));
            }
            check(Wish::Read, len)?;
            Ok(Answer::Data { piece, key: reach.key, at: reach.at, len: len as usize })
        }
        Step::Write { piece } => {
            check(Wish::Write, rest.len() as u64)?;
            let to = regions.bytes_mut(&reach.key, reach.at, rest.len()).ok_or(Refusal::Denied)?;
            to.copy_from_slice(rest);
            Ok(Answer::Wrote { piece })
        }
        Step::Atomic { piece } => {
            check(Wish::Atomic, 8)?;
            let value = atomic(regions, &reach, rest)?;
            Ok(Answer::Value { piece, value })
        }
        _ => Err(Refusal::Senseless("no request")),
    }
}

/// Changes a word and gives the one before. This thread alone touches the memory, so nothing comes in
/// between.
fn atomic(regions: &mut Regions, reach: &Reach, body: &[u8]) -> Result<u64, Refusal> {
    let senseless = || Refusal::Senseless("an atomic that does nothing known");
    let (kind, rest) = word(body).ok_or_else(senseless)?;
    let (first, rest) = word(rest).ok_or_else(senseless)?;
    let (second, _) = word(rest).ok_or_else(senseless)?;
    let place = regions.bytes_mut(&reach.key, reach.at, 8).ok_or(Refusal::Denied)?;
    let (before, _) = word(place).ok_or(Refusal::Denied)?;
    let after = match kind {
        0 => before.wrapping_add(first),
        1 if before == first => second,
        1 => before,
        _ => return Err(senseless()),
    };
    place.copy_from_slice(&after.to_le_bytes());
    Ok(before)
}
