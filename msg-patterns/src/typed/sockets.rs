//! Sockets that send and receive values of one type.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, Encoder, TypedRecvError, TypedSendError, Undecoded, behind};
use crate::{Dealer, Message, Pair, Part, Pub, Pull, Push, Req, Sub};

/// A socket whose messages are values of type `T`, written by the codec `C`.
///
/// It adds nothing to the messages, so the other side may as well use the socket itself and
/// [`Message::decode`], which borrows from what arrived. Here values own what they have.
///
/// ```
/// # #[cfg(feature = "postcard")] {
/// use msg_patterns::{Context, Postcard, Pull, Push, Typed};
///
/// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
/// struct Task {
///     id: u64,
///     path: String,
/// }
/// let context = Context::new();
/// let pull = Pull::new(&context)?;
/// let push = Push::new(&context)?;
/// push.connect(&pull.bind("tcp://127.0.0.1:0")?.to_string())?;
///
/// let push = Typed::<_, Task, _>::new(push, Postcard);
/// push.send(&Task { id: 1, path: "a".to_owned() })?;
///
/// let pull = Typed::<_, Task, _>::new(pull, Postcard);
/// assert_eq!(pull.recv()?.id, 1);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Typed<S, T, C> {
    socket: S,
    encoder: Mutex<Encoder<C>>,
    codec: C,
    values: PhantomData<fn(T) -> T>,
}

impl<S, T, C: Codec> Typed<S, T, C> {
    /// The socket, for values of `T` in the codec's format.
    pub fn new(socket: S, codec: C) -> Self {
        Self { socket, encoder: Mutex::new(Encoder::new(codec)), codec, values: PhantomData }
    }

    /// The socket itself.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, taken out.
    pub fn into_socket(self) -> S {
        self.socket
    }
}

impl<S: fmt::Debug, T, C: Codec> fmt::Debug for Typed<S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("socket", &self.socket).field("codec", &C::NAME).finish()
    }
}

impl<S, T: Serialize, C: Codec> Typed<S, T, C> {
    fn message(&self, value: &T) -> Result<Message, TypedSendError> {
        Ok(self.encoder.lock().message(value)?)
    }
}

impl<S, T: DeserializeOwned, C: Codec> Typed<S, T, C> {
    fn value(&self, message: Message) -> Result<T, TypedRecvError> {
        decoded(message, self.codec)
    }
}

fn decoded<T: DeserializeOwned, C: Codec>(message: Message, codec: C) -> Result<T, TypedRecvError> {
    match message.decode(codec) {
        Ok(value) => Ok(value),
        Err(error) => Err(TypedRecvError::Undecoded(Undecoded { message, error })),
    }
}

macro_rules! sends {
    ($($socket:ident)*) => {$(
        #[doc = concat!("Values out of a [`", stringify!($socket), "`].")]
        impl<T: Serialize, C: Codec> Typed<$socket, T, C> {
            /// Sends, as the socket's `send` does.
            ///
            /// # Errors
            /// As the socket's, with the message; or when the codec cannot write the value.
            pub fn send(&self, value: &T) -> Result<(), TypedSendError> {
                Ok(self.socket.send(self.message(value)?)?)
            }

            /// Sends, as the socket's `send_timeout` does.
            ///
            /// # Errors
            /// As `send`.
            pub fn send_timeout(&self, value: &T, timeout: Duration) -> Result<(), TypedSendError> {
                Ok(self.socket.send_timeout(self.message(value)?, timeout)?)
            }

            /// Sends, as the socket's `try_send` does.
            ///
            /// # Errors
            /// As `send`.
            pub fn try_send(&self, value: &T) -> Result<(), TypedSendError> {
                Ok(self.socket.try_send(self.message(value)?)?)
            }

            /// Sends, as the socket's `send_async` does: dropped before it is ready, it has sent nothing.
            ///
            /// # Errors
            /// As `send`.
            pub async fn send_async(&self, value: &T) -> Result<(), TypedSendError> {
                let message = self.message(value)?;
                Ok(self.socket.send_async(message).await?)
            }
        }
    )*};
}

macro_rules! receives {
    ($($socket:ident)*) => {$(
        #[doc = concat!("Values into a [`", stringify!($socket), "`]: the last part of each message.")]
        impl<T: DeserializeOwned, C: Codec> Typed<$socket, T, C> {
            /// Receives, as the socket's `recv` does.
            ///
            /// # Errors
            /// As the socket's; or a message that is no such value, as it came.
            pub fn recv(&self) -> Result<T, TypedRecvError> {
                self.value(self.socket.recv()?)
            }

            /// Receives, as the socket's `recv_timeout` does.
            ///
            /// # Errors
            /// As `recv`.
            pub fn recv_timeout(&self, timeout: Duration) -> Result<T, TypedRecvError> {
                self.value(self.socket.recv_timeout(timeout)?)
            }

            /// Receives, as the socket's `try_recv` does.
            ///
            /// # Errors
            /// As `recv`.
            pub fn try_recv(&self) -> Result<T, TypedRecvError> {
                self.value(self.socket.try_recv()?)
            }

            /// Receives, as the socket's `recv_async` does: dropped before it is ready, it leaves the
            /// message where it was.
            ///
            /// # Errors
            /// As `recv`.
            pub async fn recv_async(&self) -> Result<T, TypedRecvError> {
                self.value(self.socket.recv_async().await?)
            }
        }
    )*};
}

sends!(Push Dealer Pair);
receives!(Pull Sub Dealer Pair);

/// Values out of a [`Pub`], each behind its topic, which is a part of its own.
impl<T: Serialize, C: Codec> Typed<Pub, T, C> {
    /// Publishes, as [`Pub::send`] does.
    ///
    /// # Errors
    /// As the socket's, with the message; or when the codec cannot write the value.
    pub fn publish(&self, topic: impl Into<Part>, value: &T) -> Result<(), TypedSendError> {
        Ok(self.socket.send(behind(topic, self.message(value)?))?)
    }

    /// Publishes, as [`Pub::send_async`] does.
    ///
    /// # Errors
    /// As `publish`.
    pub async fn publish_async(
        &self,
        topic: impl Into<Part>,
        value: &T,
    ) -> Result<(), TypedSendError> {
        let message = behind(topic, self.message(value)?);
        Ok(self.socket.send_async(message).await?)
    }
}

/// Questions of type `T` at a [`Req`]; the type of an answer is its caller's choice.
impl<T: Serialize, C: Codec> Typed<Req, T, C> {
    /// Asks and waits for the answer, as [`Req::request`] does.
    ///
    /// # Errors
    /// As the socket's; a question that the codec cannot write; or an answer that is no `A`, as it came.
    pub fn request<A: DeserializeOwned>(
        &self,
        question: &T,
        timeout: Duration,
    ) -> Result<A, TypedRecvError> {
        let question = self.question(question)?;
        decoded(self.socket.request(question, timeout)?, self.codec)
    }

    /// Asks, as [`Req::request_async`] does: dropped before it is ready, the request is cancelled.
    ///
    /// # Errors
    /// As `request`.
    pub async fn request_async<A: DeserializeOwned>(
        &self,
        question: &T,
    ) -> Result<A, TypedRecvError> {
        let question = self.question(question)?;
        decoded(self.socket.request_async(question).await?, self.codec)
    }

    fn question(&self, question: &T) -> Result<Message, TypedRecvError> {
        self.encoder.lock().message(question).map_err(TypedRecvError::Unencoded)
    }
}
