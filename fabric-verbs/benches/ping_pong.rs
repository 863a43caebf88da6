//! A message back and forth between two domains, in two processes: the least that `verbs://` costs.

mod trips;

use std::collections::VecDeque;
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use fabric_core::{Domain, EpId, Event, Fabric, Pool, Rejected, SendBuf, Slot};
use fabric_verbs::{VerbsDomain, VerbsFabric};
use trips::{Args, SIZE_BYTES, Side, WARM_UP, report};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Receives that are posted, so that an answer need not wait for the next one.
const RECEIVES: usize = 2;
/// Besides those, one to send, and one that is on its way back.
const SLOTS: usize = RECEIVES + 2;

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
    let mut start = Instant::now();
    for trip in 0..WARM_UP + args.trips {
        end.send(ep)?;
        end.received()?.ok_or("the peer is gone")?;
        // From one send to the next, as perftest counts it.
        let now = Instant::now();
        if trip >= WARM_UP {
            times.push(now - start);
        }
        start = now;
    }
    report(times);
    end.left(ep)
}

/// One side.
struct End {
    domain: VerbsDomain,
    pool: Pool,
    events: VecDeque<Event>,
    /// Empty; keeps its room.
    came: Vec<Event>,
    sleep: bool,
}

impl End {
    fn open(sleep: bool) -> Outcome<Self> {
        let mut domain = VerbsFabric::default().open()?;
        let pool = Pool::new(SIZE_BYTES, SLOTS)?;
        domain.register(&pool)?;
        let mut end = Self { domain, pool, events: VecDeque::new(), came: Vec::new(), sleep };
        for _ in 0..RECEIVES {
            let slot = end.slot()?;
            end.offer(slot)?;
        }
        Ok(end)
    }

    fn slot(&self) -> Outcome<Slot> {
        self.pool.take().ok_or_else(|| "a slot was kept".into())
    }

    fn offer(&mut self, slot: Slot) -> Outcome<()> {
        self.domain.post_recv(slot).map(drop).map_err(refused)
    }

    fn send(&mut self, ep: EpId) -> Outcome<()> {
        let mut slot = self.slot()?;
        slot.set_len(SIZE_BYTES);
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

    /// Waits for a message and offers its slot again. `None` when there will be none.
    fn received(&mut self) -> Outcome<Option<EpId>> {
        let Some((ep, slot)) = self.message()? else { return Ok(None) };
        self.offer(slot)?;
        Ok(Some(ep))
    }

    fn message(&mut self) -> Outcome<Option<(EpId, Slot)>> {
        loop {
            match self.next()? {
                Event::Received { ep, slot, .. } => return Ok(Some((ep, slot))),
                Event::Closed { .. } => return Ok(None),
                _ => {}
            }
        }
    }

    fn bounced(&mut self) -> Outcome<bool> {
        let Some((ep, slot)) = self.message()? else { return Ok(false) };
        self.send(ep)?;
        self.offer(slot)?;
        Ok(true)
    }

    fn left(&mut self, ep: EpId) -> Outcome<()> {
        self.domain.close(ep);
        while self.received()?.is_some() {}
        Ok(())
    }

    fn next(&mut self) -> Outcome<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if self.sleep {
                self.domain.wait(Some(Duration::from_secs(60)))?;
            }
            self.domain.poll(&mut self.came, 16);
            self.events.extend(self.came.drain(..));
        }
    }
}

fn refused<T>(rejected: Rejected<T>) -> Box<dyn Error> {
    rejected.error.into()
}
