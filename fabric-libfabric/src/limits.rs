//! Bounds that are not a matter of taste, with the reason for each.

use std::time::Duration;

/// Bytes of a packet, head included: large enough for its costs not to show, small enough that a
/// hundred idle peers cost little.
pub(crate) const PACKET_BYTES: usize = 16 << 10;

/// The least that a peer may take: a head, a reach and some bytes.
pub(crate) const PACKET_BYTES_MIN: usize = 256;

/// Packets made, and where needed registered, at once.
pub(crate) const CHUNK_PACKETS: usize = 64;

/// Packets that a peer may send beyond its credit: a greeting, three grants and one goodbye. Grants are
/// held back until they are worth half a window, so more than that are never under way.
pub(crate) const CONTROL_PACKETS: usize = 5;

/// Pieces of remote operations that one side has under way on one endpoint. Each is a request and an
/// answer, for which the other side keeps a receive; so they need no credit.
pub(crate) const PIECES_MAX: usize = 8;

/// The smallest and the largest window of an endpoint, in packets.
pub(crate) const WINDOW_MIN: usize = 2;
pub(crate) const WINDOW_MAX: usize = 64;

/// Receives that one endpoint has posted at most, and so what its queues must hold.
pub(crate) const RECEIVES_MAX: usize = WINDOW_MAX + CONTROL_PACKETS + 2 * PIECES_MAX;

/// Packets of one endpoint that the provider has to send. A peer that stopped reading holds that many
/// up, and nobody else's.
pub(crate) const FLIGHTS_MAX: usize = 32;

/// Completions that a queue has room for.
pub(crate) const COMPLETIONS: usize = 16 << 10;

/// Undelivered events at which completions are left where they are.
pub(crate) const EVENTS_MAX: usize = 16 << 10;

/// Largest remote read or write.
pub(crate) const RMA_BYTES_MAX: usize = 16 << 30;

/// Exposures of one domain.
pub(crate) const REGIONS_MAX: usize = 16 << 10;

/// Segments in one send; they are gathered by copying.
pub(crate) const SEGMENTS_MAX: usize = 16;

/// Peers that connected to a side channel and have not said hello; one more drops the oldest.
pub(crate) const GREETINGS_MAX: usize = 1024;

/// Backlog of a listener; the kernel lowers it to its own limit.
pub(crate) const BACKLOG: i32 = 4096;

/// Bytes of the longest name of a provider's endpoint that is taken from a peer.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// How often connections are asked about while nobody sleeps. Asking is a system call, which polling
/// for completions need not be.
pub(crate) const LOOK_EVERY: Duration = Duration::from_micros(100);

/// Turns in a row that do not look at the clock. Who polls seldom should not wait long for a peer.
pub(crate) const BLIND_TURNS_MAX: u32 = 8;

/// Looks at the queues of a provider of this host, of which one takes some 60 ns, in one turn.
pub(crate) const LOOKS_IN_A_ROW: usize = 4;

/// A peer that got nothing for this long may have fallen asleep, where a provider has no descriptor
/// to sleep on: it is nudged.
pub(crate) const NUDGE_AFTER: Duration = Duration::from_micros(50);

/// Where nothing came for this long, a nudge announces what comes next: one can sleep without end. More
/// than [`NUDGE_AFTER`] by far, and short, as a descriptor tells of nothing before that.
pub(crate) const QUIET_AFTER: Duration = Duration::from_micros(200);

/// The shortest and the longest nap between two looks, where a provider has no descriptor.
pub(crate) const NAP_MIN: Duration = Duration::from_micros(20);
pub(crate) const NAP_MAX: Duration = Duration::from_millis(20);

/// How soon something is tried again that a provider had no room for.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(1);

/// How long a dropped domain waits for what it sent, in naps of a millisecond.
pub(crate) const DROP_NAPS: usize = 50;
