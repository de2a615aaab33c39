//! Tasks, by what the platform says of their jobs.

use std::sync::Arc;

use domain::job::{JobError, JobKey, JobStatus, Kind};
use domain::pause::Scope;
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, Item, ParentPage, Queue, RawJson, TaskSource,
};
use domain::testing::{ScriptedSubmit, extract_answer, parent_answer};
use domain::time::Timestamp;

use super::probe::was_in_trouble;
use super::world::key;
use super::{End, Faults, World, faults};
use crate::faulty::FaultPlan;

/// Lays down what the platform says.
type Script<Q> = fn(&World<Q>);

/// A case: the job, whether it was submitted from here, what the platform says, how the rows stand in
/// the end, and which trouble of the account has just had its time.
pub(super) struct Case<Q> {
    kind: Kind,
    is_ours: bool,
    script: Script<Q>,
    ends: &'static [&'static str],
    trouble: Option<Scope>,
}

impl<Q> Case<Q> {
    fn foreign(kind: Kind, ends: &'static [&'static str], script: Script<Q>) -> Self {
        Self { kind, is_ours: false, script, ends, trouble: None }
    }

    pub(super) fn ours(kind: Kind, ends: &'static [&'static str], script: Script<Q>) -> Self {
        Self { is_ours: true, ..Self::foreign(kind, ends, script) }
    }

    /// The same, when the account was in trouble until now.
    pub(super) fn after_trouble(self, of: Scope) -> Self {
        Self { trouble: Some(of), ..self }
    }
}

/// One more try, which is paid for once.
pub(super) const RESUBMITTED: &[&str] = &["extract a superseded job-1 ", "extract job-1 stored "];

fn created_at() -> Option<Timestamp> {
    "2026-11-29T23:59:59Z".parse().ok()
}

fn extract() -> JobKey {
    key(Kind::Extract, "a")
}

fn answer(job: &JobKey, status: JobStatus) -> ExtractJob {
    let mut answer = extract_answer(&job.job_id, status);
    answer.created_at = created_at();
    answer
}

/// The job's answers, one after the other; the last one stays.
pub(super) fn answers<Q>(world: &World<Q>, statuses: impl IntoIterator<Item = JobStatus>) {
    for status in statuses {
        world.jobs.answer_extract(&extract().job_id, Ok(answer(&extract(), status)));
    }
}

/// The job failed retryably; the next try becomes this, and is completed.
pub(super) fn fails<Q>(world: &World<Q>, next: Option<ScriptedSubmit>) {
    let error = Some(JobError::new("TIMEOUT", "", true));
    let failed = ExtractJob { error, ..answer(&extract(), JobStatus::Failed) };
    world.jobs.answer_extract(&extract().job_id, Ok(failed));
    world.jobs.set_list_lag(world.limits.adoption_margin);
    if let Some(next) = next {
        world.jobs.answer_submit(next);
    }
    for name in ["job-1", "job-2", "job-3"] {
        let made = key(Kind::Extract, name);
        world.jobs.answer_extract(&made.job_id, Ok(answer(&made, JobStatus::Completed)));
    }
}

fn item(index: u32) -> Item {
    let url = format!("https://example.com/{index}");
    let raw = format!(r#"{{"input_index":{index},"url":"{url}","status":"completed"}}"#);
    let (key, status, raw) = (index.to_string(), "completed".to_owned(), RawJson(raw.into()));
    Item { key, url, status, error: None, raw }
}

fn parent<Q>(world: &World<Q>, status: JobStatus, count: u32) {
    let batch = key(Kind::Batch, "a");
    let answer = parent_answer(&batch, status, (0..count).map(item).collect());
    world.jobs.answer_parent(&batch, Ok(ParentPage { created_at: created_at(), ..answer }));
}

/// DQ-02, DQ-06: stored, once.
pub async fn a_completed_job<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| answers(world, [JobStatus::Completed]);
    survives(make, faults, Case::foreign(Kind::Extract, &["extract a stored "], script)).await;
}

/// DQ-02, DQ-06: stored, once, with its lineage.
pub async fn a_completed_job_of_ours<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| answers(world, [JobStatus::Completed]);
    survives(make, faults, Case::ours(Kind::Extract, &["extract a stored "], script)).await;
}

/// Put off until it is finished.
pub async fn a_job_that_is_not_finished<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> =
        |world| answers(world, [JobStatus::Queued, JobStatus::Processing, JobStatus::Completed]);
    survives(make, faults, Case::foreign(Kind::Extract, &["extract a stored "], script)).await;
}

/// Given up.
pub async fn a_cancelled_job<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| answers(world, [JobStatus::Cancelled]);
    survives(make, faults, Case::ours(Kind::Extract, &["extract a dead cancelled "], script)).await;
}

/// Given up, since nobody knows what was asked for.
pub async fn a_failed_job_of_nobody<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| fails(world, None);
    survives(
        make,
        faults,
        Case::foreign(Kind::Extract, &["extract a dead unlinked_failure "], script),
    )
    .await;
}

/// WK-14: paid for once more, and no more.
pub async fn a_failed_job_that_is_tried_again<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| fails(world, None);
    survives(make, faults, Case::ours(Kind::Extract, RESUBMITTED, script)).await;
}

/// WK-14: the job of a lost answer is looked for before anybody pays again.
pub async fn a_failed_job_whose_next_try_is_not_answered<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| {
        fails(world, Some(ScriptedSubmit::AcceptedUnanswered(key(Kind::Extract, "job-1").job_id)));
    };
    survives(make, faults, Case::ours(Kind::Extract, RESUBMITTED, script)).await;
}

/// The platform is busy: nothing is paid, and the try is made later.
pub async fn a_failed_job_whose_next_try_is_refused_for_now<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| {
        let throttled = ApiError {
            status: Some(429),
            retry_after: Some(std::time::Duration::from_mins(1)),
            ..ApiError::new(ApiErrorKind::Throttled, "too many")
        };
        fails(world, Some(ScriptedSubmit::Refused(throttled)));
    };
    survives(make, faults, Case::ours(Kind::Extract, RESUBMITTED, script)).await;
}

/// DQ-06: three parts and what makes them count.
pub async fn a_batch_of_three_pages<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| parent(world, JobStatus::Completed, 101);
    survives(make, faults, Case::foreign(Kind::Batch, &["batch a stored "], script)).await;
}

/// Stored, and with it the row that asks once more for the item that failed, in one write; then that
/// is paid for once.
pub async fn a_batch_whose_failed_item_is_asked_for_again<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| {
        let (batch, next) = (key(Kind::Batch, "a"), key(Kind::Batch, "job-1"));
        let failed = r#"{"input_index":1,"url":"https://example.com/1","status":"failed","error_code":"TIMEOUT"}"#;
        let summary = r#"{"status":"completed","batch_config":{"formats":[],"render_js":false}}"#;
        let items = vec![item(0), Item { raw: RawJson(failed.into()), ..item(1) }];
        let answer = parent_answer(&batch, JobStatus::Completed, items);
        let summary = RawJson(summary.into());
        let answer = ParentPage { created_at: created_at(), summary, ..answer };
        world.jobs.answer_parent(&batch, Ok(answer));
        let answer = parent_answer(&next, JobStatus::Completed, vec![item(1)]);
        world.jobs.answer_parent(&next, Ok(ParentPage { created_at: created_at(), ..answer }));
    };
    let ends = &["batch a stored ", "batch follow-up-", "batch job-1 stored "];
    survives(make, faults, Case::ours(Kind::Batch, ends, script)).await;
}

/// Given up, with what there was.
pub async fn a_failed_batch<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
) {
    let script: Script<Q> = |world| parent(world, JobStatus::Failed, 60);
    survives(make, faults, Case::ours(Kind::Batch, &["batch a dead failed "], script)).await;
}

pub(super) async fn survives<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    faults: Faults,
    case: Case<Q>,
) {
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        end_with(make, &case, plan, processes).await
    };
    let is_right = |end: &End| {
        end.check(case.ends);
        let superseded = end.rows.iter().filter(|row| row.contains(" superseded ")).count();
        assert_eq!(end.paid.len(), superseded, "{end:?}");
    };
    faults::survives(faults, end_with, is_right).await;
}

/// Workers with these faults; then whoever is left.
async fn end_with<Q: Queue + TaskSource + 'static>(
    make: &impl AsyncFn() -> World<Q>,
    case: &Case<Q>,
    plan: &Arc<FaultPlan>,
    processes: usize,
) -> End {
    let world = make().await;
    let job = key(case.kind, "a");
    if case.is_ours {
        world.lay(&world.expected(&job)).await;
    }
    world.deliver_well(&job, &*world.own_ledger()).await;
    (case.script)(&world);
    if let Some(scope) = case.trouble {
        was_in_trouble(&world, scope).await;
    }
    for _ in 0..processes {
        world.work(&job, plan).await;
    }
    let objects = world.objects();
    world.settle().await;
    let later = world.objects();
    for (key, bytes) in objects {
        assert_eq!(later.get(&key), Some(&bytes), "{key} changed");
    }
    world.end().await
}
