//! The report as a whole: what it says first, what it looks like, that programs can rely on it.

mod trees;

use fabric_doctor::{Options, Outcome, Report, Root, Verdict, examine};
use jsonschema::Validator;
use serde_json::Value;
use trees::{infiniband, plain, roce, soft, two_cards};

const DOWN: &str = "1: DOWN";
const STATE: &str = "/sys/class/infiniband/mlx5_0/ports/1/state";

fn validator() -> Validator {
    let schema = serde_json::from_str(include_str!("../schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

/// What a scheme would use; `None` if nothing.
fn used(report: &Report, scheme: &str) -> Option<String> {
    let choice = report.choices.iter().find(|choice| choice.scheme == scheme).unwrap();
    assert_eq!(choice.usable, choice.uses.is_some(), "{choice:?}");
    assert!(!choice.why.is_empty());
    choice.uses.clone()
}

#[test]
fn every_report_is_as_the_schema_says() {
    let validator = validator();
    let hosts = [roce(), infiniband(), two_cards(), soft(), plain()];
    let broken = roce().file(STATE, DOWN).locked("65536").without("/etc/libibverbs.d");
    let reports = hosts.iter().chain([&broken]).map(trees::Tree::report);
    let way = two_cards().report_to("10.0.1.9");
    let empty = examine(&Root::tree("/nonexistent"), &Options::default());
    let ours = examine(&Root::host(), &Options::default());
    for report in reports.chain([way, empty, ours]) {
        let errors: Vec<_> =
            validator.iter_errors(&json(&report)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_schema_refuses_what_no_report_may_be() {
    let validator = validator();
    let good = json(&roce().file(STATE, DOWN).report());
    assert!(validator.is_valid(&good));
    type Break = fn(&mut Value);
    let breaks: [(&str, Break); 5] = [
        ("a field too few", |report| drop(report["host"].as_object_mut().unwrap().remove("stack"))),
        ("a field too many", |report| report["more"] = 1.into()),
        ("a number of no finding", |report| report["findings"][0]["id"] = "D49".into()),
        ("nothing seen", |report| report["findings"][0]["seen"] = "".into()),
        ("an unknown verdict", |report| report["verdict"] = "fine".into()),
    ];
    for (what, break_it) in breaks {
        let mut report = good.clone();
        break_it(&mut report);
        assert!(!validator.is_valid(&report), "{what}");
    }
}

#[test]
fn each_scheme_says_what_it_would_use() {
    let report = roce().report();
    assert_eq!(
        used(&report, "verbs").as_deref(),
        Some("mlx5_0 port 1, 10.0.0.5 (index 3, RoCE v2)")
    );
    let way = two_cards().report_to("10.0.1.9");
    assert_eq!(used(&way, "verbs").as_deref(), Some("mlx5_1 port 1, 10.0.1.5 (index 1, RoCE v2)"));
    assert_eq!(used(&report, "tcp").as_deref(), Some("ens2, eth1, lo"));
    assert_eq!(used(&soft().report(), "softroce").as_deref(), Some("rxe0 on eth0"));
    assert_eq!(used(&plain().report(), "verbs"), None);
    assert_eq!(used(&roce().file(STATE, DOWN).report(), "verbs"), None);
}

#[test]
fn soft_roce_can_be_made_by_who_has_the_module_and_the_right() {
    let status = "PPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff";
    let root = || plain().file("/proc/self/status", status);
    assert_eq!(used(&root().report(), "softroce").as_deref(), Some("a new link on eth0"));
    assert_eq!(used(&plain().report(), "softroce"), None);
    let bare = root().file("/lib/modules/6.1.0-57-amd64/modules.dep", "a.ko:");
    assert_eq!(used(&bare.report(), "softroce"), None);
}

#[test]
fn a_healthy_report_reads_like_this() {
    insta::assert_snapshot!(roce().report());
}

#[test]
fn a_report_of_a_host_without_rdma_reads_like_this() {
    insta::assert_snapshot!(plain().report());
}

#[test]
fn a_report_of_a_host_with_faults_reads_like_this() {
    let broken = two_cards().file(STATE, DOWN).locked("8388608");
    insta::assert_snapshot!(broken.report_to("10.0.1.9"));
}

#[test]
fn the_commands_alone_are_a_script() {
    insta::assert_snapshot!(roce().file(STATE, DOWN).locked("8388608").report().commands());
}

#[test]
fn libfabric_is_believed_when_something_of_it_was_opened() {
    let tree = plain().file("/usr/lib64/libfabric.so.1", "");
    let ofi = |opened: Option<Result<String, String>>| {
        let options = Options { libfabric: opened, ..Options::default() };
        let mut choices = tree.report_with(options).choices.into_iter();
        choices.find(|choice| choice.scheme == "ofi").unwrap()
    };
    let (unknown, opened) = (ofi(None), ofi(Some(Ok("lo".into()))));
    assert!(unknown.usable && unknown.why.contains("whether it loads"), "{unknown:?}");
    assert!(opened.usable && opened.why.contains("it opens lo"), "{opened:?}");
    let broken = ofi(Some(Err("libfabric.so.1 cannot be loaded".into())));
    assert!(!broken.usable && broken.why == "libfabric.so.1 cannot be loaded", "{broken:?}");
}

#[test]
fn steps_that_were_not_tried_say_why() {
    let report = roce().report_to("10.0.0.9:7000");
    let steps = report.steps.unwrap();
    assert_eq!(steps.len(), 7);
    for step in &steps {
        let tried = ["name", "route"].contains(&step.name);
        assert_eq!(step.outcome, if tried { Outcome::Passed } else { Outcome::NotTried });
        assert!(!step.seen.is_empty());
    }
    assert_eq!(report.verdict, Verdict::Good);
}

#[test]
fn a_peer_without_a_route_ends_the_way() {
    let report = roce().without("/proc/net/route").report_to("10.0.0.9");
    let steps = report.steps.unwrap();
    assert_eq!(steps[1].outcome, Outcome::Failed);
    assert!(steps[2].seen.contains("a step before it failed"));
    assert_eq!(report.verdict, Verdict::Errors);
}
