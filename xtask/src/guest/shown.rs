//! Shows what a guest writes, as it comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::thread::{self, JoinHandle};

/// Copies bytes as they come, until there are no more.
pub(super) fn as_it_comes(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            // Nobody to tell when our own output is gone.
            let _ = to.write_all(&chunk[..count]).and_then(|()| to.flush());
        }
    })
}

/// Copies lines with `prefix` in front of each, until there are no more.
pub(super) fn by_line(
    prefix: String,
    from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while let Ok(1..) = from.read_until(b'\n', &mut line) {
            let whole = prefixed(&prefix, &line);
            // Nobody to tell when our own output is gone.
            let _ = to.write_all(&whole).and_then(|()| to.flush());
            line.clear();
        }
    })
}

/// At once, so that lines of several guests do not mix.
fn prefixed(prefix: &str, line: &[u8]) -> Vec<u8> {
    let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
    [prefix.as_bytes(), line, end].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_prefix_and_its_end() {
        let (shown, to) = std::io::pipe().unwrap();
        by_line("1| ".into(), &b"one\n\nlast"[..], to).join().unwrap();
        let lines: Vec<_> = BufReader::new(shown).lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["1| one", "1| ", "1| last"]);
    }

    #[test]
    fn bytes_come_as_they_are() {
        let (mut shown, to) = std::io::pipe().unwrap();
        as_it_comes(&b"a\xff"[..], to).join().unwrap();
        let mut bytes = Vec::new();
        shown.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"a\xff");
    }
}
