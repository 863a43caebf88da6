//! The list of cases. It stands here once: the table, the names and the tests come from it.

use serde::Serialize;

use crate::{Case, Harness, Needs};

/// A case as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
}

/// Calls a macro with all cases: groups, each with what its cases need and their names.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_cases {
    ($callback:ident $($args:tt)*) => {
        $crate::$callback! {
            [$($args)*]
            messages Messages {
                a_message_arrives_as_it_was_sent
                messages_arrive_in_order
                every_message_arrives_exactly_once
                an_empty_message_arrives
                the_largest_message_arrives_whole
                segments_arrive_as_one_message
                empty_segments_add_nothing
                messages_of_all_sizes_keep_their_bounds
                both_directions_flow_at_once
                an_accepted_endpoint_may_send_first
                endpoints_do_not_mix
                receives_are_shared_by_endpoints
                each_message_consumes_one_receive
                a_message_waits_for_a_receive
                a_message_too_long_for_its_receive_is_not_cut
                shared_bytes_go_to_many_endpoints
                slots_of_unregistered_memory_can_be_posted
                a_flush_is_enough_to_send
                a_domain_can_talk_to_itself
                two_threads_exchange_messages
            }
            ownership Messages {
                every_send_comes_back_once_with_its_buffer
                operations_are_never_named_twice
                a_receive_comes_back_with_its_own_slot
                a_sent_buffer_may_be_changed_at_once
                closing_returns_every_posted_send
                the_peers_closing_returns_every_posted_send
                a_refused_send_hands_the_buffer_back
                posted_receives_outlive_an_endpoint
                dropping_a_domain_returns_every_slot
                dropping_a_domain_in_traffic_returns_every_slot
            }
            limits Messages {
                caps_make_sense
                sends_over_the_depth_are_refused_as_full
                a_full_endpoint_recovers
                a_full_endpoint_does_not_stop_another
                receives_over_the_depth_are_refused_as_full
                a_message_over_the_limit_is_misuse
                too_many_segments_are_misuse
                poll_gives_no_more_than_was_asked_for
                poll_for_nothing_loses_nothing
            }
            lifecycle Messages {
                connecting_is_reported_on_both_sides
                connecting_to_nobody_is_refused
                listening_fills_in_the_port
                a_second_listener_finds_the_address_in_use
                unlisten_stops_accepting
                unlisten_frees_the_address_at_once
                accepted_endpoints_outlive_their_listener
                the_peer_learns_of_a_close
                closing_is_reported_here_as_flushed
                messages_handed_over_before_a_close_still_arrive
                nothing_follows_closed
                closing_twice_does_nothing
                closing_both_sides_at_once_ends_both
                closing_one_endpoint_leaves_the_others
                closing_before_connected_ends_in_one_closed
                connecting_both_ways_at_once_makes_two_connections
                many_connect_at_once
                thousands_of_connections_come_and_go
                endpoints_are_never_named_twice
                a_dropped_domain_resets_its_peers
                a_dropped_domain_frees_its_address
                a_domain_can_move_to_another_thread
            }
            misuse Messages {
                sending_to_an_unknown_endpoint_is_misuse
                sending_before_connected_is_misuse
                sending_after_closed_is_misuse
                unlistening_twice_is_misuse
                an_unknown_listener_is_misuse
                closing_an_unknown_endpoint_does_nothing
                another_scheme_is_unsupported
            }
            waiting Messages {
                wait_returns_after_its_timeout
                wait_ends_when_a_message_arrives
                wait_ends_when_a_peer_connects
                wait_ends_when_the_peer_closes
                wait_ends_when_a_connection_is_refused
                wait_does_not_sleep_on_events_left_over
                the_waker_ends_wait
                a_wake_before_wait_counts
                the_waker_outlives_its_domain
                the_descriptor_tells_of_a_message_after_arm
                the_descriptor_tells_of_the_waker
                nothing_is_missed_between_poll_and_arm
                time_does_not_go_back
            }
            rma Rma {
                a_read_brings_the_bytes
                a_read_starts_at_its_offset
                a_write_puts_the_bytes_there
                a_write_changes_only_its_range
                segments_are_written_as_one
                the_whole_capacity_is_exposed
                shared_bytes_can_be_read
                reading_nothing_works
                writing_nothing_works
                a_large_read_arrives_whole
                a_large_write_arrives_whole
                messages_pass_a_large_read
                both_sides_read_at_once
                many_reads_end_once_each
                an_immediate_value_follows_the_bytes
                an_immediate_value_waits_for_a_receive
                a_key_survives_the_wire
                a_wrong_key_is_refused
                a_range_beyond_the_memory_is_refused
                an_overflowing_range_is_refused
                a_key_that_claims_more_is_refused
                reading_without_the_right_is_refused
                writing_without_the_right_is_refused
                a_revoked_key_is_refused
                a_foreign_endpoint_is_refused
                a_refused_access_closes_the_endpoint
                revoke_gives_the_memory_back_as_it_was
                revoke_works_after_the_endpoint_closed
                revoke_stops_a_write_under_way
                revoke_stops_a_read_under_way
                revoking_twice_is_misuse
                load_and_store_reach_exposed_memory
                load_and_store_beyond_it_are_misuse
                exposing_wrongly_is_misuse
                posting_to_an_unknown_endpoint_is_misuse
                a_read_larger_than_its_slot_is_misuse
                a_write_over_the_limit_is_misuse
                remote_operations_count_against_the_depth
                closing_returns_every_remote_operation
                the_peers_closing_returns_every_remote_operation
                dropping_a_domain_returns_exposed_memory
                dropping_a_domain_returns_slots_of_reads
            }
            atomics Atomics {
                an_add_gives_the_value_before
                an_add_wraps
                a_swap_happens_when_the_word_matches
                a_swap_does_not_happen_otherwise
                words_are_little_endian
                an_atomic_changes_only_its_word
                adds_in_flight_at_once_all_count
                adds_of_two_peers_all_count
                a_misaligned_atomic_is_misuse
                an_atomic_to_an_unknown_endpoint_is_misuse
                an_atomic_without_the_right_is_refused
                an_atomic_beyond_the_memory_is_refused
            }
            multicast Multicast {
                all_other_members_hear_a_message
                a_member_does_not_hear_itself
                groups_do_not_mix
                a_member_that_left_hears_nothing
                a_group_can_be_joined_again
                the_largest_datagram_arrives_whole
                a_datagram_over_the_limit_is_misuse
                segments_arrive_as_one_datagram
                a_datagram_names_its_receive
                a_datagram_without_a_receive_is_counted
                a_datagram_too_long_for_its_receive_is_counted
                every_datagram_comes_back_once_with_its_buffer
                a_group_without_other_members_takes_datagrams
                a_full_group_hands_the_buffer_back_and_recovers
                leaving_returns_every_posted_datagram
                dropping_a_domain_returns_slots_of_datagrams
                posting_after_leaving_is_misuse
                leaving_twice_is_misuse
                what_is_no_group_cannot_be_joined
                the_descriptor_tells_of_a_datagram
            }
        }
    };
}

/// Makes a test of each case, in a module for each group. The harness is an expression; what it
/// names must be in scope where the macro is called.
#[macro_export]
macro_rules! conformance_tests {
    ($harness:expr) => {
        $crate::__with_cases! { __tests $harness }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$harness:expr] $($group:ident $needs:ident { $($name:ident)* })*) => {
        $($crate::__tests! { @group [$harness] $group { $($name)* } })*
    };
    (@group [$harness:expr] $group:ident { $($name:ident)* }) => {
        mod $group {
            #[allow(unused_imports)]
            use super::*;

            $($crate::__tests! { @case [$harness] $name })*
        }
    };
    (@case [$harness:expr] $name:ident) => {
        #[test]
        fn $name() {
            $crate::run_case(&$harness, stringify!($name));
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    ([$harness:ident] $($group:ident $needs:ident { $($name:ident)* })*) => {
        vec![$($(Case {
            name: stringify!($name),
            group: stringify!($group),
            needs: Needs::$needs,
            run: $crate::cases::$group::$name::<$harness>,
        },)*)*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __names {
    ([] $($group:ident $needs:ident { $($name:ident)* })*) => {
        vec![$($(Listed { name: stringify!($name), group: stringify!($group) },)*)*]
    };
}

/// All cases, in the order of the suite.
pub fn cases() -> Vec<Listed> {
    crate::__with_cases! { __names }
}

pub(crate) fn table<H: Harness>() -> Vec<Case<H>> {
    crate::__with_cases! { __table H }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_cases_have_the_same_name() {
        let names: BTreeSet<_> = cases().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases().len());
    }
}
