//! Links are listed, made and removed, and what is in the way is said in one line.
//!
//! Making links needs root and a kernel with soft-RoCE: those tests need an interface named by
//! `FABRIC_SOFTROCE_INTERFACE`, without which they say so and end; with `FABRIC_REQUIRE_RXE=1` that
//! is a failure.

mod common;

use common::{Done, fabric, run};

#[test]
fn an_interface_that_can_have_no_link_is_named() {
    for (interface, says) in [("lo", "choose an Ethernet interface"), ("nosuch0", "`ip link`")] {
        let done = run(&format!("softroce add {interface}"));
        assert_eq!(done.code, Some(1));
        let line = done.error_line();
        assert!(line.contains(&format!("`{interface}`")) && line.contains(says), "{line}");
    }
}

#[test]
fn a_name_that_no_device_can_have_is_refused() {
    let done = run("softroce add lo --name a/b");
    assert_eq!(done.code, Some(1));
    assert!(done.error_line().contains("`a/b` is no name for a device"), "{}", done.err);
}

#[test]
fn links_are_listed_or_the_kernel_has_no_rdma() {
    let done = run("softroce list");
    if std::path::Path::new("/sys/class/infiniband").exists() {
        return drop(done.ok());
    }
    assert_eq!((done.code, done.text()), (Some(1), ""));
    assert!(done.error_line().contains("load the module ib_core"), "{}", done.err);
}

#[test]
fn what_is_missing_is_a_usage_error() {
    for args in ["softroce", "softroce add", "softroce del", "softroce add lo --name"] {
        assert_eq!(run(args).code, Some(2), "{args}");
    }
}

/// The interface for a link, where this host has one for these tests.
fn interface() -> Option<String> {
    if let Ok(interface) = std::env::var("FABRIC_SOFTROCE_INTERFACE") {
        return Some(interface);
    }
    let required = std::env::var("FABRIC_REQUIRE_RXE").is_ok_and(|value| value == "1");
    assert!(!required, "FABRIC_REQUIRE_RXE=1, but FABRIC_SOFTROCE_INTERFACE names no interface");
    println!("skipped: FABRIC_SOFTROCE_INTERFACE names no interface to make a link on");
    None
}

fn softroce(args: &[&str]) -> Done {
    fabric(["softroce"].into_iter().chain(args.iter().copied())).end()
}

/// The line about a link in a list.
fn listed(name: &str, args: &[&str]) -> Option<String> {
    let list = softroce(args).ok();
    list.text().lines().find(|line| line.contains(name)).map(str::to_owned)
}

#[test]
fn a_link_is_made_listed_and_removed() {
    let Some(interface) = interface() else { return };
    let made = softroce(&["add", &interface]).ok();
    let name = format!("rxe_{interface}");
    assert_eq!(made.text(), format!("{name} on {interface}, active\n"));
    assert_eq!(listed(&name, &["list"]), Some(made.text().trim_end().to_owned()));
    let json = format!(r#"{{"name":"{name}","interface":"{interface}","active":true}}"#);
    assert_eq!(listed(&name, &["list", "--json"]), Some(json));
    softroce(&["del", &name]).ok();
    assert_eq!(listed(&name, &["list"]), None);
}

#[test]
fn a_link_is_refused_twice_and_removed_once() {
    let Some(interface) = interface() else { return };
    softroce(&["add", &interface, "--name", "rxe_mine"]).ok();
    let again = softroce(&["add", &interface]);
    assert_eq!(again.code, Some(1));
    assert!(again.error_line().contains("has a soft-RoCE link already"), "{}", again.err);
    softroce(&["del", "rxe_mine"]).ok();
    let again = softroce(&["del", "rxe_mine"]);
    assert_eq!(again.code, Some(1));
    assert!(again.error_line().contains("`fabric softroce list`"), "{}", again.err);
}

#[cfg(feature = "softroce")]
#[test]
fn what_is_said_has_the_scheme_that_was_given() {
    let Some(interface) = interface() else { return };
    let mut pull = fabric(["pull", &format!("softroce://{interface}:0"), "-n", "2"]);
    let addr = pull.addr();
    assert!(addr.starts_with("softroce://"), "{addr}");
    common::fabric_with(["push", &addr], b"over\nsoft-RoCE\n").end().ok();
    assert_eq!(pull.end().ok().text(), "over\nsoft-RoCE\n");
    // Now nobody is there any more.
    let mut push = fabric(["push", &addr, "--repeat", "1"]);
    push.wait("a note", |push| push.err.text().contains("cannot reach"));
    let text = push.err.text();
    assert!(text.contains(&addr) && !text.contains("verbs://"), "{text}");
    push.kill();
    // The link was made for these addresses and stays.
    softroce(&["del", &format!("rxe_{interface}")]).ok();
}
