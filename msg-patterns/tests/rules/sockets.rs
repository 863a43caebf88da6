//! The sockets as one type, for rules that hold for each of them. Many of these have several peers: PAIR
//! has rules of its own.

use std::time::Instant;

use msg_patterns::{
    Addr, Builder, Context, Counters, Dealer, Error, Monitor, MonitorEvent, PeerStats, Pub, Pull,
    Push, Rep, Req, Router, Socket, Sub, XPub, XSub,
};
use msg_proto::types::SocketType;

use crate::support::{LONG, wait_until};

/// What every socket can do.
pub(crate) trait Plug: Send {
    fn bind(&self, addr: &str) -> Result<Addr, Error>;
    fn connect(&self, addr: &str) -> Result<(), Error>;
    fn unbind(&self, addr: &str) -> Result<(), Error>;
    fn disconnect(&self, addr: &str) -> Result<(), Error>;
    fn monitor(&self) -> Monitor;
    fn counters(&self) -> Counters;
    fn peers(&self) -> Vec<PeerStats>;
    fn close(self: Box<Self>);

    /// Peers to whom messages may flow.
    fn up(&self) -> usize {
        self.peers().iter().filter(|peer| peer.up).count()
    }

    fn wait_up(&self, count: usize) {
        wait_until("so many peers", || self.up() == count);
    }
}

/// Settings that do not depend on the type.
pub(crate) trait Settings {
    fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S>;
}

impl Settings for () {
    fn apply<S: Socket>(&self, builder: Builder<S>) -> Builder<S> {
        builder
    }
}

macro_rules! plugs {
    ($($kind:ident => $socket:ident),* $(,)?) => {
        /// The types that exist here.
        pub(crate) const KINDS: [SocketType; [$(SocketType::$kind),*].len()] = [$(SocketType::$kind),*];

        /// A socket of `kind`.
        pub(crate) fn open(context: &Context, kind: SocketType) -> Box<dyn Plug> {
            open_with(context, kind, &())
        }

        /// A socket of `kind` with settings.
        pub(crate) fn open_with(
            context: &Context,
            kind: SocketType,
            settings: &impl Settings,
        ) -> Box<dyn Plug> {
            match kind {
                $(SocketType::$kind => {
                    Box::new(settings.apply($socket::builder()).build(context).unwrap())
                })*
                _ => unreachable!("no socket has this type"),
            }
        }

        $(impl Plug for $socket {
            fn bind(&self, addr: &str) -> Result<Addr, Error> {
                self.bind(addr)
            }
            fn connect(&self, addr: &str) -> Result<(), Error> {
                self.connect(addr)
            }
            fn unbind(&self, addr: &str) -> Result<(), Error> {
                self.unbind(addr)
            }
            fn disconnect(&self, addr: &str) -> Result<(), Error> {
                self.disconnect(addr)
            }
            fn monitor(&self) -> Monitor {
                self.monitor()
            }
            fn counters(&self) -> Counters {
                self.counters()
            }
            fn peers(&self) -> Vec<PeerStats> {
                self.peers()
            }
            fn close(self: Box<Self>) {
                (*self).close();
            }
        })*
    };
}

plugs! {
    Pub => Pub,
    Sub => Sub,
    Push => Push,
    Pull => Pull,
    Req => Req,
    Rep => Rep,
    Dealer => Dealer,
    Router => Router,
    XPub => XPub,
    XSub => XSub,
}

/// The pairs that may talk to each other here, both ways round.
pub(crate) fn legal_pairs() -> impl Iterator<Item = (SocketType, SocketType)> {
    all_pairs().filter(|(a, b)| a.legal_peer(*b))
}

/// All pairs.
pub(crate) fn all_pairs() -> impl Iterator<Item = (SocketType, SocketType)> {
    KINDS.into_iter().flat_map(|a| KINDS.map(|b| (a, b)))
}

/// The next event that `wanted` accepts; earlier ones are dropped.
pub(crate) fn event(
    monitor: &Monitor,
    what: &str,
    wanted: impl Fn(&MonitorEvent) -> bool,
) -> MonitorEvent {
    events_until(monitor, what, wanted).pop().unwrap()
}

/// All events up to the first that `wanted` accepts.
pub(crate) fn events_until(
    monitor: &Monitor,
    what: &str,
    wanted: impl Fn(&MonitorEvent) -> bool,
) -> Vec<MonitorEvent> {
    let (mut events, start) = (Vec::new(), Instant::now());
    while start.elapsed() < LONG {
        let next = monitor.next_timeout(LONG);
        events.extend(next);
        if events.last().is_some_and(&wanted) {
            return events;
        }
    }
    let last = &events[events.len().saturating_sub(10)..];
    panic!("gave up waiting for {what}; the last of {} events were {last:?}", events.len());
}
