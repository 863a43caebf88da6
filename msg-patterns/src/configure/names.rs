//! Finding a setting by its name, and saying what was meant if there is none.

use msg_proto::types::SocketType;

use super::setting::Setting;
use crate::{Error, ErrorKind};

/// How alike two names are for one to be taken for a slip of the pen, from 0 to 1.
const ALIKE_MIN: f64 = 0.5;

/// The setting of any socket that is called `name`.
///
/// # Errors
/// `Invalid`, with the name that is nearest.
pub(super) fn find(name: &str) -> Result<&'static Setting, Error> {
    let all = || Setting::all().iter();
    all().find(|setting| setting.name == name).ok_or_else(|| unknown(name, all()))
}

/// As `find`, if sockets of this type have it.
///
/// # Errors
/// `Invalid`, with the name that is nearest, or the types that have it.
pub(super) fn find_of(socket: SocketType, name: &str) -> Result<&'static Setting, Error> {
    let of_it = || Setting::all().iter().filter(|setting| setting.is_of(socket));
    match Setting::all().iter().find(|setting| setting.name == name) {
        Some(setting) if setting.is_of(socket) => Ok(setting),
        Some(setting) => Err(of_others(socket, setting)),
        None => Err(unknown(name, of_it())),
    }
}

fn unknown(name: &str, known: impl Iterator<Item = &'static Setting> + Clone) -> Error {
    let meant = match nearest(name, known.clone()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            let names: Vec<&str> = known.map(|setting| setting.name).collect();
            format!("there are {}", names.join(", "))
        }
    };
    Error::new(ErrorKind::Invalid, format!("unknown setting `{name}`: {meant}"))
}

fn nearest(name: &str, known: impl Iterator<Item = &'static Setting>) -> Option<&'static str> {
    // What is far too long is no slip, and comparing takes the square of the length.
    if name.len() > 64 {
        return None;
    }
    let name = name.to_lowercase();
    known
        .map(|setting| (strsim::normalized_damerau_levenshtein(&name, setting.name), setting.name))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

fn of_others(socket: SocketType, setting: &Setting) -> Error {
    let have: Vec<&str> = setting.sockets().collect();
    let (verb, name) = (if have.len() == 1 { "has" } else { "have" }, setting.name);
    let text =
        format!("{} has no setting `{name}`: {} {verb} it", socket.name(), have.join(" and "));
    Error::new(ErrorKind::Invalid, text)
}
