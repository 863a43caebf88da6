//! The codecs that come along.

/// JSON, which people and other languages read. Text borrows only where it has no escapes; bytes are
/// lists of numbers.
#[cfg(feature = "json")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

/// [Postcard](https://postcard.jamesmunns.com/wire-format): small and fast, for programs that have the same types.
/// Nothing in it says what it is; a field that is added makes another format.
#[cfg(feature = "postcard")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Postcard;

#[cfg(feature = "json")]
mod json {
    use bytes::{BufMut, BytesMut};
    use serde::{Deserialize, Serialize};

    use super::Json;
    use crate::typed::{Cause, Codec};

    impl Codec for Json {
        const NAME: &'static str = "json";

        fn write<T: Serialize + ?Sized>(value: &T, buf: &mut BytesMut) -> Result<(), Cause> {
            Ok(serde_json::to_writer(buf.writer(), value)?)
        }

        fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Cause> {
            Ok(serde_json::from_slice(bytes)?)
        }
    }
}

#[cfg(feature = "postcard")]
mod postcard {
    use ::postcard::ser_flavors::Flavor;
    use bytes::{BufMut, BytesMut};
    use serde::{Deserialize, Serialize};

    use super::Postcard;
    use crate::typed::{Cause, Codec};

    impl Codec for Postcard {
        const NAME: &'static str = "postcard";

        fn write<T: Serialize + ?Sized>(value: &T, buf: &mut BytesMut) -> Result<(), Cause> {
            Ok(::postcard::serialize_with_flavor(value, Behind(buf))?)
        }

        fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Cause> {
            match ::postcard::take_from_bytes(bytes)? {
                (value, []) => Ok(value),
                (_, rest) => Err(format!("{} bytes are left behind it", rest.len()).into()),
            }
        }
    }

    /// Writes into the buffer itself, which grows as it has to.
    struct Behind<'a>(&'a mut BytesMut);

    impl Flavor for Behind<'_> {
        type Output = ();

        fn try_push(&mut self, byte: u8) -> ::postcard::Result<()> {
            self.0.put_u8(byte);
            Ok(())
        }

        fn try_extend(&mut self, bytes: &[u8]) -> ::postcard::Result<()> {
            self.0.put_slice(bytes);
            Ok(())
        }

        fn finalize(self) -> ::postcard::Result<()> {
            Ok(())
        }
    }
}
