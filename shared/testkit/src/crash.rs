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
pub mod owed;
mod process;
pub mod receive;
pub mod rotate;
pub mod tick;
pub mod work;
mod world;

pub use end::End;
pub use process::Ended;
pub(crate) use world::key;
pub use world::{SECRET, World};

use crate::faulty::Fault;

/// What is done to a call: both failures, and both ends of the process.
const FAULTS: [Fault; 4] = Fault::ALL;

/// Makes the tests of [`crash`](crate::crash), each in a module of its own below `name`:
/// `crash_tests! { name: memory, make: world() }`.
///
/// `make` gives a fresh [`World`] each time; it may await.
#[macro_export]
macro_rules! crash_tests {
    (name: $name:ident, make: $make:expr $(,)?) => {
        mod $name {
            use super::*;
            $crate::crash_tests! {
                @part receive, $make, [
                    a_delivery_of_an_unknown_job,
                    a_delivery_of_an_expected_job,
                    a_delivery_of_a_received_job,
                    a_delivery_of_a_job_that_was_put_off,
                    a_delivery_of_a_job_that_was_gone,
                    a_delivery_of_a_job_whose_row_expired,
                    fifty_deliveries_at_once,
                ]
            }
            $crate::crash_tests! {
                @part tick, $make, [
                    jobs_that_only_the_lists_show,
                    jobs_that_only_the_logs_show,
                    jobs_that_were_missed_in_every_way,
                ]
            }
            $crate::crash_tests! {
                @part owed, $make, [
                    a_submission,
                    a_submission_that_is_not_answered,
                    an_overdue_row_and_an_unanswered_submission,
                    a_redrive,
                    a_discard,
                ]
            }
            $crate::crash_tests! {
                @part work, $make, [
                    a_completed_job,
                    a_completed_job_of_ours,
                    a_job_that_is_not_finished,
                    a_cancelled_job,
                    a_failed_job_of_nobody,
                    a_failed_job_that_is_tried_again,
                    a_failed_job_whose_next_try_is_not_answered,
                    a_failed_job_whose_next_try_is_refused_for_now,
                    a_batch_of_three_pages,
                    a_batch_whose_failed_item_is_asked_for_again,
                    a_failed_batch,
                ]
            }
        }
    };
    (@part $part:ident, $make:expr, [$($case:ident),+ $(,)?]) => {
        mod $part {
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::run($crate::crash::$part::$case(&async || $make));
                }
            )+
        }
    };
}
