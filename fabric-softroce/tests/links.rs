//! Links for real, on the interface that `FABRIC_SOFTROCE_INTERFACE` names.
//!
//! Making links needs root and a kernel with soft-RoCE, so without that variable these tests say
//! so and do nothing; with `FABRIC_REQUIRE_RXE=1` that is a failure.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fabric_core::{Addr, Error, ErrorKind};
use fabric_softroce::{Link, TemporaryLink, add, link_for, link_on, links, remove};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// There is one interface for all tests.
static ALONE: Mutex<()> = Mutex::new(());

struct Ground {
    interface: String,
    _alone: MutexGuard<'static, ()>,
}

fn ground() -> Option<Ground> {
    if let Ok(interface) = std::env::var("FABRIC_SOFTROCE_INTERFACE") {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        return Some(Ground { interface, _alone: alone });
    }
    let required = std::env::var("FABRIC_REQUIRE_RXE").is_ok_and(|value| value == "1");
    assert!(!required, "FABRIC_REQUIRE_RXE=1, but FABRIC_SOFTROCE_INTERFACE names no interface");
    println!("skipped: FABRIC_SOFTROCE_INTERFACE names no interface to make links on");
    None
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn is_there(name: &str) -> bool {
    links().unwrap().iter().any(|link| link.name == name)
}

#[test]
fn a_link_is_found_by_its_interface_and_goes_when_removed() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    assert_eq!(link_on(interface).unwrap(), None);
    let made = add("rxe_test", interface).unwrap();
    assert_eq!((made.name.as_str(), &made.interface), ("rxe_test", interface));
    let name = |link: &Link| link.name.clone();
    assert_eq!(link_on(interface).unwrap().as_ref().map(name), Some("rxe_test".into()));
    remove("rxe_test").unwrap();
    assert_eq!(link_on(interface).unwrap(), None);
}

#[test]
fn a_temporary_link_goes_with_its_owner_unless_kept() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let link = TemporaryLink::on(interface).unwrap();
    let name = link.name.clone();
    assert_eq!(name, format!("rxe_{interface}"));
    assert!(is_there(&name));
    drop(link);
    assert!(!is_there(&name));

    let kept = TemporaryLink::named("rxe_kept", interface).unwrap().keep();
    assert!(is_there(&kept.name));
    remove(&kept.name).unwrap();
}

#[test]
fn a_temporary_link_does_not_remove_one_that_took_its_name() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let first = TemporaryLink::named("rxe_test", interface).unwrap();
    remove("rxe_test").unwrap();
    let second = TemporaryLink::named("rxe_test", interface).unwrap();
    drop(first);
    assert!(is_there("rxe_test"));
    drop(second);
}

#[test]
fn an_interface_takes_one_link() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let _link = TemporaryLink::on(interface).unwrap();
    let error = add("rxe_second", interface).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host);
    assert!(error.message().contains("already"), "{error}");
}

#[test]
fn a_name_is_given_once() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let Some(other) = links().unwrap().into_iter().next() else {
        println!("skipped: there is no other link whose name could be taken");
        return;
    };
    let error = add(&other.name, interface).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host, "{error}");
    assert!(error.message().contains("already"), "{error}");
}

fn softroce(host: &str) -> Addr {
    Addr::new("softroce", host, Some(7000))
}

/// An IPv4 address of an interface, as the kernel's tools show it.
fn address_of(interface: &str) -> String {
    let all = if_addrs::get_if_addrs().unwrap();
    let ours = all.iter().find(|one| one.name == interface && one.ip().is_ipv4());
    ours.expect("the interface for these tests needs an IPv4 address").ip().to_string()
}

#[test]
fn an_address_gets_the_link_of_its_interface_made_once() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let made = link_for(&softroce(interface)).unwrap();
    assert_eq!(made.name, format!("rxe_{interface}"));
    assert_eq!(link_for(&softroce(interface)).unwrap().name, made.name);
    assert_eq!(link_for(&softroce(&address_of(interface))).unwrap().name, made.name);
    assert_eq!(link_for(&softroce(&made.name)).unwrap(), made);
    assert!(is_there(&link_for(&softroce("*")).unwrap().name));
    remove(&made.name).unwrap();
}

#[test]
fn all_who_need_a_link_at_once_get_the_same() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let addr = softroce(interface);
    let names: Vec<String> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(|| link_for(&addr))).collect();
        asking.into_iter().map(|one| one.join().unwrap().unwrap().name).collect()
    });
    remove(&names[0]).unwrap();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn an_address_that_leads_to_no_link_says_why() {
    let Some(_ground) = ground() else { return };
    assert_eq!(refusal(link_for(&softroce("no such name"))), ErrorKind::Address);
    assert_eq!(refusal(link_for(&softroce("lo"))), ErrorKind::Unsupported);
    assert_eq!(refusal(link_for(&softroce("127.0.0.1"))), ErrorKind::Unsupported);
    assert_eq!(refusal(link_for(&softroce("203.0.113.1"))), ErrorKind::Unreachable);
}

#[test]
fn what_can_have_no_link_is_told_apart() {
    let Some(_ground) = ground() else { return };
    assert_eq!(refusal(add("rxe_test", "nosuch0")), ErrorKind::Address);
    assert_eq!(refusal(add("rxe_test", "lo")), ErrorKind::Unsupported);
    assert_eq!(refusal(link_on("nosuch0")), ErrorKind::Address);
    assert_eq!(refusal(remove("rxe_nosuch")), ErrorKind::Misuse);
    assert_eq!(refusal(add("rxe%d", "lo")), ErrorKind::Misuse);
}

#[test]
fn without_the_capability_links_are_listed_but_not_made() {
    let Some(ground) = ground() else { return };
    let interface = &ground.interface;
    let _link = TemporaryLink::named("rxe_test", interface).unwrap();
    // Of this thread alone.
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::NET_ADMIN);
    set_capabilities(None, sets).unwrap();
    assert!(is_there("rxe_test"));
    for refused in [remove("rxe_test"), add("rxe_other", interface).map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Host);
        assert!(error.message().contains("CAP_NET_ADMIN"), "{error}");
    }
    sets.effective.insert(CapabilitySet::NET_ADMIN);
    set_capabilities(None, sets).unwrap();
}
