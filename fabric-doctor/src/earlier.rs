//! A report of an earlier time, to compare with.

use serde::Deserialize;

use crate::facts::Gid;

/// What of an earlier report can be compared with today.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Earlier {
    host: Host,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Host {
    devices: Vec<Device>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Device {
    name: String,
    ports: Vec<Port>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Port {
    gids: Vec<Gid>,
}

/// A text that is no report.
#[derive(Debug, thiserror::Error)]
#[error("this is no report of `fabric doctor --json`")]
pub struct NoReport(#[from] serde_json::Error);

impl Earlier {
    /// Reads what `--json` wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(text: &str) -> Result<Self, NoReport> {
        Ok(serde_json::from_str(text)?)
    }

    /// The addresses that a device had.
    pub(crate) fn gids_of(&self, device: &str) -> Option<Vec<&Gid>> {
        let device = self.host.devices.iter().find(|known| known.name == device)?;
        Some(device.ports.iter().flat_map(|port| &port.gids).collect())
    }
}
