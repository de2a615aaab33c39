use super::rig::{
    HOUR, MINUTE, Rig, answer, dead, error, extract, id, items, link_of, stored_object,
};
use crate::entry::{Cause, DeadReason, Entry, State, StateName};
use crate::intent::Intent;
use crate::job::{JobError, JobStatus};
use crate::place::extract_key;
use crate::ports::{ApiErrorKind, ExtractJob, RawJson, Results};
use crate::submit::Submitted;
use crate::task::Task;
use crate::time::{after, before, between};
use crate::work::{Failure, PutOff, Skip, Worked, judge_failure, work};

const KEY_OF_A: &str = "kind=extract/dt=2026-11-29/a.json.gz";

fn failed(key: &crate::job::JobKey, retryable: bool) -> ExtractJob {
    let error = Some(JobError::new("TEMPORARY_BLOCK", "later perhaps", retryable));
    ExtractJob { error, ..answer(key, JobStatus::Failed) }
}

#[tokio::test]
async fn a_completed_job_is_stored_verbatim_under_the_date_of_its_creation() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    let raw = r#"{ "job_id":"a", "n": 1.50, "u":"\u00e9", "big":123456789012345678901234567890 }"#;
    let mut job = answer(&key, JobStatus::Completed);
    job.raw = RawJson(raw.into());
    rig.jobs.answer_extract(&key.job_id, Ok(job));
    assert_eq!(rig.work(&key).await, Worked::Stored { key: KEY_OF_A.into(), follow_up: None });
    let (object, content) = rig.results.read(KEY_OF_A).await.unwrap().unwrap();
    assert_eq!(stored_object(&rig.entry(&key)), object);
    let content = String::from_utf8(content).unwrap();
    assert!(content.ends_with(&format!(r#","job":{raw}}}"#)), "{content}");
    let json = rig.json(KEY_OF_A);
    assert_eq!(json["format"], "gleaner-extract/1");
    assert_eq!(json["ref"], "my-ref");
    assert_eq!(json["lineage"], serde_json::json!({ "root": "a", "attempt": 0 }));
    assert_eq!(json["stored_at"], "2026-11-30T12:00:00Z");
}

#[tokio::test]
async fn the_date_in_the_name_is_fixed_before_the_first_store_and_never_computed_again() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    // The API names no time of creation, so the date is that of the first sight.
    let unknown = ExtractJob { created_at: None, ..answer(&key, JobStatus::Completed) };
    rig.jobs.answer_extract(&key.job_id, Ok(unknown));
    let broken = extract_key(&key.job_id, jiff::civil::date(2026, 11, 30));
    rig.results.place(&broken, b"not gzip".to_vec());
    assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
    assert_eq!(rig.entry(&key).dt, Some(jiff::civil::date(2026, 11, 30)));
    // A later answer names another day; the name stays.
    let redriven = rig.entry(&key).redriven(None, rig.now(), &rig.limits).unwrap();
    rig.ledger.place(&redriven);
    rig.jobs.clear_answers(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
    assert_eq!(rig.results.keys(), [broken]);
}

/// WK-09, DQ-02: an object that is there already finishes the ledger; nothing is written twice.
#[tokio::test]
async fn an_object_of_the_same_job_finishes_the_ledger() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    rig.work(&key).await;
    let first = rig.objects();
    // The ledger is as if the worker had crashed after the put.
    rig.receive_linked(&key);
    rig.clock.advance(HOUR);
    assert_eq!(rig.work(&key).await, Worked::Stored { key: KEY_OF_A.into(), follow_up: None });
    assert_eq!(rig.objects(), first);
}

#[tokio::test]
async fn a_foreign_or_damaged_object_is_never_overwritten() {
    let other = r#"{"format":"gleaner-extract/1","kind":"extract","job_id":"b","job":{}}"#;
    let manifest = r#"{"format":"gleaner-manifest/1","kind":"extract","job_id":"a"}"#;
    for content in [other.as_bytes(), manifest.as_bytes(), b"{", b""] {
        let rig = Rig::new();
        let key = extract("a");
        rig.receive_linked(&key);
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
        rig.results.put_new(KEY_OF_A, content).await.unwrap();
        let before = rig.objects();
        assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
        assert_eq!(rig.objects(), before);
    }
}

/// WK-16: null where an object is expected, and fields nobody knows.
#[tokio::test]
async fn a_completed_job_without_data_is_stored_and_flagged_as_empty() {
    for raw in [r#"{"data":null}"#, r#"{"data":{}}"#, r#"{"data":{},"new":[1],"metadata":null}"#] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        let empty = ExtractJob {
            has_data: false,
            raw: RawJson(raw.into()),
            ..answer(&key, JobStatus::Completed)
        };
        rig.jobs.answer_extract(&key.job_id, Ok(empty));
        assert_eq!(rig.work(&key).await, Worked::Stored { key: KEY_OF_A.into(), follow_up: None });
        assert!(stored_object(&rig.entry(&key)).empty);
    }
}

/// WK-16: failed without saying why is not known to be retryable, so nobody pays for it again.
#[tokio::test]
async fn a_failed_job_without_an_error_is_dead_and_not_resubmitted() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    let job = ExtractJob { error: None, ..answer(&key, JobStatus::Failed) };
    rig.jobs.answer_extract(&key.job_id, Ok(job));
    assert_eq!(rig.work(&key).await, dead(DeadReason::Failed));
    assert_eq!(rig.jobs.submits(), []);
}

/// CL-04: cancelled is final.
#[tokio::test]
async fn a_cancelled_job_is_dead_with_that_reason() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Cancelled)));
    assert_eq!(rig.work(&key).await, dead(DeadReason::Cancelled));
}

/// WK-10: `queued` three times, then `completed`; the pauses grow, and each sends its own task.
#[tokio::test]
async fn an_event_that_came_before_its_job_is_put_off_until_the_job_is_done() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    for status in [JobStatus::Queued, JobStatus::Queued, JobStatus::Queued, JobStatus::Completed] {
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, status)));
    }
    for looks in 1..=3 {
        assert_eq!(rig.work_queue().await, 1);
        let row = rig.entry(&key);
        assert_eq!((row.state.clone(), row.counters.put_offs), (State::Received, looks));
        assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::NotYet));
        rig.clock.advance_to(row.not_before.unwrap());
    }
    assert_eq!(rig.work_queue().await, 1);
    assert_eq!(rig.stands(&key), "stored");
}

/// Whether a result is empty is said of the object that lies there, though the platform has more
/// or less to give by the time that another worker finds it.
#[tokio::test]
async fn an_object_that_lies_there_says_itself_whether_it_is_empty() {
    let full = answer(&extract("a"), JobStatus::Completed);
    let raw = RawJson(r#"{"job_id":"a","status":"completed","data":null}"#.into());
    let empty = ExtractJob { has_data: false, raw, ..full.clone() };
    for (first, then) in [(&full, &empty), (&empty, &full)] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        let row = rig.entry(&key);
        let content = crate::content::extract_object(&row, &first.raw, rig.now()).unwrap();
        let name = extract_key(&key.job_id, jiff::civil::date(2026, 11, 29));
        rig.results.put_new(&name, &content).await.unwrap();
        rig.jobs.answer_extract(&key.job_id, Ok(then.clone()));
        rig.work(&key).await;
        assert_eq!(stored_object(&rig.entry(&key)).empty, !first.has_data);
    }
}

/// WK-10: `processing` for ever, and a status that nobody knows, end at the longest age.
#[tokio::test]
async fn a_job_that_never_finishes_is_given_up_at_its_longest_age() {
    for status in [JobStatus::Processing, JobStatus::from_api("expired")] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, status)));
        let begun = rig.now();
        rig.settle().await;
        assert_eq!(rig.stands(&key), "dead never_settled");
        let lasted = between(begun, rig.now());
        assert!(lasted >= rig.limits.max_age && lasted < rig.limits.max_age + HOUR, "{lasted:?}");
        let calls = rig.jobs.calls().len();
        assert!((100..2_000).contains(&calls), "{calls} looks in two days");
    }
}

/// An unfinished job that nobody has announced is left to bulk polling: no task is sent, and the
/// row is due in its time. It ends at its longest age all the same.
#[tokio::test]
async fn an_unfinished_job_that_nobody_announced_is_left_to_bulk_polling() {
    let rig = Rig::new();
    let key = extract("a");
    let link = Some(link_of(&key, "s"));
    rig.ledger.place(&Entry::expected(key.clone(), link, Cause::Submit, rig.now(), &rig.limits));
    rig.clock.advance(rig.limits.announce_grace);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Processing)));
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Unfinished(_), .. }), "{worked:?}");
    assert_eq!(rig.queue.depth(), 0);
    let row = rig.entry(&key);
    let wait = between(rig.now(), row.due_at.unwrap());
    assert!(wait >= rig.limits.announce_grace / 8 && wait <= rig.limits.backoff_cap, "{wait:?}");
    assert_eq!((row.state.clone(), row.counters.put_offs), (State::Expected, 1));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead never_settled");
    assert!(rig.jobs.calls().len() < 700, "{} looks in two days", rig.jobs.calls().len());
}

/// WK-09: a late reader of `processing` changes nothing after another one has stored.
#[tokio::test]
async fn a_stale_read_never_takes_a_terminal_row_back() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    let slow = Slow { rig: &rig, key: key.clone() };
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    // The slow worker has read `processing`; before it writes, the other one stores.
    let ports = crate::steps::Ports { jobs: &slow, ..rig.ports() };
    let worked = work(ports, &Task { key: key.clone() }).await.unwrap();
    assert_eq!(worked, Worked::Skipped(Skip::Overtaken));
    assert_eq!(rig.stands(&key), "stored");
    let row = rig.entry(&key);
    rig.jobs.clear_answers(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(failed(&key, true)));
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::Settled(StateName::Stored)));
    assert_eq!(rig.entry(&key), row);
}

/// A platform whose answer to the first reader is old by the time it arrives.
struct Slow<'a> {
    rig: &'a Rig,
    key: crate::job::JobKey,
}

#[async_trait::async_trait]
impl crate::ports::Jobs for Slow<'_> {
    async fn extract(
        &self,
        _: &crate::job::JobId,
        _: std::time::Duration,
    ) -> Result<ExtractJob, crate::ports::ApiError> {
        self.rig.work(&self.key).await;
        Ok(answer(&self.key, JobStatus::Processing))
    }

    async fn parent(
        &self,
        _: &crate::job::JobKey,
        _: crate::ports::PageRequest,
        _: std::time::Duration,
    ) -> Result<crate::ports::ParentPage, crate::ports::ApiError> {
        Ok(crate::testing::parent_answer(&self.key, JobStatus::Queued, items(0..0)))
    }

    async fn submit(
        &self,
        _: &crate::request::JobRequest,
        _: std::time::Duration,
    ) -> Result<crate::job::JobId, crate::ports::SubmitError> {
        Ok(id("never"))
    }

    async fn list(
        &self,
        _: crate::job::Kind,
        _: &crate::ports::ListQuery,
        _: std::time::Duration,
    ) -> Result<crate::ports::ListPage, crate::ports::ApiError> {
        Err(error(ApiErrorKind::Unavailable, None))
    }

    async fn probe(&self, _: std::time::Duration) -> Result<(), crate::ports::ApiError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_failed_job_that_nobody_submitted_is_dead_as_unlinked() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    rig.jobs.answer_extract(&key.job_id, Ok(failed(&key, true)));
    assert_eq!(rig.work(&key).await, dead(DeadReason::UnlinkedFailure));
}

fn open_intent(rig: &Rig) -> Intent {
    Intent::open(&super::rig::submission(super::rig::page()), "t".into(), rig.now(), &rig.limits)
}

/// WK-14: while a POST of ours may have made the job, it is neither given up nor paid for; a POST
/// that nobody ever closes does not keep it for ever, and a redrive begins with a fresh budget.
#[tokio::test]
async fn an_unlinked_failure_waits_for_an_unresolved_post() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    let created_at = Some(rig.now());
    rig.jobs.answer_extract(&key.job_id, Ok(ExtractJob { created_at, ..failed(&key, true) }));
    // An intent that nobody can ever resolve: far from due.
    let mut intent = open_intent(&rig);
    intent.due_at = Some(after(rig.now(), 1_000 * HOUR));
    rig.ledger.place_intent(&intent);
    let begun = rig.now();
    let longest = rig.limits.max_age + rig.limits.ambiguous_after;
    while rig.now() < after(begun, longest.saturating_sub(HOUR)) {
        let worked = rig.work_when_due(&key).await;
        assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
        rig.clock.advance(10 * MINUTE);
    }
    rig.clock.advance(2 * HOUR);
    assert_eq!(rig.work_when_due(&key).await, dead(DeadReason::UnlinkedFailure));
    let redriven = rig.entry(&key).redriven(None, rig.now(), &rig.limits).unwrap();
    rig.ledger.place(&redriven);
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
    assert_eq!(rig.jobs.submits(), []);
}

/// WK-14: the POST's answer was lost, its job failed at once; once it is found, it is linked and
/// resubmitted under its own lineage.
#[tokio::test]
async fn a_job_whose_post_was_unanswered_is_resubmitted_only_after_it_was_found() {
    let rig = Rig::new();
    let key = extract("a");
    let lost = crate::testing::ScriptedSubmit::AcceptedUnanswered(id("a"));
    rig.jobs.answer_submit(lost);
    let asked = super::rig::submission(super::rig::page());
    let submitted = crate::submit::submit(rig.ports(), &asked).await.unwrap();
    assert!(matches!(submitted, Submitted::Unanswered { .. }));
    let created_at = Some(rig.now());
    rig.jobs.answer_extract(&key.job_id, Ok(ExtractJob { created_at, ..failed(&key, true) }));
    let replacement = extract("job-1");
    let done = answer(&replacement, JobStatus::Completed);
    rig.jobs.answer_extract(&replacement.job_id, Ok(done));
    rig.announce(&key).await;
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-1");
    assert_eq!(rig.stands(&replacement), "stored");
    assert_eq!(rig.entry(&replacement).link.unwrap().lineage, id("a"));
    assert_eq!(rig.jobs.submits().len(), 2);
}

#[test]
fn a_job_that_the_ledger_may_have_forgotten_is_not_resubmitted() {
    let rig = Rig::new();
    let key = extract("a");
    let error = JobError::new("TIMEOUT", "", true);
    let link = Some(link_of(&key, "s"));
    let row = Entry::expected(key, link, Cause::Submit, rig.now(), &rig.limits);
    let judge = |forgotten| judge_failure(&row, &error, false, forgotten, &rig.limits);
    assert!(matches!(judge(false), Failure::Resubmit(_)));
    assert_eq!(judge(true), Failure::Die(DeadReason::Failed));
}

#[tokio::test]
async fn the_age_of_a_failed_job_is_that_of_its_creation() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    let created_at = Some(before(rig.now(), rig.limits.retention.saturating_sub(HOUR)));
    rig.jobs.answer_extract(&key.job_id, Ok(ExtractJob { created_at, ..failed(&key, true) }));
    assert_eq!(rig.work(&key).await, dead(DeadReason::Failed));
    assert_eq!(rig.jobs.submits(), []);
}
