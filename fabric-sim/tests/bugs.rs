//! The suite notices: each planted bug makes its case fail, and the healthy fabric passes it.

mod group;

use fabric_conformance::{Harness, Outcome, cases, judge};
use fabric_core::{Addr, Fabric};
use fabric_sim::{Bug, SimDomain, SimFabric, SimNet, SimOptions};

/// A network with a bug, or without one.
struct Bugged {
    fabric: SimFabric,
    polls_max: u32,
}

/// With a bug that makes something never happen, its case ends only when patience does.
const IMPATIENT: u32 = 300;
/// Where a slow machine must not look like a bug.
const PATIENT: u32 = 5000;

impl Bugged {
    fn new(bug: Option<Bug>, polls_max: u32) -> Self {
        let options = SimOptions { bug, ..SimOptions::default() };
        Self { fabric: SimFabric::new(SimNet::with(options)), polls_max }
    }
}

impl Harness for Bugged {
    type Domain = SimDomain;

    fn name(&self) -> &str {
        "sim-bugged"
    }

    fn domain(&self) -> SimDomain {
        self.fabric.open().expect("a simulated domain")
    }

    fn listen_addr(&self) -> Addr {
        Addr::new("sim", "here", Some(0))
    }

    fn unreachable_addr(&self) -> Addr {
        Addr::new("sim", "nowhere", Some(1))
    }

    fn fresh_group(&self) -> Option<Addr> {
        Some(group::fresh())
    }

    fn polls_max(&self) -> u32 {
        self.polls_max
    }
}

/// The case that exists to notice a bug. Others may notice it, too.
fn case_for(bug: Bug) -> &'static str {
    match bug {
        Bug::Reorders => "messages_arrive_in_order",
        Bug::Duplicates | Bug::DropsOne => "every_message_arrives_exactly_once",
        Bug::CorruptsByte => "a_message_arrives_as_it_was_sent",
        Bug::SendsFirstSegmentOnly => "segments_arrive_as_one_message",
        Bug::LosesWaiting => "a_message_waits_for_a_receive",
        Bug::TruncatesLong => "a_message_too_long_for_its_receive_is_not_cut",
        Bug::CrossesEndpoints => "endpoints_do_not_mix",
        Bug::LosesBufferOnClose => "closing_returns_every_posted_send",
        Bug::LeaksSlotOnDrop => "dropping_a_domain_returns_every_slot",
        Bug::ReportsSentTwice => "every_send_comes_back_once_with_its_buffer",
        Bug::KeepsRefusedBuffer => "a_refused_send_hands_the_buffer_back",
        Bug::IgnoresSendDepth => "sends_over_the_depth_are_refused_as_full",
        Bug::IgnoresRecvDepth => "receives_over_the_depth_are_refused_as_full",
        Bug::IgnoresMessageMax => "a_message_over_the_limit_is_misuse",
        Bug::IgnoresSegmentsMax => "too_many_segments_are_misuse",
        Bug::PollExceedsMax => "poll_gives_no_more_than_was_asked_for",
        Bug::WaitIgnoresWaker => "the_waker_ends_wait",
        Bug::ArmStaysSilent => "the_descriptor_tells_of_a_message_after_arm",
        Bug::NeverCloses => "the_peer_learns_of_a_close",
        Bug::EventAfterClosed => "nothing_follows_closed",
        Bug::CloseDropsHandedOver => "messages_handed_over_before_a_close_still_arrive",
        Bug::NeverRefuses => "connecting_to_nobody_is_refused",
        Bug::UnlistenKeepsAccepting => "unlisten_stops_accepting",
        Bug::UnlistenKeepsAddress => "unlisten_frees_the_address_at_once",
        Bug::SharesAddress => "a_second_listener_finds_the_address_in_use",
        Bug::IgnoresKey => "a_wrong_key_is_refused",
        Bug::IgnoresBounds => "a_range_beyond_the_memory_is_refused",
        Bug::IgnoresAccess => "reading_without_the_right_is_refused",
        Bug::IgnoresRevoke => "a_revoked_key_is_refused",
        Bug::ForeignKeyWorks => "a_foreign_endpoint_is_refused",
        Bug::AccessKeepsEndpoint => "a_refused_access_closes_the_endpoint",
        Bug::RevokeForgetsLength => "revoke_gives_the_memory_back_as_it_was",
        Bug::ReadIgnoresOffset => "a_read_starts_at_its_offset",
        Bug::WriteAcksEarly => "a_write_puts_the_bytes_there",
        Bug::ForgetsImm => "an_immediate_value_follows_the_bytes",
        Bug::AtomicReturnsNew => "an_add_gives_the_value_before",
        Bug::AddSaturates => "an_add_wraps",
        Bug::SwapsAlways => "a_swap_does_not_happen_otherwise",
        Bug::EchoesMulticast => "a_member_does_not_hear_itself",
        Bug::ReachesOneMember => "all_other_members_hear_a_message",
        Bug::MixesGroups => "groups_do_not_mix",
        Bug::LeaveKeepsHearing => "a_member_that_left_hears_nothing",
        Bug::JoinsOnce => "a_group_can_be_joined_again",
        Bug::CutsLargeDatagrams => "the_largest_datagram_arrives_whole",
        Bug::IgnoresMtu => "a_datagram_over_the_limit_is_misuse",
        Bug::CastsFirstSegmentOnly => "segments_arrive_as_one_datagram",
        Bug::NamesNoReceive => "a_datagram_names_its_receive",
        Bug::DropsUncounted => "a_datagram_without_a_receive_is_counted",
        Bug::TruncatesDatagrams => "a_datagram_too_long_for_its_receive_is_counted",
        Bug::ReportsCastTwice => "every_datagram_comes_back_once_with_its_buffer",
        Bug::KeepsUnheardCasts => "a_group_without_other_members_takes_datagrams",
        Bug::IgnoresGroupDepth => "a_full_group_hands_the_buffer_back_and_recovers",
        Bug::LosesCastsOnLeave => "leaving_returns_every_posted_datagram",
        Bug::LeaksCastsOnDrop => "dropping_a_domain_returns_slots_of_datagrams",
        Bug::CastsForStrangers => "posting_after_leaving_is_misuse",
        Bug::LeavesTwice => "leaving_twice_is_misuse",
        Bug::JoinsHosts => "what_is_no_group_cannot_be_joined",
        Bug::CastsStaySilent => "the_descriptor_tells_of_a_datagram",
    }
}

fn noticed(bug: Bug) -> Outcome {
    judge(&Bugged::new(Some(bug), IMPATIENT), case_for(bug))
}

#[test]
fn every_planted_bug_is_noticed_by_its_case() {
    let unnoticed: Vec<String> = Bug::ALL
        .into_iter()
        .map(|bug| (bug, case_for(bug), noticed(bug)))
        .filter(|(_, _, outcome)| !matches!(outcome, Outcome::Failed(_)))
        .map(|(bug, case, outcome)| format!("{bug:?} is not noticed by {case}: {outcome:?}"))
        .collect();
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

#[test]
fn the_healthy_fabric_passes_the_same_cases() {
    for bug in Bug::ALL {
        let outcome = judge(&Bugged::new(None, PATIENT), case_for(bug));
        assert_eq!(outcome, Outcome::Passed, "{}", case_for(bug));
    }
}

/// Most promises are broken alone: a bug that fails half the suite would show little.
#[test]
fn a_planted_bug_breaks_its_promise_and_few_others() {
    let all = cases();
    for bug in [Bug::IgnoresKey, Bug::TruncatesLong] {
        let harness = Bugged::new(Some(bug), PATIENT);
        let failed: Vec<&str> = all
            .iter()
            .filter(|case| matches!(judge(&harness, case.name), Outcome::Failed(_)))
            .map(|case| case.name)
            .collect();
        assert!(failed.contains(&case_for(bug)), "{bug:?}: {failed:?}");
        assert!(failed.len() <= 4, "{bug:?} breaks too much: {failed:?}");
    }
}
