use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use domain::ports::{Clock, ErrorKind, PortError, Random as _};
use domain::testing::SeededRandom;
use domain::time::after;

/// How long a hanging call hangs: longer than any deadline of ours.
pub const HANG: Duration = Duration::from_mins(10);

/// Turns of the executor that a hanging call waits for somebody else to move the clock, before it
/// does so itself. A deadline needs two.
const PATIENCE: u32 = 16;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails and has no effect.
    FailBefore,
    /// It has its effect, and its answer is lost.
    FailAfter,
    /// It has no effect, and fails after [`HANG`], unless the caller gives up before.
    HangBefore,
    /// It has its effect, and its answer is lost after [`HANG`], unless the caller gives up before.
    HangAfter,
}

impl Fault {
    /// All of them, for a test that tries each at each call.
    pub const ALL: [Self; 4] =
        [Self::FailBefore, Self::FailAfter, Self::HangBefore, Self::HangAfter];
}

/// Which calls fail, counted from 0 over all ports that share the plan, and which were made.
#[derive(Debug, Default)]
pub struct FaultPlan {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: BTreeMap<usize, Fault>,
    calls: Vec<&'static str>,
}

impl FaultPlan {
    /// A plan by which nothing fails.
    pub fn none() -> Arc<Self> {
        Arc::default()
    }

    /// A plan by which one call fails.
    pub fn at(call: usize, fault: Fault) -> Arc<Self> {
        Self::of([(call, fault)])
    }

    /// A plan by which several calls fail.
    pub fn of(faults: impl IntoIterator<Item = (usize, Fault)>) -> Arc<Self> {
        let plan = Self::default();
        plan.state().faults.extend(faults);
        Arc::new(plan)
    }

    /// Lets the next call of any port fail.
    pub fn fail_next(&self, fault: Fault) {
        let mut state = self.state();
        let next = state.calls.len();
        state.faults.insert(next, fault);
    }

    /// Forgets the faults that did not happen: from here on all is well.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// The calls that were made, in order, as `ledger.write`.
    pub fn calls(&self) -> Vec<&'static str> {
        self.state().calls.clone()
    }

    /// Whether all faults have happened.
    pub fn is_used_up(&self) -> bool {
        let state = self.state();
        state.faults.keys().all(|call| *call < state.calls.len())
    }

    /// The faults that have happened, in order.
    pub fn happened(&self) -> Vec<Fault> {
        let state = self.state();
        state.faults.range(..state.calls.len()).map(|(_, fault)| *fault).collect()
    }

    fn next(&self, call: &'static str) -> Option<Fault> {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push(call);
        state.faults.get(&number).copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long calls take: up to a while each, drawn from a seed, so that the calls of several who are
/// at work fall between each other's.
pub struct Pace {
    clock: Arc<dyn Clock>,
    random: SeededRandom,
    longest: Duration,
}

impl Pace {
    /// Calls that take up to `longest`, by this clock.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, longest: Duration) -> Arc<Self> {
        Arc::new(Self { clock, random: SeededRandom::new(seed), longest })
    }

    async fn wait(&self) {
        let longest = u64::try_from(self.longest.as_micros()).unwrap_or(u64::MAX).max(1);
        self.clock.sleep(Duration::from_micros(self.random.next_u64() % longest)).await;
    }
}

/// What a faulty port needs beside the port: the plan, the clock by which it hangs, and perhaps the
/// time that its calls take.
#[derive(Clone)]
pub struct Surroundings {
    plan: Arc<FaultPlan>,
    clock: Arc<dyn Clock>,
    pace: Option<Arc<Pace>>,
}

impl Surroundings {
    /// Joins the plan and the clock. Calls take no time.
    pub fn new(plan: Arc<FaultPlan>, clock: Arc<dyn Clock>) -> Self {
        Self { plan, clock, pace: None }
    }

    /// The same, with calls that take their time.
    #[must_use]
    pub fn at_pace(self, pace: Arc<Pace>) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// Lets a call have its effect, or not, as the plan says.
    pub(super) async fn around<T, E>(
        &self,
        call: &'static str,
        failure: impl Fn() -> E,
        effect: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if let Some(pace) = &self.pace {
            pace.wait().await;
        }
        match self.plan.next(call) {
            None => return effect.await,
            Some(Fault::FailBefore) => {}
            Some(Fault::FailAfter) => drop(effect.await?),
            Some(Fault::HangBefore) => self.hang().await,
            Some(Fault::HangAfter) => {
                drop(effect.await?);
                self.hang().await;
            }
        }
        Err(failure())
    }

    /// As [`Surroundings::around`], for the ports of which a `PortError` is the error.
    pub(super) async fn around_port<T>(
        &self,
        call: &'static str,
        effect: impl Future<Output = Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let (port, operation) = call.split_once('.').unwrap_or(("port", call));
        let failure = || {
            PortError::new(port, operation, ErrorKind::Unavailable).with_source("the plan says so")
        };
        self.around(call, failure, effect).await
    }

    /// Waits until the clock has moved by [`HANG`]. Whoever sets a deadline moves it; if nobody
    /// does, the hanging call moves it itself, so that a test without deadlines ends too.
    async fn hang(&self) {
        let until = after(self.clock.now(), HANG);
        let mut turns = 0;
        poll_fn(|context| {
            if turns >= PATIENCE || self.clock.now() >= until {
                return Poll::Ready(());
            }
            turns += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let now = self.clock.now();
        if now < until {
            self.clock.sleep(domain::time::between(now, until)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::testing::ManualClock;
    use domain::within::within;

    use super::*;

    fn surroundings(fault: Option<Fault>) -> (Arc<ManualClock>, Surroundings) {
        let clock = Arc::new(ManualClock::default());
        let plan = FaultPlan::of(fault.map(|fault| (0, fault)));
        (clock.clone(), Surroundings::new(plan, clock))
    }

    #[test]
    fn a_fault_is_before_or_after_the_effect() {
        for (fault, expected_effect, expected_answer) in [
            (None, 1, Some(7)),
            (Some(Fault::FailBefore), 0, None),
            (Some(Fault::FailAfter), 1, None),
            (Some(Fault::HangBefore), 0, None),
            (Some(Fault::HangAfter), 1, None),
        ] {
            let (clock, surroundings) = surroundings(fault);
            let start = clock.now();
            let mut effects = 0;
            let effect = async {
                effects += 1;
                Ok(7)
            };
            let answer = crate::run(surroundings.around_port("ledger.load", effect));
            assert_eq!((effects, answer.ok()), (expected_effect, expected_answer), "{fault:?}");
            let hangs = matches!(fault, Some(Fault::HangBefore | Fault::HangAfter));
            assert_eq!(clock.now() >= after(start, HANG), hangs, "{fault:?}");
        }
    }

    #[test]
    fn a_deadline_ends_a_hanging_call_in_time() {
        let (clock, surroundings) = surroundings(Some(Fault::HangAfter));
        let start = clock.now();
        let limit = Duration::from_secs(3);
        let mut effects = 0;
        let effect = async {
            effects += 1;
            Ok(())
        };
        let call = surroundings.around_port("ledger.write", effect);
        assert!(crate::run(within(clock.as_ref(), limit, call)).is_none());
        assert_eq!(effects, 1);
        assert_eq!(clock.now(), after(start, limit));
    }

    #[test]
    fn a_plan_counts_and_heals() {
        let plan = FaultPlan::at(1, Fault::FailBefore);
        assert_eq!(plan.next("a"), None);
        assert!(!plan.is_used_up());
        assert_eq!(plan.next("b"), Some(Fault::FailBefore));
        assert!(plan.is_used_up());
        assert_eq!(plan.happened(), [Fault::FailBefore]);
        plan.fail_next(Fault::FailAfter);
        assert_eq!(plan.next("c"), Some(Fault::FailAfter));
        plan.fail_next(Fault::FailAfter);
        plan.heal();
        assert_eq!(plan.next("d"), None);
        assert_eq!(plan.calls(), ["a", "b", "c", "d"]);
    }
}
