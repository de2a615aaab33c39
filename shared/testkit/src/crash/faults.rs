use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use crate::faulty::{Fault, FaultPlan};

/// Plans of [`Faults::Twice`] for one case, beyond which a pair of calls has some of the pairs of
/// faults only.
const PLANS_MAX: usize = 400;

/// Which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Each call of one process, in each way.
    Once,
    /// Each call of one process, and each of as many calls after it, of the same process or of one
    /// that follows it. Where there are few calls each pair of them fails in all sixteen ways, else
    /// in some of them in turn.
    Twice,
    /// Of those, each call that changes something and the next one, and each such call that ends
    /// its process and the same call of the process that follows; the first has its effect, and the
    /// ways of the second come in turn. Where two calls of the same names follow one another again,
    /// once is enough. For ports that take their time.
    Near,
}

impl Faults {
    /// How many processes run, one after the other.
    pub(super) const fn processes(self) -> usize {
        match self {
            Self::Once => 1,
            Self::Twice | Self::Near => 2,
        }
    }

    /// Which calls fail and how, where a process without faults makes these.
    pub(super) fn plans(self, calls: &[&'static str]) -> Vec<Vec<(usize, Fault)>> {
        let nexts = calls.iter().skip(1).map(Some).chain([None]);
        let mut neighbours = BTreeSet::new();
        let pairs = calls.iter().zip(nexts).enumerate();
        let tried = pairs.filter(|(_, pair)| {
            self != Self::Near || (!only_looks(pair.0) && neighbours.insert(*pair))
        });
        tried.flat_map(|(call, _)| self.plans_at(call, calls.len())).collect()
    }

    /// Those of which this call is the first that fails.
    fn plans_at(self, call: usize, calls: usize) -> Vec<Vec<(usize, Fault)>> {
        match self {
            Self::Once => Fault::ALL.map(|fault| vec![(call, fault)]).into(),
            Self::Twice => {
                let all = ways();
                let each = (PLANS_MAX / (calls * calls)).clamp(1, all.len());
                // Odd, and not as many as go by: each distance comes by all ways, each call by others.
                let mut turn = all.iter().cycle().skip(call * ((each + 1) | 1));
                let seconds = (call + 1..=call + calls).flat_map(|second| vec![second; each]);
                let pair = |second| {
                    let (one, other) = turn.next()?;
                    Some(vec![(call, *one), (second, *other)])
                };
                seconds.filter_map(pair).collect()
            }
            Self::Near => {
                let mut others = Fault::ALL.into_iter().cycle().skip(call);
                let mut after = |fault, second| Some(vec![(call, fault), (second, others.next()?)]);
                let pairs =
                    [after(Fault::FailAfter, call + 1), after(Fault::HangAfter, call + 1 + call)];
                pairs.into_iter().flatten().collect()
            }
        }
    }
}

/// Whether a call changes nothing, so that a process that ends after it leaves what one leaves that
/// ends before.
fn only_looks(call: &str) -> bool {
    let operation = call.split_once('.').map_or(call, |(_, operation)| operation);
    let looks = ["load", "list", "has", "count", "read", "slots", "get", "deliveries"];
    let asks = ["extract", "parent", "probe"];
    looks.iter().chain(&asks).any(|begins| operation.starts_with(begins))
}

/// All pairs of faults.
fn ways() -> Vec<(Fault, Fault)> {
    let pairs = |one| Fault::ALL.map(|other| (one, other));
    Fault::ALL.into_iter().flat_map(pairs).collect()
}

/// Lets calls fail, and compares how it ends with how it ends without faults, which is as
/// `is_right` says. `end_with` runs so many processes by a plan, and then whoever is left.
pub(super) async fn survives<E: PartialEq + Debug>(
    faults: Faults,
    end_with: impl AsyncFn(&Arc<FaultPlan>, usize) -> E,
    is_right: impl Fn(&E),
) {
    let plan = FaultPlan::none();
    let without = end_with(&plan, 1).await;
    is_right(&without);
    let calls = plan.calls();
    assert!(!calls.is_empty());
    let plans = faults.plans(&calls);
    assert!(!plans.is_empty(), "{calls:?}");
    for failing in plans {
        let plan = FaultPlan::of(failing.iter().copied());
        let with = end_with(&plan, faults.processes()).await;
        assert_eq!(with, without, "{failing:?} of {:?}", plan.calls());
        assert!(!plan.happened().is_empty(), "{failing:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_fails_in_each_way_and_so_does_each_pair_of_few() {
        assert_eq!(Faults::Once.plans(&["a"; 3]).len(), 3 * 4);
        let twice = Faults::Twice.plans(&["a"; 5]);
        let different: BTreeSet<String> = twice.iter().map(|plan| format!("{plan:?}")).collect();
        assert_eq!((twice.len(), different.len()), (5 * 5 * 16, 5 * 5 * 16));
    }

    /// The turn does not keep step with the calls: each distance and each call sees all ways.
    #[test]
    fn of_many_calls_each_pair_fails_in_some_way() {
        for calls in [16, 31, 32, 48] {
            let mut by_distance = vec![BTreeSet::new(); calls + 1];
            for plan in Faults::Twice.plans(&vec!["a"; calls]) {
                let [(call, one), (second, other)] = plan.as_slice() else { panic!("{plan:?}") };
                by_distance[second - call].insert(format!("{one:?} {other:?}"));
            }
            assert!(by_distance[1..].iter().all(|ways| ways.len() == 16), "{calls}");
        }
    }

    #[test]
    fn near_pairs_are_two_for_each_change_and_what_follows_it() {
        let calls = ["ledger.load", "ledger.write", "ledger.load", "ledger.write", "queue.send"];
        let expected = [
            [(1, Fault::FailAfter), (2, Fault::FailAfter)],
            [(1, Fault::HangAfter), (3, Fault::HangBefore)],
            [(3, Fault::FailAfter), (4, Fault::HangAfter)],
            [(3, Fault::HangAfter), (7, Fault::FailBefore)],
            [(4, Fault::FailAfter), (5, Fault::FailBefore)],
            [(4, Fault::HangAfter), (9, Fault::FailAfter)],
        ];
        assert_eq!(Faults::Near.plans(&calls), expected);
        assert_eq!(Faults::Near.plans(&["ledger.write"; 3]).len(), 2 * 2);
    }
}
