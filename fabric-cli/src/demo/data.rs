//! The file that the demo sends, and what should arrive of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use msg_patterns::Bytes;
use tempfile::NamedTempFile;

use crate::digest::Digest;
use crate::exit::Failure;

/// Measurements, written by `examples/telemetry.rs`.
const TELEMETRY: &[u8] = include_bytes!("../../data/telemetry.csv");

/// A file with at least one line.
pub(crate) struct Data {
    name: String,
    path: PathBuf,
    whole: Bytes,
    lines: Vec<Bytes>,
    /// Removes the file when the demo ends.
    _own: Option<NamedTempFile>,
}

/// What somebody should have received.
pub(crate) struct Expected {
    /// Messages.
    pub(crate) messages: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// Their checksums.
    pub(crate) digest: Digest,
}

impl Data {
    /// Reads `input`, or writes out the file that comes along.
    ///
    /// # Errors
    /// `Failed` when it cannot be read or is empty.
    pub(crate) fn load(input: Option<&Path>) -> Result<Self, Failure> {
        match input {
            Some(path) => {
                let whole = fs::read(path).map_err(Failure::io(path.display()))?;
                Self::new(path.display().to_string(), path.into(), whole.into(), None)
            }
            None => Self::shipped(),
        }
    }

    fn shipped() -> Result<Self, Failure> {
        let failed = || Failure::io("a temporary file for the demo");
        let mut file = NamedTempFile::new().map_err(failed())?;
        file.write_all(TELEMETRY).map_err(failed())?;
        let path = file.path().into();
        Self::new("telemetry.csv".into(), path, Bytes::from_static(TELEMETRY), Some(file))
    }

    fn new(
        name: String,
        path: PathBuf,
        whole: Bytes,
        own: Option<NamedTempFile>,
    ) -> Result<Self, Failure> {
        if whole.is_empty() {
            return Err(Failure::new(format!("{name} is empty: choose a file with some lines")));
        }
        let text = whole.strip_suffix(b"\n").unwrap_or(&whole);
        let lines = text.split(|byte| *byte == b'\n').map(|line| whole.slice_ref(line)).collect();
        Ok(Self { name, path, whole, lines, _own: own })
    }

    /// What to call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, as an argument.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.whole.len()
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> &[Bytes] {
        &self.lines
    }

    /// Its pieces of `size` bytes; the last one may be shorter.
    pub(crate) fn pieces(&self, size: usize) -> impl Iterator<Item = Bytes> {
        self.whole.chunks(size).map(|piece| self.whole.slice_ref(piece))
    }
}

impl Expected {
    /// Exactly these messages.
    pub(crate) fn of(messages: impl IntoIterator<Item = Bytes>) -> Self {
        let mut expected = Self { messages: 0, bytes: 0, digest: Digest::new(true, true) };
        for message in messages {
            expected.messages += 1;
            expected.bytes += message.len() as u64;
            expected.digest.add(&[message]);
        }
        expected
    }
}
