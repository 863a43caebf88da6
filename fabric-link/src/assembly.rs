//! From packets to messages in posted receives.

use fabric_core::{Addr, EpId, Error, ErrorKind, Event};

use crate::packet::{Part, Reason};
use crate::reasons::violation;
use crate::recvs::{Posted, Recvs};

/// The message that an endpoint is putting together, if it is in the middle of one.
#[derive(Debug, Default)]
pub struct Assembly {
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    posted: Posted,
    total: usize,
    filled: usize,
}

/// What became of a part.
#[derive(Debug)]
pub enum Taken {
    /// It was the last one: this is the event.
    Whole(Event),
    /// More of the same message has to follow.
    Partly,
    /// It waits for a posted receive, and is to be shown again.
    Starved,
}

/// Why a part cannot be taken. The endpoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// A message inside another, or the rest of none.
    Order,
    /// The parts are longer than the message, or a packet brings nothing.
    Length,
    /// The message does not fit the posted receive.
    TooLong {
        /// Bytes of the message.
        total: usize,
        /// Bytes that the receive has room for.
        capacity: usize,
    },
}

impl Assembly {
    /// Whether it is between two messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.begun.is_none()
    }

    /// Takes the next part that arrived on `ep`, with the bytes behind its head.
    ///
    /// # Errors
    /// Why it cannot be taken. What was put together so far stays until
    /// [`give_up`](Self::give_up).
    #[inline]
    pub fn take(
        &mut self,
        ep: EpId,
        part: Part,
        bytes: &[u8],
        recvs: &mut Recvs,
    ) -> Result<Taken, Misfit> {
        if self.begun.is_some() != matches!(part, Part::More) {
            return Err(Misfit::Order);
        }
        match part {
            Part::Immediate { value } => return Ok(value_in(recvs, ep, value)),
            Part::First { total } => match begin(total as usize, recvs)? {
                Some(begun) => self.begun = Some(begun),
                None => return Ok(Taken::Starved),
            },
            Part::More => {}
        }
        self.fill(ep, bytes)
    }

    fn fill(&mut self, ep: EpId, bytes: &[u8]) -> Result<Taken, Misfit> {
        let begun = self.begun.as_mut().ok_or(Misfit::Order)?;
        let (start, end) = (begun.filled, begun.filled + bytes.len());
        // A packet without bytes is fine only as an empty message.
        if end > begun.total || (bytes.is_empty() && begun.total > 0) {
            return Err(Misfit::Length);
        }
        begun.posted.slot.buffer_mut()[start..end].copy_from_slice(bytes);
        begun.filled = end;
        if end < begun.total {
            return Ok(Taken::Partly);
        }
        let Begun { mut posted, .. } = self.begun.take().ok_or(Misfit::Order)?;
        posted.slot.set_len(end);
        Ok(Taken::Whole(posted.received(ep, None)))
    }

    /// Forgets what was put together so far, and offers its receive again.
    pub fn give_up(&mut self, recvs: &mut Recvs) {
        if let Some(Begun { posted, .. }) = self.begun.take() {
            recvs.untake(posted);
        }
    }
}

/// A receive for a message of `total` bytes; `None` when none is posted.
fn begin(total: usize, recvs: &mut Recvs) -> Result<Option<Begun>, Misfit> {
    let Some(posted) = recvs.take() else { return Ok(None) };
    let capacity = posted.slot.capacity();
    if total > capacity {
        recvs.untake(posted);
        return Err(Misfit::TooLong { total, capacity });
    }
    Ok(Some(Begun { posted, total, filled: 0 }))
}

fn value_in(recvs: &mut Recvs, ep: EpId, value: u32) -> Taken {
    match recvs.take() {
        Some(mut posted) => {
            posted.slot.set_len(0);
            Taken::Whole(posted.received(ep, Some(value)))
        }
        None => Taken::Starved,
    }
}

impl Misfit {
    /// Why the endpoint to `peer` ends, and what to tell the peer.
    pub fn explain(self, peer: &Addr) -> (Error, Reason) {
        match self {
            Self::Order => {
                (violation(peer, &"parts of messages in a wrong order"), Reason::Protocol)
            }
            Self::Length => {
                let how = "a message of another length than it says";
                (violation(peer, &how), Reason::Protocol)
            }
            Self::TooLong { total, capacity } => {
                let text = format!(
                    "a message of {total} bytes from {peer} does not fit the posted slot of \
                     {capacity}: post larger ones"
                );
                (Error::new(ErrorKind::NoReceive, text), Reason::NoReceive)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fabric_core::{OpId, Slot};

    use super::*;

    const EP: EpId = EpId(1);

    type Parts<'a> = &'a [(Part, &'a [u8])];

    fn recvs(count: usize) -> Recvs {
        let mut recvs = Recvs::new(count);
        for op in 1..=count as u64 {
            recvs.post(Posted { op: OpId(op), slot: Slot::alloc(8).unwrap() });
        }
        recvs
    }

    const fn first(total: u32) -> Part {
        Part::First { total }
    }

    #[test]
    fn a_message_comes_whole_in_the_oldest_receive() {
        let (mut assembly, mut recvs) = (Assembly::default(), recvs(2));
        let taken = assembly.take(EP, first(5), b"abc", &mut recvs);
        assert!(matches!(taken, Ok(Taken::Partly)) && !assembly.is_empty());
        match assembly.take(EP, Part::More, b"de", &mut recvs) {
            Ok(Taken::Whole(Event::Received { ep: EP, op: OpId(1), slot, imm: None })) => {
                assert_eq!(slot.filled(), b"abcde");
            }
            other => panic!("{other:?}"),
        }
        assert!(assembly.is_empty());
    }

    #[test]
    fn values_and_empty_messages_take_a_receive_each() {
        let (mut assembly, mut recvs) = (Assembly::default(), recvs(2));
        let value = Part::Immediate { value: 9 };
        match assembly.take(EP, value, b"", &mut recvs) {
            Ok(Taken::Whole(Event::Received { imm: Some(9), slot, .. })) => {
                assert!(slot.is_empty());
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(assembly.take(EP, first(0), b"", &mut recvs), Ok(Taken::Whole(_))));
        assert!(matches!(assembly.take(EP, value, b"", &mut recvs), Ok(Taken::Starved)));
        assert!(matches!(assembly.take(EP, first(1), b"x", &mut recvs), Ok(Taken::Starved)));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_costs_no_receive() {
        let peer = Addr::new("verbs", "h", Some(1));
        let cases: [(Parts<'_>, Misfit); 7] = [
            (&[(Part::More, b"x")], Misfit::Order),
            (&[(first(2), b"x"), (first(2), b"x")], Misfit::Order),
            (&[(first(2), b"x"), (Part::Immediate { value: 1 }, b"")], Misfit::Order),
            (&[(first(1), b"xy")], Misfit::Length),
            (&[(first(1), b"")], Misfit::Length),
            (&[(first(2), b"x"), (Part::More, b"")], Misfit::Length),
            (&[(first(9), b"x")], Misfit::TooLong { total: 9, capacity: 8 }),
        ];
        for (parts, expected) in cases {
            let (mut assembly, mut recvs) = (Assembly::default(), recvs(1));
            let results =
                parts.iter().map(|(part, bytes)| assembly.take(EP, *part, bytes, &mut recvs));
            let misfit = results.last().unwrap().unwrap_err();
            assert_eq!(misfit, expected);
            assert_eq!(misfit.explain(&peer).1 == Reason::NoReceive, parts[0].0 == first(9));
            assembly.give_up(&mut recvs);
            assert!(recvs.take().unwrap().slot.is_empty(), "{expected:?}");
        }
    }
}
