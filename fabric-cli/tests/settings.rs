//! Settings in addresses.

mod common;

use common::{fabric, run};

#[test]
fn settings_stand_in_the_addresses_of_all_commands() {
    let ends = [
        "pub tcp://127.0.0.1:0?histroy=1 --repeat 1",
        "sub tcp://127.0.0.1:1?conflat=true",
        "push tcp://127.0.0.1:1?acknowledg=true --repeat 1",
        "pull tcp://127.0.0.1:0?recv_hmw=1",
        "req tcp://127.0.0.1:1?relxed=true --repeat 1",
        "rep --bind tcp://127.0.0.1:0?idenity=a",
        "perf serve tcp://127.0.0.1:0?hvm=1",
        "perf lat --addr tcp://127.0.0.1:0?hvm=1",
    ];
    for command in ends {
        let done = run(command);
        assert_eq!(done.code, Some(1), "{command}: {}", done.err);
        assert!(done.error_line().contains("did you mean `"), "{command}: {}", done.err);
    }
    let mut pull = fabric(["pull", "tcp://127.0.0.1:0?recv_hwm=1&linger=1s", "-n", "3"]);
    let addr = pull.addr();
    assert!(!addr.contains('?'), "{addr}");
    run(&format!("push {addr}?send_hwm=1&acknowledge=true --repeat 3")).ok();
    pull.end().ok();
}

#[test]
fn what_is_measured_has_the_settings_of_the_address() {
    run("perf lat --addr tcp://127.0.0.1:0?hwm=7&linger=1s -n 10 -s 64").ok();
    // Only the limit of the measured sockets, on both sides, can be in the way.
    let done = run("perf lat --addr tcp://127.0.0.1:0?message_bytes_max=4KiB -n 10 -s 8KiB");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.error_line().contains("the limit is 4096"), "{}", done.err);
}
