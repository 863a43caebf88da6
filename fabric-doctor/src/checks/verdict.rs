//! What all findings together mean.

use crate::facts::{Device, Host};
use crate::finding::{Finding, Severity};

/// The devices that verbs can use in spite of these findings.
pub(crate) fn usable<'a>(host: &'a Host, findings: &[Finding]) -> Vec<&'a Device> {
    let errors = || findings.iter().filter(|finding| finding.severity == Severity::Error);
    if errors().any(|finding| finding.subject.is_none()) {
        return Vec::new();
    }
    let hit = |device: &Device| errors().any(|f| f.subject.as_ref() == Some(&device.name));
    let fit = |device: &&Device| device.verbs.is_some() && device.is_up() && !hit(device);
    host.devices.iter().filter(fit).collect()
}

/// A device that fails is no error while another one works: two ports, one cable.
pub(super) fn spare(findings: &mut [Finding], host: &Host, usable: &[&Device]) {
    let is_device = |name: &String| host.devices.iter().any(|device| device.name == *name);
    let errors = findings.iter_mut().filter(|finding| finding.severity == Severity::Error);
    for finding in errors {
        if !usable.is_empty() && finding.subject.as_ref().is_some_and(is_device) {
            finding.severity = Severity::Warning;
        }
    }
}

/// Nobody falls back to TCP without a word.
pub(super) fn d32_instead(
    host: &Host,
    findings: &[Finding],
    usable: &[&Device],
) -> Option<Finding> {
    if host.devices.is_empty() || !usable.is_empty() {
        return None;
    }
    let names: Vec<_> = host.devices.iter().map(|device| device.name.as_str()).collect();
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let mut causes: Vec<_> = errors.map(|finding| finding.id.to_string()).collect();
    causes.dedup();
    let causes = if causes.is_empty() { "no port is up".to_owned() } else { causes.join(", ") };
    let finding = Finding::warning(32)
        .seen(format!("path: tcp; verbs on {} rejected: {causes}", names.join(", ")))
        .cause("whoever asks for whatever is fastest gets TCP, ten times slower or more")
        .command("fabric doctor --fix-hints");
    Some(finding)
}

/// Says of each finding what works in spite of it.
pub(super) fn say_what_works(findings: &mut [Finding], usable: &[&Device]) {
    let names: Vec<_> = usable.iter().map(|device| device.name.as_str()).collect();
    let works = if names.is_empty() {
        "tcp://".to_owned()
    } else {
        format!("tcp://, verbs:// on {}", names.join(", "))
    };
    findings.iter_mut().filter(|f| f.works.is_empty()).for_each(|f| f.works = works.clone());
}
