//! Random traffic on random networks, against what must have arrived.

use crate::common::{Side, join, two, until};
use fabric_core::{Domain, EpId, Event, Pool};
use fabric_sim::{Faults, SimDomain, SimNet, SimOptions};
use proptest::prelude::*;

const SLOTS: usize = 64;

#[derive(Debug, Clone, Copy)]
enum Step {
    Send,
    Offer,
    Flush,
    TurnServer,
    TurnClient,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Send),
        2 => Just(Step::Offer),
        1 => Just(Step::Flush),
        2 => Just(Step::TurnServer),
        2 => Just(Step::TurnClient),
    ];
    prop::collection::vec(step, 0..200)
}

struct Run {
    server: Side<SimDomain>,
    client: Side<SimDomain>,
    ep: EpId,
    pool: Pool,
    sent: Vec<Vec<u8>>,
    offered: usize,
}

impl Run {
    fn new(seed: u64, delay_polls_max: u32) -> Self {
        let faults = Faults { delay_polls_max, ..Faults::default() };
        let net = SimNet::with(SimOptions { seed, faults, ..SimOptions::default() });
        let [mut server, mut client] = two(&net, |domain| domain);
        let (_, ep) = join(&mut server, &mut client);
        let pool = Pool::new(64, SLOTS).expect("a small pool");
        Self { server, client, ep, pool, sent: Vec::new(), offered: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send => self.send(),
            Step::Offer => self.offer(),
            Step::Flush => self.client.domain.flush(),
            Step::TurnServer => drop(self.server.turn()),
            Step::TurnClient => self.recycle(),
        }
    }

    fn send(&mut self) {
        let message = vec![self.sent.len() as u8; self.sent.len() % 60];
        let Some(mut slot) = self.pool.take() else { return };
        assert!(slot.append(&message));
        if self.client.domain.post_send(self.ep, slot.into()).is_ok() {
            self.sent.push(message);
        }
    }

    fn offer(&mut self) {
        self.server.offer(1);
        self.offered += 1;
    }

    /// Lets the buffers that came back go home.
    fn recycle(&mut self) {
        self.client.turn();
        self.client.seen.retain(|event| !matches!(event, Event::Sent { .. }));
    }

    fn arrived(&self) -> Vec<Vec<u8>> {
        let message = |event: &Event| match event {
            Event::Received { slot, .. } => Some(slot.filled().to_vec()),
            _ => None,
        };
        self.server.seen.iter().filter_map(message).collect()
    }
}

proptest! {
    #[test]
    fn what_was_sent_arrives_in_order_as_far_as_receives_reach(
        steps in steps(), seed in any::<u64>(), delay in 0u32..10,
    ) {
        let mut run = Run::new(seed, delay);
        for step in steps {
            run.step(step);
            let arrived = run.arrived();
            prop_assert!(arrived.len() <= run.offered, "more messages than receives");
            prop_assert_eq!(&arrived[..], &run.sent[..arrived.len()]);
        }
        while run.offered < run.sent.len() {
            run.offer();
        }
        let (count, pool) = (run.sent.len(), run.pool.clone());
        until([&mut run.server, &mut run.client], |server, client| {
            client.seen.retain(|event| !matches!(event, Event::Sent { .. }));
            let is_message = |event: &&Event| matches!(event, Event::Received { .. });
            let arrived = server.seen.iter().filter(is_message).count();
            // Every buffer comes back, or this takes too many polls.
            arrived == count && pool.free() == SLOTS
        });
        prop_assert_eq!(run.arrived(), run.sent.clone());
    }
}
