//! Remote operations on the side that exposed the memory: checked first, then done.

use fabric_core::{Event, OpId};

use crate::Bug;
use crate::endpoint::At;
use crate::net::Net;
use crate::packet::{Answer, Ask, Packet, Side, What};
use crate::region::Region;
use crate::status;

impl Net {
    pub(crate) fn on_ask(&mut self, at: At, op: OpId, ask: &Ask) {
        match self.serve(at, ask) {
            Ok(Some(answer)) => self.answer(at, op, answer),
            Ok(None) => {}
            Err(why) => {
                self.answer(at, op, Answer::Denied(why));
                self.finish(at, status::access(why));
                return;
            }
        }
        if let What::Write { imm: Some(imm), .. } = ask.what {
            // Behind the messages that came before it, as it takes a receive like them.
            self.dispatch(at, Packet::Imm { op, imm });
        }
    }

    /// The bytes of a write are there and its receive, too: now both sides may know.
    pub(crate) fn on_imm(&mut self, at: At, op: OpId, imm: u32) {
        let Some((recv, mut slot)) = self.take_recv(at.dom) else { return };
        slot.set_len(0);
        let imm = Some(imm).filter(|_| !self.has(Bug::ForgetsImm));
        self.report(at.dom, Event::Received { ep: at.ep, op: recv, slot, imm });
        self.answer(at, op, Answer::Written);
    }

    fn answer(&mut self, at: At, op: OpId, answer: Answer) {
        if let Some(peer) = self.ep(at).and_then(|ep| ep.peer) {
            self.dispatch_side(peer, Side::Answer(op, answer));
        }
    }

    /// Does what is asked; `None` when the answer has to wait for a receive.
    fn serve(&mut self, at: At, ask: &Ask) -> Result<Option<Answer>, &'static str> {
        let bug = self.options.bug;
        let region = self.doms.get_mut(&at.dom).and_then(|dom| dom.regions.get_mut(&ask.key.key));
        let region = region.ok_or("nothing is exposed under this key")?;
        check(region, at, ask, bug)?;
        let Some(range) = region.range(ask.offset, ask.len) else {
            return match bug {
                Some(Bug::IgnoresBounds) => Ok(Some(cut_to_fit(ask))),
                _ => Err("the range reaches beyond the exposed memory"),
            };
        };
        let start = match (bug, &ask.what) {
            (Some(Bug::ReadIgnoresOffset), What::Read { .. }) => ask.at as usize,
            _ => range.start + ask.at as usize,
        };
        Ok(perform(region, start, &ask.what, bug))
    }
}

fn check(region: &Region, at: At, ask: &Ask, bug: Option<Bug>) -> Result<(), &'static str> {
    if region.key != ask.key && bug != Some(Bug::IgnoresKey) {
        return Err("the key does not match");
    }
    if region.ep != at.ep && bug != Some(Bug::ForeignKeyWorks) {
        return Err("the memory is exposed to another endpoint");
    }
    let allowed = match &ask.what {
        What::Read { .. } => region.access.read,
        What::Write { .. } => region.access.write,
        What::Swap { .. } | What::Add { .. } => region.access.atomic,
    };
    if !allowed && bug != Some(Bug::IgnoresAccess) {
        return Err("the memory is not exposed for this");
    }
    Ok(())
}

/// Does one piece at `start`, which the caller checked.
fn perform(region: &mut Region, start: usize, what: &What, bug: Option<Bug>) -> Option<Answer> {
    match what {
        What::Read { piece } => Some(Answer::Bytes(region.bytes()[start..start + piece].to_vec())),
        What::Write { bytes, imm } => {
            if bug != Some(Bug::WriteAcksEarly) {
                region.bytes_mut()?[start..start + bytes.len()].copy_from_slice(bytes);
            }
            imm.is_none().then_some(Answer::Written)
        }
        What::Swap { compare, swap } => {
            let swaps = |old| old == *compare || bug == Some(Bug::SwapsAlways);
            update(region, start, bug, |old| if swaps(old) { *swap } else { old })
        }
        What::Add { add } => update(region, start, bug, |old| match bug {
            Some(Bug::AddSaturates) => old.saturating_add(*add),
            _ => old.wrapping_add(*add),
        }),
    }
}

fn update(
    region: &mut Region,
    start: usize,
    bug: Option<Bug>,
    change: impl FnOnce(u64) -> u64,
) -> Option<Answer> {
    let word = region.bytes_mut()?[start..].first_chunk_mut::<8>()?;
    let old = u64::from_le_bytes(*word);
    let new = change(old);
    *word = new.to_le_bytes();
    Some(Answer::Value(if bug == Some(Bug::AtomicReturnsNew) { new } else { old }))
}

fn cut_to_fit(ask: &Ask) -> Answer {
    match &ask.what {
        What::Read { piece } => Answer::Bytes(vec![0; *piece]),
        What::Write { .. } => Answer::Written,
        What::Swap { .. } | What::Add { .. } => Answer::Value(0),
    }
}
