//! Bounds that are not a matter of taste, with the reason for each.

/// Bytes of a packet, head included: large enough for its costs not to show, small enough that a
/// thousand idle peers cost little.
pub(crate) const PACKET_BYTES: usize = 8 << 10;

/// Packets registered at once.
pub(crate) const CHUNK_PACKETS: usize = 128;

/// Packets that a peer may send beyond its credit: three grants and one goodbye. Grants are held
/// back until they are worth half a window, so more than that are never under way.
pub(crate) const CONTROL_PACKETS: usize = 4;

/// The smallest and the largest window of an endpoint, in packets.
pub(crate) const WINDOW_MIN: usize = 2;
pub(crate) const WINDOW_MAX: usize = 64;

/// Receives that the shared queue has room for; each is a packet of locked memory once it is used.
pub(crate) const STOCK_MAX: usize = 16 << 10;

/// Packets for what has to be copied on its way out.
pub(crate) const OUT_PACKETS: usize = 128;

/// Small packets for heads, grants and goodbyes on their way out.
pub(crate) const OUT_HEADS: usize = 512;

/// Bytes of a small packet.
pub(crate) const HEAD_SLOT_BYTES: usize = 64;

/// Requests in one send queue.
pub(crate) const SEND_QUEUE: usize = 128;

/// Places in a send queue that only grants and goodbyes may use.
pub(crate) const SEND_QUEUE_RESERVE: usize = 4;

/// Without a completion of its own, a request waits for that of a later one: at most so many.
pub(crate) const UNSIGNALLED_MAX: usize = 16;

/// Requests posted with one doorbell.
pub(crate) const POST_BATCH: usize = 16;

/// Up to here copying a message costs less than the completion that gives its buffer back.
pub(crate) const COPY_BYTES_MAX: usize = 2 << 10;

/// Bytes of one piece of a remote read or write; messages of the endpoint pass between pieces.
pub(crate) const RMA_CHUNK_BYTES: usize = 256 << 10;

/// Pieces of remote operations in flight on one endpoint: enough to keep the wire busy.
pub(crate) const RMA_CHUNKS: usize = 4;

/// Largest remote read or write.
pub(crate) const RMA_BYTES_MAX: usize = 16 << 30;

/// From here on registering foreign memory costs less than copying it.
pub(crate) const REGISTER_BYTES_MIN: usize = 16 << 10;

/// Looks at the completion queue in which a device binds a window, as a rule in the first few.
pub(crate) const BIND_LOOKS_MAX: usize = 10_000;

/// Looks between which others may have the processor: some devices are made of software.
pub(crate) const BIND_LOOKS_EACH: usize = 16;

/// Exposures of one domain.
pub(crate) const REGIONS_MAX: usize = 16 << 10;

/// Reads and atomics in flight on one queue pair, where the device allows that many.
pub(crate) const READS_MAX: u8 = 16;

/// Segments in one send: with a head they fit the requests of every device.
pub(crate) const SEGMENTS_MAX: usize = 8;

/// Backlog of a listener; the kernel lowers it to its own limit.
pub(crate) const BACKLOG: i32 = 1024;

/// Undelivered events at which completions are left where they are.
pub(crate) const EVENTS_MAX: usize = 16 << 10;

/// Completions that a domain has room for, where the device allows that many.
pub(crate) const COMPLETIONS: usize = 32 << 10;
