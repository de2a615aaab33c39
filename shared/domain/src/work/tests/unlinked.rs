//! Webhooks that are faster than the answer to the POST that made their job.

use std::time::Duration;

use super::parents::whole;
use super::rig::{
    HOUR, MINUTE, Rig, answer, batch, extract, id, items, link_of, page, stored_object,
};
use crate::adopt::claim;
use crate::entry::Cause;
use crate::intent::{Intent, IntentState};
use crate::job::{JobError, JobKey, JobStatus};
use crate::limits::Limits;
use crate::pause::Scope;
use crate::ports::{ExtractJob, ParentPage};
use crate::request::{FetchOptions, JobRequest};
use crate::submit::{Submitted, submit};
use crate::testing::ScriptedSubmit;
use crate::time::{Timestamp, after, before, between};
use crate::work::{PutOff, Worked};

fn longest_wait(rig: &Rig) -> Duration {
    rig.limits.recovery() + rig.limits.adoption_margin
}

fn two_pages() -> JobRequest {
    JobRequest::batch(["https://example.com/0", "https://example.com/1"], FetchOptions::default())
        .unwrap()
}

fn finished(rig: &Rig, key: &JobKey) {
    finished_since(rig, key, rig.now());
}

fn finished_since(rig: &Rig, key: &JobKey, created_at: Timestamp) {
    let created_at = Some(created_at);
    let single = ExtractJob { created_at, ..answer(key, JobStatus::Completed) };
    let parent = ParentPage { created_at, ..whole(key, JobStatus::Completed, items(0..2)) };
    rig.jobs.answer_extract(&key.job_id, Ok(single));
    rig.jobs.answer_parent(key, Ok(parent));
}

/// A finished job that is announced while a POST of ours is under way.
async fn announced_early(key: &JobKey) -> Rig {
    let rig = Rig::new();
    let request = if *key == extract("x") { page() } else { two_pages() };
    let intent = Intent::open(&super::rig::submission(request), "t".into(), rig.now(), &rig.limits);
    rig.ledger.place_intent(&intent);
    finished(&rig, key);
    rig.announce(key).await;
    rig
}

/// The usual case: the link comes a moment later, and the next look stores.
#[tokio::test]
async fn a_row_waits_a_moment_for_its_link() {
    for key in [extract("x"), batch("x")] {
        let rig = announced_early(&key).await;
        let Worked::PutOff { wait, because: PutOff::Unlinked } = rig.work(&key).await else {
            panic!("{}", rig.stands(&key));
        };
        assert!(wait <= rig.limits.backoff_base, "{wait:?}");
        assert_eq!(rig.results.keys(), [""; 0]);
        claim(rig.ports(), &key, &link_of(&key, "s"), Cause::Submit).await.unwrap();
        assert!(matches!(rig.work_when_due(&key).await, Worked::Stored { .. }), "the POST is open");
        let object = rig.json(&stored_object(&rig.entry(&key)).key);
        assert_eq!(object["ref"], "my-ref");
        assert_eq!(object["lineage"]["root"], "x");
    }
}

/// A job that turns out to be nobody's waits no longer than a POST takes to be found out.
#[tokio::test]
async fn a_row_without_a_link_is_stored_at_the_end_of_its_wait() {
    for key in [extract("x"), batch("x")] {
        let rig = announced_early(&key).await;
        let begun = rig.now();
        while let Worked::PutOff { because, .. } = rig.work_when_due(&key).await {
            assert_eq!(because, PutOff::Unlinked);
        }
        assert_eq!(rig.stands(&key), "stored");
        assert_eq!(between(begun, rig.now()), longest_wait(&rig));
        assert!(rig.jobs.calls().len() < 50, "{} looks", rig.jobs.calls().len());
    }
}

/// A row that is older than any answer that is still on its way is not held up.
#[tokio::test]
async fn an_old_row_without_a_link_is_stored_at_once() {
    let key = extract("x");
    let rig = announced_early(&key).await;
    rig.clock.advance_to(after(rig.now(), longest_wait(&rig)));
    assert!(matches!(rig.work(&key).await, Worked::Stored { .. }));
}

/// A POST that was intended after the job was created has not made it, though the clocks are as
/// far apart as they may be: an account that is always submitting keeps no other job waiting.
#[tokio::test]
async fn a_job_that_is_older_than_every_open_post_is_nobodys() {
    let slack = Limits::default().clock_slack();
    for key in [extract("x"), batch("x")] {
        for (age, waits) in [(slack, true), (slack + Duration::from_secs(1), false)] {
            let rig = announced_early(&key).await;
            rig.jobs.clear_answers(&key);
            finished_since(&rig, &key, before(rig.now(), age));
            let worked = rig.work(&key).await;
            assert_eq!(matches!(worked, Worked::PutOff { .. }), waits, "{age:?}: {worked:?}");
        }
    }
}

/// As long as there is always an open POST, each of them resolved in its time, a failed job of
/// somebody else still comes to its end.
#[tokio::test]
async fn a_foreign_failure_on_a_busy_account_is_dead_as_unlinked() {
    for (age, looks) in [(MINUTE, 3), (MINUTE * 10, 1)] {
        let rig = Rig::new();
        let key = extract("foreign");
        rig.announce(&key).await;
        let created_at = Some(before(rig.now(), age));
        let failed = ExtractJob { created_at, ..answer(&key, JobStatus::Failed) };
        rig.jobs.answer_extract(&key.job_id, Ok(failed));
        let mut position = 0;
        let mut looked = 0;
        while !rig.entry(&key).state.is_terminal() {
            let mut asked = super::rig::submission(page());
            asked.position = position;
            let mut intent = Intent::open(&asked, "t".into(), rig.now(), &rig.limits);
            rig.ledger.place_intent(&intent);
            rig.work_when_due(&key).await;
            looked += 1;
            position += 1;
            intent = intent.moved(IntentState::Ambiguous, rig.now(), &rig.limits);
            rig.ledger.place_intent(&intent);
            rig.clock.advance(MINUTE);
        }
        assert_eq!(rig.stands(&key), "dead unlinked_failure");
        assert!(looked <= looks, "{looked} looks");
    }
}

/// The POST's answer is lost: what the job list gives later still reaches the object.
#[tokio::test]
async fn the_users_id_survives_a_lost_answer() {
    for (key, request) in [(extract("x"), page()), (batch("x"), two_pages())] {
        let rig = Rig::new();
        rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("x")));
        let mut asked = super::rig::submission(request);
        asked.reference = Some("my-ref".into());
        let submitted = submit(rig.ports(), &asked).await.unwrap();
        assert!(matches!(submitted, Submitted::Unanswered { .. }), "{submitted:?}");
        rig.clock.advance(MINUTE / 60);
        finished(&rig, &key);
        rig.announce(&key).await;
        rig.settle().await;
        let object = rig.json(&stored_object(&rig.entry(&key)).key);
        assert_eq!(object["ref"], "my-ref");
        assert_eq!(rig.jobs.submits().len(), 1);
    }
}

/// A failed job whose POST's answer was lost, announced; its row has been looked at once.
async fn failed_and_unanswered() -> (Rig, JobKey) {
    let rig = Rig::new();
    let key = extract("x");
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("x")));
    let submitted = submit(rig.ports(), &super::rig::submission(page())).await.unwrap();
    assert!(matches!(submitted, Submitted::Unanswered { .. }), "{submitted:?}");
    let mut failed = answer(&key, JobStatus::Failed);
    failed.created_at = Some(rig.now());
    failed.error = Some(JobError::new("TIMEOUT", "", true));
    rig.jobs.answer_extract(&key.job_id, Ok(failed));
    let replacement = id("job-1");
    let done = answer(&JobKey::new(key.kind, replacement.clone()), JobStatus::Completed);
    rig.jobs.answer_extract(&replacement, Ok(done));
    rig.announce(&key).await;
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
    (rig, key)
}

/// The account is paused for longer than a job may be old. The job has settled, and whose it is
/// could not be asked: its age is no reason to give it up.
#[tokio::test]
async fn a_failed_row_that_waits_for_its_link_does_not_die_of_its_age() {
    let (rig, key) = failed_and_unanswered().await;
    let until = after(rig.now(), rig.limits.max_age + HOUR);
    rig.pauses.extend(&rig.ledger, Scope::All, until, "throttled").await.unwrap();
    rig.clock.advance_to(until);
    // The worker comes before the sweep that finds the POST's job.
    let worked = rig.work_when_due(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-1");
    assert_eq!(rig.stands(&extract("job-1")), "stored");
    assert_eq!(rig.jobs.submits().len(), 2);
}

/// While it waits, what the platform would say of the job is known, and costs no call.
#[tokio::test]
async fn a_row_that_waits_for_its_link_asks_once() {
    let key = extract("x");
    let rig = announced_early(&key).await;
    for _ in 0..5 {
        let worked = rig.work_when_due(&key).await;
        assert!(matches!(worked, Worked::PutOff { because: PutOff::Unlinked, .. }), "{worked:?}");
    }
    assert_eq!(rig.jobs.calls().len(), 1);
    claim(rig.ports(), &key, &link_of(&key, "s"), Cause::Submit).await.unwrap();
    assert!(matches!(rig.work_when_due(&key).await, Worked::Stored { .. }));
    assert_eq!(rig.jobs.calls().len(), 2);
    let (rig, key) = failed_and_unanswered().await;
    let asked = rig.jobs.calls().len();
    for _ in 0..5 {
        rig.work_when_due(&key).await;
    }
    assert_eq!(rig.jobs.calls().len(), asked);
}
