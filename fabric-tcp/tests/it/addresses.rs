//! Ports, names, interfaces, both families, and the errors of addresses that lead nowhere.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use fabric_core::{Addr, Domain, ErrorKind, Event};
use fabric_tcp::TcpOptions;
use socket2::{Socket, Type};

use crate::support::{Node, join};

fn addr(text: &str) -> Addr {
    text.parse().unwrap()
}

/// Listens at `listen` and connects to `connect` at the port found.
fn check_reaches(listen: &str, connect: &str) {
    let (mut client, mut server) = (Node::new(), Node::new());
    let port = server.listen(listen).addr.port().unwrap();
    assert_ne!(port, 0);
    let (to, _) = join(&mut client, &mut server, &addr(connect).with_port(port));
    server.post_recvs(1, 8);
    client.send(to, &b"hi"[..]);
    client.step();
    assert_eq!(server.received(), b"hi", "{listen} from {connect}");
}

#[test]
fn every_way_to_write_this_host_works() {
    check_reaches("tcp://127.0.0.1:0", "tcp://localhost:1");
    check_reaches("tcp://localhost:0", "tcp://localhost:1");
    check_reaches("tcp://lo:0", "tcp://127.0.0.1:1");
    check_reaches("tcp://0.0.0.0:0", "tcp://127.0.0.1:1");
}

#[test]
fn ipv6_works_where_the_host_has_it() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        check_reaches("tcp://[::1]:0", "tcp://[::1]:1");
    }
}

#[test]
fn a_star_listens_in_both_families() {
    check_reaches("tcp://*:0", "tcp://127.0.0.1:1");
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        check_reaches("tcp://*:0", "tcp://[::1]:1");
    }
}

#[test]
fn a_listener_of_all_interfaces_says_so_and_one_of_a_name_says_its_address() {
    let mut node = Node::new();
    assert_eq!(node.listen("tcp://*:0").addr.host(), "*");
    assert_eq!(node.listen("tcp://lo:0").addr.host(), "127.0.0.1");
}

#[test]
fn senseless_addresses_are_refused_at_once() {
    let mut node = Node::new();
    for (text, kind) in [
        ("tcp://*:5", ErrorKind::Address),
        ("tcp://127.0.0.1", ErrorKind::Address),
        ("tcp://127.0.0.1:0", ErrorKind::Address),
        ("tcp://127.0.0.1:5/path", ErrorKind::Address),
        ("udp://127.0.0.1:5", ErrorKind::Unsupported),
    ] {
        assert_eq!(node.domain.connect(&addr(text)).unwrap_err().kind(), kind, "{text}");
    }
    let error = node.domain.listen(&addr("tcp://192.0.2.1:5")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Address, "{error}");
    let error = node.domain.listen(&addr("tcp://127.0.0.1")).unwrap_err();
    assert!(error.message().contains("has no port"), "{error}");
}

#[test]
fn an_address_in_use_is_told_also_when_another_program_has_it() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = addr("tcp://127.0.0.1:1").with_port(other.local_addr().unwrap().port());
    let error = Node::new().domain.listen(&taken).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    let everywhere = addr("tcp://*:1").with_port(other.local_addr().unwrap().port());
    let error = Node::new().domain.listen(&everywhere).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
}

#[test]
fn a_port_is_free_again_right_after_a_busy_listener_stopped() {
    let (mut client, mut server) = (Node::new(), Node::new());
    let listener = server.listen("tcp://127.0.0.1:0");
    join(&mut client, &mut server, &listener.addr);
    server.domain.unlisten(listener.id).unwrap();
    let again = Node::new().domain.listen(&listener.addr).unwrap();
    assert_eq!(again.addr, listener.addr);
}

#[test]
fn the_next_address_of_a_name_is_tried_when_one_refuses() {
    let Ok(found) = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 1)) else { return };
    // Listens at the last address of the name only.
    let Some(last) = found.last() else { return };
    let (mut client, mut server) = (Node::new(), Node::new());
    let at = server.listen(&format!("tcp://{}", SocketAddr::new(last.ip(), 0))).addr;
    join(&mut client, &mut server, &addr("tcp://localhost:1").with_port(at.port().unwrap()));
}

#[test]
fn nobody_there_is_refused() {
    let deaf = Socket::new(socket2::Domain::IPV4, Type::STREAM, None).unwrap();
    deaf.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let port = deaf.local_addr().unwrap().as_socket().unwrap().port();
    let mut node = Node::new();
    let ep = node.domain.connect(&addr("tcp://127.0.0.1:1").with_port(port)).unwrap();
    let (closed, kind, text) = node.closed();
    assert_eq!((closed, kind), (ep, ErrorKind::Refused));
    assert!(text.contains(&port.to_string()), "{text}");
}

#[test]
fn a_host_that_does_not_answer_times_out() {
    // A full backlog drops connection attempts, as a dead host would.
    let full = Socket::new(socket2::Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    full.listen(0).unwrap();
    let at = full.local_addr().unwrap().as_socket().unwrap();
    let _fills = TcpStream::connect(at).unwrap();
    let connect_timeout = Duration::from_millis(100);
    let mut node = Node::with(TcpOptions { connect_timeout, ..TcpOptions::default() });
    let ep = node.domain.connect(&addr(&format!("tcp://{at}"))).unwrap();
    let (closed, kind, text) = node.closed();
    assert_eq!((closed, kind), (ep, ErrorKind::TimedOut));
    assert!(text.contains("100ms"), "{text}");
}

#[test]
fn a_connection_that_is_dropped_hard_is_reset() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut node = Node::new();
    let ep =
        node.domain.connect(&addr(&format!("tcp://{}", listener.local_addr().unwrap()))).unwrap();
    let mut peer = crate::support::RawPeer::over(listener.accept().unwrap().0);
    peer.write(&crate::support::GREETING);
    assert_eq!(node.connected(), ep);
    socket2::SockRef::from(&peer.0).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    assert_eq!(node.closed().1, ErrorKind::Reset);
    assert!(!node.events.iter().any(|event| matches!(event, Event::Closed { .. })));
}
