//! Messages to send, one after another.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use msg_patterns::{Bytes, Message};

use crate::args::{Feed, Tuning};
use crate::exit::Failure;
use crate::interrupt::{Interrupt, UntilHit};

const READ_BYTES: usize = 64 << 10;

/// Where messages come from. Ends early when a signal comes.
pub(crate) struct Input {
    source: Source,
    interrupt: Interrupt,
    left: u64,
    bytes_max: usize,
}

enum Source {
    Lines { reader: Box<dyn BufRead>, name: String },
    Whole { file: Option<File>, name: String },
    Chunks { reader: File, name: String, chunk: usize },
    Repeat { message: Bytes, left: u64 },
}

impl Input {
    /// Opens what the command line names.
    ///
    /// # Errors
    /// `Failed` when it cannot be opened.
    pub(crate) fn open(
        feed: &Feed,
        tuning: &Tuning,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let source = Source::open(feed, interrupt)?;
        let left = tuning.count.unwrap_or(u64::MAX);
        Ok(Self { source, interrupt: interrupt.clone(), left, bytes_max: tuning.queues.max_size })
    }

    /// How many messages there will be, where that can be known.
    pub(crate) fn total(&self) -> Option<u64> {
        let all = match &self.source {
            Source::Lines { .. } => return Some(self.left).filter(|left| *left < u64::MAX),
            Source::Whole { .. } => 1,
            Source::Chunks { reader, chunk, .. } => {
                reader.metadata().ok()?.len().div_ceil(*chunk as u64)
            }
            Source::Repeat { left, .. } => *left,
        };
        Some(all.min(self.left))
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// `Failed` when reading fails or the message is over the limit.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, Failure> {
        if self.left == 0 || self.interrupt.is_hit() {
            return Ok(None);
        }
        self.left -= 1;
        self.source.next(self.bytes_max)
    }
}

impl Source {
    fn open(feed: &Feed, interrupt: &Interrupt) -> Result<Self, Failure> {
        if let Some(count) = feed.repeat {
            return Ok(Self::Repeat { message: pattern(feed.size), left: count });
        }
        match (&feed.lines, &feed.file, feed.chunk) {
            (Some(path), _, _) => Self::lines(open(path)?, name(path), interrupt),
            (None, Some(path), Some(chunk)) => {
                Ok(Self::Chunks { reader: open(path)?, name: name(path), chunk })
            }
            (None, Some(path), None) => {
                Ok(Self::Whole { file: Some(open(path)?), name: name(path) })
            }
            (None, None, _) => Self::standard(interrupt),
        }
    }

    fn standard(interrupt: &Interrupt) -> Result<Self, Failure> {
        let name = "standard input";
        let input = rustix::io::dup(io::stdin()).map_err(|e| Failure::io(name)(e.into()))?;
        Self::lines(File::from(input), name.into(), interrupt)
    }

    fn lines(file: File, name: String, interrupt: &Interrupt) -> Result<Self, Failure> {
        let reader = UntilHit::new(file, interrupt);
        Ok(Self::Lines { reader: Box::new(BufReader::with_capacity(READ_BYTES, reader)), name })
    }

    fn next(&mut self, bytes_max: usize) -> Result<Option<Message>, Failure> {
        match self {
            Self::Lines { reader, name } => read_line(reader, name, bytes_max),
            Self::Whole { file, name } => {
                file.take().map(|file| read_whole(file, name, bytes_max)).transpose()
            }
            Self::Chunks { reader, name, chunk } => read_chunk(reader, name, *chunk),
            Self::Repeat { left: 0, .. } => Ok(None),
            Self::Repeat { message, left } => {
                *left -= 1;
                Ok(Some(message.clone().into()))
            }
        }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(Failure::io(path.display()))
}

/// Bytes that tell a shifted or torn message from a whole one.
fn pattern(size: usize) -> Bytes {
    (0..size).map(|at| (at % 251) as u8).collect()
}

fn read_line(
    reader: &mut dyn BufRead,
    name: &str,
    bytes_max: usize,
) -> Result<Option<Message>, Failure> {
    let mut line = Vec::new();
    // One more than the limit, so that a longer line shows.
    let limit = (bytes_max as u64).saturating_add(2);
    reader.take(limit).read_until(b'\n', &mut line).map_err(Failure::io(name))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    check_size(line.len() as u64, bytes_max, name)?;
    Ok(Some(line.into()))
}

/// The file in one allocation, which becomes the message without a copy.
fn read_whole(file: File, name: &str, bytes_max: usize) -> Result<Message, Failure> {
    let size = file.metadata().map_err(Failure::io(name))?.len();
    check_size(size, bytes_max, name)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // One more than the limit, for files that do not know their size.
    let limit = (bytes_max as u64).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(Failure::io(name))?;
    check_size(bytes.len() as u64, bytes_max, name)?;
    Ok(bytes.into())
}

fn read_chunk(reader: &mut File, name: &str, chunk: usize) -> Result<Option<Message>, Failure> {
    let mut bytes = Vec::with_capacity(chunk);
    reader.take(chunk as u64).read_to_end(&mut bytes).map_err(Failure::io(name))?;
    Ok((!bytes.is_empty()).then(|| bytes.into()))
}

fn check_size(size: u64, bytes_max: usize, name: &str) -> Result<(), Failure> {
    if size <= bytes_max as u64 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{name}: a message of at least {size} bytes is over the limit of {bytes_max}: raise --max-size on both \
         sides, or send the file with --chunk"
    )))
}
