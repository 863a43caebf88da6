//! What each scheme would use, and why.

use serde::Serialize;

use crate::checks::{Case, usable};
use crate::facts::{Availability, Device, Host};
use crate::finding::{Finding, Severity};
use crate::report::Options;

/// What a scheme of addresses would use on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// `tcp`, `verbs`, `softroce` or `ofi`.
    pub scheme: &'static str,
    /// Whether it can be used here.
    pub usable: bool,
    /// What it would use.
    pub uses: Option<String>,
    /// Why this, or why not.
    pub why: String,
    /// Whether the asking program has it compiled in.
    pub built: bool,
}

/// The schemes that a program may have.
pub const SCHEMES: &[&str] = &["tcp", "verbs", "softroce", "ofi"];

/// A choice for each scheme.
pub(crate) fn choose(case: &Case<'_>, findings: &[Finding], options: &Options<'_>) -> Vec<Choice> {
    let host = case.host;
    let usable = usable(host, findings);
    let ofi = ofi(host, options.libfabric.as_ref());
    let choices = [tcp(host), verbs(case, findings, &usable), softroce(host, &usable), ofi];
    let built = |choice: Choice| Choice { built: options.built.contains(&choice.scheme), ..choice };
    choices.into_iter().map(built).collect()
}

fn yes(scheme: &'static str, uses: String, why: impl Into<String>) -> Choice {
    Choice { scheme, usable: true, uses: Some(uses), why: why.into(), built: false }
}

fn no(scheme: &'static str, why: impl Into<String>) -> Choice {
    Choice { scheme, usable: false, uses: None, why: why.into(), built: false }
}

fn tcp(host: &Host) -> Choice {
    let names: Vec<_> = host.interfaces.iter().map(|one| one.name.as_str()).collect();
    let uses = if names.is_empty() { "any interface".to_owned() } else { names.join(", ") };
    yes("tcp", uses, "it needs nothing but a network")
}

fn verbs(case: &Case<'_>, findings: &[Finding], usable: &[&Device]) -> Choice {
    let Some(first) = usable.first() else { return no("verbs", rejection(case.host, findings)) };
    let Some(peer) = case.peer else {
        return yes("verbs", described(first), "the first device with a port that is up");
    };
    let way = case.host.network.interface_to(peer);
    let on_way = |device: &&&Device| way.is_some_and(|interface| device.is_on(interface));
    let way = way.unwrap_or("no interface");
    match usable.iter().find(on_way) {
        Some(device) => {
            yes("verbs", described(device), format!("the way to {peer} leaves through {way}"))
        }
        None => no("verbs", format!("the way to {peer} leaves through {way}, no device there")),
    }
}

fn described(device: &Device) -> String {
    let port = device.ports.iter().find(|port| port.is_active());
    let number = port.map_or(1, |port| port.number);
    let gid = port.and_then(|port| port.best_gid());
    let address = gid.map_or_else(String::new, |gid| {
        let kind = gid.kind.as_deref().unwrap_or("address");
        format!(", {} (index {}, {kind})", gid.address, gid.index)
    });
    format!("{} port {number}{address}", device.name)
}

fn rejection(host: &Host, findings: &[Finding]) -> String {
    if host.devices.is_empty() {
        return "there is no RDMA device (D08)".to_owned();
    }
    let error = findings.iter().find(|finding| finding.severity == Severity::Error);
    error.map_or_else(
        || "no device has a port that is up".to_owned(),
        |finding| format!("{} ({})", finding.title, finding.id),
    )
}

fn softroce(host: &Host, usable: &[&Device]) -> Choice {
    let is_soft = |device: &Device| device.driver.as_deref() == Some("rxe");
    if let Some(device) = usable.iter().find(|device| is_soft(device)) {
        let interface = device.interface().unwrap_or("its interface");
        return yes("softroce", format!("{} on {interface}", device.name), "there is a link");
    }
    if host.devices.iter().any(is_soft) {
        return no("softroce", "the link that is there cannot be used, see the findings");
    }
    let loadable = host.kernel.soft_roce;
    match (loadable, host.process.may_set_up_networks, host.ethernet()) {
        (Availability::Missing, ..) => no("softroce", "this kernel has no module rdma_rxe (D09)"),
        (_, false, _) => no("softroce", "there is no link, and making one takes CAP_NET_ADMIN"),
        (_, _, None) => no("softroce", "there is no Ethernet interface to put a link on (D09)"),
        (Availability::Unknown, ..) => {
            no("softroce", "there is no link, and no telling whether the kernel can make one")
        }
        (_, true, Some(interface)) => yes(
            "softroce",
            format!("a new link on {interface}"),
            "the module is there, so are rights",
        ),
    }
}

/// The file alone does not say that the library can be loaded: `opened` does.
fn ofi(host: &Host, opened: Option<&Result<String, String>>) -> Choice {
    let why = match opened {
        Some(Err(why)) => return no("ofi", why),
        Some(Ok(what)) => format!("it opens {what}; `fi_info` lists what else it reaches"),
        None => {
            "its file is there; `fi_info` shows whether it loads, and what it reaches".to_owned()
        }
    };
    let Some(library) = &host.stack.libfabric else {
        return no("ofi", "there is no libfabric.so.1");
    };
    let version = host.stack.packages.get("libfabric1").unwrap_or(&library.file);
    yes("ofi", format!("libfabric ({version})"), why)
}
