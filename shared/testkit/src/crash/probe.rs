//! What is done when trouble of the account has had its time: one call shows whether it is over.

use domain::job::{JobStatus, Kind};
use domain::pause::{Pauses, Scope};
use domain::ports::{ApiError, ApiErrorKind, Clock as _, Queue, TaskSource};
use domain::testing::ScriptedSubmit;
use domain::time::after;

use super::owed;
use super::work::{Case, RESUBMITTED, answers, fails, survives};
use super::{Faults, World};

/// Another process has seen trouble of the account, and what it wrote has just had its time.
pub(super) async fn was_in_trouble<Q>(world: &World<Q>, scope: Scope) {
    let until = after(world.clock.now(), world.limits.account_pause);
    let why = match scope {
        Scope::All => ApiErrorKind::Denied,
        Scope::Paying => ApiErrorKind::PaymentRequired,
    };
    let pauses = Pauses::default();
    let written = pauses.extend(&*world.ledger, scope, until, why.as_str()).await;
    written.unwrap();
    world.clock.advance_to(until);
}

fn refusal(status: u16, kind: ApiErrorKind) -> ApiError {
    ApiError { status: Some(status), ..ApiError::new(kind, "still in trouble") }
}

/// WK-12: the trouble is over.
pub async fn a_job_after_the_trouble<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let ends = &["extract a stored "];
    let case = Case::ours(Kind::Extract, ends, |world| answers(world, [JobStatus::Completed]));
    survives(make, faults, case.after_trouble(Scope::All)).await;
}

/// WK-12: it is not, and the next one who asks finds it over.
pub async fn a_job_while_the_trouble_lasts<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let ends = &["extract a stored "];
    let case = Case::ours(Kind::Extract, ends, |world| {
        world.jobs.answer_probe(Err(refusal(401, ApiErrorKind::Denied)));
        world.jobs.answer_probe(Ok(()));
        answers(world, [JobStatus::Completed]);
    });
    survives(make, faults, case.after_trouble(Scope::All)).await;
}

/// WK-14: the paid POST is itself the probe, and paid for once.
pub async fn a_next_try_that_proves_the_account<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let case = Case::ours(Kind::Extract, RESUBMITTED, |world| fails(world, None));
    survives(make, faults, case.after_trouble(Scope::Paying)).await;
}

/// WK-14: a submission is the probe, and the account cannot pay yet.
pub async fn a_submission_that_proves_nothing<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let post = ScriptedSubmit::Refused(refusal(402, ApiErrorKind::PaymentRequired));
    owed::is_submitted(make, Some(post), Some(Scope::Paying), faults).await;
}
