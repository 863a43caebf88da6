//! For tests that look inside: a domain that talks to itself, on a device of this host.
//!
//! They stand in modules called `on_device`. Without a device each says so and ends, unless
//! `FABRIC_REQUIRE_VERBS=1` is set: then it fails.

use std::time::Duration;

use fabric_core::{
    Access, Addr, Domain, EpId, Error, Event, Exposure, RemoteKey, Returned, Rma, Slot,
};

use crate::domain::VerbsDomain;
use crate::options::VerbsOptions;
use crate::region::{seal, unseal};

/// More turns than anything here takes on the slowest machine; each sleeps up to a millisecond.
const TURNS_MAX: usize = 60_000;
pub(crate) const LEN: usize = 4096;

/// A domain that talks to itself over two connections.
pub(crate) struct Both {
    pub(crate) domain: VerbsDomain,
    pub(crate) dialed: Vec<EpId>,
    pub(crate) accepted: Vec<EpId>,
}

impl Both {
    /// `None` where there is no device, or one without windows; a failure where one is required.
    pub(crate) fn new(memory_windows: bool) -> Option<Self> {
        let device = std::env::var("FABRIC_VERBS_DEVICE").ok();
        let options = VerbsOptions { memory_windows, device, ..Default::default() };
        let domain = match VerbsDomain::open(options, None) {
            Ok(domain) if domain.driver.limits.windows => domain,
            Ok(_) => return skip("the device has no memory windows"),
            Err(error) => {
                let required = std::env::var("FABRIC_REQUIRE_VERBS");
                assert!(!required.is_ok_and(|value| value == "1"), "{error}");
                return skip(&error.to_string());
            }
        };
        let mut both = Self { domain, dialed: Vec::new(), accepted: Vec::new() };
        both.connect();
        both.connect();
        Some(both)
    }

    fn connect(&mut self) {
        let device = self.domain.caps().device.clone();
        let listener = self.domain.listen(&Addr::new("verbs", &device, Some(0))).unwrap();
        self.domain.connect(&listener.addr).unwrap();
        let count = self.dialed.len() + 1;
        for event in self.until(|events| events.len() == 2) {
            match event {
                Event::Connected { ep, .. } => self.dialed.push(ep),
                Event::Accepted { ep, .. } => self.accepted.push(ep),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((self.dialed.len(), self.accepted.len()), (count, count));
    }

    pub(crate) fn until(&mut self, done: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..TURNS_MAX {
            self.domain.poll(&mut events, 16);
            if done(&events) {
                return events;
            }
            self.domain.wait(Some(Duration::from_millis(1))).unwrap();
        }
        panic!("nothing more comes: {events:?}");
    }

    pub(crate) fn expose(&mut self, to: usize) -> RemoteKey {
        let mut slot = Slot::alloc(LEN).unwrap();
        assert!(slot.append(&[7; LEN]));
        let ep = self.accepted[to];
        self.rest(ep);
        self.domain.expose(ep, Exposure::Slot(slot), Access::ALL).unwrap()
    }

    /// Waits until everything came back: a window is bound only then, and not waited for for long.
    fn rest(&mut self, ep: EpId) {
        for _ in 0..TURNS_MAX {
            let (_, endpoint) = self.domain.driver.table.endpoint_of(ep).unwrap();
            if endpoint.flights.is_empty() {
                return;
            }
            endpoint.mark();
            self.domain.driver.drain_completions(usize::MAX);
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("something is in flight for ever");
    }

    /// The same key as if it were for the other connection: what a peer can do that does not
    /// keep to the contract.
    pub(crate) fn forged(&mut self, key: RemoteKey) -> RemoteKey {
        let [salt, other] = [0, 1].map(|index: usize| {
            self.domain.driver.table.endpoint_of(self.dialed[index]).unwrap().1.salt
        });
        let device_key = unseal(&key, salt).unwrap();
        seal(key.addr, key.len, device_key, key.nonce, other)
    }

    pub(crate) fn read(&mut self, over: usize, key: RemoteKey) -> (Result<(), Error>, Slot) {
        let into = Slot::alloc(LEN).unwrap();
        self.domain.post_read(self.dialed[over], key, 0, into, LEN).unwrap();
        let is_done =
            |events: &[Event]| events.iter().any(|event| matches!(event, Event::RmaDone { .. }));
        for event in self.until(is_done) {
            if let Event::RmaDone { returned: Returned::Slot(slot), result, .. } = event {
                return (result, slot);
            }
        }
        panic!("a read gives its slot back");
    }
}

fn skip<T>(why: &str) -> Option<T> {
    println!("skipped: {why}");
    None
}
