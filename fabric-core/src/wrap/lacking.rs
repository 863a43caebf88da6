//! What a wrapper answers when the domain inside lacks the ability. It offers the ability only when
//! the inner domain does, so nobody comes here who asks first.

use crate::{Error, ErrorKind, Rejected};

pub(crate) fn lacking() -> Error {
    Error::new(ErrorKind::Unsupported, "the wrapped domain does not offer this: look at its caps")
}

pub(crate) fn reject<B>(buf: B) -> Rejected<B> {
    Rejected::new(buf, lacking())
}
