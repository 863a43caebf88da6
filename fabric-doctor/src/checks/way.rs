//! D06 and D27: what only messages show. The program that asks lends its own verbs for them.

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
pub(super) fn d27_filtered(case: &Case<'_>, usable: &[&Device]) -> Option<Finding> {
    let refusal = case.rdma_refusal?;
    let peer = case.peer?;
    let finding = Finding::error(27)
        .seen(format!("TCP reaches {peer}, RDMA does not: {refusal}"))
        .cause("a firewall or switch drops RoCE (UDP port 4791), or the peer has no RDMA there")
        .command("nft list ruleset | grep -n 4791");
    (!usable.is_empty()).then_some(finding)
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
        let finding = d27_filtered(&case, &[&device]).unwrap();
        assert_eq!(finding.seen, "TCP reaches 10.0.0.9, RDMA does not: no answer");
        assert_eq!(d27_filtered(&case, &[]), None);
        assert_eq!(d27_filtered(&Case { rdma_refusal: None, ..case }, &[&device]), None);
    }
}
