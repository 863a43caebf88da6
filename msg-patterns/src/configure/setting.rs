//! One setting: what it is called, what may be written, and who has it.

use msg_proto::types::SocketType;

use super::kinds::Kind;
use super::table::{Options, TABLE};
use crate::{Error, ErrorKind};

/// One setting of sockets, as builders, addresses, files and the environment name it.
#[derive(Debug)]
pub struct Setting {
    pub(super) name: &'static str,
    pub(super) lines: &'static [&'static str],
    pub(super) written: &'static str,
    pub(super) default: &'static str,
    pub(super) sockets: &'static [SocketType],
    /// The settings that it sets, if it is none of its own.
    pub(super) stands_for: &'static [&'static str],
    pub(super) parse: fn(&mut Options, &str) -> Option<()>,
    pub(super) print: fn(&Options) -> String,
    pub(super) is_valid: fn(&Options) -> bool,
}

impl Setting {
    /// All settings.
    ///
    /// ```
    /// use msg_patterns::Setting;
    ///
    /// let linger = Setting::all().iter().find(|setting| setting.name() == "linger").unwrap();
    /// assert_eq!((linger.default(), linger.sockets().next()), ("forever", Some("PUB")));
    /// ```
    pub fn all() -> &'static [Self] {
        TABLE
    }

    /// Its name, which is also that of the builder's method.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it does, in a line of prose.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.trim()).collect();
        lines.join(" ").replace("[`", "`").replace("`]", "`")
    }

    /// What may be written for it.
    pub fn written(&self) -> &'static str {
        self.written
    }

    /// Its default, as it is written.
    pub fn default(&self) -> &'static str {
        self.default
    }

    /// The names of the sockets that have it, such as `PUB`.
    pub fn sockets(&self) -> impl Iterator<Item = &'static str> {
        self.sockets.iter().map(|socket| socket.name())
    }

    /// Whether sockets of this type have it.
    pub(crate) fn is_of(&self, socket: SocketType) -> bool {
        self.sockets.contains(&socket)
    }

    /// Sets it to what `text` means.
    ///
    /// # Errors
    /// `Invalid` for a text that means nothing here.
    pub(crate) fn set(&self, options: &mut Options, text: &str) -> Result<(), Error> {
        let set = (self.parse)(options, text).filter(|()| (self.is_valid)(options));
        set.ok_or_else(|| {
            let text = format!("`{text}` is no {}: write {}", self.name, self.written);
            Error::new(ErrorKind::Invalid, text)
        })
    }

    /// What it is set to, as it would be written.
    pub(crate) fn get(&self, options: &Options) -> String {
        (self.print)(options)
    }

    /// Refuses what a builder was given and nobody could write.
    ///
    /// # Errors
    /// `Invalid`.
    pub(crate) fn check(&self, options: &Options) -> Result<(), Error> {
        if (self.is_valid)(options) {
            return Ok(());
        }
        let (text, name) = (self.get(options), self.name);
        let text = format!("{text} is no {name}: it must be {}", self.written);
        Err(Error::new(ErrorKind::Invalid, text))
    }
}

/// Sets `place` to what `text` means.
pub(super) fn parse_into<K: Kind>(place: &mut K::Value, text: &str) -> Option<()> {
    *place = K::parse(text)?;
    Some(())
}
