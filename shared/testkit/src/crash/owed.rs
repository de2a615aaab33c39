//! What people decide and pay for, and a tick that finds it unfinished.

use std::sync::Arc;
use std::time::Duration;

use domain::entry::{DeadReason, Entry, State};
use domain::intent::Submission;
use domain::job::{JobStatus, Kind};
use domain::pause::Scope;
use domain::ports::{Clock as _, Queue, TaskSource};
use domain::redrive::{PayAgain, discard, redrive};
use domain::request::{FetchOptions, JobRequest};
use domain::submit::{Submitted, submit};
use domain::testing::{MemoryWebhooks, ScriptedSubmit};
use domain::time::before;

use super::probe::was_in_trouble;
use super::tick::{answers, done};
use super::world::key;
use super::{End, Ended, Faults, World, faults};
use crate::faulty::FaultPlan;

/// Times that somebody asks again for the same submission, a minute apart.
const ASKS_MAX: u32 = 120;
const MINUTE: Duration = Duration::from_mins(1);

fn submission() -> Submission {
    let request = JobRequest::extract("https://example.com/page", FetchOptions::default());
    Submission { run: "run".to_owned(), position: 0, request: request.unwrap(), reference: None }
}

/// WK-14: a submission is paid for once, whichever of its calls is the last of its process.
pub async fn a_submission<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    is_submitted(make, None, None, faults).await;
}

/// WK-14: the same where the POST's answer is lost as well.
pub async fn a_submission_that_is_not_answered<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    is_submitted(make, Some(unanswered()), None, faults).await;
}

fn unanswered() -> ScriptedSubmit {
    ScriptedSubmit::AcceptedUnanswered(key(Kind::Extract, "job-1").job_id)
}

/// Somebody submits a job, perhaps just after trouble of the account.
pub(super) async fn is_submitted<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    post: Option<ScriptedSubmit>,
    trouble: Option<Scope>,
    faults: Faults,
) {
    let begin = async || {
        let world = make().await;
        lay_down(&world, post.clone());
        if let Some(scope) = trouble {
            was_in_trouble(&world, scope).await;
        }
        world
    };
    let act = async |world: &World<Q>, plan: &Arc<FaultPlan>| {
        drop(world.process(plan, async |ports| submit(ports, &submission()).await).await);
    };
    // Whoever wants the job asks until it is there.
    let again = async |world: &World<Q>| {
        let well = FaultPlan::none();
        for _ in 0..ASKS_MAX {
            let asked = world.process(&well, async |ports| submit(ports, &submission()).await);
            match asked.await {
                Ended::With(Ok(Submitted::Accepted { .. })) => return,
                Ended::With(Ok(Submitted::Deferred { .. } | Submitted::Unanswered { .. })) => {
                    world.clock.advance(MINUTE);
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("never accepted");
    };
    survives(&begin, act, again, (&["extract job-1 stored "], 1), faults).await;
}

/// The jobs that submissions make are completed, and appear in the list as late as they may.
fn lay_down<Q>(world: &World<Q>, post: Option<ScriptedSubmit>) {
    world.jobs.set_list_lag(world.limits.adoption_margin);
    for name in ["job-1", "job-2"] {
        answers(world, Kind::Extract, name, JobStatus::Completed);
    }
    if let Some(post) = post {
        world.jobs.answer_submit(post);
    }
}

/// SC-01, WK-14: a tick meets a row whose task was lost and a submission whose answer was.
pub async fn an_overdue_row_and_an_unanswered_submission<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let begin = async || {
        let world = make().await;
        lay_down(&world, Some(unanswered()));
        let well = FaultPlan::none();
        drop(world.process(&well, async |ports| submit(ports, &submission()).await).await);
        let late = key(Kind::Extract, "late");
        answers(&world, Kind::Extract, "late", JobStatus::Completed);
        let due_at = Some(before(world.clock.now(), MINUTE));
        let row = Entry { state: State::Received, due_at, ..world.expected(&late) };
        world.lay(&row).await;
        world.clock.advance(world.limits.recovery().saturating_add(MINUTE));
        world
    };
    let act = async |world: &World<Q>, plan: &Arc<FaultPlan>| {
        let webhooks = Arc::new(MemoryWebhooks::new(world.clock.clone()));
        drop(world.tick(&webhooks, plan).await);
    };
    let ends = &["extract job-1 stored ", "extract late stored "];
    survives(&begin, act, async |_: &World<Q>| {}, (ends, 1), faults).await;
}

async fn dead<Q: Queue + TaskSource + 'static>(make: &impl AsyncFn() -> World<Q>) -> World<Q> {
    let world = make().await;
    world.lay(&done(&world, &key(Kind::Extract, "a"), world.clock.now())).await;
    answers(&world, Kind::Extract, "a", JobStatus::Completed);
    world
}

/// The row that an operator decides upon, if it is still to be decided upon.
async fn undecided<Q>(world: &World<Q>) -> Option<Entry> {
    let rows = world.entries().await;
    rows.into_iter().find(|row| matches!(row.state, State::Dead { reason: DeadReason::Failed, .. }))
}

/// DQ-10: an operator tries a dead row again, and repeats the command.
pub async fn a_redrive<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let act = async |world: &World<Q>, plan: &Arc<FaultPlan>| {
        let Some(row) = undecided(world).await else { return };
        let redriven = world.process(plan, async |ports| {
            redrive(ports.announcing(), row.clone(), PayAgain::Never, None).await
        });
        drop(redriven.await);
    };
    let again = async |world: &World<Q>| act(world, &FaultPlan::none()).await;
    survives(&async || dead(make).await, &act, again, (&["extract a stored "], 0), faults).await;
}

/// DQ-10: an operator discards a dead row, and repeats the command.
pub async fn a_discard<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let act = async |world: &World<Q>, plan: &Arc<FaultPlan>| {
        let Some(row) = undecided(world).await else { return };
        let discarded =
            world.process(plan, async |ports| discard(ports.announcing(), row.clone(), None).await);
        drop(discarded.await);
    };
    let again = async |world: &World<Q>| act(world, &FaultPlan::none()).await;
    survives(&async || dead(make).await, &act, again, (&["extract a dead discarded "], 0), faults)
        .await;
}

/// Calls of the act fail, or are the last of their process; then whoever acted does so again.
/// `ends` is how the rows stand then, and how many jobs are paid for.
async fn survives<Q: Queue + TaskSource + 'static>(
    begin: &impl AsyncFn() -> World<Q>,
    act: impl AsyncFn(&World<Q>, &Arc<FaultPlan>),
    again: impl AsyncFn(&World<Q>),
    ends: (&[&str], usize),
    faults: Faults,
) {
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        let world = begin().await;
        for _ in 0..processes {
            act(&world, plan).await;
        }
        again(&world).await;
        world.settle().await;
        world.end().await
    };
    let is_right = |end: &End| {
        end.check(ends.0);
        assert_eq!(end.paid.len(), ends.1, "{end:?}");
    };
    faults::survives(faults, end_with, is_right).await;
}
