//! A message back and forth between two domains, in two processes: the least that `verbs://` costs.

mod trips;

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use fabric_core::{Domain, EpId, Event, Fabric, Pool, Rejected, Segment, SendBuf, Slot};
use fabric_verbs::{VerbsDomain, VerbsFabric};
use trips::{Args, SIZE_BYTES, Side, WARM_UP, report};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Receives that are posted, so that an answer need not wait for the next one.
const RECEIVES: usize = 2;

fn main() -> Outcome<()> {
    let Some(args) = Args::parse() else { return Ok(()) };
    match args.side {
        Side::Listen => listen(&args),
        Side::Connect => connect(&args),
    }
}

/// Sends everything back until the peer goes.
fn listen(args: &Args) -> Outcome<()> {
    let mut end = End::open(args.sleep)?;
    let listener = end.domain.listen(&args.addr.parse()?)?;
    println!("listening at {}", listener.addr);
    std::io::stdout().flush()?;
    end.accepted()?;
    while end.bounced()? {}
    Ok(())
}

fn connect(args: &Args) -> Outcome<()> {
    let mut end = End::open(args.sleep)?;
    let ep = end.domain.connect(&args.addr.parse()?)?;
    end.accepted()?;
    let mut times = Vec::with_capacity(args.trips);
    let (mut slot, mut start) = (Slot::alloc(SIZE_BYTES)?, Instant::now());
    slot.set_len(SIZE_BYTES);
    for trip in 0..=WARM_UP + args.trips {
        end.send(ep, slot)?;
        // From one send to the next, as perftest counts it; the clock is read while nothing else is
        // to be done.
        let now = Instant::now();
        if trip > WARM_UP {
            times.push(now - start);
        }
        start = now;
        slot = end.received()?.ok_or("the peer is gone")?.1;
    }
    report(times);
    end.domain.close(ep);
    while end.received()?.is_some() {}
    Ok(())
}

/// One side. A slot that a message came in carries the next one, and is offered for another when it
/// comes back.
struct End {
    domain: VerbsDomain,
    events: Vec<Event>,
    sleep: bool,
}

impl End {
    fn open(sleep: bool) -> Outcome<Self> {
        let mut domain = VerbsFabric::default().open()?;
        let pool = Pool::new(SIZE_BYTES, RECEIVES)?;
        domain.register(&pool)?;
        let mut end = Self { domain, events: Vec::new(), sleep };
        while let Some(slot) = pool.take() {
            end.offer(slot)?;
        }
        Ok(end)
    }

    fn offer(&mut self, slot: Slot) -> Outcome<()> {
        self.domain.post_recv(slot).map(drop).map_err(refused)
    }

    fn send(&mut self, ep: EpId, slot: Slot) -> Outcome<()> {
        self.domain.post_send(ep, SendBuf::from(slot)).map_err(refused)?;
        self.domain.flush();
        Ok(())
    }

    /// Waits until the two know each other.
    fn accepted(&mut self) -> Outcome<()> {
        loop {
            match self.next()? {
                Event::Accepted { .. } | Event::Connected { .. } => return Ok(()),
                Event::AcceptFailed { error: why, .. } | Event::Closed { why, .. } => {
                    return Err(why.into());
                }
                _ => {}
            }
        }
    }

    /// Waits for a message. `None` when there will be none.
    fn received(&mut self) -> Outcome<Option<(EpId, Slot)>> {
        loop {
            match self.next()? {
                Event::Received { ep, slot, .. } => return Ok(Some((ep, slot))),
                Event::Sent { buf, .. } => self.back(buf)?,
                Event::Closed { .. } => return Ok(None),
                _ => {}
            }
        }
    }

    fn back(&mut self, buf: SendBuf) -> Outcome<()> {
        for segment in buf.into_segments() {
            if let Segment::Slot(slot) = segment {
                self.offer(slot)?;
            }
        }
        Ok(())
    }

    fn bounced(&mut self) -> Outcome<bool> {
        let Some((ep, slot)) = self.received()? else { return Ok(false) };
        self.send(ep, slot)?;
        Ok(true)
    }

    /// One at a time, so that they come in their order.
    fn next(&mut self) -> Outcome<Event> {
        loop {
            if let Some(event) = self.events.pop() {
                return Ok(event);
            }
            if self.sleep {
                self.domain.wait(Some(Duration::from_secs(60)))?;
            }
            self.domain.poll(&mut self.events, 1);
        }
    }
}

fn refused<T>(rejected: Rejected<T>) -> Box<dyn Error> {
    rejected.error.into()
}
