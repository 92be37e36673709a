//! What every [`Store`] has to do, as a suite that any implementation can run.
//!
//! Each case takes a store that is empty and its own. [`run_all`] runs them one after the other;
//! [`store_conformance!`](crate::store_conformance) makes one named test of each.

mod answering;
mod binding;
mod deciding;
mod finding;
pub mod fixture;
mod forgetting;
mod listing;
mod logging;
mod masking;
mod nesting;
mod notifying;
mod pausing;
mod queueing;
mod reserving;
mod submitting;
mod tracking;
mod waking;
mod watching;

use std::future::Future;
use std::sync::Arc;

pub use answering::*;
pub use binding::*;
pub use deciding::*;
pub use finding::*;
pub use forgetting::*;
pub use listing::*;
pub use logging::*;
pub use masking::*;
pub use nesting::*;
pub use notifying::*;
pub use pausing::*;
pub use queueing::*;
pub use reserving::*;
pub use submitting::*;
pub use tracking::*;
pub use waking::*;
pub use watching::*;

use crate::store::Store;

/// Hands the name of every case to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! store_conformance_cases {
    ($each:path, $($context:tt)*) => {
        $each! { ($($context)*)
            a_submit_is_accepted_and_claimed_in_one_step
            a_live_key_joins_or_refuses_and_a_finished_one_frees_it
            two_submits_with_one_key_at_once_give_one_task
            one_request_key_stands_for_one_body_until_it_expires
            a_request_that_was_answered_is_known_by_its_key_and_body
            a_request_key_survives_the_end_of_a_joined_task
            p12_an_id_in_use_is_not_issued_again
            a_held_task_waits_until_it_is_claimed
            p10_a_waiting_task_is_claimed_once
            p1_a_waiting_task_neither_starts_nor_ends_before_its_claim
            p1_a_waiting_task_that_is_stopped_is_not_claimed
            a_waiting_task_is_found_by_request_and_key
            p11_however_many_at_once_a_parent_has_no_more_live_children_than_it_may
            p11_whether_its_caller_was_on_the_network_stays_with_a_delivery
            p11_a_nested_session_is_recorded_once_and_never_anothers
            p11_a_claim_in_advance_ends_when_the_session_is_elsewhere
            p11_a_session_of_another_process_is_not_claimed
            p5_a_late_job_of_a_sub_agent_wakes_the_outer_session
            p11_a_late_job_wakes_no_session_named_inside_a_task
            p5_a_continued_sub_agent_hears_of_its_own_jobs
            p1_first_finisher_wins
            p1_concurrent_finishers_agree_on_one_end
            p1_a_stale_attempt_changes_nothing
            p1_a_message_that_comes_twice_changes_nothing
            p1_an_end_may_overtake_the_start
            a_stop_is_taken_once_and_the_late_start_still_counts
            a_pause_and_a_resume_are_taken_once_each_time
            p1_only_a_running_task_is_paused
            p1_a_paused_task_can_end_in_every_way
            what_does_not_exist_is_unknown
            live_tasks_are_listed_oldest_first
            a_start_of_an_id_finds_one_or_names_several
            a_start_finds_notices_and_deliveries
            a_name_finds_the_live_task_then_the_newest_ended
            a_name_comes_before_an_id_that_starts_so
            at_last_is_the_newest_task_of_the_owner
            live_tasks_come_first_each_newest_first
            filters_narrow_a_list
            a_list_within_a_task_holds_what_came_of_it_and_nothing_else
            a_strange_cursor_is_told_apart
            pages_are_complete_and_without_duplicates_while_tasks_end
            counts_follow_every_step
            events_are_ordered_and_told_once
            followers_and_readers_see_one_log
            p5_no_number_of_an_event_is_told_twice_after_the_machine_started_anew
            a_list_and_the_log_go_on_where_the_other_ends
            events_carry_what_their_kind_promises
            a_filtered_reader_still_moves_its_cursor
            p12_a_forgotten_task_is_still_answered
            forgetting_waits_for_the_end_and_happens_once
            retention_by_age_takes_the_oldest_end_first
            retention_by_count_keeps_the_newest
            retention_by_bytes_counts_what_is_kept
            retention_is_paced_by_its_limit
            p5_what_is_unread_outlives_its_age_and_goes_after_all_others
            p5_what_a_task_started_displaces_none_of_its_owners_results
            pages_end_early_where_what_they_hold_is_large
            p12_hooks_use_up_nothing_of_what_is_kept_for_tasks
            p12_an_id_is_never_reused_even_after_its_tombstone
            p12_an_id_whose_tombstone_is_gone_is_told_from_one_that_never_was
            trimmed_events_are_owned_up_to
            what_was_written_by_a_clock_that_was_ahead_goes_with_what_follows_it
            expired_request_keys_are_dropped
            p5_an_end_its_notice_its_entry_and_its_deliveries_are_one
            p5_the_policy_decides_who_is_told
            p11_no_secret_of_a_task_is_told_or_kept
            p6_looking_changes_nothing_and_taking_one_leaves_the_others
            p5_a_taker_that_dies_gives_its_entries_back
            p5_an_acknowledged_owner_leaves_nothing_behind
            p6_a_delivered_end_is_confirmed_or_returns
            p6_delivered_notices_are_confirmed_or_return
            a_session_is_in_the_process_that_it_was_last_seen_in
            a_process_is_in_one_session_where_its_agent_says_so_and_in_several_else
            p5_a_delivery_to_a_process_that_is_gone_returns
            p6_a_polled_end_is_held_for_its_client
            p6_a_reserved_end_goes_to_its_waiter_alone
            p6_a_released_waiter_frees_the_end
            p6_an_announced_wait_reserves_an_early_end
            p6_no_wake_delivers_what_a_waiter_reserved
            p6_no_wake_is_handed_what_was_reserved_meanwhile
            p6_a_redelivered_wake_takes_nothing_from_others
            p6_a_delivery_to_an_unnamed_process_is_kept
            p6_a_caller_inside_a_task_confirms_its_own_deliveries
            sessions_are_kept_for_a_while_and_so_many
            notices_of_a_task_are_listed_with_their_inbox_state
            p5_notices_of_a_live_task_come_too_and_none_after_its_end
            p5_a_delivery_is_claimed_once_and_settled_by_who_holds_it
            p5_one_channel_does_not_wait_for_another
            p5_deliveries_of_each_channel_are_claimed_together
            p5_what_is_due_does_not_hide_what_is_due_later
            p5_a_busy_target_spends_no_attempt_and_a_dead_one_can_begin_anew
            p5_what_may_not_go_out_by_now_stays_as_it_is
            p5_a_hooks_end_settles_what_it_was_given_and_no_clock_does
            p5_what_found_a_command_busy_goes_with_the_next
            p5_a_command_is_told_the_rest_after_its_end
            p5_beyond_the_budget_notices_wait_in_the_inbox_and_one_says_so
            p5_what_waited_goes_together_and_then_leaves_the_inbox
            p6_a_popup_takes_nothing_out_of_the_inbox
            p5_two_commands_of_one_session_share_its_budget
            a_busy_session_spends_nothing_of_the_budget
            p6_nobody_is_woken_for_what_they_know
            p6_nobody_is_woken_for_what_they_know_since_the_claim
            p6_a_dead_wake_of_what_is_known_is_not_sent_again
            p6_what_somebody_has_taken_from_the_inbox_wakes_nobody_meanwhile
            p5_a_wake_that_is_given_up_leaves_its_entry_and_is_not_tried_again
            p6_what_a_wake_tells_is_nobody_elses_to_tell_until_it_ends
            p6_what_a_wake_may_have_told_stays_so_until_it_is_asked_for_again
            p5_each_wake_goes_the_way_of_the_session_that_submitted
            the_operator_has_the_last_word_on_pauses
            p5_a_command_is_run_whatever_its_owner_knows_and_however_late
            notices_older_than_two_days_wake_nobody_and_stay_readable
            wakes_that_are_turned_off_leave_everything_in_the_inbox
            what_is_forbidden_by_now_is_given_up_and_can_begin_anew
            p5_a_changed_budget_of_wakes_holds_for_what_waits
            the_operator_has_the_last_word_on_when
            the_operator_has_the_last_word_on_stops_and_on_live_tasks
            p5_what_was_not_looked_at_wakes_nobody_yet
            p5_what_was_watched_and_what_is_told_of_it_are_one
            p5_a_watch_tells_nothing_of_an_ended_task_nor_of_another_attempt
            a_forgotten_task_keeps_no_watch
            a_live_task_says_how_far_it_is_and_an_ended_one_does_not
            a_notice_outlives_the_log_while_somebody_needs_it
            a_notice_that_stays_is_looked_at_once
            an_external_task_runs_from_the_start_and_is_heard_until_it_ends
            p1_the_first_completion_of_an_external_task_wins
            p5_an_external_end_carries_its_answer_or_the_words_for_none
            a_stop_ends_an_external_task_at_once
            what_others_have_is_not_found_among_ones_own
            p5_an_agents_end_carries_its_answer_or_the_words_for_none
            p11_an_answer_repeats_no_secret
            a_session_goes_on_in_one_task_at_a_time
            a_session_is_kept_while_a_task_of_it_is
            p11_a_session_that_was_bound_elsewhere_is_not_released
            the_whole_checks_out_after_all_that
            a_closed_store_says_so
        }
    };
}

/// Makes one `#[tokio::test]` of each case; `$make` is an async function without arguments that gives an empty store and whatever must
/// live as long as it, as `(Arc<dyn Store>, T)`.
#[macro_export]
macro_rules! store_conformance {
    ($make:path) => {
        $crate::store_conformance_cases! { $crate::store_conformance_tests, $make }
    };
}

/// The tests themselves; only for [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! store_conformance_tests {
    (($make:path) $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let (store, _guard) = $make().await;
                $crate::conformance::$case(store).await;
            }
        )*
    };
}

macro_rules! run_each {
    (($make:ident) $($case:ident)*) => {
        $(
            tracing::debug!(case = stringify!($case));
            $case($make().await).await;
        )*
    };
}

/// Runs every case on a fresh store of its own.
///
/// # Panics
/// If the store does not conform; the message says where.
pub async fn run_all<F, Fut>(make: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Store>>,
{
    store_conformance_cases! { run_each, make }
}
