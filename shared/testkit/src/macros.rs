//! One macro per port: a test of each behaviour for one adapter.

/// Makes the tests of [`crate::conformance`] for one port. Not to be used directly.
#[doc(hidden)]
#[macro_export]
macro_rules! behaviours {
    ($port:ident, $name:ident, $make:expr, [$($behaviour:ident),+ $(,)?]) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $behaviour() {
                    $crate::run(async {
                        let subject = $make;
                        $crate::conformance::$port::$behaviour(&subject).await;
                    });
                }
            )+
        }
    };
}

/// Makes a test of each behaviour of rows of jobs: `entries_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! entries_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            entries,
            $name,
            $make,
            [
                a_row_that_nobody_wrote_is_absent,
                a_row_comes_back_as_it_was_written,
                a_repeated_first_write_finds_the_row,
                a_write_over_the_row_as_read_replaces_it,
                a_write_over_another_row_changes_nothing,
                the_loser_of_a_race_learns_the_row_as_it_is,
                one_of_many_writes_at_a_time_succeeds,
                an_expired_row_is_there_and_counts_as_absent,
                odd_ids_are_rows_of_their_own,
                the_largest_row_is_kept_and_one_byte_more_is_refused,
                a_row_that_does_not_decode_is_named,
                many_rows_are_read_at_once,
                of_many_rows_one_that_does_not_decode_is_named,
            ]
        );
    };
}

/// Makes a test of each behaviour of rows that are written together: `pairs_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! pairs_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            pairs,
            $name,
            $make,
            [
                two_rows_come_back_as_they_were_written,
                a_repeated_write_of_two_finds_both,
                neither_is_written_where_one_is_not_as_expected,
                two_rows_of_one_job_are_refused,
                one_of_many_writes_of_two_succeeds,
                nobody_finds_one_of_two,
                a_pair_beside_one_that_does_not_decode_is_not_written,
                two_large_rows_are_kept_and_one_byte_more_is_refused,
            ]
        );
    };
}

/// Makes a test of each behaviour of what is due: `due_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! due_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            due,
            $name,
            $make,
            [
                rows_are_due_oldest_first,
                terminal_rows_are_never_due,
                a_rewritten_row_is_due_at_its_new_time,
                pages_hold_each_due_row_once,
                a_due_row_that_does_not_decode_is_named,
                open_intents_are_due_oldest_first,
                pages_hold_each_due_intent_once,
                a_foreign_cursor_is_refused,
            ]
        );
    };
}

/// Makes a test of each behaviour of intents: `intents_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! intents_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            intents,
            $name,
            $make,
            [
                an_intent_that_nobody_wrote_is_absent,
                an_intent_comes_back_as_it_was_written,
                a_repeated_first_write_finds_the_intent,
                a_write_names_the_version_that_was_read,
                one_of_many_first_writes_succeeds,
                an_expired_intent_counts_as_absent,
                an_open_intent_is_an_unresolved_post,
                a_resubmission_is_an_unresolved_post,
                a_later_post_is_not_counted,
                the_largest_intent_is_kept_and_one_byte_more_is_refused,
                an_intent_that_does_not_decode_is_named,
            ]
        );
    };
}

/// Makes a test of each behaviour of control rows: `control_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! control_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            control,
            $name,
            $make,
            [
                a_control_row_begins_with_version_1,
                a_control_row_goes_on_by_one_version,
                one_of_many_control_writes_succeeds,
                control_rows_with_odd_names_and_values_are_kept,
            ]
        );
    };
}

/// Makes a test of each behaviour of listings and counts: `inspection_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`LedgerSubject`](crate::conformance::LedgerSubject) for each test; it may await.
#[macro_export]
macro_rules! inspection_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            inspection,
            $name,
            $make,
            [
                an_empty_ledger_lists_and_counts_nothing,
                rows_are_listed_in_key_order,
                pages_hold_each_row_once,
                a_filter_lists_what_it_names,
                a_ref_lists_the_rows_that_have_it,
                rows_are_counted_by_state_and_reason,
                counts_follow_a_row,
                intents_are_counted_by_state,
                intents_are_listed_by_run_and_position,
                a_listed_row_that_does_not_decode_hides_no_other,
            ]
        );
    };
}

/// Makes a test of each behaviour of a queue that is also a source of tasks: `queue_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`QueueSubject`](crate::conformance::QueueSubject) for each test; it may await.
#[macro_export]
macro_rules! queue_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            queue,
            $name,
            $make,
            [
                an_empty_queue_gives_nothing,
                an_acknowledged_task_is_gone,
                a_held_task_is_hidden_until_the_hold_ends,
                a_late_acknowledgement_changes_nothing,
                a_foreign_receipt_is_harmless,
                a_delayed_task_becomes_visible_in_time,
                a_longer_delay_is_refused,
                equal_tasks_are_two_messages,
                no_more_tasks_are_taken_than_asked_for,
                odd_tasks_travel_as_they_are,
                a_message_that_is_no_task_is_dropped,
            ]
        );
    };
}

/// Makes a test of each behaviour of a dead-letter queue: `dead_letters_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`DeadLettersSubject`](crate::conformance::DeadLettersSubject) for each test; it may await.
#[macro_export]
macro_rules! dead_letters_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            dead_letters,
            $name,
            $make,
            [
                an_empty_one_gives_nothing,
                letters_are_taken_as_they_lie,
                a_taken_letter_is_hidden_until_its_hold_ends,
                no_more_letters_are_taken_than_asked_for,
                a_letter_that_was_put_back_is_visible,
                a_removed_letter_is_gone,
                a_task_goes_back,
                what_is_no_task_does_not_go_back,
                an_old_receipt_is_harmless,
            ]
        );
    };
}

/// Makes a test of each behaviour of a result store: `results_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`ResultsSubject`](crate::conformance::ResultsSubject) for each test; it may await.
#[macro_export]
macro_rules! results_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            results,
            $name,
            $make,
            [
                an_object_that_nobody_put_is_absent,
                content_comes_back_byte_for_byte,
                a_second_put_finds_the_object,
                one_of_many_puts_succeeds,
                the_same_content_has_the_same_bytes,
                the_description_is_true,
                a_large_result_is_stored_whole,
                keys_are_listed_in_order,
                long_and_similar_keys_are_objects_of_their_own,
                a_key_outside_the_layout_is_refused,
                a_damaged_object_is_named,
            ]
        );
    };
}

/// Makes a test of each behaviour of a clock: `clock_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`ClockSubject`](crate::conformance::ClockSubject) for each test; it may await.
#[macro_export]
macro_rules! clock_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            clock,
            $name,
            $make,
            [
                time_does_not_go_back,
                a_sleep_lasts_long_enough,
                two_sleep_at_a_time,
                a_dropped_sleep_is_over,
            ]
        );
    };
}

/// Makes a test of each behaviour of a source of secrets: `secrets_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`SecretsSubject`](crate::conformance::SecretsSubject) for each test; it may await.
#[macro_export]
macro_rules! secrets_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            secrets,
            $name,
            $make,
            [
                every_secret_comes_with_its_stage,
                odd_secrets_come_as_they_are,
                a_changed_secret_is_seen_by_the_next_load,
                nothing_is_no_secret,
                an_unreadable_secret_is_corrupt_and_not_shown,
                a_locked_secret_is_denied,
                repeated_loads_are_alike,
                many_load_at_a_time,
                a_load_during_a_change_sees_one_of_both,
                loaded_secrets_are_not_shown,
            ]
        );
    };
}

/// Makes a test of each behaviour of a vault, and of what a receiver reads of it: `vault_conformance! { name: memory, make: subject() }`.
///
/// `make` gives a fresh [`VaultSubject`](crate::conformance::VaultSubject) for each test; it may await.
#[macro_export]
macro_rules! vault_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::behaviours!(
            vault,
            $name,
            $make,
            [
                a_slot_holds_what_it_was_made_with,
                a_pending_secret_is_in_force,
                a_repeated_put_changes_nothing,
                a_version_keeps_its_value,
                one_of_many_puts_at_once_is_kept,
                one_version_is_pending_at_a_time,
                a_pending_version_can_be_given_up,
                a_promotion_moves_the_labels,
                a_promotion_over_another_version_changes_nothing,
                the_previous_secret_has_its_grace_from_the_promotion_on,
                rotations_follow_one_another,
                odd_values_are_kept,
                a_slot_that_is_not_there_is_denied,
                a_slot_is_not_shown,
            ]
        );
    };
}

/// Makes the tests of the platform's API, each part in a module of its own below `name`:
/// `jobs_conformance! { name: scripted, make: subject() }`.
///
/// `make` gives a fresh [`JobsSubject`](crate::conformance::JobsSubject) for each test; it may await.
#[macro_export]
macro_rules! jobs_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        mod $name {
            use super::*;
            $crate::behaviours!(
                jobs,
                reading,
                $make,
                [
                    a_submitted_job_reads_back,
                    each_submission_is_one_job,
                    every_end_is_told_as_it_is,
                    repeated_reads_are_alike,
                    the_raw_answer_is_verbatim,
                    odd_ids_are_missing,
                    a_job_of_another_kind_is_missing,
                    a_probe_passes,
                ]
            );
            $crate::behaviours!(
                jobs_pages,
                pages,
                $make,
                [
                    pages_hold_each_part_once,
                    counters_agree_with_the_parts,
                    a_page_beyond_the_end_is_empty,
                    a_part_is_verbatim,
                    failed_parts_say_why,
                    a_vanished_parent_is_missing,
                    an_unfinished_parent_is_not_terminal,
                    a_page_that_is_too_large_is_read_in_smaller_ones,
                ]
            );
            $crate::behaviours!(
                jobs_lists,
                lists,
                $make,
                [
                    an_empty_list_is_an_empty_page,
                    a_full_page_and_one_job_more,
                    pages_hold_each_job_once,
                    both_ends_of_a_window_are_in_it,
                    kinds_do_not_mix,
                    a_list_tells_how_a_job_ended,
                ]
            );
            $crate::behaviours!(
                jobs_trouble,
                trouble,
                $make,
                [
                    trouble_of_reading_is_classified,
                    trouble_of_submitting_is_classified,
                    an_unanswered_submission_is_listed,
                    a_hanging_call_ends_in_time,
                    a_slow_body_ends_in_time,
                ]
            );
        }
    };
}

/// Makes the tests of all six parts of a ledger, each in a module of its own below `name`.
#[macro_export]
macro_rules! ledger_conformance {
    (name: $name:ident, make: $make:expr $(,)?) => {
        mod $name {
            use super::*;
            $crate::entries_conformance! { name: entries, make: $make }
            $crate::pairs_conformance! { name: pairs, make: $make }
            $crate::due_conformance! { name: due, make: $make }
            $crate::intents_conformance! { name: intents, make: $make }
            $crate::control_conformance! { name: control, make: $make }
            $crate::inspection_conformance! { name: inspection, make: $make }
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that no macro names would never be tried.
    #[test]
    fn every_behaviour_is_in_its_list() {
        let lists = include_str!("macros.rs");
        let mut behaviours = 0;
        for source in [
            include_str!("conformance/entries.rs"),
            include_str!("conformance/pairs.rs"),
            include_str!("conformance/due.rs"),
            include_str!("conformance/intents.rs"),
            include_str!("conformance/control.rs"),
            include_str!("conformance/inspection.rs"),
            include_str!("conformance/queue.rs"),
            include_str!("conformance/dead_letters.rs"),
            include_str!("conformance/results.rs"),
            include_str!("conformance/clock.rs"),
            include_str!("conformance/secrets.rs"),
            include_str!("conformance/vault.rs"),
            include_str!("conformance/jobs.rs"),
            include_str!("conformance/jobs_lists.rs"),
            include_str!("conformance/jobs_pages.rs"),
            include_str!("conformance/jobs_trouble.rs"),
        ] {
            for line in source.lines() {
                let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
                let name: String =
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                assert!(lists.contains(&format!(" {name},\n")), "{name} is in no list");
                behaviours += 1;
            }
        }
        assert!(behaviours > 60, "{behaviours} behaviours found");
    }
}
