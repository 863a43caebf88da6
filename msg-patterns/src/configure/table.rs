//! The settings: the one place where each is named, explained, given a default, parsed, printed and
//! checked. What else knows settings is made from this table: the builders' methods, the queries of
//! addresses, files, the environment, and the table in `docs/configuration.md`.

use std::time::Duration;

use bytes::Bytes;
use msg_proto::types::SocketType;

use super::kinds::{
    Body, Count, Full, Identity, Kind, Name, Notices, Patience, Size, SomeSize, SomeTime, Stop,
    Switch, Time, TimeOrAuto, TimeOrNever,
};
use super::setting::{Setting, parse_into};
use crate::options::{Builder, Linger, Notify, OnFull, ReconnectStop};
use crate::sockets::Socket;
use crate::{Dealer, Pub, Push, Req, Router, Sub, XPub, XSub};

/// The sockets that have the settings of every socket.
const EVERY: &[SocketType] = &[
    SocketType::Pub,
    SocketType::Sub,
    SocketType::Push,
    SocketType::Pull,
    SocketType::Req,
    SocketType::Rep,
    SocketType::Dealer,
    SocketType::Router,
    SocketType::Pair,
    SocketType::XPub,
    SocketType::XSub,
];

/// A row is `name: type as kind = default, "default as written";`. The kind says what may be written.
macro_rules! settings {
    (
        every socket {$(
            $(#[doc = $doc:literal])+
            $name:ident: $type:ty as $kind:ty = $default:expr, $text:literal;
        )*}
        every socket, by conversion {$(
            $(#[doc = $into_doc:literal])+
            $into:ident: $into_type:ty as $into_kind:ty = $into_default:expr, $into_text:literal;
        )*}
        every socket, two at once {$(
            $(#[doc = $both_doc:literal])+
            $both:ident: $both_type:ty as $both_kind:ty = $one:ident and $other:ident, $both_text:literal;
        )*}
        some sockets {$(
            $(#[doc = $some_doc:literal])+
            [$($socket:ident),+]
            $some:ident: $some_type:ty as $some_kind:ty = $some_default:expr, $some_text:literal;
        )*}
    ) => {
        /// What a socket is set to.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct Options {
            $(pub(crate) $name: $type,)*
            $(pub(crate) $into: $into_type,)*
            $(pub(crate) $some: $some_type,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    $($into: $into_default,)*
                    $($some: $some_default,)*
                }
            }
        }

        impl<S: Socket> Builder<S> {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($name), "=", $text, "`.")]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.options.$name = $name;
                    self
                }
            )*
            $(
                $(#[doc = $into_doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($into), "=", $into_text, "`.")]
                pub fn $into(mut self, $into: impl Into<$into_type>) -> Self {
                    self.options.$into = $into.into();
                    self
                }
            )*
            $(
                $(#[doc = $both_doc])+
                pub fn $both(self, $both: $both_type) -> Self {
                    self.$one($both).$other($both)
                }
            )*
        }

        settings! { @some $(
            [$(#[doc = $some_doc])+ #[doc = concat!("\n\nDefault: `", stringify!($some), "=", $some_text, "`.")]]
            [$($socket)+] $some: $some_type;
        )* }

        /// All of them, in the order of the documentation.
        pub(crate) static TABLE: &[Setting] = &[
            $(Setting {
                name: stringify!($both),
                lines: &[$($both_doc),+],
                written: <$both_kind as Kind>::WRITTEN,
                default: $both_text,
                sockets: EVERY,
                stands_for: &[stringify!($one), stringify!($other)],
                parse: |options, text| {
                    parse_into::<$both_kind>(&mut options.$one, text)?;
                    parse_into::<$both_kind>(&mut options.$other, text)
                },
                print: |options| <$both_kind as Kind>::print(&options.$one),
                is_valid: |options| <$both_kind as Kind>::is_valid(&options.$one),
            },)*
            $(settings! { @row EVERY, [$($doc),+] $name $kind, $text },)*
            $(settings! { @row EVERY, [$($into_doc),+] $into $into_kind, $into_text },)*
            $(settings! { @row &[$(SocketType::$socket),+], [$($some_doc),+] $some $some_kind, $some_text },)*
        ];
    };
    (@row $sockets:expr, [$($doc:literal),+] $name:ident $kind:ty, $text:literal) => {
        Setting {
            name: stringify!($name),
            lines: &[$($doc),+],
            written: <$kind as Kind>::WRITTEN,
            default: $text,
            sockets: $sockets,
            stands_for: &[],
            parse: |options, text| parse_into::<$kind>(&mut options.$name, text),
            print: |options| <$kind as Kind>::print(&options.$name),
            is_valid: |options| <$kind as Kind>::is_valid(&options.$name),
        }
    };
    (@some $($docs:tt $sockets:tt $name:ident: $type:ty;)*) => {
        $(settings! { @each $docs $sockets $name: $type })*
    };
    (@each $docs:tt [$($socket:ident)+] $name:ident: $type:ty) => {
        $(settings! { @one $docs $socket $name: $type })+
    };
    (@one [$(#[$doc:meta])+] $socket:ident $name:ident: $type:ty) => {
        impl Builder<$socket> {
            $(#[$doc])+
            pub fn $name(mut self, $name: $type) -> Self {
                self.options.$name = $name;
                self
            }
        }
    };
}

settings! {
    every socket {
        /// Messages queued for each peer beyond what it granted; 0 is no limit (ZMQ_SNDHWM).
        send_hwm: usize as Count = 1000, "1000";
        /// Messages granted to each peer: what waits here to be received; 0 is no limit (ZMQ_RCVHWM).
        recv_hwm: usize as Count = 1000, "1000";
        /// Bytes queued for each peer beyond what it granted; 0 is no limit. A single larger message
        /// is still taken when nothing else is queued.
        send_hwm_bytes: usize as Size = 64 << 20, "64MiB";
        /// Bytes granted to each peer; 0 is no limit. A single larger message is still granted while
        /// half of it is free.
        recv_hwm_bytes: usize as Size = 64 << 20, "64MiB";
        /// Largest message taken, in bytes over all parts. A peer that sends a larger one is
        /// disconnected; a larger one handed to `send` is refused (ZMQ_MAXMSGSIZE).
        message_bytes_max: usize as SomeSize = 64 << 20, "64MiB";
        /// How long `close` waits for what was accepted and has not left (ZMQ_LINGER).
        linger: Linger as Patience = Linger::Forever, "forever";
        /// Wait before the first attempt to connect again, plus a random part below it
        /// (ZMQ_RECONNECT_IVL).
        reconnect_interval: Option<Duration> as TimeOrNever = Some(Duration::from_millis(100)), "100ms";
        /// The wait doubles up to this; at 0 it stays the same (ZMQ_RECONNECT_IVL_MAX).
        reconnect_interval_max: Duration as Time = Duration::ZERO, "0s";
        /// When not to connect again (ZMQ_RECONNECT_STOP): when nobody listens there, or when the
        /// peer was there and the greeting failed.
        reconnect_stop: ReconnectStop as Stop = ReconnectStop::default(), "never";
        /// Queue only for peers that are connected, not for those being connected to (ZMQ_IMMEDIATE).
        immediate: bool as Switch = false, "false";
        /// How long the greeting of a new connection may take (ZMQ_HANDSHAKE_IVL).
        handshake_timeout: Duration as SomeTime = Duration::from_secs(30), "30s";
        /// How often each peer is asked for a sign of life; 0 is never (ZMQ_HEARTBEAT_IVL).
        heartbeat_interval: Duration as Time = Duration::ZERO, "0s";
        /// How long a peer may stay silent after a question; `auto` (`None`) is as long as the
        /// interval (ZMQ_HEARTBEAT_TIMEOUT).
        heartbeat_timeout: Option<Duration> as TimeOrAuto = None, "auto";
        /// How long the peer should let this side stay silent; 0 is for ever. Rounded down to tenths
        /// of a second, at most 6553.5 s (ZMQ_HEARTBEAT_TTL).
        heartbeat_ttl: Duration as Time = Duration::ZERO, "0s";
        /// How long to poll without sleeping before a call sleeps. Costs a core while it lasts and
        /// saves the wake-up.
        busy_poll: Duration as Time = Duration::ZERO, "0s";
        /// Most peers at a time; further ones are refused.
        peers_max: usize as Count = 65_536, "65536";
    }
    every socket, by conversion {
        /// A name told to peers, up to 255 bytes, not starting with a zero byte (ZMQ_ROUTING_ID).
        identity: Bytes as Identity = Bytes::new(), "";
        /// A name for logs and metrics, which peers are not told. Without it they show a number that
        /// counts the sockets of the process.
        name: String as Name = String::new(), "";
    }
    every socket, two at once {
        /// Sets `send_hwm` and `recv_hwm`; where one of them is given too, that one holds.
        hwm: usize as Count = send_hwm and recv_hwm, "1000";
        /// Sets `send_hwm_bytes` and `recv_hwm_bytes`; where one of them is given too, that one holds.
        hwm_bytes: usize as Size = send_hwm_bytes and recv_hwm_bytes, "64MiB";
    }
    some sockets {
        /// What happens to a message for a subscriber without room: drop it for that subscriber, or
        /// block until it has room.
        [Pub, XPub]
        on_full: OnFull as Full = OnFull::Drop, "drop";
        /// Gives the last so many messages that match to a subscriber that comes late.
        [Pub, XPub]
        history: usize as Count = 0, "0";
        /// Keeps only the newest message queued for each subscriber, and the newest one received from
        /// each publisher (ZMQ_CONFLATE).
        [Pub, Sub]
        conflate: bool as Switch = false, "false";
        /// Goes to those that did *not* subscribe to the topic; publishers and subscribers need the
        /// same setting (ZMQ_INVERT_MATCHING).
        [Pub, Sub, XPub]
        invert_matching: bool as Switch = false, "false";
        /// Most different topics of one subscriber, which is refused beyond; 400,000 keeps the memory
        /// for each subscriber under 64 MiB.
        [Pub, XPub]
        subscriptions_max: usize as Count = 400_000, "400000";
        /// An XPUB tells of every subscription, not only of the first to each topic (ZMQ_XPUB_VERBOSE).
        /// An XSUB tells its publishers of every subscription and cancellation, not only of the first
        /// and the last of equal ones (ZMQ_XSUB_VERBOSE_UNSUBSCRIBE).
        [XPub, XSub]
        verbose: bool as Switch = false, "false";
        /// Tells of every cancellation too; implies `verbose` (ZMQ_XPUB_VERBOSER).
        [XPub]
        verboser: bool as Switch = false, "false";
        /// Leaves it to the application what subscribers get: each of their subscriptions and
        /// cancellations is told, and none has an effect but those of `subscribe_for` and
        /// `unsubscribe_for` (ZMQ_XPUB_MANUAL).
        [XPub]
        manual: bool as Switch = false, "false";
        /// A message for each new subscriber, as soon as it has subscribed to it; none if it is empty
        /// (ZMQ_XPUB_WELCOME_MSG).
        [XPub]
        welcome: Bytes as Body = Bytes::new(), "";
        /// Keeps each message until the puller says that it was processed, and gives it to another
        /// one if the first leaves before. A message may then be processed twice, by different
        /// pullers, but none is lost while this socket lives.
        [Push]
        acknowledge: bool as Switch = false, "false";
        /// Sends a request to another peer when the one that held it leaves; so it may be processed
        /// twice. Without it, the call fails with `PeerGone`.
        [Req]
        retry: bool as Switch = false, "false";
        /// Also sends a request again when no reply came for so long; implies `retry`.
        [Req]
        resend_after: Option<Duration> as TimeOrNever = None, "never";
        /// Allows `send` before the reply to the last request came; that reply is then dropped
        /// (ZMQ_REQ_RELAXED). Without it, `send` then fails with `State`.
        [Req]
        relaxed: bool as Switch = false, "false";
        /// Sends an empty message to each ROUTER as soon as it is there, before all others, so that
        /// it knows of this socket (ZMQ_PROBE_ROUTER).
        [Dealer, Router]
        probe_router: bool as Switch = false, "false";
        /// Hands a message back that no peer can be found for (`NoPeer`), and waits while its peer has
        /// no room (ZMQ_ROUTER_MANDATORY). Without it, such messages are dropped and counted.
        [Router]
        mandatory: bool as Switch = false, "false";
        /// Gives the identity of a peer to a newer one that has the same, and refuses the older one
        /// (ZMQ_ROUTER_HANDOVER). Without it, the newer one is refused until the older one leaves.
        [Router]
        handover: bool as Switch = false, "false";
        /// Receives an empty message from each peer that has come, before all others of it, or has gone,
        /// behind them (ZMQ_ROUTER_NOTIFY).
        [Router]
        notify: Notify as Notices = Notify::default(), "no";
    }
}

impl Options {
    /// A high-water mark as a number to compare with: 0 means none.
    pub(crate) fn limit(hwm: usize) -> u64 {
        if hwm == 0 { u64::MAX } else { hwm as u64 }
    }
}
