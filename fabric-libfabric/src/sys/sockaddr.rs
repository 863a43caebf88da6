//! Socket addresses as the host lays them out (`ip(7)`, `ipv6(7)`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const INET: u16 = 2;
const INET6: u16 = 10;

/// The address that `bytes` hold, if they hold one of IPv4 or IPv6.
pub(super) fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match family {
        INET => IpAddr::V4(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_read_and_others_are_not() {
        let mut v4 = [0; 16];
        v4[..2].copy_from_slice(&INET.to_ne_bytes());
        v4[2..8].copy_from_slice(&[0x1b, 0x58, 127, 0, 0, 1]);
        assert_eq!(parse(&v4), Some("127.0.0.1:7000".parse().unwrap()));
        let mut v6 = [0; 28];
        v6[..2].copy_from_slice(&INET6.to_ne_bytes());
        (v6[3], v6[23]) = (9, 1);
        assert_eq!(parse(&v6), Some("[::1]:9".parse().unwrap()));
        assert_eq!(parse(&[1, 0, 0, 0]), None);
        assert_eq!(parse(&v6[..20]), None);
    }
}
