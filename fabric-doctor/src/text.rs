//! A report for people.

use std::fmt::{self, Display, Formatter};

use crate::choice::Choice;
use crate::facts::{Device, Gid, Host, Limit, Port};
use crate::finding::Finding;
use crate::report::Report;
use crate::size::Size;
use crate::steps::{Outcome, Step};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "What would be used")?;
        self.choices.iter().try_for_each(|choice| show_choice(f, choice))?;
        writeln!(f, "\nDevices")?;
        show_devices(f, &self.host)?;
        writeln!(f, "\nHost")?;
        show_host(f, &self.host)?;
        if let Some(steps) = &self.steps {
            writeln!(f, "\nThe way to the peer")?;
            steps.iter().try_for_each(|step| show_step(f, step))?;
        }
        writeln!(f, "\nFindings")?;
        if self.findings.is_empty() {
            return writeln!(f, "  none");
        }
        self.findings.iter().try_for_each(|finding| show_finding(f, finding))
    }
}

impl Report {
    /// Only the commands to try, as a script: each below a comment that says what it is for.
    pub fn commands(&self) -> String {
        let script = |finding: &Finding| {
            let about = finding.subject.as_ref().map_or_else(String::new, |s| format!(" ({s})"));
            format!("# {} {}{about}\n{}\n", finding.id, finding.title, finding.command)
        };
        self.findings.iter().map(script).collect()
    }
}

fn show_choice(f: &mut Formatter<'_>, choice: &Choice) -> fmt::Result {
    let uses = choice.uses.as_deref().unwrap_or("nothing");
    write!(f, "  {:<9} {uses}: {}", choice.scheme, choice.why)?;
    if choice.usable && !choice.built {
        write!(f, " (not compiled into this command)")?;
    }
    writeln!(f)
}

fn show_devices(f: &mut Formatter<'_>, host: &Host) -> fmt::Result {
    if host.devices.is_empty() {
        return writeln!(f, "  none");
    }
    host.devices.iter().try_for_each(|device| show_device(f, device))
}

fn show_device(f: &mut Formatter<'_>, device: &Device) -> fmt::Result {
    let kind = if device.soft { ", made of software" } else { "" };
    write!(f, "  {}: driver {}{kind}", device.name, or_unknown(device.driver.as_deref()))?;
    if let Some(firmware) = &device.firmware {
        write!(f, ", firmware {firmware}")?;
    }
    if let Some(verbs) = &device.verbs {
        let abi = verbs.abi_version.map_or_else(|| "?".to_owned(), |n| n.to_string());
        write!(f, ", {} (ABI {abi})", verbs.file.path)?;
    }
    if let Some(node) = device.numa_node {
        write!(f, ", NUMA node {node}")?;
    }
    writeln!(f)?;
    device.ports.iter().try_for_each(|port| show_port(f, port))
}

fn show_port(f: &mut Formatter<'_>, port: &Port) -> fmt::Result {
    write!(f, "    port {}: {}", port.number, or_unknown(port.state.as_deref()))?;
    for fact in [&port.link_layer, &port.rate, &port.interface].into_iter().flatten() {
        write!(f, ", {fact}")?;
    }
    if let Some(bytes) = port.path_mtu_bytes {
        write!(f, ", packets of {bytes} bytes")?;
    }
    writeln!(f)?;
    port.gids
        .iter()
        .try_for_each(|gid| show_gid(f, gid, port.is_active() && port.best_gid() == Some(gid)))
}

fn show_gid(f: &mut Formatter<'_>, gid: &Gid, best: bool) -> fmt::Result {
    write!(f, "      {}: {}", gid.index, gid.address)?;
    for fact in [&gid.kind, &gid.interface].into_iter().flatten() {
        write!(f, ", {fact}")?;
    }
    writeln!(f, "{}", if best { "  <- used" } else { "" })
}

fn show_host(f: &mut Formatter<'_>, host: &Host) -> fmt::Result {
    let stack = &host.stack;
    let library = stack.verbs.as_ref().map(|library| {
        let version = library.version().unwrap_or("of unknown version");
        format!("{} {version}, ABI {}", library.path, or_unknown(stack.level.as_deref()))
    });
    let lines = [
        ("kernel", host.kernel.release.clone()),
        ("modules", listed(&host.kernel.modules)),
        ("stack", Some(origin(host))),
        ("libibverbs", library),
        ("libfabric", stack.libfabric.as_ref().map(|library| library.path.clone())),
        ("container", host.container.clone()),
        ("locked memory", host.process.locked_bytes.map(|limit| locked(host, limit))),
        (
            "descriptors",
            host.process
                .descriptors
                .and_then(|limit| limit.soft)
                .map(|limit| format!("{} of {limit} open", host.process.descriptors_open)),
        ),
        ("huge pages", host.kernel.huge_pages.map(|count| count.to_string())),
        ("firewalls", listed(&host.kernel.firewalls)),
    ];
    let said = |(name, value): (&str, Option<String>)| Some((name.to_owned(), value?));
    lines
        .into_iter()
        .filter_map(said)
        .try_for_each(|(name, value)| writeln!(f, "  {name:<14} {value}"))
}

/// Whose stack this is.
fn origin(host: &Host) -> String {
    let foreign = &host.kernel.foreign_modules;
    let kernel = match foreign.iter().next() {
        Some((name, version)) => format!("modules of a vendor ({name} {version})"),
        None => "the kernel's own modules".to_owned(),
    };
    match &host.stack.vendor {
        Some(vendor) => format!("{kernel}, {vendor}"),
        None => kernel,
    }
}

fn locked(host: &Host, limit: Limit) -> String {
    let bytes = limit.soft.map_or_else(|| "unlimited".to_owned(), |soft| Size(soft).to_string());
    if host.process.may_lock_all { format!("{bytes}, does not bind (CAP_IPC_LOCK)") } else { bytes }
}

fn show_step(f: &mut Formatter<'_>, step: &Step) -> fmt::Result {
    let outcome = match step.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "FAILED",
        Outcome::NotTried => "not tried",
    };
    writeln!(f, "  {:<15} {outcome}: {}", step.name, step.seen)
}

fn show_finding(f: &mut Formatter<'_>, finding: &Finding) -> fmt::Result {
    let about = finding.subject.as_ref().map_or_else(String::new, |s| format!("{s}: "));
    writeln!(f, "  {} {}: {about}{}", finding.id, finding.severity, finding.title)?;
    writeln!(f, "      seen   {}", finding.seen)?;
    writeln!(f, "      cause  {}", finding.cause)?;
    writeln!(f, "      try    {}", finding.command)?;
    writeln!(f, "      works  {}", finding.works)
}

fn or_unknown(text: Option<&str>) -> &str {
    text.unwrap_or("unknown")
}

fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(" "))
}
