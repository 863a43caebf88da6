use std::any::type_name;
use std::error::Error as StdError;
use std::fmt;

use super::{Cause, Codec};
use crate::{Error, Message, SendError};

/// A value that could not be written, or bytes that are none.
#[derive(Debug)]
pub struct CodecError {
    codec: &'static str,
    type_name: &'static str,
    bytes: usize,
    encodes: bool,
    cause: Cause,
}

impl CodecError {
    pub(super) fn encoding<C: Codec, T: ?Sized>(bytes: usize, cause: Cause) -> Self {
        Self { codec: C::NAME, type_name: type_name::<T>(), bytes, encodes: true, cause }
    }

    pub(super) fn decoding<C: Codec, T>(bytes: usize, cause: Cause) -> Self {
        Self { codec: C::NAME, type_name: type_name::<T>(), bytes, encodes: false, cause }
    }

    /// The codec's name.
    pub fn codec(&self) -> &'static str {
        self.codec
    }

    /// The type, as the compiler names it.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Bytes that were to be decoded, or that were written when the codec gave up.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { codec, type_name, bytes, encodes, cause } = self;
        if *encodes {
            write!(f, "{codec} cannot write {type_name}, after {bytes} bytes: {cause}")
        } else {
            write!(f, "{codec} cannot read {bytes} bytes as {type_name}: {cause}")
        }
    }
}

impl StdError for CodecError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

/// A message that arrived and is no such value: it comes as it is.
#[derive(Debug)]
pub struct Undecoded {
    /// What arrived.
    pub message: Message,
    /// What is wrong with it.
    pub error: CodecError,
}

/// A value that was not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum TypedSendError {
    /// The codec cannot write it.
    Unencoded(CodecError),
    /// The socket did not take it, and hands the message back.
    Unsent(SendError),
}

/// No value was received.
#[derive(Debug)]
#[non_exhaustive]
pub enum TypedRecvError {
    /// A message came and is no such value. The socket is as good as before; the next call gets the
    /// next message.
    Undecoded(Undecoded),
    /// No message came.
    Failed(Error),
    /// The codec cannot write the question, so nothing was asked.
    Unencoded(CodecError),
}

impl fmt::Display for TypedSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unencoded(error) => error.fmt(f),
            Self::Unsent(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TypedRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecoded(Undecoded { error, .. }) | Self::Unencoded(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl StdError for TypedSendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Unencoded(error) => error.source(),
            Self::Unsent(error) => error.source(),
        }
    }
}

impl StdError for TypedRecvError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Undecoded(Undecoded { error, .. }) | Self::Unencoded(error) => error.source(),
            Self::Failed(error) => error.source(),
        }
    }
}

impl From<CodecError> for TypedSendError {
    fn from(error: CodecError) -> Self {
        Self::Unencoded(error)
    }
}

impl From<SendError> for TypedSendError {
    fn from(error: SendError) -> Self {
        Self::Unsent(error)
    }
}

impl From<Error> for TypedRecvError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
