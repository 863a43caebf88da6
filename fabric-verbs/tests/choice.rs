//! Which device an address means, on a host with two of them.
//!
//! The second one is a soft-RoCE link on the interface that `FABRIC_SOFTROCE_INTERFACE` names, which
//! is made if there is none. Without that variable, or without any device, each test says so and
//! ends.

mod common;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use common::device;
use fabric_core::{Addr, Domain, ErrorKind, Event, Fabric, Pool};
use fabric_verbs::{VerbsDomain, VerbsFabric, VerbsOptions};

const INTERFACE: &str = "FABRIC_SOFTROCE_INTERFACE";
/// More turns than a connection takes on the slowest machine; each sleeps up to a millisecond.
const TURNS_MAX: usize = 60_000;

/// A device with an address.
struct Place {
    device: String,
    ip: Ipv4Addr,
}

impl Place {
    fn named(device: &str) -> Self {
        let found = VerbsFabric::default().devices().unwrap();
        let detail = &found.iter().find(|found| found.name == device).unwrap().detail;
        let mut ips = detail.split(", ").filter_map(|part| part.parse().ok());
        Self { device: device.to_owned(), ip: ips.next().unwrap() }
    }

    fn at(&self, host: &str) -> Addr {
        assert!(!host.is_empty(), "{}", self.device);
        Addr::new("verbs", host, Some(7000))
    }

    /// An address of the same network that this host does not have.
    fn neighbour(&self) -> IpAddr {
        let [a, b, c, d] = self.ip.octets();
        Ipv4Addr::new(a, b, c, if d == 77 { 78 } else { 77 }).into()
    }
}

/// Two devices, if this host has or can have two.
fn two() -> Option<[Place; 2]> {
    let first = device()?;
    let Ok(interface) = std::env::var(INTERFACE) else {
        println!("skipped: {INTERFACE} names no interface for a second device");
        return None;
    };
    let second = link_on(&interface).unwrap_or_else(|| add_link(&interface));
    Some([Place::named(&first), Place::named(&second)])
}

fn link_on(interface: &str) -> Option<String> {
    let links = fs::read_dir("/sys/class/infiniband").ok()?.flatten();
    let on = |name: &String| {
        let parent = fs::read_to_string(format!("/sys/class/infiniband/{name}/parent"));
        parent.is_ok_and(|parent| parent.trim() == interface)
    };
    links.map(|link| link.file_name().to_string_lossy().into_owned()).find(on)
}

/// Other tests may make one, too, and have won if this fails.
fn add_link(interface: &str) -> String {
    let name = format!("rxe_{interface}");
    let add = ["link", "add", &name, "type", "rxe", "netdev", interface];
    Command::new("rdma").args(add).status().expect("iproute2 is installed");
    for _ in 0..TURNS_MAX {
        let found = VerbsFabric::default().devices().unwrap_or_default();
        // The kernel fills in its addresses in its own time.
        if let Some(link) = link_on(interface)
            && found.iter().any(|found| found.name == link && !found.detail.contains("no address"))
        {
            return link;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("there is no link on {interface} with an address");
}

fn opened_for(text: &str) -> VerbsDomain {
    let addr: Addr = text.parse().unwrap();
    VerbsFabric::default().open_for(&addr).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Refusals of fabrics and domains, which have no `Debug` of their own to unwrap by.
fn refused<T>(result: Result<T, fabric_core::Error>) -> fabric_core::Error {
    result.err().expect("a refusal")
}

#[test]
fn names_and_addresses_of_a_device_mean_it() {
    let Some(places) = two() else { return };
    for Place { device, ip } in &places {
        for text in [
            format!("verbs://{device}:0"),
            format!("verbs://{ip}:0"),
            format!("verbs://*:0?device={device}"),
            format!("verbs://10.255.255.1:7000?device={device}"),
        ] {
            assert_eq!(opened_for(&text).caps().device, *device, "{text}");
        }
    }
}

#[test]
fn an_address_elsewhere_means_the_device_that_its_route_leaves_through() {
    let Some(places) = two() else { return };
    for place in &places {
        let addr = place.at(&place.neighbour().to_string());
        let found = VerbsFabric::default().device_for(&addr).unwrap();
        assert_eq!(found.as_deref(), Some(place.device.as_str()), "{addr}");
    }
}

#[test]
fn a_device_that_was_set_wins() {
    let Some([first, second]) = two() else { return };
    let options = VerbsOptions { device: Some(second.device.clone()), ..Default::default() };
    let fabric = VerbsFabric::new(options);
    let domain = fabric.open_for(&first.at(&first.ip.to_string())).unwrap();
    assert_eq!(domain.caps().device, second.device);
    let named = format!("verbs://*:0?device={}", first.device).parse().unwrap();
    let error = refused(fabric.open_for(&named));
    assert_eq!(error.kind(), ErrorKind::Address, "{error}");
}

#[test]
fn an_address_without_rdma_is_refused_with_the_devices_there_are() {
    let Some(device) = device() else { return };
    let mut errors =
        vec![refused(VerbsFabric::default().open_for(&"verbs://127.0.0.1:7000".parse().unwrap()))];
    assert_eq!(errors[0].kind(), ErrorKind::Unreachable, "{}", errors[0]);
    for text in ["verbs://no_such_device:7000", "verbs://10.0.0.1:7000?device=no_such_device"] {
        errors.push(refused(VerbsFabric::default().open_for(&text.parse().unwrap())));
    }
    let options = VerbsOptions { device: Some("no_such_device".into()), ..Default::default() };
    errors.push(refused(VerbsFabric::new(options).open()));
    for error in errors {
        let text = error.to_string();
        assert!(text.contains(&device) && text.contains("port 1 active"), "{text}");
    }
}

#[test]
fn a_domain_refuses_what_belongs_to_another_device() {
    let Some([first, second]) = two() else { return };
    let mut domain = opened_for(&format!("verbs://{}:0", first.device));
    let named: Addr = format!("verbs://*:7000?device={}", second.device).parse().unwrap();
    let foreign = second.at(&second.ip.to_string());
    for addr in [&named, &foreign] {
        let error = refused(domain.listen(addr));
        assert_eq!(error.kind(), ErrorKind::Address, "{error}");
        assert!(error.to_string().contains(&first.device), "{error}");
    }
    assert_eq!(refused(domain.connect(&named)).kind(), ErrorKind::Address);
}

/// A route through the other device is taken only by those who did not name one.
#[test]
fn a_peer_at_another_device_is_unreachable_unless_the_device_was_named() {
    let Some([first, second]) = two() else { return };
    let fabric = VerbsFabric::new(VerbsOptions::default());
    let mut domain = fabric.open_for(&first.at(&first.device)).unwrap();
    domain.connect(&second.at(&second.ip.to_string())).unwrap();
    let why = end_of(&mut domain);
    assert_eq!(why.kind(), ErrorKind::Unreachable, "{why}");
    assert!(why.to_string().contains(&format!("?device={}", first.device)), "{why}");
}

/// Nobody is at that address; the way there is looked for on the named device alone.
#[test]
fn a_named_device_is_kept_to_though_the_route_leaves_through_another() {
    let Some([first, second]) = two() else { return };
    let neighbour = first.neighbour().to_string();
    let interface = interface_of(&first.device);
    // So that the host finds its way without an answer.
    let known = ["neigh", "replace", &neighbour, "lladdr", "02:00:00:00:00:77", "dev", &interface];
    assert!(Command::new("ip").args(known).status().expect("iproute2 is installed").success());
    let options = VerbsOptions { device: Some(second.device.clone()), ..Default::default() };
    let mut domain = VerbsFabric::new(options).open().unwrap();
    domain.connect(&first.at(&neighbour)).unwrap();
    let why = end_of(&mut domain).to_string();
    assert!(!why.contains("another device"), "{why}");
}

fn interface_of(device: &str) -> String {
    let parent = fs::read_to_string(format!("/sys/class/infiniband/{device}/parent"));
    parent.expect("a soft-RoCE link has an interface").trim().to_owned()
}

fn end_of(domain: &mut VerbsDomain) -> fabric_core::Error {
    let mut events = Vec::new();
    for _ in 0..TURNS_MAX {
        domain.poll(&mut events, 16);
        if let Some(Event::Closed { why, .. }) = events.pop() {
            return why;
        }
        domain.wait(Some(std::time::Duration::from_millis(1))).unwrap();
    }
    panic!("the connection neither stands nor ends");
}

#[test]
fn two_devices_are_used_by_one_process_at_once() {
    let Some(places) = two() else { return };
    let pool = Pool::new(64, 8).unwrap();
    let mut domains: Vec<VerbsDomain> =
        places.iter().map(|place| opened_for(&format!("verbs://{}:0", place.device))).collect();
    for (domain, place) in domains.iter_mut().zip(&places) {
        domain.register(&pool).unwrap();
        domain.post_recv(pool.take().unwrap()).unwrap();
        let listener = domain.listen(&Addr::new("verbs", &place.device, Some(0))).unwrap();
        domain.connect(&listener.addr).unwrap();
    }
    let mut heard = [false, false];
    for _ in 0..TURNS_MAX {
        for (domain, heard) in domains.iter_mut().zip(&mut heard) {
            *heard |= step(domain, &pool);
        }
        if heard == [true, true] {
            return;
        }
    }
    panic!("a message over each device: {heard:?}");
}

/// Sends to itself once connected, and says whether that arrived.
fn step(domain: &mut VerbsDomain, pool: &Pool) -> bool {
    let mut events = Vec::new();
    domain.wait(Some(std::time::Duration::from_millis(1))).unwrap();
    domain.poll(&mut events, 16);
    let mut heard = false;
    for event in events {
        match event {
            Event::Connected { ep, .. } => {
                let mut slot = pool.take().unwrap();
                assert!(slot.append(b"to myself"));
                domain.post_send(ep, slot.into()).unwrap();
            }
            Event::Received { slot, .. } => heard |= slot.filled() == b"to myself",
            Event::Closed { why, .. } => panic!("{why}"),
            _ => {}
        }
    }
    heard
}
