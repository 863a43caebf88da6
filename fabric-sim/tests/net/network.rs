//! What can be done to a simulated network, and that it repeats itself.

use std::time::Duration;

use crate::common::{Side, join, send, two, until};
use fabric_core::{Addr, Armed, Domain, ErrorKind, Event};
use fabric_sim::{Faults, Limits, SimDomain, SimNet, SimOptions};

fn network(faults: Faults, seed: u64) -> SimNet {
    SimNet::with(SimOptions { seed, faults, ..SimOptions::default() })
}

/// All that a server and its client see while ten messages go and the client closes, as text.
fn story(seed: u64) -> String {
    let net = network(Faults { delay_polls_max: 20, ..Faults::default() }, seed);
    let [mut server, mut client] = two(&net, |domain| domain);
    let (_, ep) = join(&mut server, &mut client);
    server.offer(20);
    let mut turns = Vec::new();
    for i in 0..10 {
        assert!(send(&mut client, ep, i));
        turns.push(until([&mut server, &mut client], |server, _| {
            server.messages().len() > i.into()
        }));
    }
    client.domain.close(ep);
    until([&mut server, &mut client], |server, _| server.closed().is_some());
    format!("{turns:?} {:?} {:?}", server.seen, client.seen)
}

#[test]
fn a_seed_tells_the_same_story_twice_and_another_seed_another() {
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn a_killed_domain_resets_its_peers_after_what_it_had_sent() {
    let net = SimNet::new();
    let [mut server, mut client] = two(&net, |domain| domain);
    let (_, ep) = join(&mut server, &mut client);
    server.offer(4);
    assert!(send(&mut client, ep, 7));
    client.domain.flush();
    net.kill(&client.domain);
    until([&mut server, &mut client], |server, _| server.closed().is_some());
    assert_eq!(server.messages(), [7]);
    assert_eq!(server.closed().map(fabric_core::Error::kind), Some(ErrorKind::Reset));
    assert!(client.closed().is_none(), "the dead hear nothing");
    assert!(!send(&mut client, ep, 8));
    let refused = client.domain.connect(&Addr::new("sim", "here", Some(1)));
    assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::Host));
}

#[test]
fn a_killed_listener_refuses_whoever_was_connecting() {
    let net = SimNet::new();
    let [mut server, mut client] = two(&net, |domain| domain);
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    net.kill(&server.domain);
    until([&mut server, &mut client], |_, client| client.closed().is_some());
    assert_eq!(client.closed().map(fabric_core::Error::kind), Some(ErrorKind::Refused));
}

#[test]
fn a_partition_holds_messages_back_and_healing_delivers_them() {
    let net = SimNet::new();
    let [mut server, mut client] = two(&net, |domain| domain);
    let (_, ep) = join(&mut server, &mut client);
    server.offer(8);
    net.partition(&server.domain, &client.domain);
    assert!((0..5).all(|i| send(&mut client, ep, i)));
    for _ in 0..100 {
        client.turn();
        server.turn();
    }
    assert_eq!(server.messages(), []);
    net.heal();
    until([&mut server, &mut client], |server, _| server.messages().len() == 5);
    assert_eq!(server.messages(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_sleeper_is_woken_when_a_partition_heals() {
    let net = SimNet::new();
    let [mut server, mut client] = two(&net, |domain| domain);
    let (_, ep) = join(&mut server, &mut client);
    server.offer(1);
    net.partition(&server.domain, &client.domain);
    assert!(send(&mut client, ep, 1));
    client.turn();
    server.turn();
    assert!(matches!(server.domain.arm(), Armed::Idle(_)), "nothing can come now");
    let healer = std::thread::spawn(move || net.heal());
    server.domain.wait(None).expect("it can wait");
    until([&mut server, &mut client], |server, _| server.messages() == [1]);
    healer.join().expect("it heals");
}

#[test]
fn refused_connections_are_as_frequent_as_ordered() {
    let net = network(Faults { refused_per_mille: 300, ..Faults::default() }, 5);
    let [mut server, mut client] = two(&net, |domain| domain);
    let listener = server.listen();
    for _ in 0..1000 {
        client.domain.connect(&listener.addr).expect("a connection can be started");
    }
    let count = |client: &Side<SimDomain>, of: fn(&Event) -> bool| {
        client.seen.iter().filter(|event| of(event)).count()
    };
    until([&mut server, &mut client], |_, client| client.seen.len() == 1000);
    let refused = count(&client, |event| matches!(event, Event::Closed { .. }));
    assert!((200..400).contains(&refused), "{refused}");
    assert_eq!(refused + count(&client, |event| matches!(event, Event::Connected { .. })), 1000);
}

#[test]
fn a_breaking_network_resets_both_sides_and_reorders_nothing() {
    let mut broken = 0;
    for seed in 0..20 {
        let net = network(Faults { broken_per_mille: 50, ..Faults::default() }, seed);
        let [mut server, mut client] = two(&net, |domain| domain);
        let listener = server.listen();
        client.domain.connect(&listener.addr).expect("a connection can be started");
        server.offer(64);
        let mut next = 0;
        until([&mut server, &mut client], |server, client| {
            if let Some(ep) = client.connected() {
                next += u8::from(send(client, ep, next));
            }
            client.closed().is_some() || server.messages().len() == 50
        });
        let messages = server.messages();
        assert_eq!(messages, (0..messages.len() as u8).collect::<Vec<_>>(), "seed {seed}");
        if let Some(why) = client.closed() {
            assert_eq!(why.kind(), ErrorKind::Reset, "seed {seed}");
            broken += 1;
        }
    }
    assert!(broken >= 10, "one packet in twenty breaks, so most connections do: {broken}");
}

/// Whether the client died of the greeting, and the server outlived that.
fn client_dies(seed: u64) -> bool {
    let net = network(Faults { deaths_per_mille: 500, ..Faults::default() }, seed);
    let [mut server, mut client] = two(&net, |domain| domain);
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    for _ in 0..20 {
        server.turn();
        client.turn();
    }
    let reset = server.closed().is_some_and(|why| why.kind() == ErrorKind::Reset);
    reset && client.seen.is_empty()
}

#[test]
fn a_domain_that_dies_by_fault_resets_its_peers() {
    let died = (0..40).filter(|seed| client_dies(*seed)).count();
    assert!(
        (3..30).contains(&died),
        "half of the clients die, half of the servers outlive: {died}"
    );
}

#[test]
fn a_star_listens_under_every_name_and_excludes_others_at_its_port() {
    let net = SimNet::new();
    let [mut server, mut client] = two(&net, |domain| domain);
    server.domain.listen(&Addr::new("sim", "*", Some(7))).expect("a free port");
    let taken = client.domain.listen(&Addr::new("sim", "any", Some(7)));
    assert_eq!(taken.map_err(|error| error.kind()), Err(ErrorKind::AddrInUse));
    client.domain.connect(&Addr::new("sim", "any", Some(7))).expect("it can be started");
    until([&mut server, &mut client], |_, client| client.connected().is_some());
    let everywhere = client.domain.connect(&Addr::new("sim", "*", Some(7)));
    assert_eq!(everywhere.map_err(|error| error.kind()), Err(ErrorKind::Address));
}

fn standing_clock(limits: Limits) -> SimNet {
    SimNet::with(SimOptions { virtual_time: true, limits, ..SimOptions::default() })
}

#[test]
fn virtual_time_moves_only_when_it_is_advanced_and_wait_never_sleeps() {
    let net = standing_clock(Limits::default());
    let [mut server, mut client] = two(&net, |domain| domain);
    let start = server.domain.now();
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    for _ in 0..50 {
        server.domain.wait(None).expect("it returns at once");
    }
    assert_eq!(server.domain.now(), start);
    until([&mut server, &mut client], |_, client| {
        net.advance(Duration::from_micros(10));
        client.connected().is_some()
    });
    assert!(server.domain.now() > start);
    assert_eq!(server.domain.now(), client.domain.now());
}

#[test]
fn a_connection_that_nobody_answers_times_out_in_virtual_time() {
    let limits = Limits { connect_timeout: Duration::from_secs(600), ..Limits::default() };
    let net = standing_clock(limits);
    let [mut server, mut client] = two(&net, |domain| domain);
    let listener = server.listen();
    client.domain.connect(&listener.addr).expect("a connection can be started");
    // The server does not poll.
    for _ in 0..100 {
        client.turn();
    }
    assert!(client.seen.is_empty());
    assert_eq!(client.domain.arm(), Armed::Idle(Some(Duration::from_secs(600))));
    net.advance(Duration::from_secs(599));
    assert!(!client.turn());
    net.advance(Duration::from_secs(1));
    assert!(client.turn());
    assert_eq!(client.closed().map(fabric_core::Error::kind), Some(ErrorKind::TimedOut));
    until([&mut server, &mut client], |server, _| {
        net.advance(Duration::from_secs(1));
        server.domain.arm() != Armed::Ready
    });
    assert!(server.seen.is_empty(), "the attempt was given up before it arrived");
}
