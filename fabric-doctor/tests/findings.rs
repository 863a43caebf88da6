//! A test for each finding that files can show: a host that has it and its twin that does not.
//!
//! The name of a test begins with the finding's number; `docs/doctor.md` lists them.

mod trees;

use std::net::SocketAddr;
use std::time::Duration;

use fabric_doctor::{Finding, Options, Probe, Reached, Report, Severity, Verdict};
use trees::{Tree, infiniband, plain, roce, soft, two_cards};

fn find<'a>(report: &'a Report, id: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.id.to_string() == id)
}

/// The finding that `broken` has and `healthy` has not.
fn only_in(broken: &Report, healthy: &Report, id: &str) -> Finding {
    assert_eq!(find(healthy, id), None, "the healthy twin");
    let found = find(broken, id);
    let finding = found.unwrap_or_else(|| panic!("no {id} in {:#?}", broken.findings)).clone();
    for text in [&finding.seen, &finding.cause, &finding.command, &finding.works] {
        assert!(!text.is_empty() && !text.contains('\n'), "{finding:?}");
    }
    finding
}

/// The same, said first.
fn pair(broken: &Tree, healthy: &Tree, id: &str) -> Finding {
    first(&broken.report(), &healthy.report(), id)
}

fn first(broken: &Report, healthy: &Report, id: &str) -> Finding {
    let finding = only_in(broken, healthy, id);
    assert_eq!(broken.findings[0].id.to_string(), id, "{:#?}", broken.findings);
    finding
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

const DEVICE: &str = "/sys/class/infiniband/mlx5_0";
const PORT: &str = "/sys/class/infiniband/mlx5_0/ports/1";
const VERBS: &str = "/sys/class/infiniband_verbs";
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
const NO_ADDRESS: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

fn port(name: &str) -> String {
    format!("{PORT}/{name}")
}

#[test]
fn healthy_hosts_have_no_errors_and_no_warnings() {
    for tree in [roce(), infiniband(), two_cards(), soft(), plain()] {
        let report = tree.report();
        assert_eq!(report.verdict, Verdict::Good, "{:#?}", report.findings);
    }
    assert_eq!(roce().report().findings, []);
    assert_eq!(infiniband().report().findings, []);
}

#[test]
fn d01_a_missing_user_driver_is_named_with_its_package() {
    let broken = roce().without(&format!("{LIBRARIES}/libibverbs/libmlx5-rdmav34.so"));
    let finding = pair(&broken, &roce(), "D01");
    says(&finding.seen, &["mlx5_core", "libmlx5-rdmav34.so"]);
    says(&finding.command, &["apt-get", "ibverbs-providers"]);
}

#[test]
fn d01_a_user_driver_of_another_version_is_told_from_a_missing_one() {
    let dir = format!("{LIBRARIES}/libibverbs");
    let broken = roce()
        .without(&format!("{dir}/libmlx5-rdmav34.so"))
        .file(&format!("{dir}/libmlx5-rdmav25.so"), "");
    says(&pair(&broken, &roce(), "D01").seen, &["libmlx5-rdmav34.so", "libmlx5-rdmav25.so"]);
}

#[test]
fn d01_a_user_driver_that_is_not_configured_is_found() {
    let finding = pair(&roce().without("/etc/libibverbs.d/mlx5.driver"), &roce(), "D01");
    says(&finding.seen, &["/etc/libibverbs.d/mlx5.driver"]);
}

#[test]
fn d01_a_host_without_the_library_is_told_what_to_install() {
    let broken = roce().without(&format!("{LIBRARIES}/libibverbs.so.1"));
    says(&pair(&broken, &roce(), "D01").command, &["libibverbs1", "ibverbs-providers"]);
}

#[test]
fn d02_a_library_that_looks_for_drivers_where_there_are_none_is_named() {
    let finding = pair(&roce().without("/etc/libibverbs.d"), &roce(), "D02");
    says(&finding.seen, &["libibverbs.so.1", "/etc/libibverbs.d"]);
}

#[test]
fn d02_a_library_with_a_prefix_of_its_own_shadows_the_hosts() {
    let own = "IBVERBS_1.14 IBVERBS_PRIVATE_34 /opt/conda/etc/libibverbs.d";
    let broken = roce()
        .file("/opt/conda/lib/libibverbs.so.1", own)
        .file("/proc/self/environ", "LD_LIBRARY_PATH=/opt/conda/lib\0A=b");
    let finding = pair(&broken, &roce(), "D02");
    says(&finding.seen, &["/opt/conda/lib/libibverbs.so.1", "/opt/conda/etc/libibverbs.d"]);
    says(&finding.command, &["LD_LIBRARY_PATH"]);
}

#[test]
fn d03_a_kernel_too_new_for_the_user_driver_is_told_with_both_versions() {
    let broken = roce().file(&format!("{VERBS}/uverbs0/abi_version"), "2");
    let finding = pair(&broken, &roce(), "D03");
    says(&finding.seen, &["is 2", "1 to 1"]);
    says(&finding.command, &["rdma-core"]);
}

#[test]
fn d03_a_kernel_too_old_for_the_user_driver_is_to_be_upgraded() {
    let broken = soft().file(&format!("{VERBS}/uverbs0/abi_version"), "0");
    says(&pair(&broken, &soft(), "D03").command, &["kernel"]);
}

#[test]
fn d04_a_kernel_that_offers_no_verbs_lacks_a_module() {
    let finding = pair(&roce().without(VERBS), &roce(), "D04");
    says(&finding.seen, &["abi_version does not exist"]);
    assert_eq!(finding.command, "modprobe ib_uverbs");
}

#[test]
fn d04_a_kernel_with_verbs_of_another_version_is_told_from_one_without() {
    let broken = roce().file(&format!("{VERBS}/abi_version"), "7");
    says(&pair(&broken, &roce(), "D04").seen, &["is 7, not 3 to 6"]);
}

#[test]
fn d05_modules_of_two_sources_are_mixed() {
    let broken = roce().file("/sys/module/ib_core/version", "5.9-0.5.6");
    says(&pair(&broken, &roce(), "D05").seen, &["ib_core of version 5.9-0.5.6", "mlx5_ib"]);
}

#[test]
fn d05_a_vendors_user_space_needs_its_kernel_modules() {
    let vendor = |kernel: &str| {
        let modules = ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib"];
        let script = "#!/bin/sh\necho \"MLNX_OFED_LINUX-5.9-0.5.6.0:\"";
        let tree = roce().file("/usr/bin/ofed_info", script);
        modules.iter().fold(tree, |t, name| t.file(&format!("/sys/module/{name}/version"), kernel))
    };
    says(&pair(&vendor("4.9-2.2.4"), &vendor("5.9-0.5.6"), "D05").seen, &["5.9", "4.9"]);
}

#[test]
fn d05_a_library_from_before_rdma_core_is_named() {
    let broken = roce()
        .without(&format!("{LIBRARIES}/libibverbs.so.1"))
        .with(&format!("{LIBRARIES}/libibverbs.so.1 -> libibverbs.so.1.0.0"))
        .file(&format!("{LIBRARIES}/libibverbs.so.1.0.0"), "IBVERBS_1.1");
    says(&pair(&broken, &roce(), "D05").seen, &["libibverbs.so.1.0.0"]);
}

/// A program whose device carries nothing, or everything.
#[derive(Debug)]
struct Lent {
    works: bool,
}

impl Probe for Lent {
    fn loopback(&self, device: &str) -> Result<(), String> {
        if self.works { Ok(()) } else { Err(format!("{device} kept it")) }
    }

    fn connect(&self, _: SocketAddr) -> Result<Reached, String> {
        panic!("nothing leaves a host of files");
    }

    fn echo(&self, _: SocketAddr, _: usize, _: u32) -> Result<Duration, String> {
        panic!("nothing leaves a host of files");
    }
}

#[test]
fn d06_a_device_that_carries_no_message_is_not_believed() {
    let lending =
        |probe: &Lent| roce().report_with(Options { probe: Some(probe), ..Options::default() });
    let broken = lending(&Lent { works: false });
    let finding = first(&broken, &lending(&Lent { works: true }), "D06");
    says(&finding.seen, &["over mlx5_0: mlx5_0 kept it"]);
    assert!(find(&broken, "D32").is_some());
}

#[test]
fn d07_a_missing_connection_manager_is_a_module_on_a_host() {
    let broken = roce().without("/dev/infiniband/rdma_cm").without("/sys/class/misc/rdma_cm");
    let finding = pair(&broken, &roce(), "D07");
    says(&finding.seen, &["/dev/infiniband/rdma_cm"]);
    assert_eq!(finding.command, "modprobe rdma_ucm");
}

#[test]
fn d07_a_connection_manager_that_can_be_loaded_is_no_error() {
    let broken = roce()
        .without("/dev/infiniband/rdma_cm")
        .without("/sys/class/misc/rdma_cm")
        .without("/sys/module/rdma_ucm")
        .file("/lib/modules/6.1.0-57-amd64/modules.dep", "kernel/core/rdma_ucm.ko: a.ko")
        .file("/proc/mounts", "sysfs /sys sysfs rw 0 0\nudev /dev devtmpfs rw 0 0");
    let finding = pair(&broken, &roce(), "D07");
    assert_eq!(finding.severity, Severity::Warning);
    // In a container the file would not appear.
    let contained = broken.file("/proc/mounts", "tmpfs /dev tmpfs rw 0 0");
    assert_eq!(pair(&contained, &roce(), "D07").severity, Severity::Error);
}

#[test]
fn d07_a_missing_connection_manager_is_a_file_to_pass_in_a_container() {
    let broken = roce().without("/dev/infiniband/rdma_cm").file("/.dockerenv", "");
    let finding = pair(&broken, &roce().file("/.dockerenv", ""), "D07");
    says(&finding.command, &["--device=/dev/infiniband/rdma_cm"]);
}

#[test]
fn d08_a_host_without_a_device_uses_tcp_and_may_try_soft_roce() {
    let finding = pair(&plain(), &roce(), "D08");
    assert_eq!(finding.severity, Severity::Note);
    assert_eq!(finding.command, "rdma link add rxe0 type rxe netdev eth0");
    assert_eq!(finding.works, "tcp://");
}

#[test]
fn d09_a_kernel_without_soft_roce_is_told_where_to_get_it() {
    let broken = plain().file("/lib/modules/6.1.0-57-amd64/modules.dep", "kernel/net/veth.ko:");
    let finding = only_in(&broken.report(), &plain().report(), "D09");
    says(&finding.seen, &["6.1.0-57-amd64", "rdma_rxe"]);
}

#[test]
fn d09_soft_roce_needs_an_ethernet_interface_that_is_no_vlan() {
    let broken = plain().file("/sys/class/net/eth0/uevent", "DEVTYPE=vlan\nINTERFACE=eth0");
    says(&only_in(&broken.report(), &plain().report(), "D09").seen, &["eth0, lo"]);
}

#[test]
fn d10_soft_roce_beside_a_cards_module_is_said() {
    let finding = pair(&soft().file("/sys/module/mlx5_ib/refcnt", "0"), &soft(), "D10");
    says(&finding.seen, &["rxe0", "mlx5_ib"]);
}

#[test]
fn d11_a_device_whose_file_was_not_passed_in_is_found_before_it_is_opened() {
    let broken = roce().without("/dev/infiniband/uverbs0");
    says(&pair(&broken, &roce(), "D11").seen, &["/dev/infiniband/uverbs0", "1 devices", "0 files"]);
    let contained = |tree: Tree| tree.file("/run/.containerenv", "");
    let finding = pair(&contained(broken), &contained(roce()), "D11");
    says(&finding.command, &["--device=/dev/infiniband/uverbs0"]);
}

#[test]
fn d12_a_small_limit_of_locked_memory_is_told_with_what_is_needed() {
    let finding = pair(&roce().locked("8388608"), &roce(), "D12");
    assert_eq!(finding.severity, Severity::Error);
    says(&finding.seen, &["needs 16 MiB", "limit is 8 MiB", "RLIMIT_MEMLOCK 8388608"]);
    says(&finding.command, &["ulimit -l unlimited"]);
}

#[test]
fn d12_a_limit_for_one_socket_is_a_warning_and_one_for_many_is_enough() {
    let finding = pair(&roce().locked("33554432"), &roce().locked("67108864"), "D12");
    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn d12_the_limit_does_not_bind_who_may_lock_all() {
    let status =
        |caps: &str| format!("PPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\t{caps}");
    let root = |caps| roce().locked("65536").file("/proc/self/status", &status(caps));
    let (all, but_lock) = ("000001ffffffffff", "000001ffffffbfff");
    pair(&root(but_lock), &root(all), "D12");
    // Rights within a user namespace are no rights on the host.
    let inner = |caps| root(caps).file("/proc/self/uid_map", "0 1000 1");
    assert!(find(&inner(all).report(), "D12").is_some());
}

#[test]
fn d13_a_raised_limit_that_does_not_hold_here_is_said() {
    let configured =
        |tree: Tree| tree.file("/etc/security/limits.conf", "* soft memlock unlimited");
    let broken = configured(roce().locked("8388608")).report();
    let finding = only_in(&broken, &configured(roce()).report(), "D13");
    says(&finding.seen, &["memlock unlimited", "still has 8 MiB (8388608 bytes)"]);
}

#[test]
fn d13_a_parent_with_a_higher_limit_shows_that_it_was_lowered() {
    let parent = |bytes: &str| {
        let line = format!("Max locked memory         {bytes}              {bytes}    bytes");
        roce().locked("8388608").file("/proc/77/limits", &line)
    };
    let finding = only_in(&parent("1073741824").report(), &parent("8388608").report(), "D13");
    says(&finding.seen, &["the parent has 1 GiB"]);
}

#[test]
fn d15_a_device_file_of_somebody_else_is_shown_with_mode_and_owner() {
    let finding = pair(&roce().mode("/dev/infiniband/uverbs0", 0o600), &roce(), "D15");
    assert_eq!(finding.subject.as_deref(), Some("mlx5_0"));
    says(&finding.seen, &["/dev/infiniband/uverbs0 is 0600", "user 4242"]);
}

#[test]
fn d15_the_connection_managers_file_counts_too() {
    let finding = pair(&roce().mode("/dev/infiniband/rdma_cm", 0o600), &roce(), "D15");
    assert_eq!(finding.subject, None);
}

#[test]
fn d16_few_descriptors_left_are_counted() {
    let limits = |files: &str| {
        let files = format!("Max open files            {files}      {files}    files");
        plain().file("/proc/self/limits", &files).file("/proc/self/fd/0", "")
    };
    let finding = pair(&limits("12"), &limits("1024"), "D16");
    assert_eq!(finding.severity, Severity::Error);
    says(&finding.seen, &["1 of 12"]);
    assert_eq!(pair(&limits("200"), &limits("1024"), "D16").severity, Severity::Warning);
}

#[test]
fn d17_a_way_through_an_interface_without_a_device_is_named_with_where_devices_are() {
    let (broken, healthy) = (roce().report_to("10.0.1.9"), roce().report_to("10.0.0.9"));
    let finding = first(&broken, &healthy, "D17");
    says(&finding.seen, &["10.0.1.9", "eth1", "mlx5_0 is on ens2"]);
}

#[test]
fn d19_a_device_whose_addresses_are_all_zero_has_its_interface_elsewhere() {
    let zeroed = (0..4).fold(roce(), |t, n| t.file(&port(&format!("gids/{n}")), NO_ADDRESS));
    says(&pair(&zeroed, &roce(), "D19").seen, &["all 5 addresses of port 1 are zero"]);
}

#[test]
fn d19_a_device_whose_interface_is_in_another_namespace_is_found() {
    says(&pair(&roce().without("/sys/class/net/ens2"), &roce(), "D19").seen, &["ens2"]);
}

#[test]
fn d20_a_port_that_is_down_is_shown_with_the_kernels_words() {
    let broken = roce().file(&port("state"), "1: DOWN").file(&port("phys_state"), "3: Disabled");
    let finding = pair(&broken, &roce(), "D20");
    says(&finding.seen, &["1: DOWN", "3: Disabled"]);
    assert_eq!(finding.command, "ip link set ens2 up");
}

#[test]
fn d20_a_second_card_that_is_down_is_no_error() {
    let state = "/sys/class/infiniband/mlx5_1/ports/1/state";
    let report = two_cards().file(state, "1: DOWN").report();
    assert_eq!(report.verdict, Verdict::Warnings);
    says(&only_in(&report, &two_cards().report(), "D20").works, &["verbs:// on mlx5_0"]);
}

#[test]
fn d21_a_port_that_waits_for_a_subnet_manager_is_not_just_down() {
    let broken = infiniband().file(&port("state"), "2: INIT").file(&port("sm_lid"), "0x0");
    let broken = broken.file(&port("lid"), "0xffff");
    let finding = pair(&broken, &infiniband(), "D21");
    says(&finding.seen, &["2: INIT", "sm_lid 0"]);
    assert_eq!(find(&broken.report(), "D20"), None);
    let nameless = broken.file(&format!("{DEVICE}/node_guid"), "0000:0000:0000:0000");
    says(&pair(&nameless, &infiniband(), "D21").cause, &["virtual function"]);
}

#[test]
fn d22_an_active_infiniband_port_without_a_local_address_is_found() {
    says(&pair(&infiniband().file(&port("lid"), "0x0"), &infiniband(), "D22").seen, &["lid 0x0"]);
}

#[test]
fn d23_a_table_with_link_local_addresses_only_routes_nowhere() {
    let broken = [2, 3].iter().fold(roce(), |t, n| t.file(&port(&format!("gids/{n}")), NO_ADDRESS));
    let finding = pair(&broken, &roce(), "D23");
    says(&finding.seen, &["fe80::e42:a1ff:fe12:3456", "index 1", "RoCE v2"]);
    says(&finding.command, &["ip addr add", "ens2"]);
}

#[test]
fn d23_addresses_of_roce_version_1_only_do_not_route_either() {
    let broken = roce().file(&port("gids/3"), NO_ADDRESS);
    says(&pair(&broken, &roce(), "D23").command, &["cma_roce_mode"]);
}

#[test]
fn d26_an_interface_for_small_packets_is_told_with_its_mtu() {
    let broken = roce().file("/sys/class/net/ens2/mtu", "600");
    let finding = pair(&broken, &roce(), "D26");
    assert_eq!(finding.severity, Severity::Warning);
    says(&finding.seen, &["ens2 is 600", "carry 256 bytes"]);
    let usual = roce().file("/sys/class/net/ens2/mtu", "1500");
    assert_eq!(pair(&usual, &roce(), "D26").severity, Severity::Note);
}

#[test]
fn d28_many_lost_packets_are_counted_by_the_names_of_the_counters() {
    let broken = roce().file(&port("hw_counters/local_ack_timeout_err"), "3112");
    says(&pair(&broken, &roce(), "D28").seen, &["local_ack_timeout_err 3112"]);
    let few = roce().file(&port("hw_counters/out_of_sequence"), "3");
    assert_eq!(pair(&few, &roce(), "D28").severity, Severity::Note);
}

#[test]
fn d29_an_address_that_moved_in_its_table_is_found_by_an_earlier_report() {
    let earlier = roce().report();
    let moved = roce()
        .file(&port("gids/3"), NO_ADDRESS)
        .file(&port("gids/4"), "0000:0000:0000:0000:0000:ffff:0a00:0005")
        .file(&port("gid_attrs/types/4"), "RoCE v2");
    let healthy = roce().report_after(&earlier);
    let finding = first(&moved.report_after(&earlier), &healthy, "D29");
    says(&finding.seen, &["10.0.0.5 was at index 3, is at 4"]);
}

#[test]
fn d30_a_peer_behind_another_card_than_the_first_is_told_which() {
    let (broken, healthy) = (two_cards().report_to("10.0.1.9"), two_cards().report_to("10.0.0.9"));
    let finding = first(&broken, &healthy, "D30");
    assert_eq!(finding.severity, Severity::Note);
    says(&finding.seen, &["10.0.1.9 leaves through eth1", "mlx5_1"]);
    says(&finding.cause, &["mlx5_0"]);
}

#[test]
fn d30_a_card_on_the_way_that_is_down_is_not_replaced_by_another() {
    let state = "/sys/class/infiniband/mlx5_1/ports/1/state";
    let broken = two_cards().file(state, "1: DOWN").report_to("10.0.1.9");
    only_in(&broken, &two_cards().report_to("10.0.0.9"), "D30");
    let verbs = broken.choices.iter().find(|choice| choice.scheme == "verbs").unwrap();
    assert!(!verbs.usable && verbs.why.contains("eth1"), "{verbs:?}");
}

#[test]
fn d31_an_address_in_the_tables_of_two_devices_is_found() {
    let table = "/sys/class/infiniband/mlx5_1/ports/1/gids/1";
    let broken = two_cards().file(table, "0000:0000:0000:0000:0000:ffff:0a00:0005");
    says(&pair(&broken, &two_cards(), "D31").seen, &["10.0.0.5", "mlx5_0 and mlx5_1"]);
}

#[test]
fn d32_tcp_instead_of_rdma_is_said_with_the_cause() {
    let broken = roce().file(&port("state"), "1: DOWN").report();
    let finding = only_in(&broken, &roce().report(), "D32");
    says(&finding.seen, &["path: tcp", "mlx5_0", "D20"]);
    assert!(!broken.choices.iter().any(|choice| choice.scheme == "verbs" && choice.usable));
}

#[test]
fn d43_a_kernel_older_than_those_tested_is_said_to_users_of_soft_roce() {
    let broken = soft().file("/proc/sys/kernel/osrelease", "5.10.0-28-amd64");
    says(&pair(&broken, &soft(), "D43").seen, &["5.10.0-28-amd64", "6.1"]);
}

#[test]
fn d44_a_provider_of_libfabric_that_finds_nothing_here_is_named() {
    let asking =
        |tree: Tree, name: &str| tree.file("/proc/self/environ", &format!("FI_PROVIDER={name}\0"));
    let library = "/usr/lib64/libfabric.so.1";
    let none = || plain().file(library, "");
    let broken = asking(none(), "verbs;ofi_rxm").report();
    let healthy = asking(none(), "verbs,tcp;ofi_rxm").report();
    says(&first(&broken, &healthy, "D44").seen, &["FI_PROVIDER=verbs", "-61 (FI_ENODATA)"]);
    let unknown = asking(roce(), "tpc").report();
    let known = asking(roce(), "verbs").report();
    says(&first(&unknown, &known, "D44").cause, &["no provider of that name"]);
}

#[test]
fn d47_a_short_queue_of_connections_is_named_with_its_setting() {
    let finding = pair(&plain().file("/proc/sys/net/core/somaxconn", "128"), &plain(), "D47");
    says(&finding.seen, &["net.core.somaxconn is 128"]);
    says(&finding.command, &["sysctl -w net.core.somaxconn"]);
}

#[test]
fn d49_software_iwarp_is_said_with_what_it_does_not_keep() {
    let broken = soft()
        .file("/sys/class/infiniband/rxe0/node_desc", "Software iWARP stack")
        .file("/sys/class/infiniband/rxe0/node_type", "4: RNIC")
        .file("/usr/lib64/libibverbs/libsiw-rdmav34.so", "")
        .file("/etc/libibverbs.d/siw.driver", "driver siw");
    let finding = pair(&broken, &soft(), "D49");
    says(&finding.seen, &["rxe0", "siw"]);
    says(&finding.cause, &["right", "hang"]);
}
