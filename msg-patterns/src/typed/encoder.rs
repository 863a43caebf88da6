use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::{Codec, CodecError, append};
use crate::Message;

/// Room for some hundred small messages before memory is looked for again.
const ROOM_BYTES: usize = 16 << 10;

/// Makes messages of values one after the other, in memory that it uses again: once that of earlier
/// messages has gone, encoding a small one allocates nothing.
///
/// ```
/// # #[cfg(feature = "postcard")] {
/// use msg_patterns::{Encoder, Message, Postcard};
///
/// let mut encoder = Encoder::new(Postcard);
/// let message = encoder.message(&(7_u8, "berlin"))?;
/// assert_eq!(message.decode::<_, (u8, &str)>(Postcard)?, (7, "berlin"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Encoder<C> {
    buf: BytesMut,
    codec: PhantomData<C>,
}

impl<C: Codec> Encoder<C> {
    /// One that has no memory yet.
    pub fn new(_codec: C) -> Self {
        Self { buf: BytesMut::new(), codec: PhantomData }
    }

    /// A message of one part, which is `value`.
    ///
    /// # Errors
    /// When the codec cannot write it.
    pub fn message<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<Message, CodecError> {
        self.part(value).map(Message::from)
    }

    /// The bytes of `value`, for a part.
    ///
    /// # Errors
    /// When the codec cannot write it.
    pub fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<Bytes, CodecError> {
        // Takes the room of messages that have gone, where it is of use again.
        if self.buf.capacity() < ROOM_BYTES / 16 {
            self.buf.reserve(ROOM_BYTES);
        }
        append::<C, T>(value, &mut self.buf)?;
        let part = self.buf.split().freeze();
        // What is left of large memory would keep all of it.
        if part.len() > ROOM_BYTES {
            self.buf = BytesMut::new();
        }
        Ok(part)
    }
}
