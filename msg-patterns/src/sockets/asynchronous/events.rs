use std::pin::Pin;
use std::sync::Weak;
use std::sync::mpsc::TryRecvError;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::driver::{EventSource, Ticket};
use crate::{Monitor, MonitorEvent};

/// The events of a socket as a stream, which ends behind
/// [`MonitorEvent::Stopped`]; made by [`Monitor::stream`].
#[must_use = "streams do nothing unless polled"]
pub struct MonitorStream {
    monitor: Monitor,
    socket: Weak<dyn EventSource>,
    ticket: Ticket,
}

impl Monitor {
    /// The events as a stream. [`next_event`](Monitor::next_event) is for threads.
    pub fn stream(self) -> MonitorStream {
        let socket = self.socket.clone();
        MonitorStream { monitor: self, socket, ticket: None }
    }
}

impl MonitorStream {
    /// The monitor, for what it says besides events.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn next(&self) -> Poll<Option<MonitorEvent>> {
        match self.monitor.take_event() {
            Ok(event) => Poll::Ready(Some(event)),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => Poll::Pending,
        }
    }
}

impl Stream for MonitorStream {
    type Item = MonitorEvent;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<MonitorEvent>> {
        let found = self.next();
        if found.is_ready() {
            return found;
        }
        if let Some(socket) = self.socket.upgrade() {
            socket.wait_for_event(&mut self.ticket, task.waker());
        }
        // What came before it waited would not wake it.
        self.next()
    }
}

impl Drop for MonitorStream {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.upgrade() {
            socket.forget(&mut self.ticket);
        }
    }
}

impl std::fmt::Debug for MonitorStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MonitorStream").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}
