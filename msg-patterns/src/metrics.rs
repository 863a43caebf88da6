//! Counters, gauges and histograms of sockets, through the `metrics` facade.
//!
//! What is counted is counted anyway ([`Counters`](crate::Counters), [`PeerStats`](crate::PeerStats)).
//! It goes to the recorder when [`Context::publish_metrics`] is called and when a socket or a peer
//! ends, as what came on top since: sending and receiving do nothing for it. The histograms get a
//! value when a connection comes up or ends.

mod publish;
mod table;

pub use table::{Metric, MetricKind};

pub(crate) use table::Published;

use crate::Context;
use crate::driver::Shared;
use crate::roles::Role;

/// Whatever can be published.
pub(crate) trait Measured: Send + Sync {
    /// Hands what was counted to the recorder.
    fn publish(&self);
}

impl<R: Role> Measured for Shared<R> {
    fn publish(&self) {
        self.look(|core| core.net.publish_metrics());
    }
}

impl Context {
    /// Hands what its sockets have counted to the recorder of the `metrics` facade. Call it where the
    /// figures are asked for, such as before a scrape is answered, or on a timer; each call takes each
    /// socket's lock once. Install the recorder before: what is published without one is lost.
    ///
    /// The names stand in `docs/metrics.md` and in [`Metric::all`].
    ///
    /// ```
    /// use msg_patterns::{Context, Pub};
    ///
    /// let context = Context::new();
    /// let publisher = Pub::builder().name("weather").build(&context)?;
    /// publisher.send("7 °C")?;
    /// context.publish_metrics();
    /// # Ok::<(), msg_patterns::Error>(())
    /// ```
    pub fn publish_metrics(&self) {
        table::describe();
        for socket in self.measured() {
            socket.publish();
        }
    }
}
