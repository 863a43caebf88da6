//! What may be written for a setting, and what may be set.

use std::time::Duration;

use bytes::Bytes;

use crate::options::{Linger, Notify, OnFull, ReconnectStop};
use crate::units::{parse_size, parse_time, print_size, print_time};

/// How the values of some settings are written.
pub(crate) trait Kind {
    /// What is set.
    type Value;
    /// What may be written, behind "write".
    const WRITTEN: &'static str;
    /// The value that a text means.
    fn parse(text: &str) -> Option<Self::Value>;
    /// A text that means the value.
    fn print(value: &Self::Value) -> String;
    /// Whether the value makes sense.
    fn is_valid(_value: &Self::Value) -> bool {
        true
    }
}

/// A number of things.
pub(crate) struct Count;

impl Kind for Count {
    type Value = usize;
    const WRITTEN: &'static str = "a whole number such as 1000";

    fn parse(text: &str) -> Option<usize> {
        // `usize::from_str` would take a leading plus sign.
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
    }

    fn print(value: &usize) -> String {
        value.to_string()
    }
}

/// A number of bytes.
pub(crate) struct Size;

impl Kind for Size {
    type Value = usize;
    const WRITTEN: &'static str = "a size such as 4096, 64KiB, 1G or 10MB";

    fn parse(text: &str) -> Option<usize> {
        parse_size(text)?.try_into().ok()
    }

    fn print(value: &usize) -> String {
        print_size(*value as u64)
    }
}

/// A number of bytes, at least one.
pub(crate) struct SomeSize;

impl Kind for SomeSize {
    type Value = usize;
    const WRITTEN: &'static str = "a size of at least 1, such as 4096, 64KiB, 1G or 10MB";

    fn parse(text: &str) -> Option<usize> {
        Size::parse(text)
    }

    fn print(value: &usize) -> String {
        Size::print(value)
    }

    fn is_valid(value: &usize) -> bool {
        *value > 0
    }
}

/// A time.
pub(crate) struct Time;

impl Kind for Time {
    type Value = Duration;
    const WRITTEN: &'static str = "a time such as 5s, 200ms, 50us or 2m";

    fn parse(text: &str) -> Option<Duration> {
        parse_time(text)
    }

    fn print(value: &Duration) -> String {
        print_time(*value)
    }

    fn is_valid(value: &Duration) -> bool {
        can_be_added(*value)
    }
}

/// A time that takes a while.
pub(crate) struct SomeTime;

impl Kind for SomeTime {
    type Value = Duration;
    const WRITTEN: &'static str = "a time over 0, such as 5s, 200ms, 50us or 2m";

    fn parse(text: &str) -> Option<Duration> {
        parse_time(text)
    }

    fn print(value: &Duration) -> String {
        print_time(*value)
    }

    fn is_valid(value: &Duration) -> bool {
        !value.is_zero() && can_be_added(*value)
    }
}

/// A time until something is done, if ever.
pub(crate) struct TimeOrNever;

impl Kind for TimeOrNever {
    type Value = Option<Duration>;
    const WRITTEN: &'static str = "a time over 0, such as 5s, 200ms or 2m, or `never`";

    fn parse(text: &str) -> Option<Self::Value> {
        word_or_time(text, "never")
    }

    fn print(value: &Self::Value) -> String {
        value.map_or_else(|| "never".into(), print_time)
    }

    fn is_valid(value: &Self::Value) -> bool {
        value.is_none_or(|time| SomeTime::is_valid(&time))
    }
}

/// A time, or the one that follows from other settings.
pub(crate) struct TimeOrAuto;

impl Kind for TimeOrAuto {
    type Value = Option<Duration>;
    const WRITTEN: &'static str = "a time such as 5s, 200ms or 2m, or `auto`";

    fn parse(text: &str) -> Option<Self::Value> {
        word_or_time(text, "auto")
    }

    fn print(value: &Self::Value) -> String {
        value.map_or_else(|| "auto".into(), print_time)
    }

    fn is_valid(value: &Self::Value) -> bool {
        value.is_none_or(can_be_added)
    }
}

/// What can be written can be added to any clock without an overflow.
fn can_be_added(time: Duration) -> bool {
    u64::try_from(time.as_nanos()).is_ok()
}

fn word_or_time(text: &str, word: &str) -> Option<Option<Duration>> {
    if text == word { Some(None) } else { parse_time(text).map(Some) }
}

/// How long `close` waits.
pub(crate) struct Patience;

impl Kind for Patience {
    type Value = Linger;
    const WRITTEN: &'static str = "a time such as 5s, 200ms or 2m, or `forever`, or `no`";

    fn parse(text: &str) -> Option<Linger> {
        match text {
            "forever" => Some(Linger::Forever),
            "no" => Some(Linger::No),
            _ => parse_time(text).map(Linger::For),
        }
    }

    fn print(value: &Linger) -> String {
        match value {
            Linger::Forever => "forever".into(),
            Linger::For(time) => print_time(*time),
            Linger::No => "no".into(),
        }
    }

    fn is_valid(value: &Linger) -> bool {
        if let Linger::For(time) = value { can_be_added(*time) } else { true }
    }
}

/// When not to connect again.
pub(crate) struct Stop;

impl Kind for Stop {
    type Value = ReconnectStop;
    const WRITTEN: &'static str = "`never`, `refused`, `handshake` or `refused,handshake`";

    fn parse(text: &str) -> Option<ReconnectStop> {
        let mut stop = ReconnectStop::default();
        if text == "never" {
            return Some(stop);
        }
        for word in text.split(',') {
            match word.trim() {
                "refused" => stop.on_refused = true,
                "handshake" => stop.on_handshake_failed = true,
                _ => return None,
            }
        }
        Some(stop)
    }

    fn print(value: &ReconnectStop) -> String {
        let text = match (value.on_refused, value.on_handshake_failed) {
            (false, false) => "never",
            (true, false) => "refused",
            (false, true) => "handshake",
            (true, true) => "refused,handshake",
        };
        text.into()
    }
}

/// What is told of peers.
pub(crate) struct Notices;

impl Kind for Notices {
    type Value = Notify;
    const WRITTEN: &'static str = "`no`, `connect`, `disconnect` or `connect,disconnect`";

    fn parse(text: &str) -> Option<Notify> {
        let mut notify = Notify::default();
        if text == "no" {
            return Some(notify);
        }
        for word in text.split(',') {
            match word.trim() {
                "connect" => notify.on_connect = true,
                "disconnect" => notify.on_disconnect = true,
                _ => return None,
            }
        }
        Some(notify)
    }

    fn print(value: &Notify) -> String {
        let text = match (value.on_connect, value.on_disconnect) {
            (false, false) => "no",
            (true, false) => "connect",
            (false, true) => "disconnect",
            (true, true) => "connect,disconnect",
        };
        text.into()
    }
}

/// What to do with a message that finds no room.
pub(crate) struct Full;

impl Kind for Full {
    type Value = OnFull;
    const WRITTEN: &'static str = "`drop` or `block`";

    fn parse(text: &str) -> Option<OnFull> {
        match text {
            "drop" => Some(OnFull::Drop),
            "block" => Some(OnFull::Block),
            _ => None,
        }
    }

    fn print(value: &OnFull) -> String {
        let text = match value {
            OnFull::Drop => "drop",
            OnFull::Block => "block",
        };
        text.into()
    }
}

/// On or off.
pub(crate) struct Switch;

impl Kind for Switch {
    type Value = bool;
    const WRITTEN: &'static str = "`true` or `false`";

    fn parse(text: &str) -> Option<bool> {
        text.parse().ok()
    }

    fn print(value: &bool) -> String {
        value.to_string()
    }
}

/// A name told to peers (RFC 37, "Routing-Id": up to 255 bytes, the first not zero).
pub(crate) struct Identity;

impl Kind for Identity {
    type Value = Bytes;
    const WRITTEN: &'static str = "up to 255 bytes that do not start with a zero byte; other bytes \
                                   than text as \\xNN, and \\ as \\\\";

    fn parse(text: &str) -> Option<Bytes> {
        parse_escaped(text)
    }

    fn print(value: &Bytes) -> String {
        print_escaped(value)
    }

    fn is_valid(value: &Bytes) -> bool {
        value.len() <= 255 && value.first() != Some(&0)
    }
}

/// A message of one part.
pub(crate) struct Body;

impl Kind for Body {
    type Value = Bytes;
    const WRITTEN: &'static str = "text; other bytes as \\xNN, and \\ as \\\\";

    fn parse(text: &str) -> Option<Bytes> {
        parse_escaped(text)
    }

    fn print(value: &Bytes) -> String {
        print_escaped(value)
    }
}

/// A name for people.
pub(crate) struct Name;

impl Kind for Name {
    type Value = String;
    const WRITTEN: &'static str = "up to 255 bytes of text in one line";

    fn parse(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn print(value: &String) -> String {
        value.clone()
    }

    fn is_valid(value: &String) -> bool {
        value.len() <= 255 && !value.contains(char::is_control)
    }
}

fn parse_escaped(text: &str) -> Option<Bytes> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        rest = match escape.strip_prefix('\\') {
            Some(behind) => {
                bytes.push(b'\\');
                behind
            }
            None => {
                let digits = escape.strip_prefix('x')?.get(..2)?;
                let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
                bytes.push(hex.then(|| u8::from_str_radix(digits, 16).ok())??);
                &escape[3..]
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes.into())
}

fn print_escaped(value: &Bytes) -> String {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => push_escaped(&mut text, c.to_string().as_bytes()),
                c => text.push(c),
            }
        }
        push_escaped(&mut text, chunk.invalid());
    }
    text
}

fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}
