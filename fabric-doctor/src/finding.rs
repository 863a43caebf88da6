//! What a check found.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::catalogue;

/// The number of a kind of finding, D01 to D49. It never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) u8);

impl Id {
    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// What it is about, in a few words.
    pub fn title(self) -> &'static str {
        catalogue::entry(self).map_or("unknown", |entry| entry.title)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D{:02}", self.0)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How bad a finding is; the worst is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Something that this host should be able to do does not work.
    Error,
    /// It works, but worse than it could, or not for long.
    Warning,
    /// Good to know.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub id: Id,
    /// How bad it is.
    pub severity: Severity,
    /// The kind in a few words.
    pub title: &'static str,
    /// The device or interface that it is about, if it is about one.
    pub subject: Option<String>,
    /// What was read, with its raw value.
    pub seen: String,
    /// What most likely causes it.
    pub cause: String,
    /// One command to try.
    pub command: String,
    /// What works in spite of it.
    pub works: String,
}

impl Finding {
    /// A finding of this kind; its texts follow.
    pub(crate) fn new(id: u8, severity: Severity) -> Self {
        let id = Id(id);
        let empty = String::new;
        let (seen, cause, command, works) = (empty(), empty(), empty(), empty());
        Self { id, severity, title: id.title(), subject: None, seen, cause, command, works }
    }

    pub(crate) fn error(id: u8) -> Self {
        Self::new(id, Severity::Error)
    }

    pub(crate) fn warning(id: u8) -> Self {
        Self::new(id, Severity::Warning)
    }

    pub(crate) fn note(id: u8) -> Self {
        Self::new(id, Severity::Note)
    }

    pub(crate) fn about(self, subject: &str) -> Self {
        Self { subject: Some(subject.to_owned()), ..self }
    }

    pub(crate) fn seen(self, text: impl Into<String>) -> Self {
        Self { seen: text.into(), ..self }
    }

    pub(crate) fn cause(self, text: impl Into<String>) -> Self {
        Self { cause: text.into(), ..self }
    }

    pub(crate) fn command(self, text: impl Into<String>) -> Self {
        Self { command: text.into(), ..self }
    }
}
