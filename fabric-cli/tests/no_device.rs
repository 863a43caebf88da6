//! On a host without any RDMA device, a command that was built for RDMA serves `tcp://` as ever, and
//! says in one line why `verbs://` does not work.
//!
//! Where there is a device, each test says so and ends.

mod common;

use std::fs;

use common::{fabric, fabric_with, run};

const COMMANDS: [&str; 6] = ["pub", "sub", "push", "pull", "req", "rep"];

fn has_device() -> bool {
    let devices = fs::read_dir("/sys/class/infiniband").into_iter().flatten().count();
    if devices > 0 {
        println!("skipped: this host has RDMA devices");
    }
    devices > 0
}

#[test]
fn verbs_is_one_clear_error_for_every_command() {
    if has_device() {
        return;
    }
    for command in COMMANDS {
        for host in ["10.9.0.1", "localhost", "mlx5_0", "*"] {
            let done = run(&format!("{command} verbs://{host}:7000 -t 30s"));
            assert_eq!(done.code, Some(1), "{command} {host}: {}", done.err);
            let line = done.error_line();
            assert!(line.contains("no RDMA device") && line.contains("use tcp://"), "{line}");
        }
    }
}

#[test]
fn the_demo_over_verbs_ends_with_that_error() {
    if has_device() {
        return;
    }
    let done = run("demo --addr verbs://10.9.0.1");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.error_line().contains("no RDMA device"), "{}", done.err);
}

#[cfg(feature = "softroce")]
#[test]
fn softroce_says_what_the_kernel_lacks() {
    if has_device() {
        return;
    }
    let done = run("push softroce://no-such-interface:7000 -t 30s");
    assert_eq!(done.code, Some(1), "{}", done.err);
    let line = done.error_line();
    assert!(line.contains("no RDMA") || line.contains("neither a network interface"), "{line}");
}

#[test]
fn tcp_works_as_ever() {
    if has_device() {
        return;
    }
    let mut pull = fabric(["pull", "tcp://127.0.0.1:0", "-n", "2"]);
    let addr = pull.addr();
    fabric_with(["push", &addr], b"no\nhardware\n").end().ok();
    assert_eq!(pull.end().ok().text(), "no\nhardware\n");
}
