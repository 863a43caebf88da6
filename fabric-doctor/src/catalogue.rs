//! All kinds of findings: the numbers are for ever, whoever meets them.

use crate::finding::Id;

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: Id,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// Who meets it.
    pub met: Met,
}

/// Who meets a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// A check of files, which a tree made by a test can show.
    Files,
    /// A check that asks the kernel, or that needs a real fault.
    Kernel,
    /// A message, by the verbs of the program that asks.
    Messages,
    /// Only a provider at work: no file shows it.
    Provider,
}

/// Every kind of finding, in the order of their numbers.
pub fn all() -> &'static [Entry] {
    ALL
}

/// The kind with this number, if there is one.
pub(crate) fn entry(id: Id) -> Option<&'static Entry> {
    ALL.get(usize::from(id.0).checked_sub(1)?)
}

const fn of(number: u8, met: Met, title: &'static str) -> Entry {
    Entry { id: Id(number), title, met }
}

const ALL: &[Entry] = &[
    of(1, Met::Files, "no user driver for a device"),
    of(2, Met::Files, "the library looks for drivers where there are none"),
    of(3, Met::Files, "kernel and user driver of a device do not fit"),
    of(4, Met::Files, "no verbs in the kernel, or another version of them"),
    of(5, Met::Files, "two RDMA stacks mixed"),
    of(6, Met::Messages, "a device that carries no message"),
    of(7, Met::Files, "no connection manager"),
    of(8, Met::Files, "no RDMA device"),
    of(9, Met::Files, "soft-RoCE is not to be had"),
    of(10, Met::Files, "soft-RoCE beside a card's driver"),
    of(11, Met::Files, "a device without its file"),
    of(12, Met::Files, "too little memory may be locked"),
    of(13, Met::Files, "a raised limit does not apply here"),
    of(14, Met::Provider, "memory that cannot be registered"),
    of(15, Met::Files, "a device file that this process may not open"),
    of(16, Met::Files, "few descriptors left"),
    of(17, Met::Files, "the way leads through an interface without a device"),
    of(18, Met::Kernel, "devices are shared between network namespaces"),
    of(19, Met::Files, "a device without its interface"),
    of(20, Met::Files, "a port is not up"),
    of(21, Met::Files, "no subnet manager"),
    of(22, Met::Files, "an active port without a local address"),
    of(23, Met::Files, "no address that routes"),
    of(24, Met::Provider, "attributes of a queue pair refused"),
    of(25, Met::Provider, "packets end at the first router"),
    of(26, Met::Files, "small packets"),
    of(27, Met::Messages, "RoCE packets are filtered"),
    of(28, Met::Files, "the network loses packets"),
    of(29, Met::Files, "an address moved in a device's table"),
    of(30, Met::Files, "the way leads through another device than the first"),
    of(31, Met::Files, "an address that two devices have"),
    of(32, Met::Files, "TCP instead of RDMA"),
    of(33, Met::Provider, "an event that was not acknowledged"),
    of(34, Met::Provider, "a queue pair larger than the device allows"),
    of(35, Met::Provider, "no receive was posted"),
    of(36, Met::Provider, "many flushed requests after one failure"),
    of(37, Met::Provider, "a key that does not fit its memory"),
    of(38, Met::Provider, "a message longer than its buffer"),
    of(39, Met::Provider, "more completions than fit"),
    of(40, Met::Kernel, "memory that a fork corrupts"),
    of(41, Met::Provider, "a full send queue"),
    of(42, Met::Provider, "multicast that does not arrive"),
    of(43, Met::Files, "a kernel older than those tested"),
    of(44, Met::Files, "libfabric finds nothing"),
    of(45, Met::Provider, "one libfabric provider hides the others"),
    of(46, Met::Provider, "retries without an end"),
    of(47, Met::Files, "many peers at once are turned away"),
    of(48, Met::Provider, "two sides that connect to each other at once"),
    of(49, Met::Files, "software iWARP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_from_1_to_49_has_its_entry_and_title() {
        assert_eq!(ALL.len(), 49);
        for (index, kind) in ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.id.0), index + 1);
            assert_eq!(kind.id.title(), kind.title);
        }
        assert_eq!(entry(Id(0)), None);
        assert_eq!(entry(Id(50)), None);
    }

    #[test]
    fn no_two_titles_are_the_same() {
        let titles: std::collections::HashSet<_> = ALL.iter().map(|kind| kind.title).collect();
        assert_eq!(titles.len(), ALL.len());
    }
}
