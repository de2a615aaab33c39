//! The crash test of a rotation, for any vault.
//!
//! A step runs with one fault or two among its port calls: a call fails, or the process ends there,
//! before or after the call's effect. Whoever called for the step calls again, as Secrets Manager
//! does, until it is told that all is well; then ticks take away what is left. In the end the secret
//! that is kept verifies what the one webhook signs that is left. On the way, with a second webhook,
//! there is always one whose deliveries are accepted.

mod world;

pub use world::RotationWorld;

use domain::rotate::{Step, Strategy};
use futures_util::future::join3;

use self::world::version;
use super::Faults;
use crate::faulty::{Fault, FaultPlan};

/// Makes the tests of [`rotate`](crate::crash::rotate) for one vault:
/// `rotation_crash_tests! { name: memory, make: world() }`.
///
/// `make` gives a fresh [`RotationWorld`] each time; it may await.
#[macro_export]
macro_rules! rotation_crash_tests {
    (name: $name:ident, make: $make:expr $(,)?) => {
        mod $name {
            use super::*;
            $crate::rotation_crash_tests! {
                @cases $make, [
                    each_call_fails_once,
                    two_calls_fail,
                    each_step_is_delivered_twice,
                    each_step_twice_at_once,
                    a_new_rotation_follows_one_that_was_given_up,
                ]
            }
        }
    };
    (@cases $make:expr, [$($case:ident),+ $(,)?]) => {
        $(
            #[test]
            fn $case() {
                $crate::run($crate::crash::rotate::$case(&async || $make));
            }
        )+
    };
}

/// S27, S28: each call of each step fails once, or is the last of its process.
pub async fn each_call_fails_once(make: &impl AsyncFn() -> RotationWorld) {
    calls_fail(make, Faults::Once).await;
}

/// Two calls fail that are near each other.
pub async fn two_calls_fail(make: &impl AsyncFn() -> RotationWorld) {
    calls_fail(make, Faults::Near).await;
}

/// Calls of the steps fail, or are the last of their process.
pub async fn calls_fail(make: &impl AsyncFn() -> RotationWorld, faults: Faults) {
    for strategy in Strategy::ALL {
        for failing in faults.plans(&calls(make, strategy).await) {
            let world = make().await;
            let plan = FaultPlan::of(failing.iter().copied());
            world.rotate("first", strategy, &Step::ALL, &plan).await;
            assert!(!plan.happened().is_empty(), "{strategy} {failing:?}");
            world.end("first", strategy, &format!("{strategy}, {failing:?}")).await;
        }
    }
}

/// Each step is delivered twice, the second time after its end, with and without faults.
pub async fn each_step_is_delivered_twice(make: &impl AsyncFn() -> RotationWorld) {
    let twice = Step::ALL.map(|step| [step, step]).concat();
    for strategy in Strategy::ALL {
        let without = make().await;
        let plan = FaultPlan::none();
        without.rotate("first", strategy, &twice, &plan).await;
        without.end("first", strategy, &format!("{strategy}, each step twice")).await;
        for call in 0..plan.calls().len() {
            let world = make().await;
            let plan = FaultPlan::at(call, Fault::HangAfter);
            world.rotate("first", strategy, &twice, &plan).await;
            world.end("first", strategy, &format!("{strategy}, twice, call {call}")).await;
        }
    }
}

/// SM-10: each step runs twice at once, and so does a rotation of another name.
pub async fn each_step_twice_at_once(make: &impl AsyncFn() -> RotationWorld) {
    for strategy in Strategy::ALL {
        let world = make().await;
        world.stage(&version("first")).await;
        for step in Step::ALL {
            let plan = FaultPlan::none();
            let taken = || world.step("first", strategy, step, &plan);
            let stranger = world.step("another", strategy, step, &plan);
            let (one, other, stranger) = Box::pin(join3(taken(), taken(), stranger)).await;
            assert!(one.is_some() || other.is_some(), "{strategy} {step}");
            assert!(stranger.is_none(), "{strategy} {step}");
            world.assert_covered(strategy, step.as_str()).await;
        }
        world.end("first", strategy, &format!("{strategy}, at once")).await;
    }
}

/// A rotation that ended anywhere is given up by its operator, and another one comes to its end.
pub async fn a_new_rotation_follows_one_that_was_given_up(make: &impl AsyncFn() -> RotationWorld) {
    for strategy in Strategy::ALL {
        for call in 0..calls(make, strategy).await.len() {
            let world = make().await;
            let plan = FaultPlan::at(call, Fault::HangAfter);
            let is_over = world.rotate_until_killed("first", strategy, &plan).await;
            world.give_up("first").await;
            world.rotate("second", strategy, &Step::ALL, &FaultPlan::none()).await;
            let told = format!("{strategy}, given up at call {call}, over: {is_over}");
            world.end("second", strategy, &told).await;
        }
    }
}

/// A process that takes all steps is killed at each call, before and after the call's effect. The
/// next one, which knows that the first has ended, comes to the end at once: it waits for no claim,
/// and leaves no webhook that delivers what nobody can verify.
pub async fn a_killed_rotation_is_gone_on_with_at_once(make: &impl AsyncFn() -> RotationWorld) {
    for strategy in Strategy::ALL {
        let world = make().await;
        let plan = FaultPlan::none();
        assert!(world.rotate_alone("first", strategy, &plan).await, "{strategy}");
        let calls = plan.calls().len();
        for call in 0..calls {
            for fault in [Fault::HangBefore, Fault::HangAfter] {
                let told = format!("{strategy}, call {call}, {fault:?}");
                let world = make().await;
                let plan = FaultPlan::at(call, fault);
                let is_over = world.rotate_alone("first", strategy, &plan).await;
                assert!(!is_over && !plan.happened().is_empty(), "{told}");
                let name = world.name_after("first", "second").await;
                assert!(world.rotate_alone(name, strategy, &FaultPlan::none()).await, "{told}");
                world.assert_no_orphan(&told).await;
                world.end(name, strategy, &told).await;
            }
        }
    }
}

/// The calls that a rotation makes without faults.
async fn calls(make: &impl AsyncFn() -> RotationWorld, strategy: Strategy) -> Vec<&'static str> {
    let world = make().await;
    let plan = FaultPlan::none();
    world.rotate("first", strategy, &Step::ALL, &plan).await;
    world.end("first", strategy, &format!("{strategy}, without faults")).await;
    let calls = plan.calls();
    assert!(calls.len() > 10, "{calls:?}");
    calls
}
