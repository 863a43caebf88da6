//! Settings as texts with names, from wherever they come.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::setting::Setting;
use super::{names, query};
use crate::options::Builder;
use crate::sockets::Socket;
use crate::{Error, ErrorKind};

/// Settings by name, as they stand in a file, in the environment or in an address; a builder takes
/// them with [`Builder::settings`]. Names and values are checked as they come in, whether the socket
/// has them when a builder takes them.
///
/// ```
/// use msg_patterns::{Context, Pub, Settings};
///
/// let settings: Settings = "hwm=500&linger=5s".parse()?;
/// let publisher = Pub::builder().settings(&settings)?.build(&Context::new())?;
///
/// let refused = "lingr=5s".parse::<Settings>().unwrap_err();
/// assert_eq!(refused.to_string(), "unknown setting `lingr`: did you mean `linger`?");
/// # Ok::<(), msg_patterns::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, String>);

impl Settings {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, or changes it.
    ///
    /// # Errors
    /// `Invalid` for a name that no setting has, or a value that it cannot have.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let setting = names::find(name)?;
        setting.set(&mut super::Options::default(), value)?;
        self.0.insert(setting.name(), value.to_owned());
        Ok(())
    }

    /// Adds one that must not be there yet.
    ///
    /// # Errors
    /// As `set`, and `Invalid` if it is there.
    pub(super) fn add(&mut self, name: &str, value: &str) -> Result<(), Error> {
        if self.get(name).is_some() {
            return Err(Error::new(ErrorKind::Invalid, format!("`{name}` is given twice")));
        }
        self.set(name, value)
    }

    /// The value of one, as it was written.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them with their values, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the environment says: with the prefix `APP_`, `APP_LINGER=5s` is `linger=5s`. Every
    /// variable that begins with the prefix has to be a setting, so choose one that is used for
    /// nothing else.
    ///
    /// # Errors
    /// `Invalid`, naming the variable.
    pub fn from_env(prefix: &str) -> Result<Self, Error> {
        let vars = std::env::vars_os().filter_map(|(name, value)| {
            // What is no text is none of ours by its name, or a value that is refused.
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        });
        Self::from_vars(prefix, vars)
    }

    /// As [`from_env`](Self::from_env), of these variables.
    ///
    /// ```
    /// use msg_patterns::Settings;
    ///
    /// let settings = Settings::from_vars("APP_", [("APP_HWM", "500"), ("PATH", "/bin")])?;
    /// assert_eq!(settings.to_string(), "hwm=500");
    /// # Ok::<(), msg_patterns::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, naming the variable.
    pub fn from_vars<N: AsRef<str>, V: AsRef<str>>(
        prefix: &str,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Error> {
        let mut settings = Self::new();
        for (variable, value) in vars {
            let variable = variable.as_ref();
            let Some(name) = variable.strip_prefix(prefix) else { continue };
            let added = settings.add(&name.to_ascii_lowercase(), value.as_ref());
            added.map_err(|error| error.within(variable))?;
        }
        Ok(settings)
    }

    /// Sets `options` to them, for a socket of this type.
    ///
    /// # Errors
    /// `Invalid` for what such a socket does not have.
    pub(super) fn apply(
        &self,
        socket: msg_proto::types::SocketType,
        options: &mut super::Options,
    ) -> Result<(), Error> {
        let mut singles = Vec::new();
        for (name, value) in self.iter() {
            let setting = names::find_of(socket, name)?;
            if setting.stands_for.is_empty() {
                singles.push((setting, value));
            } else {
                setting.set(options, value)?;
            }
        }
        // What stands for several comes first, so that the single one holds.
        singles.into_iter().try_for_each(|(setting, value)| setting.set(options, value))
    }
}

/// Written as in an address: `hwm=500&linger=5s`.
impl FromStr for Settings {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut settings = Self::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            settings.add(name, &query::decoded(name, value)?)?;
        }
        Ok(settings)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let value = query::encoded(value);
            write!(f, "{}{name}={value}", if i == 0 { "" } else { "&" })?;
        }
        Ok(())
    }
}

impl<S: Socket> Builder<S> {
    /// Takes over settings that came from elsewhere; what they don't name stays as it is.
    ///
    /// # Errors
    /// `Invalid` for a setting that such a socket does not have; the text names those that do.
    pub fn settings(mut self, settings: &Settings) -> Result<Self, Error> {
        settings.apply(S::TYPE, &mut self.options)?;
        Ok(self)
    }

    /// What this builder sets to another value than the default, for instance to keep it in a file.
    pub fn to_settings(&self) -> Settings {
        let plain = super::Options::default();
        let differ = |setting: &&Setting| {
            setting.stands_for.is_empty() && setting.get(&self.options) != setting.get(&plain)
        };
        let differing = Setting::all().iter().filter(differ);
        Settings(differing.map(|setting| (setting.name(), setting.get(&self.options))).collect())
    }
}
