//! The router itself.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use msg_patterns::{Context, Error, ErrorKind, Message, RoutingId};

/// The first word of a worker.
pub(crate) const READY: &str = "ready";
/// The answer to a request whose deadline has passed. No worker answers nothing.
pub(crate) const EXPIRED: &str = "";

/// Gives each worker one request at a time.
pub(crate) struct Router {
    socket: msg_patterns::Router,
    deadline: Duration,
    free: VecDeque<RoutingId>,
    waiting: VecDeque<(RoutingId, Message)>,
    /// When each request came whose deadline is still to come, the oldest first.
    asked: VecDeque<(RoutingId, Instant)>,
    /// Those that have no answer yet.
    open: HashSet<RoutingId>,
}

impl Router {
    pub(crate) fn new(context: &Context, addr: &str, deadline: Duration) -> Result<Self, Error> {
        let socket = msg_patterns::Router::new(context)?;
        socket.bind(addr)?;
        let (free, waiting, asked) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Ok(Self { socket, deadline, free, waiting, asked, open: HashSet::new() })
    }

    pub(crate) fn addr(&self) -> String {
        self.socket.last_endpoint().map(|addr| addr.to_string()).unwrap_or_default()
    }

    /// Routes until the context shuts down.
    pub(crate) fn run(mut self) {
        loop {
            match self.next() {
                Ok((from, message)) if from.is_request() => self.on_request(from, message),
                Ok((from, message)) => self.on_worker(from, message),
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                Err(_) => return,
            }
            self.expire();
            self.hand_out();
        }
    }

    fn next(&self) -> Result<(RoutingId, Message), Error> {
        match self.asked.front() {
            Some((_, at)) => {
                let due = *at + self.deadline;
                self.socket.recv_timeout(due.saturating_duration_since(Instant::now()))
            }
            None => self.socket.recv(),
        }
    }

    fn on_request(&mut self, from: RoutingId, message: Message) {
        self.asked.push_back((from.clone(), Instant::now()));
        self.open.insert(from.clone());
        self.waiting.push_back((from, message));
    }

    /// A worker is free: it has just come, or it has answered. An answer after the deadline is nobody's.
    fn on_worker(&mut self, worker: RoutingId, message: Message) {
        self.free.push_back(worker);
        if let Some((client, reply)) = RoutingId::split(message)
            && self.open.remove(&client)
        {
            self.answer(&client, reply);
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while self.asked.front().is_some_and(|(_, at)| *at + self.deadline <= now)
            && let Some((client, _)) = self.asked.pop_front()
        {
            if self.open.remove(&client) {
                self.answer(&client, EXPIRED.into());
            }
        }
        let Self { waiting, open, .. } = self;
        waiting.retain(|(client, _)| open.contains(client));
    }

    fn hand_out(&mut self) {
        while !self.free.is_empty()
            && let Some((client, request)) = self.waiting.pop_front()
        {
            let Some(worker) = self.free.pop_front() else { return };
            // To one that has left meanwhile it does not get, and it expires.
            drop(self.socket.send_to(&worker, client.before(request)));
        }
    }

    /// A client that has left meanwhile misses nothing.
    fn answer(&self, client: &RoutingId, reply: Message) {
        drop(self.socket.send_to(client, reply));
    }
}
