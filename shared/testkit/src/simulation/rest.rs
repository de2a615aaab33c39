//! The end: all faults cease, and everything that is owed has to come to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::entry::{DeadReason, State};
use domain::intent::IntentState;
use domain::job::Kind;
use domain::ports::Clock as _;
use domain::rotate::Strategy;
use simulator::Faults;

use super::process::Process;
use super::promises::{Booked, Broken, booked};
use super::scenario::{Operation, SUBMISSIONS};
use super::world::World;

/// Rounds after which a world that has not come to rest never will.
const ROUNDS_MAX: u64 = 1_500;
/// How far the clock goes on after each.
const ROUND: Duration = Duration::from_mins(1);
/// Rounds in which nothing is open before a world is at rest: longer than the threshold and the
/// overlap of reconciling, so that whatever no webhook announced is found.
const QUIET_ROUNDS: u32 = 40;
/// Rounds after which the promises are checked again.
const CHECKED_EACH: u64 = 8;
/// Resubmissions per lineage, as the product documents them.
const RESUBMITS_MAX: usize = 3;
/// Numbers of the processes of the end, beyond those of all steps.
const PROCESSES: u64 = 1 << 32;

pub(super) fn come_to_rest(world: &mut World) -> Option<Broken> {
    world.platform.set_faults(Faults::none());
    world.account.be_in_order();
    let mut quiet = 0;
    for round in 0..ROUNDS_MAX {
        run_round(world, round);
        if round.is_multiple_of(CHECKED_EACH)
            && let Some(broken) = world.broken()
        {
            return Some(broken);
        }
        quiet = if is_open(world) { 0 } else { quiet + 1 };
        if quiet >= QUIET_ROUNDS {
            return world.broken().or_else(|| judge(world)).or_else(|| world.unsettled());
        }
    }
    let open: Vec<_> = world
        .ledger
        .entries()
        .into_iter()
        .filter(|entry| !entry.state.is_terminal())
        .map(|entry| format!("{} {}", entry.key, entry.state.name()))
        .chain(world.open_upkeep())
        .collect();
    Some(Broken(format!("it does not come to rest: {open:?}")))
}

/// What goes on by itself, once each.
fn run_round(world: &mut World, round: u64) {
    let deferred = (0..SUBMISSIONS).filter(|number| is_deferred(world, *number));
    let rotations = world.unfinished_rotations().into_iter().flat_map(|kind| {
        let begin = Operation::BeginRotation(kind, Strategy::Overlap);
        [begin, Operation::RotationStep { kind, again: false }]
    });
    let rotated_again = world.cut_short().into_iter();
    let rotations =
        rotations.chain(rotated_again.map(|kind| Operation::RotateWhole(kind, Strategy::Overlap)));
    let upkeep = [Operation::Ensure, Operation::Retire];
    let operations = deferred.map(Operation::Submit).chain(rotations).chain(upkeep).chain([
        Operation::Deliver { reversed: false },
        Operation::Recover,
        Operation::BulkPoll,
        Operation::Sweep,
        Operation::Reconcile,
        Operation::Replay,
        Operation::Work(100),
        Operation::Pass(ROUND),
    ]);
    let operations: Vec<_> = operations.collect();
    for (operation, number) in operations.into_iter().zip(0..) {
        let host = world.host(PROCESSES + round * 64 + number, &[], false);
        let told = {
            let process = Process { world: &*world, host: &host };
            world.clock.run(process.run(operation)).expect("an operation waits for time alone")
        };
        world.promises.hear(&told);
    }
}

/// Whether a submission waits for its submitter to try again.
fn is_deferred(world: &World, number: u64) -> bool {
    let submission = world.submission(number);
    let intents = world.ledger.intents();
    intents.iter().any(|intent| {
        intent.position == submission.position
            && matches!(intent.state, IntentState::Deferred { .. })
    })
}

fn is_open(world: &World) -> bool {
    let rows = world.ledger.entries();
    let intents = world.ledger.intents();
    let now = world.clock.now();
    world.is_in_rotation()
        || rows.iter().any(|entry| !entry.state.is_terminal())
        || intents.iter().any(|intent| {
            matches!(intent.state, IntentState::Open { .. } | IntentState::Deferred { .. })
        })
        || world.platform.next_due().is_some_and(|due| due <= domain::time::after(now, ROUND))
}

/// Whether everything has ended as it should.
fn judge(world: &World) -> Option<Broken> {
    let jobs = booked(&world.platform);
    jobs.iter()
        .find_map(|job| ended_right(world, job))
        .or_else(|| stored_once(world))
        .or_else(|| nothing_given_up(world, &jobs))
}

fn ended_right(world: &World, job: &Booked) -> Option<Broken> {
    let key = job.key();
    let Some(row) = world.ledger.entry(&key) else {
        let is_owed = matches!(job.status.as_str(), "completed" | "failed" | "cancelled");
        return is_owed.then(|| Broken(format!("{key} is {} and has no row", job.status)));
    };
    let is_right = match job.status.as_str() {
        "completed" => matches!(row.state, State::Stored { .. }),
        "failed" => matches!(row.state, State::Superseded { .. } | State::Dead { .. }),
        "cancelled" => {
            matches!(row.state, State::Dead { reason: DeadReason::Cancelled, .. })
        }
        _ => matches!(row.state, State::Dead { reason: DeadReason::NeverSettled, .. }),
    };
    (!is_right).then(|| Broken(format!("{key} is {} and ended as {:?}", job.status, row.state)))
}

/// One result object for each stored job, and none that nobody owns.
fn stored_once(world: &World) -> Option<Broken> {
    let mut owned: BTreeMap<String, u32> = BTreeMap::new();
    for entry in world.ledger.entries() {
        if let State::Stored { result } | State::Dead { result: Some(result), .. } = &entry.state {
            *owned.entry(result.key.clone()).or_default() += 1;
        }
    }
    if let Some((key, _)) = owned.iter().find(|(_, rows)| **rows > 1) {
        return Some(Broken(format!("{key} belongs to two rows")));
    }
    let keys = world.results.keys();
    let is_result =
        |key: &&String| key.starts_with("kind=extract/") || key.ends_with("/_manifest.json");
    let stray = keys.iter().filter(is_result).find(|key| !owned.contains_key(*key))?;
    Some(Broken(format!("{stray} belongs to no row")))
}

/// A URL is given up only when its lineage has had all its tries.
fn nothing_given_up(world: &World, jobs: &[Booked]) -> Option<Broken> {
    let mut tries: BTreeMap<&str, Vec<&Booked>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.is_elsewhere() && job.kind == Kind::Extract) {
        tries.entry(&job.url).or_default().push(job);
    }
    tries.into_iter().find_map(|(url, jobs)| {
        let all_failed = jobs.iter().all(|job| job.failed_retryably());
        let is_early = all_failed && jobs.len() <= RESUBMITS_MAX;
        // Where nobody can know whether a POST was accepted, nobody pays: that is told.
        let last = jobs.last()?.key();
        let is_told = world.ledger.entry(&last).is_some_and(|row| {
            matches!(row.state, State::Dead { reason: DeadReason::Ambiguous, .. })
        });
        (is_early && !is_told)
            .then(|| Broken(format!("{url} was given up after {} tries", jobs.len())))
    })
}
