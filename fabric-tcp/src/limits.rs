//! Bounds that are not a matter of taste, with the reason for each.

use std::time::Duration;

/// Backlog of a listener; the kernel lowers it to its own limit.
pub(crate) const BACKLOG: i32 = 4096;

/// Connections taken from one listener per poll, so that a flood of them leaves time for others.
pub(crate) const ACCEPTS_PER_POLL: usize = 64;

/// How long a listener rests after the host had no descriptor left. Nothing tells when one is free.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes read from one connection per poll before others get their turn.
pub(crate) const READ_BYTES_PER_POLL: usize = 512 << 10;

/// Bytes written to one connection per flush before others get their turn.
pub(crate) const WRITE_BYTES_PER_FLUSH: usize = 4 << 20;

/// Pieces handed to one vectored write; the kernel takes 1024, and far fewer reach its best rate.
pub(crate) const PIECES_PER_WRITE: usize = 256;

/// Read ahead where no posted slot can take it. It may end up in a connection's spill buffer.
pub(crate) const READ_AHEAD_BYTES: usize = 4 << 10;

/// Scratch memory of a domain, for bytes that nobody wants. Every idle socket has it.
pub(crate) const SCRATCH_BYTES: usize = READ_AHEAD_BYTES;

/// Undelivered events at which flushing stops, so that a caller who never polls has a bound.
pub(crate) const EVENTS_MAX: usize = 64 << 10;

/// Exposures of one domain.
pub(crate) const REGIONS_MAX: usize = 64 << 10;

/// Largest remote read or write.
pub(crate) const RMA_BYTES_MAX: usize = 16 << 30;

/// Chunks of one read in flight: enough to keep the wire busy while the requester wakes up.
pub(crate) const READ_WINDOW: usize = 4;

/// How long a closed connection is kept to hand over what was accepted before it closed.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(2);

/// Closed connections kept at most; one more drops the oldest.
pub(crate) const LINGERS_MAX: usize = 4096;

/// Unsent ends of messages kept by all closed connections together.
pub(crate) const LINGER_BYTES_MAX: usize = 16 << 20;
