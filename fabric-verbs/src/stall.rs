//! Devices that fall silent. The end of every request is told within the time of its transport's
//! retries (IBA 9.7.6.1.3), which is seconds; a device that does not keep to this is not waited for
//! without end.

use std::time::{Duration, Instant};

use fabric_core::{Error, ErrorKind};

use crate::driver::Driver;
use crate::endpoint::Endpoint;

/// How long a queue pair may be silent: three times what retries take at most.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);

impl Endpoint {
    /// Whether the device is to tell the end of something, and nobody watches whether it does.
    pub(crate) fn wants_watch(&self) -> bool {
        self.watch.is_none() && self.awaits_completion()
    }

    fn awaits_completion(&self) -> bool {
        self.flights.len() > self.unsignalled
    }

    /// The oldest request, if the device is to tell the end of any.
    fn awaited(&self) -> Option<u64> {
        self.flights.front().filter(|_| self.awaits_completion()).map(|flight| flight.seq)
    }
}

impl Driver {
    /// Looks at a queue pair again in a while, if it still has something to tell then.
    pub(crate) fn watch(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        endpoint.watch = endpoint.awaited();
        if endpoint.watch.is_some() {
            self.deadlines.silences.push(endpoint.id, Instant::now());
        }
    }

    /// It is time to see whether a queue pair got on.
    pub(crate) fn on_silence_timeout(&mut self, index: usize) {
        let Some(endpoint) = self.table.endpoint(index) else { return };
        if endpoint.watch.is_some() && endpoint.watch == endpoint.awaited() {
            let why = silent(endpoint);
            tracing::warn!(ep = endpoint.id.0, %why, "silent device");
            return self.end(index, why, None);
        }
        self.watch(index);
    }
}

fn silent(endpoint: &Endpoint) -> Error {
    let (count, peer, secs) = (endpoint.flights.len(), &endpoint.peer, SILENCE_MAX.as_secs());
    let text = format!(
        "the RDMA device told nothing for {secs} s of {count} requests to {peer}, not even that they \
         failed: look for messages of its driver in `dmesg`"
    );
    Error::new(ErrorKind::Provider, text)
}

#[cfg(test)]
mod on_device {
    use fabric_core::{Deadlines, Domain, EpId, Event};

    use super::*;
    use crate::both::Both;
    use crate::endpoint::{Flight, Hold};

    const SILENCE: Duration = Duration::from_millis(20);

    fn closed(events: &[Event], of: EpId) -> Option<&Error> {
        events.iter().find_map(|event| match event {
            Event::Closed { ep, why } if *ep == of => Some(why),
            _ => None,
        })
    }

    #[test]
    fn a_request_whose_end_is_never_told_ends_its_connection_with_an_error() {
        let Some(mut both) = Both::new(true) else { return };
        both.domain.driver.deadlines.silences = Deadlines::new(SILENCE);
        let (silent, healthy) = (both.dialed[0], both.dialed[1]);
        let (index, endpoint) = both.domain.driver.table.endpoint_of(silent).unwrap();
        // The device never got it.
        endpoint.flights.push_back(Flight { seq: endpoint.next_seq, hold: Hold::Marker });
        endpoint.next_seq += 1;
        both.domain.driver.watch(index);
        let events = both.until(|events| closed(events, silent).is_some());
        let why = closed(&events, silent).unwrap();
        assert_eq!(why.kind(), ErrorKind::Provider, "{why}");
        both.domain.post_send(healthy, bytes::Bytes::from_static(b"as before").into()).unwrap();
        both.until(|events| events.iter().any(|event| matches!(event, Event::Sent { .. })));
    }
}
