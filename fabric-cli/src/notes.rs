//! Tells people what keeps peers from coming.

use std::collections::HashMap;
use std::thread::{self, JoinHandle};

use msg_patterns::{Monitor, MonitorEvent};

use crate::report::{Line, Style};

/// Most notes of one run; what is wrong shows in the first ones.
const NOTES_MAX: usize = 20;

/// Attempts to connect that may fail before it is worth a word: a peer that starts a moment later is
/// normal.
const QUIET_ATTEMPTS: u32 = 2;

/// Says once each what goes wrong with connections, until the socket closes. The thread ends with
/// the monitor; without it, where the host has none left, there are no notes.
pub(crate) fn watch(monitor: Monitor, style: Style) -> Option<JoinHandle<()>> {
    let thread = move || {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for (text, quiet) in monitor.filter_map(|event| note(&event)) {
            if counts.len() >= NOTES_MAX && !counts.contains_key(&text) {
                continue;
            }
            let count = counts.entry(text.clone()).or_default();
            *count = count.saturating_add(1);
            if *count == quiet + 1 {
                Line::Note { text }.say(style);
            }
        }
    };
    thread::Builder::new().name("notes".into()).spawn(thread).ok()
}

/// A note, and how often it stays unsaid.
fn note(event: &MonitorEvent) -> Option<(String, u32)> {
    match event {
        MonitorEvent::ConnectFailed { addr, why } => {
            Some((format!("cannot reach {addr}, trying on: {why}"), QUIET_ATTEMPTS))
        }
        MonitorEvent::ConnectStopped { addr, why } => {
            Some((format!("gave up on {addr}: {why}"), 0))
        }
        MonitorEvent::AcceptFailed { why } => Some((format!("turned a connection away: {why}"), 0)),
        MonitorEvent::Refused { fault, by_peer: true, .. } => {
            Some((format!("the peer refused to go on: {}", fault.text()), 0))
        }
        MonitorEvent::Refused { fault, by_peer: false, .. } => {
            Some((format!("refused a peer: {}", fault.text()), 0))
        }
        _ => None,
    }
}
