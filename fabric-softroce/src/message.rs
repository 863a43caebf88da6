//! Messages of the kernel's RDMA device interface (`rdma/rdma_netlink.h`).

use netlink_packet_core::{
    DecodeError, Emitable, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable, Nla,
    NlaBuffer, NlasIterator, parse_string, parse_u8, parse_u32,
};

/// The part of the kernel that is spoken to, in the upper bits of a message's type.
const DEVICES: u16 = 5 << 10;

/// What a message asks for or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command(pub(crate) u16);

impl Command {
    /// A device, or all of them.
    pub(crate) const DEVICE_GET: Self = Self(1);
    /// Makes a software device.
    pub(crate) const LINK_NEW: Self = Self(3);
    /// Removes one.
    pub(crate) const LINK_DELETE: Self = Self(4);
    /// A port of a device, or all ports of one device.
    pub(crate) const PORT_GET: Self = Self(5);
    /// What drives a device, as a character device of a given type knows it.
    pub(crate) const CHAR_DEVICE_GET: Self = Self(15);
}

/// A field of a message. The numbers are the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// The number of a device, never used again while the host is up.
    DeviceIndex(u32),
    /// Its name.
    DeviceName(String),
    /// The number of a port, from 1.
    PortIndex(u32),
    /// Whether it is up, see [`PORT_ACTIVE`].
    PortState(u8),
    /// The network interface of a port.
    InterfaceName(String),
    /// The kind of software device: `rxe`.
    LinkType(String),
    /// The kind of character device: `uverbs`.
    CharDeviceType(String),
    /// What drives a device, see [`DRIVER_RXE`].
    DriverId(u32),
    /// Anything else.
    Other(u16, Vec<u8>),
}

/// The state of a port that is up.
pub(crate) const PORT_ACTIVE: u8 = 4;

/// The driver of soft-RoCE.
pub(crate) const DRIVER_RXE: u32 = 14;

const DEVICE_INDEX: u16 = 1;
const DEVICE_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const PORT_STATE: u16 = 12;
const INTERFACE_NAME: u16 = 51;
const LINK_TYPE: u16 = 65;
const CHAR_DEVICE_TYPE: u16 = 69;
const DRIVER_ID: u16 = 73;

/// A request to, or an answer from, the RDMA device interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// What it is about.
    pub(crate) command: Command,
    /// Its fields, in order.
    pub(crate) attributes: Vec<Attribute>,
}

impl Message {
    /// The first value that `pick` finds.
    pub(crate) fn find<'a, T>(&'a self, pick: impl Fn(&'a Attribute) -> Option<T>) -> Option<T> {
        self.attributes.iter().find_map(pick)
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        DEVICES | self.command.0
    }

    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let attributes = NlasIterator::new(payload).map(|field| Attribute::parse(&field?));
        let command = Command(header.message_type & !(0x3f << 10));
        Ok(Self { command, attributes: attributes.collect::<Result<_, _>>()? })
    }
}

impl Attribute {
    fn parse(field: &NlaBuffer<&[u8]>) -> Result<Self, DecodeError> {
        let value = field.value();
        Ok(match field.kind() {
            DEVICE_INDEX => Self::DeviceIndex(parse_u32(value)?),
            DEVICE_NAME => Self::DeviceName(parse_string(value)?),
            PORT_INDEX => Self::PortIndex(parse_u32(value)?),
            PORT_STATE => Self::PortState(parse_u8(value)?),
            INTERFACE_NAME => Self::InterfaceName(parse_string(value)?),
            LINK_TYPE => Self::LinkType(parse_string(value)?),
            CHAR_DEVICE_TYPE => Self::CharDeviceType(parse_string(value)?),
            DRIVER_ID => Self::DriverId(parse_u32(value)?),
            other => Self::Other(other, value.to_vec()),
        })
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::DeviceIndex(number) | Self::PortIndex(number) | Self::DriverId(number) => {
                number.to_ne_bytes().to_vec()
            }
            Self::PortState(state) => vec![*state],
            Self::DeviceName(text)
            | Self::InterfaceName(text)
            | Self::LinkType(text)
            | Self::CharDeviceType(text) => [text.as_bytes(), &[0]].concat(),
            Self::Other(_, bytes) => bytes.clone(),
        }
    }
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        self.bytes().len()
    }

    fn kind(&self) -> u16 {
        match self {
            Self::DeviceIndex(_) => DEVICE_INDEX,
            Self::DeviceName(_) => DEVICE_NAME,
            Self::PortIndex(_) => PORT_INDEX,
            Self::PortState(_) => PORT_STATE,
            Self::InterfaceName(_) => INTERFACE_NAME,
            Self::LinkType(_) => LINK_TYPE,
            Self::CharDeviceType(_) => CHAR_DEVICE_TYPE,
            Self::DriverId(_) => DRIVER_ID,
            Self::Other(kind, _) => *kind,
        }
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
    use proptest::prelude::*;

    use super::*;

    fn encoded(message: &Message) -> Vec<u8> {
        let inner = NetlinkPayload::InnerMessage(message.clone());
        let mut whole = NetlinkMessage::new(NetlinkHeader::default(), inner);
        whole.finalize();
        let mut bytes = vec![0; whole.buffer_len()];
        whole.serialize(&mut bytes);
        bytes
    }

    fn decoded(bytes: &[u8]) -> Message {
        match NetlinkMessage::<Message>::deserialize(bytes).unwrap().payload {
            NetlinkPayload::InnerMessage(message) => message,
            other => panic!("{other:?}"),
        }
    }

    fn attributes() -> impl Strategy<Value = Attribute> {
        let text = "[a-z0-9_]{0,20}";
        prop_oneof![
            any::<u32>().prop_map(Attribute::DeviceIndex),
            text.prop_map(Attribute::DeviceName),
            any::<u32>().prop_map(Attribute::PortIndex),
            any::<u8>().prop_map(Attribute::PortState),
            text.prop_map(Attribute::InterfaceName),
            text.prop_map(Attribute::LinkType),
            text.prop_map(Attribute::CharDeviceType),
            any::<u32>().prop_map(Attribute::DriverId),
            (80_u16..99, proptest::collection::vec(any::<u8>(), 0..9))
                .prop_map(|(kind, bytes)| Attribute::Other(kind, bytes)),
        ]
    }

    #[test]
    fn a_new_link_looks_as_the_kernel_wants_it() {
        let attributes = vec![
            Attribute::DeviceName("rxe0".into()),
            Attribute::InterfaceName("eth0".into()),
            Attribute::LinkType("rxe".into()),
        ];
        let bytes = encoded(&Message { command: Command::LINK_NEW, attributes });
        assert_eq!(bytes.len(), 16 + 12 + 12 + 8);
        assert_eq!(bytes[..4], 48_u32.to_ne_bytes());
        assert_eq!(bytes[4..6], 0x1403_u16.to_ne_bytes());
        assert_eq!(bytes[16..18], 9_u16.to_ne_bytes());
        assert_eq!(bytes[18..20], 2_u16.to_ne_bytes());
        assert_eq!(bytes[20..28], *b"rxe0\0\0\0\0");
        assert_eq!(bytes[40..], [&8_u16.to_ne_bytes()[..], &[65, 0], b"rxe\0"].concat());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_the_same(
            command in 0_u16..1024,
            attributes in proptest::collection::vec(attributes(), 0..8),
        ) {
            let message = Message { command: Command(command), attributes };
            prop_assert_eq!(decoded(&encoded(&message)), message);
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = NetlinkMessage::<Message>::deserialize(&bytes);
            let header = NetlinkHeader::default();
            let _ = Message::deserialize(&header, &bytes);
        }
    }
}
