//! Webhooks that are faster than the answer to the POST that made their job.

use std::time::Duration;

use super::parents::whole;
use super::rig::{MINUTE, Rig, answer, batch, extract, id, items, link_of, page, stored_object};
use crate::adopt::claim;
use crate::entry::Cause;
use crate::intent::Intent;
use crate::job::{JobKey, JobStatus};
use crate::request::{FetchOptions, JobRequest};
use crate::submit::{Submitted, submit};
use crate::testing::ScriptedSubmit;
use crate::time::{after, between};
use crate::work::{PutOff, Worked};

fn longest_wait(rig: &Rig) -> Duration {
    rig.limits.recovery() + rig.limits.adoption_margin
}

fn two_pages() -> JobRequest {
    JobRequest::batch(["https://example.com/0", "https://example.com/1"], FetchOptions::default())
        .unwrap()
}

fn finished(rig: &Rig, key: &JobKey) {
    rig.jobs.answer_extract(&key.job_id, Ok(answer(key, JobStatus::Completed)));
    rig.jobs.answer_parent(key, Ok(whole(key, JobStatus::Completed, items(0..2))));
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
