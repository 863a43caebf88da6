//! What lies below sockets: encoding, decoding, slots.

use std::hint::black_box;

use fabric_core::{Pool, Slot};
use msg_proto::wire::{self, Frame, Frames};

use crate::measured;

const BODY: [u8; 64] = [7; 64];
const BATCH: u64 = 900;
const SLOT_BYTES: usize = 65 << 10;
const TURNS: u64 = 20;

/// A 64-byte message into a slot.
pub(crate) fn encode() -> u64 {
    let pool = pool();
    for _ in 0..TURNS {
        let mut slot = take(&pool);
        measured(|| fill(&mut slot));
    }
    TURNS * BATCH
}

/// A 64-byte message out of a slot.
pub(crate) fn decode() -> u64 {
    let mut slot = take(&pool());
    fill(&mut slot);
    for _ in 0..TURNS {
        let bytes: usize = measured(|| Frames::new(slot.filled()).map(|frame| body(&frame)).sum());
        assert_eq!(bytes as u64, BATCH * BODY.len() as u64);
    }
    TURNS * BATCH
}

/// A slot taken, shared, and gone home.
pub(crate) fn recycle() -> u64 {
    let pool = pool();
    for _ in 0..TURNS {
        measured(|| drop(black_box(take(&pool).freeze())));
    }
    TURNS
}

fn pool() -> Pool {
    Pool::new(SLOT_BYTES, 4).expect("a pool")
}

fn take(pool: &Pool) -> Slot {
    pool.take().expect("a slot")
}

fn fill(slot: &mut Slot) {
    for _ in 0..BATCH {
        let body = black_box(&BODY);
        let fits = slot.append(&wire::part_head(false, body.len() as u32)) && slot.append(body);
        assert!(fits, "the slot has room");
    }
}

fn body<E>(frame: &Result<Frame<'_>, E>) -> usize {
    match frame {
        Ok(Frame::Part { body, .. }) => body.len(),
        _ => 0,
    }
}
