//! Calls that break the contract are answered with `Misuse`, and nothing else happens.

use fabric_core::{Addr, Domain, EpId, ErrorKind, ListenerId, SendBuf};

use crate::Harness;
use crate::node::Node;
use crate::pair::{Pair, check_error};

/// No provider counts that far.
const NO_EP: EpId = EpId(u64::MAX - 7);

fn check_refused<D: Domain>(node: &mut Node<D>, ep: EpId) {
    let buf: SendBuf = node.filled(b"refused").into();
    let rejected = node.domain.post_send(ep, buf).expect_err("this endpoint cannot send");
    check_error(&rejected.error, ErrorKind::Misuse);
    assert_eq!(rejected.buf.to_vec(), b"refused");
}

pub(crate) fn sending_to_an_unknown_endpoint_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    check_refused(&mut pair.client, NO_EP);
    pair.check_alive();
}

pub(crate) fn sending_before_connected_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    let ep = pair.client.domain.connect(&pair.listener.addr).expect("it can be started");
    check_refused(&mut pair.client, ep);
    let connected = pair.until("it connects all the same", |_, client| client.connected());
    assert_eq!(connected, ep);
    pair.client.send(ep, b"now it can");
}

pub(crate) fn sending_after_closed_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.domain.close(pair.at_client);
    pair.client_closed();
    pair.server_closed();
    check_refused(&mut pair.client, pair.at_client);
    check_refused(&mut pair.server, pair.at_server);
}

pub(crate) fn unlistening_twice_is_misuse<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.server.domain.unlisten(pair.listener.id).expect("it listens");
    let error = pair.server.domain.unlisten(pair.listener.id).expect_err("it does not any more");
    check_error(&error, ErrorKind::Misuse);
    pair.check_alive();
}

pub(crate) fn an_unknown_listener_is_misuse<H: Harness>(harness: &H) {
    let mut domain = harness.domain();
    let error = domain.unlisten(ListenerId(u64::MAX - 7)).expect_err("there is none");
    check_error(&error, ErrorKind::Misuse);
}

pub(crate) fn closing_an_unknown_endpoint_does_nothing<H: Harness>(harness: &H) {
    let mut pair = Pair::new(harness);
    pair.client.domain.close(NO_EP);
    pair.settle();
    assert!(pair.client.seen.is_empty(), "{:?}", pair.client.seen);
    pair.check_alive();
}

pub(crate) fn another_scheme_is_unsupported<H: Harness>(harness: &H) {
    let mut domain = harness.domain();
    let addr = Addr::new("no-such-scheme", "localhost", Some(4000));
    let listened = domain.listen(&addr).expect_err("it is another fabric's");
    check_error(&listened, ErrorKind::Unsupported);
    let connected = domain.connect(&addr).expect_err("it is another fabric's");
    check_error(&connected, ErrorKind::Unsupported);
}
