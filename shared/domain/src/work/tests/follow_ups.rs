//! Policies: failed items that are asked for once more, and failed jobs of nobody.

use super::parents::{item_keys, whole};
use super::rig::{
    HOUR, MINUTE, Rig, answer, batch, crawl, error, extract, id, items, link_of, retry_after,
    stored_object, submission,
};
use crate::entry::{Cause, DeadReason, Entry, State};
use crate::follow_up::key_of;
use crate::intent::Intent;
use crate::job::{JobError, JobKey, JobStatus};
use crate::limits::{Limits, Policies};
use crate::ports::{ApiErrorKind, ExtractJob, Item, ParentPage, RawJson};
use crate::request::{FetchOptions, Format, JobRequest};
use crate::submit::submit;
use crate::task::Task;
use crate::testing::{Call, ScriptedSubmit};
use crate::time::after;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::{FollowedUp, PutOff, Worked, work};

const BOTH: Policies = Policies { resubmit_unlinked: true, resubmit_failed_items: true };
const ITEMS: Policies = Policies { resubmit_unlinked: false, resubmit_failed_items: true };
const UNLINKED: Policies = Policies { resubmit_unlinked: true, resubmit_failed_items: false };

fn rig(policies: Policies) -> Rig {
    let mut rig = Rig::new();
    rig.limits = Limits { policies, spend_per_day: Some(100), ..Limits::default() };
    rig
}

/// An item that failed with this code.
pub(super) fn failed_item(index: u32, code: &str) -> Item {
    let url = format!("https://example.com/{index}");
    let raw = format!(
        r#"{{"input_index":{index},"url":"{url}","status":"failed","error_code":"{code}"}}"#
    );
    Item {
        key: index.to_string(),
        url,
        status: "failed".into(),
        error: Some(JobError::new(code, "", false)),
        raw: RawJson(raw.into()),
    }
}

/// A completed parent of three items, of which one failed retryably and one for good.
pub(super) fn partly(key: &JobKey) -> ParentPage {
    let mut all = items(0..1);
    all.push(failed_item(1, "TIMEOUT"));
    all.push(failed_item(2, "PERMANENT_BLOCK"));
    whole(key, JobStatus::Completed, all)
}

/// The same with its options, as the platform shows them.
fn shown(key: &JobKey, config: &str) -> ParentPage {
    let summary = format!(r#"{{"status":"completed","{}":{config}}}"#, "batch_config");
    ParentPage { summary: RawJson(summary.into()), ..partly(key) }
}

/// A batch that was submitted with these options, and whose job is `job-1`.
async fn submitted(rig: &Rig, options: FetchOptions) -> JobKey {
    let urls = ["https://example.com/0", "https://example.com/1", "https://example.com/2"];
    let request = JobRequest::batch(urls, options).unwrap();
    submit(rig.ports(), &submission(request)).await.unwrap();
    let key = batch("job-1");
    rig.jobs.answer_parent(&key, Ok(partly(&key)));
    key
}

/// The URLs of the batches that were paid for, after the first.
fn asked_again(rig: &Rig) -> Vec<Vec<String>> {
    let submits = rig.jobs.submits();
    let urls = submits.iter().skip(1).map(|request| match request {
        JobRequest::Batch { urls, .. } => urls.clone(),
        other => panic!("{other:?}"),
    });
    urls.collect()
}

#[tokio::test]
async fn without_the_policy_failed_items_are_listed_and_left() {
    let rig = rig(UNLINKED);
    let key = submitted(&rig, FetchOptions::default()).await;
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
    assert_eq!((rig.jobs.submits().len(), rig.ledger.entries().len()), (1, 1));
}

/// The items that may succeed are asked for in a new batch of the same lineage, with the options of
/// the submission, and its result is stored like any other.
#[tokio::test]
async fn failed_items_are_asked_for_once_more() {
    let rig = rig(ITEMS);
    let options = FetchOptions { formats: vec![Format::Markdown], ..FetchOptions::default() };
    let key = submitted(&rig, options.clone()).await;
    rig.announce(&key).await;
    let Worked::Stored { follow_up, .. } = rig.work(&key).await else { panic!() };
    assert_eq!(follow_up, Some(FollowedUp::Asked { items: 1, left: 0 }));
    let row = key_of(&key);
    assert_eq!(rig.stands(&row), "received");
    assert_eq!(rig.queue.tasks().last().map(|task| task.key.clone()), Some(row.clone()));
    let next = batch("job-2");
    rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
    rig.jobs.clear_calls();
    assert_eq!(rig.work(&row).await, Worked::Superseded { by: id("job-2") });
    let request = JobRequest::batch(["https://example.com/1"], options).unwrap();
    assert_eq!(rig.jobs.calls(), [Call::Submit(request)], "there is nothing to ask for before");
    let link = rig.entry(&next).link.unwrap();
    assert_eq!((link.lineage.clone(), link.attempt, link.request), (id("job-1"), 1, None));
    rig.settle().await;
    assert_eq!(rig.stands(&row), "superseded job-2");
    let manifest = rig.json(&stored_object(&rig.entry(&next)).key);
    assert_eq!(manifest["lineage"], serde_json::json!({ "root": "job-1", "attempt": 1 }));
    assert_eq!(rig.jobs.submits().len(), 1);
}

/// WK-13: the platform fails the same item for ever: the lineage ends, and says so.
#[tokio::test]
async fn a_lineage_of_follow_ups_ends() {
    let rig = rig(ITEMS);
    let mut last = submitted(&rig, FetchOptions::default()).await;
    for number in 2..20 {
        let key = batch(&format!("job-{number}"));
        let items = vec![failed_item(1, "TIMEOUT")];
        rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items)));
    }
    for _ in 0..3 {
        rig.announce(&last).await;
        rig.work(&last).await;
        let row = key_of(&last);
        let Worked::Superseded { by } = rig.work(&row).await else { panic!() };
        last = batch(by.as_str());
    }
    rig.announce(&last).await;
    let Worked::Stored { follow_up, .. } = rig.work(&last).await else { panic!() };
    assert_eq!(follow_up, Some(FollowedUp::Capped { items: 1 }));
    rig.settle().await;
    assert_eq!(asked_again(&rig), [["https://example.com/1"]; 3]);
}

/// The day's spend counts the items of a follow-up; one that does not fit waits for the next day.
#[tokio::test]
async fn the_days_spend_holds_follow_ups_back() {
    let mut rig = rig(ITEMS);
    rig.limits.spend_per_day = Some(3);
    let key = submitted(&rig, FetchOptions::default()).await;
    rig.announce(&key).await;
    rig.work(&key).await;
    let row = key_of(&key);
    let worked = rig.work(&row).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Spent, .. }), "{worked:?}");
    let next = batch("job-2");
    rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
    rig.settle().await;
    assert_eq!(rig.stands(&row), "superseded job-2");
    let paid_at = rig.entry(&next).history[0].at;
    assert!(paid_at >= "2026-12-01T00:00:00Z".parse().unwrap(), "{paid_at}");
}

/// WK-14: a follow-up whose answer was lost is looked for, one that is refused for now is made
/// later, and one that is refused for good or cannot be decided is dead, and is redriven like any.
#[tokio::test]
async fn a_follow_up_is_recovered_like_a_retry() {
    let refused = |kind, status| ScriptedSubmit::Refused(error(kind, Some(status)));
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), MINUTE);
    for (submits, end, paid) in [
        (vec![ScriptedSubmit::AcceptedUnanswered(id("job-2"))], "superseded job-2", 1),
        (vec![ScriptedSubmit::LostUnanswered], "superseded job-2", 1),
        (vec![ScriptedSubmit::Refused(throttled)], "superseded job-2", 1),
        (vec![refused(ApiErrorKind::Refused, 422)], "dead resubmit_refused", 0),
    ] {
        let rig = rig(ITEMS);
        let key = submitted(&rig, FetchOptions::default()).await;
        rig.jobs.set_list_lag(rig.limits.adoption_margin);
        for submit in submits.clone() {
            rig.jobs.answer_submit(submit);
        }
        let next = batch("job-2");
        rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
        rig.settle().await;
        let row = key_of(&key);
        assert_eq!(rig.stands(&row), end, "{submits:?}");
        assert_eq!(rig.jobs.listed(crate::job::Kind::Batch).len(), 1 + paid, "{submits:?}");
        if paid == 0 {
            let dead = rig.entry(&row);
            assert!(matches!(dead.state, State::Dead { reason: DeadReason::ResubmitRefused, .. }));
            rig.ledger.place(&dead.redriven(None, rig.now(), &rig.limits).unwrap());
            rig.settle().await;
            assert_eq!(rig.stands(&row), "superseded job-2");
        }
    }
}

/// A follow-up whose POST cannot be decided ends as ambiguous: nobody pays again.
#[tokio::test]
async fn a_follow_up_that_cannot_be_decided_is_ambiguous() {
    let rig = rig(ITEMS);
    let key = submitted(&rig, FetchOptions::default()).await;
    rig.jobs.answer_submit(ScriptedSubmit::LostUnanswered);
    rig.announce(&key).await;
    rig.work(&key).await;
    rig.work(&key_of(&key)).await;
    for _ in 0..2_000 {
        rig.jobs.fail_list(error(ApiErrorKind::Refused, Some(422)));
    }
    rig.settle().await;
    assert_eq!(rig.stands(&key_of(&key)), "dead ambiguous");
    assert_eq!(rig.jobs.submits().len(), 2);
}

/// Another worker may be faster with either row: the follow-up is written once, and paid for once.
#[test]
fn two_workers_with_one_parent_follow_it_up_once() {
    let world = || {
        let rig = rig(ITEMS);
        let key = run(submitted(&rig, FetchOptions::default())).unwrap();
        run(rig.announce(&key)).unwrap();
        let next = batch("job-2");
        rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
        (rig, key)
    };
    let calls = calls_of(&batch("job-1")).len();
    for before in 0..calls {
        let (rig, key) = world();
        let task = Task { key: key.clone() };
        let second = || drop(run(work(rig.ports(), &task)));
        let faulty = Faulty::with_visitor(&rig, before, second);
        drop(run(work(faulty.ports(), &task)));
        run(rig.settle()).unwrap();
        assert_eq!(
            (rig.stands(&key), rig.stands(&key_of(&key))),
            ("stored".into(), "superseded job-2".into())
        );
        assert_eq!(rig.jobs.submits().len(), 2, "before call {before}");
    }
}

/// A crawl's pages are asked for as a batch; a parent that failed or was cancelled is not followed
/// up.
#[tokio::test]
async fn crawls_are_followed_up_and_what_did_not_complete_is_not() {
    for (status, end, asked) in [
        (JobStatus::Completed, "stored", 1),
        (JobStatus::Failed, "dead failed", 0),
        (JobStatus::Cancelled, "dead cancelled", 0),
    ] {
        let rig = rig(ITEMS);
        let key = crawl("c");
        let request =
            JobRequest::crawl("https://example.com/", FetchOptions::default(), 2, 10).unwrap();
        let intent = Intent::open(&submission(request), "t".into(), rig.now(), &rig.limits);
        let accepted = crate::intent::IntentState::Accepted { job_id: key.job_id.clone() };
        rig.ledger.place_intent(&intent.moved(accepted, rig.now(), &rig.limits));
        let link = link_of(&key, &intent.id);
        let row = Entry::expected(key.clone(), Some(link), Cause::Submit, rig.now(), &rig.limits);
        rig.ledger.place(&row);
        rig.jobs.answer_parent(&key, Ok(ParentPage { status, ..partly(&key) }));
        let next = batch("job-1");
        rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
        rig.settle().await;
        assert_eq!(rig.stands(&key), end);
        assert_eq!(rig.jobs.submits().len(), asked, "{end}");
    }
}

/// A crash between the manifest and the rows: whoever comes next reads the failed items from it.
#[test]
fn a_follow_up_is_made_from_a_manifest_that_lies_there_already() {
    let rig = rig(ITEMS);
    let key = run(submitted(&rig, FetchOptions::default())).unwrap();
    run(rig.announce(&key)).unwrap();
    let task = Task { key: key.clone() };
    let at = calls_of(&key).iter().position(|call| *call == "write_both").unwrap();
    let crashing = Faulty::new(&rig, [(at, Fault::CrashBefore)]);
    assert!(run(work(crashing.ports(), &task)).is_none());
    assert_eq!(rig.ledger.entries().len(), 1);
    let manifests = rig.results.keys().iter().filter(|key| key.ends_with("_manifest.json")).count();
    assert_eq!(manifests, 1);
    let next = batch("job-2");
    rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
    run(rig.settle()).unwrap();
    assert_eq!(
        (rig.stands(&key), rig.stands(&key_of(&key))),
        ("stored".into(), "superseded job-2".into())
    );
}

/// The calls that a worker makes for such a parent.
fn calls_of(key: &JobKey) -> Vec<&'static str> {
    let rig = rig(ITEMS);
    run(submitted(&rig, FetchOptions::default())).unwrap();
    run(rig.announce(key)).unwrap();
    let dry = Faulty::new(&rig, []);
    drop(run(work(dry.ports(), &Task { key: key.clone() })));
    dry.calls()
}

/// Items of somebody else's batch are asked for with the options that the platform shows, and only
/// where both policies say so.
#[tokio::test]
async fn a_strangers_items_are_asked_for_with_the_options_that_are_shown() {
    let plain = r#"{"formats":["html"],"render_js":true,"proxy":null}"#;
    let odd = r#"{"formats":["html"],"render_js":true,"headers":{"cookie":"x"}}"#;
    for (policies, config, asked) in [(BOTH, plain, 1), (ITEMS, plain, 0), (BOTH, odd, 0)] {
        let rig = rig(policies);
        let key = batch("b");
        rig.announce(&key).await;
        rig.jobs.answer_parent(&key, Ok(shown(&key, config)));
        let next = batch("job-1");
        rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
        rig.settle().await;
        assert_eq!(rig.stands(&key), "stored");
        let submits = rig.jobs.submits();
        assert_eq!(submits.len(), asked, "{config}");
        if let Some(request) = submits.first() {
            assert!(request.options().render_js && request.options().formats == [Format::Html]);
            assert_eq!(item_keys(&rig, &stored_object(&rig.entry(&next)).key), ["1"]);
        }
    }
}

/// A job that failed and that nobody submitted from here, with what the platform shows of it.
fn strangers_failure(key: &JobKey, metadata: &str) -> ExtractJob {
    let error = Some(JobError::new("TIMEOUT", "", true));
    let raw = format!(r#"{{"job_id":"{}","metadata":{metadata}}}"#, key.job_id);
    ExtractJob { error, raw: RawJson(raw.into()), ..answer(key, JobStatus::Failed) }
}

/// With the policy a stranger's failed job is submitted again, and counts as the first of a lineage
/// that is bounded as any; without it, or when it is old or cannot be asked for so again, it is dead.
#[tokio::test]
async fn failed_jobs_of_nobody_are_submitted_again_where_the_policy_says_so() {
    let plain = r#"{"url":"https://example.com/x","render_js":false,"formats":["html"]}"#;
    let old = 49 * HOUR;
    for (policies, metadata, age, end) in [
        (UNLINKED, plain, HOUR, "superseded job-1"),
        (ITEMS, plain, HOUR, "dead unlinked_failure"),
        (UNLINKED, "null", HOUR, "dead unlinked_failure"),
        (UNLINKED, plain, old, "dead unlinked_failure"),
    ] {
        let rig = rig(policies);
        let key = extract("a");
        rig.clock.advance_to(after("2026-11-29T23:59:59Z".parse().unwrap(), age));
        rig.announce(&key).await;
        rig.jobs.answer_extract(&key.job_id, Ok(strangers_failure(&key, metadata)));
        for number in 1..10 {
            let key = extract(&format!("job-{number}"));
            rig.jobs.answer_extract(&key.job_id, Ok(strangers_failure(&key, plain)));
        }
        rig.settle().await;
        assert_eq!(rig.stands(&key), end, "{metadata} {age:?}");
        let most = usize::try_from(rig.limits.resubmits_max).unwrap();
        let paid = if end.starts_with("superseded") { most } else { 0 };
        assert_eq!(rig.jobs.submits().len(), paid, "{metadata} {age:?}");
    }
}
