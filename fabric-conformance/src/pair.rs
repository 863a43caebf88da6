//! Two connected domains.

use fabric_core::{Domain, EpId, Error, ErrorKind, Listener};

use crate::Harness;
use crate::node::{Done, Node, Received, Sent, settle, until};

pub(crate) struct Pair<D> {
    /// The side that accepted.
    pub(crate) server: Node<D>,
    /// The side that connected.
    pub(crate) client: Node<D>,
    pub(crate) listener: Listener,
    /// The endpoint at the server.
    pub(crate) at_server: EpId,
    /// The endpoint at the client.
    pub(crate) at_client: EpId,
    pub(crate) polls_max: u32,
}

impl<D: Domain> Pair<D> {
    pub(crate) fn new<H: Harness<Domain = D>>(harness: &H) -> Self {
        let mut server = Node::new(harness.domain());
        let mut client = Node::new(harness.domain());
        let listener = listen(&mut server, harness);
        let polls_max = harness.polls_max();
        let (at_server, at_client) = join(polls_max, &mut server, &mut client, &listener);
        Self { server, client, listener, at_server, at_client, polls_max }
    }

    /// Polls both sides until `ready` has something of server and client.
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut ready: impl FnMut(&mut Node<D>, &mut Node<D>) -> Option<T>,
    ) -> T {
        let nodes = [&mut self.server, &mut self.client];
        until(self.polls_max, what, nodes, |[server, client]| ready(server, client))
    }

    /// Polls both sides until nothing has come for a while.
    pub(crate) fn settle(&mut self) {
        settle([&mut self.server, &mut self.client]);
    }

    /// One more connection between the two.
    pub(crate) fn connect(&mut self) -> (EpId, EpId) {
        join(self.polls_max, &mut self.server, &mut self.client, &self.listener)
    }

    pub(crate) fn received_by_server(&mut self) -> Received {
        self.until("the server receives", |server, _| server.received())
    }

    pub(crate) fn received_by_client(&mut self) -> Received {
        self.until("the client receives", |_, client| client.received())
    }

    pub(crate) fn sent_by_client(&mut self) -> Sent {
        self.until("the client's send comes back", |_, client| client.sent())
    }

    pub(crate) fn done_by_client(&mut self) -> Done {
        self.until("the client's remote operation ends", |_, client| client.done())
    }

    pub(crate) fn server_closed(&mut self) -> Error {
        let ep = self.at_server;
        self.until("the server's endpoint closes", |server, _| server.closed_of(ep))
    }

    pub(crate) fn client_closed(&mut self) -> Error {
        let ep = self.at_client;
        self.until("the client's endpoint closes", |_, client| client.closed_of(ep))
    }

    /// Polls until the first endpoint of each side has closed, and leaves all events where they are.
    pub(crate) fn until_both_closed(&mut self) {
        let (at_server, at_client) = (self.at_server, self.at_client);
        self.until("both endpoints close", |server, client| {
            (server.has_closed(at_server) && client.has_closed(at_client)).then_some(())
        });
    }

    /// Sends one message from client to server and checks that it arrives.
    pub(crate) fn check_alive(&mut self) {
        self.server.offer(1);
        self.client.send(self.at_client, b"alive");
        assert_eq!(self.received_by_server().slot.filled(), b"alive");
        assert!(self.sent_by_client().result.is_ok());
    }
}

pub(crate) fn listen<H: Harness>(node: &mut Node<H::Domain>, harness: &H) -> Listener {
    node.domain.listen(&harness.listen_addr()).expect("the harness's address can be listened at")
}

/// Connects `client` to `server` and gives the endpoints of both.
pub(crate) fn join<D: Domain>(
    polls_max: u32,
    server: &mut Node<D>,
    client: &mut Node<D>,
    listener: &Listener,
) -> (EpId, EpId) {
    let dialed = client.domain.connect(&listener.addr).expect("a connection can be started");
    let (mut accepted, mut connected) = (None, None);
    until(polls_max, "both sides connect", [server, client], |[server, client]| {
        accepted = accepted.or_else(|| server.accepted());
        connected = connected.or_else(|| client.connected());
        let ((at_server, listener_id), at_client) = (accepted?, connected?);
        assert_eq!(listener_id, listener.id, "Accepted names the listener");
        assert_eq!(at_client, dialed, "Connected names the endpoint");
        Some((at_server, at_client))
    })
}

/// Panics unless `error` is of `kind`, and fit to be read.
#[track_caller]
pub(crate) fn check_error(error: &Error, kind: ErrorKind) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(!error.message().is_empty(), "an error without a message");
    assert!(!error.to_string().contains('\n'), "an error of one line: {error}");
}

/// `len` bytes that differ from those of another `seed`.
pub(crate) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed.wrapping_mul(131)) as u8).collect()
}
