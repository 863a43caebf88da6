//! `fabric doctor` against real faults: each is made, seen and undone.
//!
//! They change the network, modules and files of the whole host, so they run only in the guest
//! (`cargo xtask test-softroce`), where `FABRIC_REQUIRE_RXE=1` is set, and one at a time.

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// There is one host for all tests.
static ALONE: Mutex<()> = Mutex::new(());

/// A host with something wrong; dropping it undoes that.
struct Fault {
    undo: String,
    _alone: MutexGuard<'static, ()>,
}

impl Fault {
    /// Makes it by one shell command and undoes it by another.
    fn new(make: &str, undo: &str) -> Option<Self> {
        if std::env::var("FABRIC_REQUIRE_RXE").as_deref() != Ok("1") {
            println!("skipped: only for the guest, see FABRIC_REQUIRE_RXE");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = Self { undo: undo.to_owned(), _alone: alone };
        // From here on it is undone, also when only half of it was made.
        shell(make);
        Some(fault)
    }

    /// Nothing is wrong, or only for the process that looks.
    fn none() -> Option<Self> {
        Self::new("true", "true")
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let undone = format!("{}\n{HEALTHY}", self.undo);
        let output = Command::new("sh").args(["-c", &undone]).output().unwrap();
        // A second panic would hide the first.
        assert!(output.status.success() || std::thread::panicking(), "{undone}: {output:?}");
    }
}

const GIDS: &str = "/sys/class/infiniband/rxe0/ports/1/gids";
const ADDRESS: &str = "ffff:0a09:0001";

/// Waits until the link has its address and its port is up.
const HEALTHY: &str = "for i in $(seq 300); do \
    grep -qs ffff:0a09:0001 /sys/class/infiniband/rxe0/ports/1/gids/* && \
    grep -qs ACTIVE /sys/class/infiniband/rxe0/ports/1/state && exit 0; sleep 0.1; done; exit 1";

fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A report, and how the command ended.
struct Told {
    report: Value,
    output: Output,
}

fn doctor(args: &[&str]) -> Told {
    doctor_under("", args)
}

/// What it says when it runs behind `prefix`, which is for a shell.
fn doctor_under(prefix: &str, args: &[&str]) -> Told {
    let program = env!("CARGO_BIN_EXE_fabric");
    let script = format!("{prefix} '{program}' doctor --json {}", args.join(" "));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    Told { report: report.unwrap_or_else(|error| panic!("{error}: {output:?}")), output }
}

impl Told {
    /// The finding with this number, which must be the first.
    fn first(&self, id: &str) -> &Value {
        let first = &self.report["findings"][0];
        assert_eq!(first["id"], id, "{:#}", self.report["findings"]);
        let failed = first["severity"] == "error";
        assert_eq!(self.output.status.code(), Some(i32::from(failed)), "{first:#}");
        first
    }

    fn has(&self, id: &str) -> bool {
        self.report["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == id)
    }

    /// What a scheme would use.
    fn used(&self, scheme: &str) -> Option<&str> {
        let choices = self.report["choices"].as_array().unwrap();
        choices.iter().find(|choice| choice["scheme"] == scheme).unwrap()["uses"].as_str()
    }
}

fn says(finding: &Value, field: &str, parts: &[&str]) {
    let text = finding[field].as_str().unwrap();
    for part in parts {
        assert!(text.contains(part), "{field} {text:?} lacks {part:?}");
    }
}

#[test]
fn a_healthy_link_is_found_and_used() {
    let Some(_fault) = Fault::none() else { return };
    let told = doctor(&[]);
    assert_eq!(told.report["verdict"], "good", "{:#}", told.report["findings"]);
    assert_eq!(
        told.report["findings"].as_array().unwrap().len(),
        0,
        "{:#}",
        told.report["findings"]
    );
    assert_eq!(told.used("verbs"), Some("rxe0 port 1, 10.9.0.1 (index 1, RoCE v2)"));
    assert_eq!(told.used("softroce"), Some("rxe0 on roce0"));
    assert_eq!(told.report["host"]["kernel"]["copies_on_fork"], true);
}

#[test]
fn d01_a_user_driver_that_was_removed() {
    let file = "$(ls /usr/lib/*/libibverbs/librxe-rdmav*.so)";
    let make = format!("file={file}; mv $file $file.away");
    let undo = "file=$(ls /usr/lib/*/libibverbs/librxe-rdmav*.so.away); mv $file ${file%.away}";
    let Some(_fault) = Fault::new(&make, undo) else { return };
    let told = doctor(&[]);
    says(told.first("D01"), "seen", &["librxe-rdmav"]);
    assert!(told.has("D32") && told.used("verbs").is_none());
}

#[test]
fn d01_a_user_driver_of_another_rdma_core() {
    let make = "cd /usr/lib/*/libibverbs; mv librxe-rdmav*.so /run/; cp /run/librxe-rdmav*.so librxe-rdmav99.so";
    let undo = "cd /usr/lib/*/libibverbs; rm librxe-rdmav99.so; mv /run/librxe-rdmav*.so .";
    let Some(_fault) = Fault::new(make, undo) else { return };
    says(doctor(&[]).first("D01"), "seen", &["librxe-rdmav99.so"]);
}

#[test]
fn d02_a_library_without_its_directory_of_drivers() {
    let make = "mv /etc/libibverbs.d /etc/libibverbs.away";
    let Some(_fault) = Fault::new(make, "mv /etc/libibverbs.away /etc/libibverbs.d") else {
        return;
    };
    says(doctor(&[]).first("D02"), "seen", &["/etc/libibverbs.d, which does not exist"]);
}

#[test]
fn d07_a_connection_manager_that_is_not_loaded() {
    let Some(_fault) = Fault::new("modprobe -r rdma_ucm", "modprobe rdma_ucm") else { return };
    let told = doctor(&[]);
    says(told.first("D07"), "command", &["modprobe rdma_ucm"]);
    says(told.first("D07"), "severity", &["warning"]);
}

#[test]
fn d07_a_connection_manager_whose_file_is_missing() {
    let Some(_fault) = Fault::new(CM_AWAY, CM_BACK) else { return };
    let told = doctor(&[]);
    says(told.first("D07"), "severity", &["error"]);
    assert_eq!(told.used("verbs"), None);
}

const CM_AWAY: &str = "mv /dev/infiniband/rdma_cm /dev/rdma_cm.away";
const CM_BACK: &str = "mv /dev/rdma_cm.away /dev/infiniband/rdma_cm";

#[test]
fn d08_no_device_at_all() {
    let make = "rdma link delete rxe0";
    let undo = "rdma link add rxe0 type rxe netdev roce0";
    let Some(_fault) = Fault::new(make, undo) else { return };
    let told = doctor(&[]);
    says(told.first("D08"), "command", &["rdma link add rxe0 type rxe netdev"]);
    assert_eq!(told.report["verdict"], "good");
    assert!(told.used("softroce").unwrap().starts_with("a new link on"));
}

#[test]
fn d11_a_device_file_that_is_missing() {
    let (here, away) = ("/dev/infiniband/uverbs0", "/dev/uverbs0.away");
    let (make, undo) = (format!("mv {here} {away}"), format!("mv {away} {here}"));
    let Some(_fault) = Fault::new(&make, &undo) else { return };
    says(doctor(&[]).first("D11"), "seen", &[here, "1 devices", "0 files"]);
}

/// Root without the right to lock more than the limit.
const BOUND: &str = "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock";

#[test]
fn d12_a_limit_of_locked_memory_that_is_small() {
    let Some(_fault) = Fault::none() else { return };
    let told = doctor_under(&format!("ulimit -l 8192; {BOUND}"), &[]);
    says(told.first("D12"), "seen", &["limit is 8 MiB", "RLIMIT_MEMLOCK 8388608"]);
    assert_eq!(told.used("verbs"), None);
    // Whoever may lock all is not bound.
    assert!(!doctor_under("ulimit -l 8192;", &[]).has("D12"));
}

#[test]
fn d13_a_limit_that_was_raised_for_others() {
    let make = "cp /etc/security/limits.conf /run/; echo '* - memlock unlimited' >>/etc/security/limits.conf";
    let Some(_fault) = Fault::new(make, "mv /run/limits.conf /etc/security/") else { return };
    let told = doctor_under(&format!("ulimit -l 32768; {BOUND}"), &[]);
    says(told.first("D12"), "severity", &["warning"]);
    assert!(told.has("D13"), "{:#}", told.report["findings"]);
}

#[test]
fn d15_a_device_file_of_somebody_else() {
    let file = "/dev/infiniband/uverbs0";
    let make = format!("chown 4242:4242 {file}; chmod 0600 {file}");
    let undo = format!("chown 0:0 {file}; chmod 0666 {file}");
    let Some(_fault) = Fault::new(&make, &undo) else { return };
    let under = "setpriv --bounding-set -dac_override --inh-caps -dac_override";
    says(doctor_under(under, &[]).first("D15"), "seen", &["0600 4242:4242", "user 0"]);
}

#[test]
fn d16_few_descriptors() {
    let Some(_fault) = Fault::none() else { return };
    says(doctor_under("ulimit -n 12;", &[]).first("D16"), "seen", &["of 12 descriptors"]);
}

#[test]
fn d17_a_way_through_the_wrong_interface() {
    let Some(_fault) = Fault::none() else { return };
    let told = doctor(&["--to", "10.9.1.1"]);
    says(told.first("D17"), "seen", &["roce1, which has no RDMA device", "rxe0 is on roce0"]);
    assert!(!doctor(&["--to", "10.9.0.1"]).has("D17"));
}

#[test]
fn d19_a_namespace_without_the_devices_interface() {
    let Some(_fault) = Fault::new("ip netns add away", "ip netns delete away") else { return };
    let told = doctor_under("ip netns exec away", &[]);
    says(told.first("D19"), "seen", &["roce0, which is not in this network namespace"]);
}

#[test]
fn d18_namespaces_that_share_devices() {
    let Some(_fault) = Fault::new("ip netns add away", "ip netns delete away") else { return };
    let told = doctor_under("ip netns exec away", &[]);
    assert!(told.has("D18"), "{:#}", told.report["findings"]);
    assert_eq!(told.report["host"]["kernel"]["exclusive_namespaces"], false);
}

#[test]
fn d20_a_port_that_is_down() {
    let make = "ip link set roce0 down; until grep -q DOWN /sys/class/infiniband/rxe0/ports/1/state; \
                do sleep 0.1; done";
    let Some(_fault) = Fault::new(make, "ip link set roce0 up") else { return };
    let told = doctor(&[]);
    let finding = told.first("D20");
    says(finding, "seen", &["1: DOWN"]);
    assert_eq!(finding["command"], "ip link set roce0 up");
    assert!(told.has("D32"));
}

#[test]
fn d23_a_link_whose_address_is_gone() {
    let make = format!(
        "ip addr del 10.9.0.1/24 dev roce0; while grep -qs {ADDRESS} {GIDS}/*; do sleep 0.1; done"
    );
    let Some(_fault) = Fault::new(&make, "ip addr add 10.9.0.1/24 dev roce0") else { return };
    says(doctor(&[]).first("D23"), "seen", &["only fe80::", "index 0"]);
}

#[test]
fn an_address_of_ipv6_is_enough() {
    let make = format!(
        "ip addr add 2001:db8:9::1/64 dev roce0 nodad; ip addr del 10.9.0.1/24 dev roce0; \
         until grep -qs 2001:0db8:0009 {GIDS}/*; do sleep 0.1; done; \
         while grep -qs {ADDRESS} {GIDS}/*; do sleep 0.1; done"
    );
    let undo = "ip addr del 2001:db8:9::1/64 dev roce0; ip addr add 10.9.0.1/24 dev roce0";
    let Some(_fault) = Fault::new(&make, undo) else { return };
    let told = doctor(&[]);
    assert_eq!(told.report["verdict"], "good", "{:#}", told.report["findings"]);
    assert!(told.used("verbs").unwrap().contains("2001:db8:9::1"), "{:?}", told.used("verbs"));
}

#[test]
fn d26_an_interface_for_small_packets() {
    let undo = "ip link set roce0 mtu 1500";
    let Some(_fault) = Fault::new("ip link set roce0 mtu 1000", undo) else { return };
    says(doctor(&[]).first("D26"), "seen", &["roce0 is 1000", "carry 512 bytes"]);
}

#[test]
fn d29_an_address_that_moved() {
    let file = "/run/before.json";
    let program = env!("CARGO_BIN_EXE_fabric");
    // Another address takes the place that is free for a moment.
    let make = format!(
        "'{program}' doctor --json >{file}; ip addr del 10.9.0.1/24 dev roce0; \
         ip addr add 10.9.0.2/24 dev roce0; \
         until grep -qs ffff:0a09:0002 {GIDS}/1; do sleep 0.1; done; \
         ip addr add 10.9.0.1/24 dev roce0; until grep -qs {ADDRESS} {GIDS}/*; do sleep 0.1; done"
    );
    let undo = format!(
        "ip addr flush dev roce0 scope global; while grep -qs ffff:0a09 {GIDS}/*; do sleep 0.1; done; \
         ip addr add 10.9.0.1/24 dev roce0; rm {file}"
    );
    let Some(_fault) = Fault::new(&make, &undo) else { return };
    says(doctor(&["--since", file]).first("D29"), "seen", &["10.9.0.1 was at index 1"]);
    assert!(!doctor(&[]).has("D29"));
}

#[test]
fn d30_a_way_through_the_second_device() {
    let make = "rdma link add rxe1 type rxe netdev roce1; \
                until grep -qs ffff:0a09:0101 /sys/class/infiniband/rxe1/ports/1/gids/*; \
                do sleep 0.1; done";
    let Some(_fault) = Fault::new(make, "rdma link delete rxe1") else { return };
    let told = doctor(&["--to", "10.9.1.1"]);
    says(told.first("D30"), "seen", &["roce1, which is rxe1's"]);
    assert!(told.used("verbs").unwrap().starts_with("rxe1 "));
}

#[test]
fn d44_a_provider_of_libfabric_that_needs_a_device() {
    let make = "rdma link delete rxe0";
    let undo = "rdma link add rxe0 type rxe netdev roce0";
    let Some(_fault) = Fault::new(make, undo) else { return };
    if shell("ls /usr/lib/*/libfabric.so.1 || true").is_empty() {
        println!("skipped: no libfabric");
        return;
    }
    says(doctor_under("FI_PROVIDER=verbs", &[]).first("D44"), "seen", &["-61 (FI_ENODATA)"]);
}

#[test]
fn d47_a_short_queue_of_connections() {
    let (file, usual) = ("/proc/sys/net/core/somaxconn", "4096");
    let (make, undo) = (format!("echo 128 >{file}"), format!("echo {usual} >{file}"));
    let Some(_fault) = Fault::new(&make, &undo) else { return };
    says(doctor(&[]).first("D47"), "seen", &["net.core.somaxconn is 128"]);
}

/// The whole way, and the errors of the command's own verbs.
#[cfg(feature = "verbs")]
mod verbs {
    use std::process::{Child, Stdio};

    use super::*;

    /// A peer that sends each message back.
    struct Echo(Child);

    impl Echo {
        fn at(addrs: [&str; 2]) -> Self {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fabric"));
            command.args(["rep", "--bind", addrs[0], "--bind", addrs[1], "--report", "none"]);
            Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
        }
    }

    impl Drop for Echo {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The outcome of each step.
    fn steps(told: &Told) -> Vec<&str> {
        let steps = told.report["steps"].as_array().unwrap();
        steps.iter().map(|step| step["outcome"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_whole_way_to_a_peer_that_sends_back() {
        let Some(_fault) = Fault::none() else { return };
        let _echo = Echo::at(["tcp://10.9.0.1:7000", "verbs://10.9.0.1:7000"]);
        // It takes its time to listen.
        let mut told = doctor(&["--to", "10.9.0.1:7000"]);
        for _ in 0..30 {
            if steps(&told) == ["passed"; 7] {
                return;
            }
            told = doctor(&["--to", "10.9.0.1:7000"]);
        }
        panic!("{:#}", told.report["steps"]);
    }

    #[test]
    fn a_host_without_a_listener_is_reached_over_rdma() {
        let Some(_fault) = Fault::none() else { return };
        let told = doctor(&["--to", "10.9.0.1"]);
        assert_eq!(steps(&told)[..4], ["passed"; 4], "{:#}", told.report["steps"]);
        assert_eq!(steps(&told)[4..], ["not-tried"; 3]);
    }

    /// The line by which a command that was to listen there ended.
    fn refusal(prefix: &str, command: &str) -> String {
        let program = env!("CARGO_BIN_EXE_fabric");
        let script = format!("{prefix} '{program}' {command} --timeout 20s --report none");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(line.contains('`'), "{line}");
        line
    }

    const LISTEN: &str = "pull --bind verbs://10.9.0.1:7001";

    #[test]
    fn an_error_of_a_missing_connection_manager_has_its_finding() {
        let Some(_fault) = Fault::new(CM_AWAY, CM_BACK) else { return };
        let line = refusal("", LISTEN);
        assert!(line.starts_with("fabric: D07: "), "{line}");
    }

    #[test]
    fn an_error_of_little_locked_memory_has_its_finding() {
        let Some(_fault) = Fault::none() else { return };
        let line = refusal(&format!("ulimit -l 8192; {BOUND}"), LISTEN);
        assert!(line.starts_with("fabric: D12: ") && line.contains("8192 KiB"), "{line}");
    }

    #[test]
    fn an_error_without_a_device_has_its_finding() {
        let undo = "rdma link add rxe0 type rxe netdev roce0";
        let Some(_fault) = Fault::new("rdma link delete rxe0", undo) else { return };
        let line = refusal("", "pull --bind verbs://*:7001");
        assert!(line.starts_with("fabric: D08: "), "{line}");
    }

    #[test]
    fn an_error_of_a_port_that_is_down_has_its_finding() {
        let state = "/sys/class/infiniband/rxe0/ports/1/state";
        let make =
            format!("ip link set roce0 down; until grep -q DOWN {state}; do sleep 0.1; done");
        let Some(_fault) = Fault::new(&make, "ip link set roce0 up") else { return };
        let line = refusal("", "pull --bind verbs://*:7001");
        assert!(line.starts_with("fabric: D20: "), "{line}");
    }

    #[test]
    fn an_error_of_the_wrong_interface_has_its_finding() {
        let Some(_fault) = Fault::none() else { return };
        let line = refusal("", "pull --bind verbs://10.9.1.1:7001");
        assert!(line.starts_with("fabric: D17: "), "{line}");
    }
}
