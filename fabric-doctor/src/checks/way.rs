//! D06 and D27: what only messages show. The program that asks lends its own verbs for them.

use std::net::IpAddr;

use super::Case;
use crate::facts::Device;
use crate::finding::Finding;

/// A device is believed when it carried a message.
pub(super) fn d06_no_loopback(case: &Case<'_>, usable: &[&Device]) -> Vec<Finding> {
    let Some(probe) = case.probe else { return Vec::new() };
    let failed =
        |device: &&Device| Some((device.name.clone(), probe.loopback(&device.name).err()?));
    let finding = |(name, error): (String, String)| {
        Finding::error(6)
            .about(&name)
            .seen(format!("a message to itself over {name}: {error}"))
            .cause("library, driver and kernel disagree, or the device carries nothing")
            .command(format!("ibv_rc_pingpong -d {name}"))
    };
    usable.iter().filter_map(failed).map(finding).collect()
}

/// TCP reaches the peer, and RDMA works here, but not to there.
pub(super) fn refused_there(case: &Case<'_>, usable: &[&Device]) -> Option<Finding> {
    let refusal = case.rdma_refusal?;
    let peer = case.peer?;
    if usable.is_empty() {
        return None;
    }
    let seen = format!("TCP reaches {peer}, RDMA does not: {refusal}");
    if own_id(refusal) == Some(26) {
        return Some(smaller_there(seen, peer));
    }
    let finding = Finding::error(27)
        .seen(seen)
        .cause("a firewall or switch drops RoCE (UDP port 4791), or the peer has no RDMA there")
        .command("nft list ruleset | grep -n 4791");
    Some(finding)
}

/// The peer heard this side, and takes smaller packets.
fn smaller_there(seen: String, peer: IpAddr) -> Finding {
    Finding::error(26)
        .seen(seen)
        .cause("the interfaces of both ends have different MTUs")
        .command(format!("tracepath -n {peer}"))
}

/// The number of the finding that an error begins with, as in `D26: …`.
fn own_id(error: &str) -> Option<u8> {
    error.strip_prefix('D')?.split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Host;
    use crate::facts::device::testing::device_on;
    use crate::root::Root;

    #[test]
    fn rdma_that_works_here_and_does_not_reach_who_tcp_reaches_is_filtered() {
        let host = Host::read(&Root::tree("/nonexistent"));
        let case = Case {
            host: &host,
            peer: Some([10, 0, 0, 9].into()),
            way_mtu_bytes: None,
            rdma_refusal: Some("no answer"),
            probe: None,
            earlier: None,
        };
        let device = device_on("ens2");
        let finding = refused_there(&case, &[&device]).unwrap();
        assert_eq!(finding.seen, "TCP reaches 10.0.0.9, RDMA does not: no answer");
        assert_eq!(refused_there(&case, &[]), None);
        let smaller = Case { rdma_refusal: Some("D26: it takes smaller packets"), ..case };
        assert_eq!(refused_there(&smaller, &[&device]).unwrap().id.number(), 26);
        assert_eq!(refused_there(&Case { rdma_refusal: None, ..case }, &[&device]), None);
    }
}
