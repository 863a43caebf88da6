//! This command's verbs, lent to the doctor.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fabric_doctor::{Probe, Reached};
use msg_patterns::fabric_core::{Domain, EpId, ErrorKind, Event, Pool};
use msg_patterns::{Addr, Context, Req};

/// Longer than any device takes, and what a person waits for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at the other side.
const NAP: Duration = Duration::from_millis(1);

const SLOT_BYTES: usize = 4096;
const SLOTS: usize = 4;

/// Messages over one scheme of addresses.
pub(super) struct Messages {
    scheme: &'static str,
    context: Context,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Messages {
    /// Over `scheme`, which must be compiled in.
    pub(super) fn over(scheme: &'static str) -> Self {
        Self { scheme, context: Context::new() }
    }

    fn addr(&self, place: impl fmt::Display) -> Result<Addr, String> {
        format!("{}://{place}", self.scheme).parse().map_err(in_words)
    }
}

fn in_words(error: impl fmt::Display) -> String {
    error.to_string()
}

impl Probe for Messages {
    fn loopback(&self, device: &str) -> Result<(), String> {
        let addr = self.addr(format_args!("{device}:0"))?;
        let mut here = Side::open(&self.context, &addr)?;
        let place = here.domain.listen(&addr).map_err(in_words)?.addr;
        let mut there = Side::open(&self.context, &place)?;
        let ep = there.domain.connect(&place).map_err(in_words)?;
        let deadline = Instant::now() + PATIENCE;
        while !there.has_connected(ep)? {
            turn(&mut [&mut here, &mut there], deadline)?;
        }
        let sent = random_bytes();
        there.send(ep, &sent)?;
        loop {
            match here.received() {
                Some(got) if got == sent => return Ok(()),
                Some(_) => return Err("it came back changed".to_owned()),
                None => turn(&mut [&mut here, &mut there], deadline)?,
            }
        }
    }

    fn connect(&self, peer: SocketAddr) -> Result<Reached, String> {
        let addr = self.addr(peer)?;
        let mut side = Side::open(&self.context, &addr)?;
        let ep = side.domain.connect(&addr).map_err(in_words)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match side.outcome(ep) {
                Some(Ok(())) => return Ok(Reached::Listener),
                Some(Err((ErrorKind::Refused, _))) => return Ok(Reached::Host),
                Some(Err((_, why))) => return Err(why),
                None => turn(&mut [&mut side], deadline)?,
            }
        }
    }

    fn echo(&self, peer: SocketAddr, bytes: usize, count: u32) -> Result<Duration, String> {
        let socket = Req::new(&self.context).map_err(in_words)?;
        socket.connect(&self.addr(peer)?.to_string()).map_err(in_words)?;
        // The first one waits for the connection.
        socket.request("", PATIENCE).map_err(in_words)?;
        let message = random_bytes().repeat(bytes.div_ceil(RANDOM_BYTES));
        let start = Instant::now();
        for _ in 0..count {
            let reply = socket.request(message[..bytes].to_vec(), PATIENCE).map_err(in_words)?;
            if *reply.first() != message[..bytes] {
                return Err("a message came back changed: is `fabric rep` at the peer?".to_owned());
            }
        }
        Ok(start.elapsed())
    }
}

const RANDOM_BYTES: usize = 8;

/// Bytes that no earlier run left in a buffer.
fn random_bytes() -> Vec<u8> {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0).to_ne_bytes().to_vec()
}

/// One domain and what it said.
struct Side {
    domain: Box<dyn Domain>,
    pool: Pool,
    events: Vec<Event>,
}

impl Side {
    /// With a receive posted.
    fn open(context: &Context, addr: &Addr) -> Result<Self, String> {
        let mut domain = context.open_domain(addr).map_err(in_words)?;
        let pool = Pool::new(SLOT_BYTES, SLOTS).map_err(in_words)?;
        domain.register(&pool).map_err(in_words)?;
        if let Some(slot) = pool.take() {
            domain.post_recv(slot).map_err(|refused| refused.error.to_string())?;
        }
        Ok(Self { domain, pool, events: Vec::new() })
    }

    fn send(&mut self, ep: EpId, bytes: &[u8]) -> Result<(), String> {
        let mut slot = self.pool.take().ok_or("no buffer is left")?;
        if !slot.append(bytes) {
            return Err(format!("{} bytes do not fit a buffer", bytes.len()));
        }
        let posted = self.domain.post_send(ep, slot.into());
        posted.map(drop).map_err(|refused| refused.error.to_string())
    }

    fn has_connected(&self, ep: EpId) -> Result<bool, String> {
        let outcome = self.outcome(ep).transpose().map_err(|(_, why)| why)?;
        Ok(outcome.is_some())
    }

    /// What became of a connection, once it is known.
    fn outcome(&self, ep: EpId) -> Option<Result<(), (ErrorKind, String)>> {
        self.events.iter().find_map(|event| match event {
            Event::Connected { ep: known, .. } if *known == ep => Some(Ok(())),
            Event::Closed { ep: known, why } if *known == ep => {
                Some(Err((why.kind(), why.to_string())))
            }
            _ => None,
        })
    }

    fn received(&self) -> Option<&[u8]> {
        self.events.iter().find_map(|event| match event {
            Event::Received { slot, .. } => Some(slot.filled()),
            _ => None,
        })
    }
}

/// Lets all sides get on, until `deadline`.
fn turn(sides: &mut [&mut Side], deadline: Instant) -> Result<(), String> {
    if Instant::now() > deadline {
        return Err(format!("no answer in {} s", PATIENCE.as_secs()));
    }
    for side in sides {
        side.domain.poll(&mut side.events, usize::MAX);
        side.domain.wait(Some(NAP)).map_err(in_words)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use msg_patterns::Rep;

    use super::*;

    /// The same over TCP, which every host has.
    fn tcp() -> Messages {
        Messages::over("tcp")
    }

    fn place(addr: &Addr) -> SocketAddr {
        format!("{}:{}", addr.host(), addr.port().unwrap()).parse().unwrap()
    }

    #[test]
    fn a_message_to_itself_arrives() {
        assert_eq!(tcp().loopback("127.0.0.1"), Ok(()));
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        assert!(tcp().loopback("no-such-interface.invalid").is_err());
        assert!(Messages::over("pigeon").loopback("loft").unwrap_err().contains("pigeon"));
    }

    #[test]
    fn a_listener_is_told_from_a_host_without_one() {
        let rep = Rep::new(&Context::new()).unwrap();
        let addr = place(&rep.bind("tcp://127.0.0.1:0").unwrap());
        assert_eq!(tcp().connect(addr), Ok(Reached::Listener));
        assert_eq!(tcp().connect("127.0.0.1:1".parse().unwrap()), Ok(Reached::Host));
    }

    #[test]
    fn messages_come_back_from_who_replies_with_them_and_only_then() {
        let rep = Rep::new(&Context::new()).unwrap();
        let addr = place(&rep.bind("tcp://127.0.0.1:0").unwrap());
        let echo = thread::spawn(move || {
            for _ in 0..4 {
                let request = rep.recv().unwrap();
                rep.send(request).unwrap();
            }
            rep.recv().unwrap();
            rep.send("").unwrap();
            rep.recv().unwrap();
            rep.send("something else").unwrap();
            rep.close();
        });
        assert!(tcp().echo(addr, 100_000, 3).is_ok());
        assert!(tcp().echo(addr, 64, 1).unwrap_err().contains("changed"));
        echo.join().unwrap();
    }
}
