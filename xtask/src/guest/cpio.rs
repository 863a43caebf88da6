//! Archives in the one form that the kernel unpacks into its first root: `newc` cpio.

use std::fmt::Write as _;

/// An archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

impl Archive {
    /// Adds a directory; its parent must have been added before.
    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file that everybody may read and run.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// Adds a symbolic link to `target`.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, target.as_bytes());
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let header = header(self.inode, mode, content.len(), path.len() + 1);
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Names and contents begin at multiples of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Thirteen numbers of eight hexadecimal digits behind the magic.
fn header(inode: u32, mode: u32, content_bytes: usize, name_bytes: usize) -> String {
    let (owner, group, links, modified, checksum) = (0, 0, 1, 0, 0);
    let device = [0; 4];
    let mut header = String::from("070701");
    let numbers = [inode, mode, owner, group, links, modified].map(|number| number as usize);
    for number in numbers.into_iter().chain([content_bytes]).chain(device) {
        push(&mut header, number);
    }
    push(&mut header, name_bytes);
    push(&mut header, checksum);
    header
}

fn push(header: &mut String, number: usize) {
    // Cannot fail: writing to a String.
    let _ = write!(header, "{number:08x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_at_multiples_of_four_and_a_trailer_ends_them() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file("bin/a", b"12345");
        archive.link("bin/b", "a");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let starts: Vec<_> = text.match_indices("070701").map(|(at, _)| at % 4).collect();
        assert_eq!(starts, [0; 4]);
        assert!(
            text.contains("bin/a\0") && text.contains("12345\0") && text.contains("TRAILER!!!\0")
        );
    }

    #[test]
    fn a_header_has_a_hundred_and_ten_characters() {
        let header = header(1, PROGRAM, 5, 6);
        assert_eq!(header.len(), 110);
        assert_eq!(&header[14..22], "000081ed");
        assert_eq!(&header[54..62], "00000005");
        assert_eq!(&header[94..102], "00000006");
    }
}
