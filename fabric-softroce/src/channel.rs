//! Questions to the kernel and their answers, over a netlink socket.

use std::io;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_sys::protocols::NETLINK_RDMA;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::message::Message;

/// The kernel answers at once, unless it has to load modules first.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A host with more devices than this many datagrams tell of is none.
const DATAGRAMS_MAX: usize = 4096;

/// A conversation with the kernel about RDMA devices.
pub(crate) struct Channel {
    socket: Socket,
    sequence: u32,
}

impl Channel {
    /// A new one.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` when the kernel has no RDMA.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_RDMA)?;
        socket.bind_auto()?;
        socket.connect(&kernel())?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks about or for one thing; the answer is empty if there is nothing to say but "done".
    ///
    /// # Errors
    /// The kernel's refusal, or what goes wrong with the socket.
    pub(crate) fn ask(&mut self, question: Message) -> io::Result<Vec<Message>> {
        self.converse(question, NLM_F_REQUEST | NLM_F_ACK)
    }

    /// Asks about all things of a kind.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn ask_all(&mut self, question: Message) -> io::Result<Vec<Message>> {
        self.converse(question, NLM_F_REQUEST | NLM_F_DUMP)
    }

    fn converse(&mut self, question: Message, flags: u16) -> io::Result<Vec<Message>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&encode(question, flags, self.sequence), 0)?;
        let mut answers = Vec::new();
        for _ in 0..DATAGRAMS_MAX {
            let (datagram, from) = self.socket.recv_from_full()?;
            if from.port_number() == kernel().port_number()
                && read(&datagram, self.sequence, &mut answers)?
            {
                return Ok(answers);
            }
        }
        Err(malformed("the kernel's answer does not end"))
    }
}

fn kernel() -> SocketAddr {
    SocketAddr::new(0, 0)
}

fn encode(question: Message, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut whole = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
    whole.finalize();
    let mut bytes = vec![0; whole.buffer_len()];
    whole.serialize(&mut bytes);
    bytes
}

/// Takes the answers out of a datagram and says whether that was all. What answers an earlier
/// question is passed over.
fn read(mut datagram: &[u8], sequence: u32, answers: &mut Vec<Message>) -> io::Result<bool> {
    while !datagram.is_empty() {
        let message = NetlinkMessage::<Message>::deserialize(datagram)
            .map_err(|error| malformed(&error.to_string()))?;
        datagram = rest(datagram, message.header.length);
        if message.header.sequence_number != sequence {
            continue;
        }
        match message.payload {
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            NetlinkPayload::Done(done) if done.code < 0 => {
                return Err(io::Error::from_raw_os_error(-done.code));
            }
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// Messages begin at multiples of four.
fn rest(datagram: &[u8], length: u32) -> &[u8] {
    let next = usize::try_from(length).unwrap_or(usize::MAX).checked_next_multiple_of(4);
    next.and_then(|next| datagram.get(next..)).unwrap_or_default()
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Attribute, Command};

    fn device(index: u32) -> Message {
        let attributes = vec![Attribute::DeviceIndex(index)];
        Message { command: Command::DEVICE_GET, attributes }
    }

    /// What the kernel says last: a type, a sequence number, a code.
    fn last(kind: u16, sequence: u32, code: i32) -> Vec<u8> {
        let head = [&20_u32.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 2]].concat();
        [&head[..], &sequence.to_ne_bytes(), &[0; 4], &code.to_ne_bytes()].concat()
    }

    const ERROR: u16 = 2;
    const DONE: u16 = 3;

    #[test]
    fn answers_end_with_done_or_with_an_acknowledgement() {
        for kind in [ERROR, DONE] {
            let mut answers = Vec::new();
            let datagram = [encode(device(1), 0, 7), encode(device(2), 0, 7)].concat();
            assert!(!read(&datagram, 7, &mut answers).unwrap());
            assert!(read(&last(kind, 7, 0), 7, &mut answers).unwrap());
            assert_eq!(answers, [device(1), device(2)]);
        }
    }

    #[test]
    fn a_refusal_is_the_kernels_error() {
        for kind in [ERROR, DONE] {
            let error = read(&last(kind, 7, -19), 7, &mut Vec::new()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(19));
        }
    }

    #[test]
    fn answers_to_earlier_questions_are_passed_over() {
        let mut answers = Vec::new();
        let datagram = [encode(device(1), 0, 6), last(ERROR, 6, -1), encode(device(2), 0, 7)];
        assert!(!read(&datagram.concat(), 7, &mut answers).unwrap());
        assert_eq!(answers, [device(2)]);
    }

    proptest! {
        #[test]
        fn no_datagram_makes_reading_panic_or_loop(
            datagram in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let _ = read(&datagram, 0, &mut Vec::new());
        }
    }
}
