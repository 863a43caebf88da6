//! What the kernel says of RDMA as a whole, over netlink (`rdma/rdma_netlink.h`). Everybody may ask.

use std::io;
use std::time::Duration;

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable, NlasIterator, parse_u8,
};
use netlink_sys::protocols::NETLINK_RDMA;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::facts::kernel::System;

/// The part of the kernel that is spoken to, in the upper bits of a message's type, and the
/// question.
const SYSTEM_GET: u16 = 5 << 10 | 6;

const NAMESPACE_MODE: u16 = 66;
/// The value of that attribute when namespaces share devices; else each has its own.
const SHARED: u8 = 1;
const COPY_ON_FORK: u16 = 93;

/// The answer takes no time; a kernel that does not give one is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Settings of this host, unless its kernel has no RDMA or does not say.
pub(crate) fn system() -> Option<System> {
    ask().ok()
}

fn ask() -> io::Result<System> {
    let mut socket = Socket::new(NETLINK_RDMA)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    socket.send(&question(), 0)?;
    let (datagram, _) = socket.recv_from_full()?;
    answer(&datagram)
}

fn question() -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK;
    header.sequence_number = 1;
    let inner = NetlinkPayload::InnerMessage(Settings(System::default()));
    let mut message = NetlinkMessage::new(header, inner);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn answer(datagram: &[u8]) -> io::Result<System> {
    let broken = |error: DecodeError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    match NetlinkMessage::<Settings>::deserialize(datagram).map_err(broken)?.payload {
        NetlinkPayload::InnerMessage(Settings(system)) => Ok(system),
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(System::default()),
    }
}

/// Settings as a message: empty as a question.
struct Settings(System);

impl NetlinkSerializable for Settings {
    fn message_type(&self) -> u16 {
        SYSTEM_GET
    }

    fn buffer_len(&self) -> usize {
        0
    }

    fn serialize(&self, _: &mut [u8]) {}
}

impl NetlinkDeserializable for Settings {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let mut system = System::default();
        for field in NlasIterator::new(payload) {
            let field = field?;
            match field.kind() {
                NAMESPACE_MODE => {
                    system.exclusive_namespaces = Some(parse_u8(field.value())? != SHARED);
                }
                COPY_ON_FORK => system.copies_on_fork = Some(parse_u8(field.value())? != 0),
                _ => {}
            }
        }
        Ok(Self(system))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a kernel with shared namespaces and copies at forks says.
    fn said(mode: u8, copies: u8) -> Vec<u8> {
        let field = |kind: u8, value: u8| [5, 0, kind, 0, value, 0, 0, 0];
        let fields = [field(66, mode), field(93, copies), field(7, 9)].concat();
        let length = u32::try_from(16 + fields.len()).unwrap();
        let head = [&length.to_ne_bytes()[..], &SYSTEM_GET.to_ne_bytes(), &[0; 10]].concat();
        [head, fields].concat()
    }

    #[test]
    fn settings_are_read_as_the_kernel_tells_them() {
        let expected = |exclusive, copies| System {
            exclusive_namespaces: Some(exclusive),
            copies_on_fork: Some(copies),
        };
        assert_eq!(answer(&said(1, 1)).unwrap(), expected(false, true));
        assert_eq!(answer(&said(0, 0)).unwrap(), expected(true, false));
    }

    #[test]
    fn the_question_is_a_message_without_fields() {
        assert_eq!(question()[..4], 16_u32.to_ne_bytes());
        assert_eq!(question()[4..6], 0x1406_u16.to_ne_bytes());
    }

    proptest! {
        #[test]
        fn no_datagram_makes_reading_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = answer(&bytes);
        }
    }
}
