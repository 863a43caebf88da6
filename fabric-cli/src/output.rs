//! Where received messages go.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use msg_patterns::{Bytes, Message};
use serde::Serialize;

use crate::args::Store;
use crate::digest::hex;
use crate::exit::Failure;

const WRITE_BYTES: usize = 64 << 10;

/// Takes messages and writes them.
pub(crate) struct Output {
    format: Format,
    target: Target,
    body: bool,
    buffered: bool,
    messages: u64,
}

#[derive(Clone, Copy)]
enum Format {
    Lines,
    Raw,
    Json,
}

enum Target {
    Stream { writer: BufWriter<File>, name: String },
    Dir(PathBuf),
    Nowhere,
}

impl Output {
    /// Opens what the command line names.
    ///
    /// # Errors
    /// `Failed` when it cannot be created.
    pub(crate) fn open(store: &Store) -> Result<Self, Failure> {
        let format = match store {
            Store { json: true, .. } => Format::Json,
            Store { raw: true, .. } | Store { output: Some(_), .. } => Format::Raw,
            _ => Format::Lines,
        };
        let (body, buffered) = (store.body, store.buffered);
        Ok(Self { format, target: Target::open(store)?, body, buffered, messages: 0 })
    }

    /// Writes a message; gives the parts that it wrote. Nothing is copied.
    ///
    /// # Errors
    /// `Failed`, or `OutputClosed` when the reader is gone.
    pub(crate) fn write<'a>(&mut self, message: &'a Message) -> Result<&'a [Bytes], Failure> {
        self.messages += 1;
        let parts = match message.parts() {
            [_, body @ ..] if self.body && !body.is_empty() => body,
            parts => parts,
        };
        self.target.write(self.format, self.messages, parts)?;
        if !self.buffered {
            self.flush()?;
        }
        Ok(parts)
    }

    /// Writes out what is gathered.
    ///
    /// # Errors
    /// As `write`.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.target {
            Target::Stream { writer, name } => writer.flush().map_err(Failure::io(name)),
            Target::Dir(_) | Target::Nowhere => Ok(()),
        }
    }
}

impl Target {
    fn open(store: &Store) -> Result<Self, Failure> {
        if store.discard {
            return Ok(Self::Nowhere);
        }
        if let Some(dir) = &store.out_dir {
            fs::create_dir_all(dir).map_err(Failure::io(dir.display()))?;
            return Ok(Self::Dir(dir.clone()));
        }
        let (file, name) = match &store.output {
            Some(path) => {
                let file = File::create(path).map_err(Failure::io(path.display()))?;
                (file, path.display().to_string())
            }
            None => (standard_output()?, "standard output".into()),
        };
        Ok(Self::Stream { writer: BufWriter::with_capacity(WRITE_BYTES, file), name })
    }

    fn write(&mut self, format: Format, n: u64, parts: &[Bytes]) -> Result<(), Failure> {
        match self {
            Self::Stream { writer, name } => {
                write_as(writer, format, n, parts).map_err(Failure::io(name))
            }
            Self::Dir(dir) => {
                let path = dir.join(n.to_string());
                let written = File::create(&path).and_then(|mut file| write_raw(&mut file, parts));
                written.map_err(Failure::io(path.display()))
            }
            Self::Nowhere => Ok(()),
        }
    }
}

/// Standard output without the line buffer that the library puts in front of it.
fn standard_output() -> Result<File, Failure> {
    let output = rustix::io::dup(io::stdout());
    output.map(File::from).map_err(|error| Failure::io("standard output")(error.into()))
}

fn write_as(writer: &mut impl Write, format: Format, n: u64, parts: &[Bytes]) -> io::Result<()> {
    match format {
        Format::Lines => write_line(writer, parts),
        Format::Raw => write_raw(writer, parts),
        Format::Json => {
            serde_json::to_writer(&mut *writer, &Json::of(n, parts))?;
            writer.write_all(b"\n")
        }
    }
}

fn write_raw(writer: &mut impl Write, parts: &[Bytes]) -> io::Result<()> {
    parts.iter().try_for_each(|part| writer.write_all(part))
}

fn write_line(writer: &mut impl Write, parts: &[Bytes]) -> io::Result<()> {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            writer.write_all(b"\t")?;
        }
        writer.write_all(part)?;
    }
    writer.write_all(b"\n")
}

#[derive(Serialize)]
struct Json<'a> {
    n: u64,
    bytes: usize,
    parts: Vec<JsonPart<'a>>,
}

#[derive(Serialize)]
struct JsonPart<'a> {
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl<'a> Json<'a> {
    fn of(n: u64, parts: &'a [Bytes]) -> Self {
        let bytes = parts.iter().map(Bytes::len).sum();
        Self { n, bytes, parts: parts.iter().map(|part| JsonPart::of(part)).collect() }
    }
}

impl<'a> JsonPart<'a> {
    fn of(part: &'a [u8]) -> Self {
        let text = std::str::from_utf8(part).ok();
        Self { bytes: part.len(), text, hex: text.is_none().then(|| hex(part)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, parts: &[&'static [u8]]) -> String {
        let parts: Vec<Bytes> = parts.iter().map(|part| Bytes::from_static(part)).collect();
        let mut out = Vec::new();
        write_as(&mut out, format, 7, &parts).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_writes_all_parts() {
        let parts: [&[u8]; 2] = [b"topic", b"body"];
        assert_eq!(written(Format::Raw, &parts), "topicbody");
        assert_eq!(written(Format::Lines, &parts), "topic\tbody\n");
        let json =
            r#"{"n":7,"bytes":9,"parts":[{"bytes":5,"text":"topic"},{"bytes":4,"text":"body"}]}"#;
        assert_eq!(written(Format::Json, &parts), format!("{json}\n"));
    }

    #[test]
    fn what_is_no_text_becomes_hex_in_json() {
        let json = r#"{"n":7,"bytes":2,"parts":[{"bytes":2,"hex":"00ff"}]}"#;
        assert_eq!(written(Format::Json, &[b"\x00\xff"]), format!("{json}\n"));
    }
}
