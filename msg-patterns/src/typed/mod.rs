//! Values in messages: codecs of serde as thin wrappers around messages and sockets.

mod codecs;
mod encoder;
mod error;
mod sockets;

use bytes::BytesMut;
use serde::{Deserialize, Serialize};

#[cfg(feature = "json")]
pub use codecs::Json;
#[cfg(feature = "postcard")]
pub use codecs::Postcard;
pub use encoder::Encoder;
pub use error::{CodecError, TypedRecvError, TypedSendError, Undecoded};
pub use sockets::Typed;

use crate::{Message, Part};

/// Why a codec gave up.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A way to write values as bytes. [`Json`] and [`Postcard`] are there, behind features of their names; a
/// codec of your own needs these two functions.
pub trait Codec: Copy {
    /// Its name in errors.
    const NAME: &'static str;

    /// Writes `value` behind what is in `buf`.
    ///
    /// # Errors
    /// When the format has no way to write it. What was written by then is taken away by the caller.
    fn write<T: Serialize + ?Sized>(value: &T, buf: &mut BytesMut) -> Result<(), Cause>;

    /// Reads a value that takes all of `bytes` and may borrow from them.
    ///
    /// # Errors
    /// When they are something else, too few or too many.
    fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Cause>;
}

/// Values in parts, with the feature `json`, `postcard` or `serde`.
impl Message {
    /// A message of one part, which is `value`.
    ///
    /// # Errors
    /// When the codec cannot write it.
    ///
    /// ```
    /// # #[cfg(feature = "json")] {
    /// use msg_patterns::{Json, Message};
    ///
    /// let message = Message::encode(Json, &[1, 2, 3])?;
    /// assert_eq!(message.first(), "[1,2,3]");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode<C: Codec, T: Serialize + ?Sized>(
        _codec: C,
        value: &T,
    ) -> Result<Self, CodecError> {
        let mut buf = BytesMut::new();
        append::<C, T>(value, &mut buf)?;
        Ok(Self::from(buf.freeze()))
    }

    /// Adds a part at the end, which is `value`: behind a topic, or an envelope.
    ///
    /// # Errors
    /// When the codec cannot write it.
    pub fn with_encoded<C: Codec, T: Serialize + ?Sized>(
        self,
        codec: C,
        value: &T,
    ) -> Result<Self, CodecError> {
        let part = Self::encode(codec, value)?.into_first();
        Ok(self.with(part))
    }

    /// The value in the last part: the whole message, or what stands behind its topic or envelope. It may
    /// borrow from the message, so text and bytes need not be copied.
    ///
    /// To keep a field for longer than the message, `message.first().slice_ref(field)` gives `Bytes` that
    /// share what arrived.
    ///
    /// # Errors
    /// When the part is no such value, with the codec, the type and the size.
    ///
    /// ```
    /// # #[cfg(feature = "json")] {
    /// use msg_patterns::{Json, Message};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Reading<'a> {
    ///     station: &'a str,
    ///     celsius: f64,
    /// }
    /// let message = Message::from(r#"{"station":"berlin","celsius":7.5}"#);
    /// let reading: Reading<'_> = message.decode(Json)?;
    /// assert_eq!((reading.station, reading.celsius), ("berlin", 7.5));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode<'a, C: Codec, T: Deserialize<'a>>(&'a self, _codec: C) -> Result<T, CodecError> {
        let bytes = self.parts().last().map_or(&[][..], |part| part);
        C::read(bytes).map_err(|cause| CodecError::decoding::<C, T>(bytes.len(), cause))
    }
}

/// Leaves `buf` as it was when the codec gives up.
fn append<C: Codec, T: Serialize + ?Sized>(
    value: &T,
    buf: &mut BytesMut,
) -> Result<(), CodecError> {
    let before = buf.len();
    C::write(value, buf).map_err(|cause| {
        let written = buf.len() - before;
        buf.truncate(before);
        CodecError::encoding::<C, T>(written, cause)
    })
}

/// The topic as a part of its own, and the value behind it.
fn behind(topic: impl Into<Part>, message: Message) -> Message {
    Message::from_parts([topic.into(), message.into_first().into()])
}
