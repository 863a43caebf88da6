//! What a publisher keeps for a peer that it connects to, until the peer has said what it wants.

use crate::Message;
use crate::engine::Net;
use crate::monitor::PeerId;
use crate::options::Options;

/// Messages for one such peer, whatever their topics (PUB-03).
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// How many messages had been published when keeping began: older ones are history.
    pub(crate) since: u64,
    /// The peer asked for history.
    pub(crate) history: bool,
    pub(crate) messages: Vec<Message>,
    bytes: u64,
}

impl Held {
    pub(crate) fn since(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    /// Whether a message of `size` bytes fits, next to what is queued for the peer already.
    pub(crate) fn fits(&self, net: &Net, peer: PeerId, size: u64) -> bool {
        let queued = net.peer(peer);
        let messages = self.messages.len() as u64 + queued.queue.len();
        let bytes = self.bytes + queued.queue.bytes();
        messages < Options::limit(net.options.send_hwm)
            && (messages == 0
                || bytes.saturating_add(size) <= Options::limit(net.options.send_hwm_bytes))
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.bytes += message.len() as u64;
        self.messages.push(message);
    }
}
