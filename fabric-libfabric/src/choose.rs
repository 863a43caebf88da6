//! Choosing a provider, and saying why there is none.

use std::collections::BTreeSet;

use fabric_core::{Device, Error, ErrorKind};

use crate::limits::RECEIVES_MAX;
use crate::options::LibfabricOptions;
use crate::scheme::Scheme;
use crate::status;
use crate::sys::{Ask, Code, Info, Kind, Place, open_library};

/// Providers that are only taken when they are asked for: slow ones that stand in for hardware.
const LAST_RESORT: &[&str] = &["sockets", "udp", "net"];

/// What was chosen.
pub(crate) struct Choice {
    pub(crate) info: Info,
    pub(crate) kind: Kind,
    pub(crate) scheme: Scheme,
}

/// Finds what fits scheme and settings, and has the device that leads to `place`, if one is given.
///
/// # Errors
/// `Host` when there is no libfabric or nothing fits; the message says why.
pub(crate) fn choose(
    scheme: Scheme,
    options: &LibfabricOptions,
    place: Option<Place>,
) -> Result<Choice, Error> {
    open_library().map_err(|error| Error::new(ErrorKind::Host, error.to_string()))?;
    let provider = scheme.provider.map(str::to_owned).or_else(|| options.provider.clone());
    let domain = options.domain.clone();
    let ask = Ask { provider, domain, kind: None, place, depth: RECEIVES_MAX };
    // The place may be one to listen at, which not every provider takes for one to connect to.
    let kinds = [(Kind::Connected, place), (Kind::Connected, None), (Kind::Datagram, None)];
    for (kind, place) in kinds {
        match find(&Ask { kind: Some(kind), place, ..ask.clone() }) {
            Ok(Some(info)) => return Ok(Choice { info, kind, scheme }),
            Ok(None) => {}
            Err(code) => return Err(status::discovery_error(code, ask.provider.as_deref())),
        }
    }
    Err(Error::new(ErrorKind::Host, explain(&ask)))
}

/// The best offer of this kind.
///
/// # Errors
/// What the library says, but that nothing fits.
pub(crate) fn find(ask: &Ask) -> Result<Option<Info>, Code> {
    let mut found = match ask.find() {
        Ok(found) => found,
        Err(Code::NO_DATA) => return Ok(None),
        Err(code) => return Err(code),
    };
    // Not every provider looks at this hint.
    found.retain(|info| ask.domain.as_ref().is_none_or(|domain| info.domain() == *domain));
    if ask.provider.is_none() {
        found.sort_by_key(|info| LAST_RESORT.contains(&info.provider().as_str()));
    }
    Ok(found.into_iter().next())
}

/// Which of the wishes leaves nothing over. Each is dropped in turn.
fn explain(ask: &Ask) -> String {
    let offered = |ask: Ask| -> BTreeSet<String> {
        let kinds = [Kind::Connected, Kind::Datagram].map(Some);
        let asks = kinds.map(|kind| Ask { kind, ..ask.clone() });
        let found = asks.iter().flat_map(|ask| ask.find().unwrap_or_default());
        found.map(|info| info.provider()).collect()
    };
    let anything = Ask { depth: 0, ..Ask::default() };
    let version = open_library().map(|(major, minor)| format!("{major}.{minor}"));
    let head = format!("libfabric {} offers nothing that fits", version.unwrap_or_default());
    let Some(name) = &ask.provider else {
        let text = "no provider has connected or reliable datagram endpoints that lead there";
        return format!("D44: {head}: {text}{}, see `fi_info`", environment());
    };
    let of_name = Ask { provider: Some(name.clone()), ..anything.clone() };
    if offered(of_name).is_empty() {
        let all: Vec<String> = offered(anything).into_iter().collect();
        let others =
            if all.is_empty() { "and no other".into() } else { format!("only {}", all.join(", ")) };
        let environment = environment();
        return format!(
            "D44: {head}: there is no provider {name} on this host, {others}{environment}, see `fi_info`"
        );
    }
    if let Some(domain) = &ask.domain
        && !offered(Ask { domain: None, ..ask.clone() }).is_empty()
    {
        return format!("D44: {head}: {name} has no domain {domain}, see `fi_info -p {name}`");
    }
    if ask.place.is_some() && !offered(Ask { place: None, ..ask.clone() }).is_empty() {
        return format!(
            "D17: {head}: {name} has no device that leads there, see `fi_info -p {name}`"
        );
    }
    format!(
        "D44: {head}: {name} has neither connected nor reliable datagram endpoints for messages, see \
         `fi_info -p {name}`"
    )
}

/// Settings of libfabric's own that leave providers out.
fn environment() -> String {
    match std::env::var("FI_PROVIDER") {
        Ok(value) => format!(" (FI_PROVIDER={value} leaves others out)"),
        Err(_) => String::new(),
    }
}

/// Everything that could be used.
///
/// # Errors
/// `Host` when there is no libfabric.
pub(crate) fn devices() -> Result<Vec<Device>, Error> {
    open_library().map_err(|error| Error::new(ErrorKind::Host, error.to_string()))?;
    let mut devices: Vec<Device> = Vec::new();
    for kind in [Kind::Connected, Kind::Datagram] {
        let ask = Ask { kind: Some(kind), ..Ask::default() };
        for info in ask.find().unwrap_or_default() {
            let device = device(&info);
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    Ok(devices)
}

fn device(info: &Info) -> Device {
    let how = match info.kind() {
        Some(Kind::Connected) => "connected",
        _ => "reliable datagrams",
    };
    let at = info.source().map_or_else(String::new, |at| format!(", {}", at.ip()));
    Device { name: format!("{}:{}", info.provider(), info.domain()), detail: format!("{how}{at}") }
}
