//! Which of the two guests, and what follows from it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::wire::End;

/// The number of a guest: 1 or 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u8")]
pub(super) struct Number(u8);

impl Number {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self(1), Self(2)];

    /// Where it stands among both.
    pub(super) fn index(self) -> usize {
        usize::from(self.0) - 1
    }

    /// The IPv4 address of its link.
    pub(super) fn address(self) -> String {
        format!("10.9.2.{self}")
    }

    /// Its place at the wire, with the pipes of its machine in `dir`.
    pub(super) fn place<'a>(self, end: &'a End, dir: &'a Path) -> NodePlace<'a> {
        NodePlace { number: self.0, end, dir }
    }
}

impl TryFrom<u8> for Number {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.0 == number);
        found.ok_or_else(|| format!("there is no node {number}, only 1 and 2"))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a machine at a wire has that others lack.
#[derive(Debug)]
pub(in crate::guest) struct NodePlace<'a> {
    /// Which of the machines.
    pub(in crate::guest) number: u8,
    /// Its end of the wire.
    pub(in crate::guest) end: &'a End,
    /// Where its pipes are.
    pub(in crate::guest) dir: &'a Path,
}

impl NodePlace<'_> {
    /// The pipes for what is told to the guest, without `.in` and `.out`.
    pub(in crate::guest) fn orders(&self) -> PathBuf {
        self.dir.join("orders")
    }

    /// The pipes for what is told to the machine itself.
    pub(in crate::guest) fn monitor(&self) -> PathBuf {
        self.dir.join("monitor")
    }

    /// What stands in front of each line that it writes.
    pub(in crate::guest) fn prefix(&self) -> String {
        format!("{}| ", self.number)
    }

    /// The Ethernet address of its card: one of those that anybody may use.
    pub(in crate::guest) fn mac(&self) -> String {
        format!("52:54:00:00:00:{:02x}", self.number)
    }
}
