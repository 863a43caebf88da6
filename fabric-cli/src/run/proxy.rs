//! `fabric proxy`.

use std::thread;
use std::time::{Duration, Instant};

use msg_patterns::{
    Builder, Counters, Dealer, Linger, Proxy, ProxyStats, Pub, Pull, Push, Router, XPub, XSub,
};

use crate::args::{Ends, Global, ProxyArgs, ProxyKind};
use crate::exit::Failure;
use crate::report::{Line, Passage};
use crate::socket::Endpoint;
use crate::stage::{Side, Stage};

/// How often it is asked whether all that had come was passed on.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Carries until a signal comes.
///
/// # Errors
/// Why it ended early, or that a signal came.
pub(crate) fn run(args: &ProxyArgs, global: &Global) -> Result<(), Failure> {
    let stage = Stage::watchful(global, args.queues.grace())?;
    let run = Run { args, stage: &stage };
    let (front, back) = (args.front(), args.back());
    match args.kind {
        ProxyKind::Forwarder => {
            run.carry(XSub::builder(), XPub::builder(), &front, &back, Proxy::forwarder)
        }
        ProxyKind::Streamer => {
            run.carry(Pull::builder(), Push::builder(), &front, &back, Proxy::streamer)
        }
        ProxyKind::Queue => {
            run.carry(Router::builder(), Dealer::builder(), &front, &back, Proxy::queue)
        }
    }
}

struct Run<'a> {
    args: &'a ProxyArgs,
    stage: &'a Stage,
}

impl Run<'_> {
    fn carry<A: Endpoint, B: Endpoint>(
        &self,
        front: Builder<A>,
        back: Builder<B>,
        above: &Ends,
        below: &Ends,
        make: fn(&A, &B) -> Proxy,
    ) -> Result<(), Failure> {
        let (front, back) = (self.open(front, above)?, self.open(back, below)?);
        let (mut proxy, tap) = (make(&front, &back), self.tap()?);
        if let Some(tap) = &tap {
            proxy = proxy.capture(tap);
        }
        let began = Instant::now();
        let stats = self.until_a_signal(proxy, || [front.counters(), back.counters()])?;
        let seconds = began.elapsed().as_secs_f64();
        let dropped = close_all(front, back, tap);
        self.stage.join_notes();
        Line::Passage(Passage::new(self.args.kind.name(), seconds, &stats, dropped))
            .say(self.stage.style);
        Err(Failure::Interrupted)
    }

    fn open<S: Endpoint>(&self, builder: Builder<S>, ends: &Ends) -> Result<S, Failure> {
        let queues = &self.args.queues;
        // All close at once, after the other half of the grace.
        let builder = queues.apply(builder, None).linger(Linger::For(queues.grace() / 2));
        self.stage.open(builder, ends, Side::Bind)
    }

    /// Where copies can be subscribed to.
    fn tap(&self) -> Result<Option<Pub>, Failure> {
        let Some(url) = self.args.capture.clone() else { return Ok(None) };
        let ends = Ends { url: Some(url), bind: Vec::new(), connect: Vec::new() };
        self.open(Pub::builder(), &ends).map(Some)
    }

    /// Runs the proxy. After a signal, what had come by then is still passed on, as far as there is
    /// room and time.
    fn until_a_signal(
        &self,
        mut proxy: Proxy,
        counters: impl Fn() -> [Counters; 2],
    ) -> Result<ProxyStats, Failure> {
        let control = proxy.control();
        let running = thread::Builder::new().name("proxy".into()).spawn(move || proxy.run());
        let running = running.map_err(Failure::io("cannot start a thread"))?;
        self.stage.interrupt.wait()?;
        let end = Instant::now() + self.args.queues.grace() / 4;
        let came = counters().map(|counters| counters.received - counters.discarded);
        wait(end, || {
            counters().iter().zip(came).all(|(counters, came)| counters.delivered >= came)
        });
        control.stop();
        wait(end, || running.is_finished());
        control.stop_now();
        let stats = running.join().map_err(|_| Failure::new("the proxy failed"))?;
        Ok(stats?)
    }
}

fn wait(end: Instant, reached: impl Fn() -> bool) {
    while !reached() && Instant::now() < end {
        thread::sleep(DRAIN_POLL);
    }
}

/// Closes all sockets at once; says how many messages the two sides dropped.
fn close_all(front: impl Endpoint, back: impl Endpoint, tap: Option<Pub>) -> u64 {
    let watched = (front.clone(), back.clone());
    thread::scope(|scope| {
        scope.spawn(|| front.close());
        scope.spawn(|| tap.map(Pub::close));
        back.close();
    });
    watched.0.counters().dropped + watched.1.counters().dropped
}
