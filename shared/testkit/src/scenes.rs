//! Scenes of failure, for any ledger and any queue: what goes wrong in the world, one thing at a
//! time, and how the system comes right by itself.
//!
//! Each scene is set, and then nobody helps: there are the workers, and as many ticks as the scene
//! says, [five minutes apart](EVERY). After them each job has ended, its result was stored once, a
//! paid call was made once for each decision, the row's history tells what happened, and further
//! ticks find nothing to do. [`scene_tests!`](crate::scene_tests) makes a test of each scene.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "an end that is another than it should be is told by a panic"
)]

mod account;
mod hints;
mod logged;
mod missed;
mod stage;

pub use account::{forgotten_jobs_are_still_listed, the_api_key_is_changed_in_the_console};
pub use hints::{
    a_second_try_of_the_job_succeeds, an_event_comes_before_the_job_has_settled,
    duplicates_come_at_the_same_instant, the_order_is_reversed,
};
pub use logged::{
    a_delivery_is_answered_401_and_abandoned, a_delivery_is_answered_413_and_abandoned,
    a_delivery_is_answered_500_and_abandoned, a_second_attempt_of_the_delivery_succeeds,
};
pub use missed::{
    a_delivery_is_never_sent, a_job_is_listed_and_unknown, a_row_is_known_and_never_finished,
    a_webhook_is_deactivated, the_receiver_ends_between_row_and_queue,
};
pub use stage::EVERY;

/// Makes a test of each [scene](crate::scenes): `scene_tests! { name: memory, make: world() }`.
///
/// `make` gives a fresh [`World`](crate::crash::World) each time; it may await.
#[macro_export]
macro_rules! scene_tests {
    (name: $name:ident, make: $make:expr $(,)?) => {
        $crate::scene_tests! {
            @each $name, $make, [
                the_receiver_ends_between_row_and_queue,
                a_delivery_is_never_sent,
                a_webhook_is_deactivated,
                a_delivery_is_answered_401_and_abandoned,
                a_delivery_is_answered_500_and_abandoned,
                a_delivery_is_answered_413_and_abandoned,
                a_job_is_listed_and_unknown,
                a_row_is_known_and_never_finished,
                a_second_attempt_of_the_delivery_succeeds,
                a_second_try_of_the_job_succeeds,
                an_event_comes_before_the_job_has_settled,
                the_order_is_reversed,
                duplicates_come_at_the_same_instant,
                the_api_key_is_changed_in_the_console,
                forgotten_jobs_are_still_listed,
            ]
        }
    };
    (@each $name:ident, $make:expr, [$($scene:ident),+ $(,)?]) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $scene() {
                    $crate::run($crate::scenes::$scene(&async || $make));
                }
            )+
        }
    };
}
