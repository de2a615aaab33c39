//! The crash test of the steps, for any ledger and any queue; and in [`rotate`] that of a
//! rotation, for any vault.
//!
//! A process runs with one fault among its port calls: a call fails, or the process ends there,
//! before or after the call's effect. Then whoever is left does what it would do in any case: the
//! sender delivers again, workers take what is in the queue, the sweep looks at what is due. When
//! all is quiet, the rows, the jobs that were paid for and the stored objects are the same as
//! without a fault. `domain` asks this of ports in memory, more thoroughly; here the adapters are
//! what is tried. [`crash_tests!`](crate::crash_tests) makes a test of each case.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an end that is another than it should be is told by a panic"
)]

mod end;
mod faults;
pub mod letters;
pub mod owed;
pub mod probe;
mod process;
pub mod receive;
pub mod retire;
pub mod rotate;
pub mod tick;
pub mod work;
mod world;

pub use end::End;
pub use faults::Faults;
pub use process::Ended;
pub(crate) use world::key;
pub use world::{SECRET, World};

/// Makes the tests of [`crash`](crate::crash), each in a module of its own below `name`:
/// `crash_tests! { name: memory, make: world() }`, and with two faults
/// `crash_tests! { name: memory_twice, make: world(), faults: Twice }`.
///
/// `make` gives a fresh [`World`] each time; it may await.
#[macro_export]
macro_rules! crash_tests {
    (name: $name:ident, make: $make:expr $(,)?) => {
        mod $name {
            use super::*;
            $crate::crash_tests! { @all $make, Once }
            $crate::crash_tests! {
                @cases without_faults, (&async || $make), [
                    receive::fifty_deliveries_at_once,
                    tick::jobs_that_were_missed_in_every_way,
                ]
            }
        }
    };
    (name: $name:ident, make: $make:expr, faults: $faults:ident $(,)?) => {
        mod $name {
            use super::*;
            $crate::crash_tests! { @all $make, $faults }
        }
    };
    (@all $make:expr, $faults:ident) => {
        $crate::crash_tests! {
            @cases receive, (&async || $make, $crate::crash::Faults::$faults), [
                receive::a_delivery_of_an_unknown_job,
                receive::a_delivery_of_an_expected_job,
                receive::a_delivery_of_a_received_job,
                receive::a_delivery_of_a_job_that_was_put_off,
                receive::a_delivery_of_a_job_that_was_gone,
                receive::a_delivery_of_a_job_whose_row_expired,
            ]
        }
        $crate::crash_tests! {
            @cases tick, (&async || $make, $crate::crash::Faults::$faults), [
                tick::jobs_that_only_the_lists_show,
                tick::jobs_that_only_the_logs_show,
                retire::a_replaced_webhook,
            ]
        }
        $crate::crash_tests! {
            @cases owed, (&async || $make, $crate::crash::Faults::$faults), [
                owed::a_submission,
                owed::a_submission_that_is_not_answered,
                owed::an_overdue_row_and_an_unanswered_submission,
                owed::a_redrive,
                owed::a_discard,
            ]
        }
        $crate::crash_tests! {
            @cases probe, (&async || $make, $crate::crash::Faults::$faults), [
                probe::a_job_after_the_trouble,
                probe::a_job_while_the_trouble_lasts,
                probe::a_next_try_that_proves_the_account,
                probe::a_submission_that_proves_nothing,
            ]
        }
        $crate::crash_tests! {
            @cases work, (&async || $make, $crate::crash::Faults::$faults), [
                work::a_completed_job,
                work::a_completed_job_of_ours,
                work::a_job_that_is_not_finished,
                work::a_cancelled_job,
                work::a_failed_job_of_nobody,
                work::a_failed_job_that_is_tried_again,
                work::a_failed_job_whose_next_try_is_not_answered,
                work::a_failed_job_whose_next_try_is_refused_for_now,
                work::a_batch_of_three_pages,
                work::a_batch_whose_failed_item_is_asked_for_again,
                work::a_failed_batch,
            ]
        }
    };
    (@cases $part:ident, $given:tt, [$($of:ident::$case:ident),+ $(,)?]) => {
        mod $part {
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::run($crate::crash::$of::$case $given);
                }
            )+
        }
    };
}
