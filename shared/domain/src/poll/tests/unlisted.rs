//! Jobs that the ledger does not know, and waits that somebody ends.

use std::future::{pending, ready};

use super::*;
use crate::entry::StateName;
use crate::testing::Call;

fn missing(status: u16) -> Answer {
    Err(error(ApiErrorKind::Missing, Some(status)))
}

fn answer_a(rig: &Rig, answers: impl IntoIterator<Item = Answer>) {
    answers.into_iter().for_each(|answer| rig.jobs.answer_extract(&id("a"), answer));
}

#[tokio::test]
async fn a_job_that_the_platform_has_is_owed_by_the_ledger() {
    let rig = Rig::new();
    answer_a(&rig, [Ok(stands(JobStatus::Queued))]);
    poll_a(&rig, SECOND).await;
    let row = rig.entry(&extract("a"));
    assert_eq!((row.link.is_none(), row.state.name()), (true, StateName::Expected));
    assert!(row.due_at.is_some());
    assert_eq!(row.history[0].cause, Cause::Poll);
}

/// A slip of the pen leaves nothing behind that others would wait for.
#[tokio::test]
async fn a_job_that_nobody_knows_leaves_no_row() {
    for (status, looks) in [(404, usize::try_from(MISSING_LOOKS_MAX).unwrap()), (410, 1)] {
        let rig = Rig::new();
        answer_a(&rig, [missing(status)]);
        let polled = poll_a(&rig, MINUTE).await;
        let unknown = |polled: &Polled| matches!(polled, Polled::Unknown(error) if error.status == Some(status));
        assert!(unknown(&polled), "{polled:?}");
        assert_eq!(rig.jobs.calls().len(), looks);
        assert_eq!((rig.ledger.entries(), rig.queue.depth()), (vec![], 0));
    }
    let rig = Rig::new();
    answer_a(&rig, [Err(error(ApiErrorKind::Unavailable, Some(503)))]);
    assert!(matches!(poll_a(&rig, 10 * HOUR).await, Polled::Failed(_)));
    assert_eq!(rig.ledger.entries(), []);
    let rig = Rig::new();
    let unknown = poll(rig.ports(), &batch("b"), patience(&rig, MINUTE)).await.unwrap();
    assert!(matches!(unknown, Polled::Unknown(_)), "{unknown:?}");
    assert!(rig.jobs.calls().iter().all(|call| matches!(call, Call::Parent(..))));
    assert_eq!(rig.ledger.entries(), []);
}

/// The platform's reads may lag behind a submission by moments.
#[tokio::test]
async fn a_job_that_appears_late_is_waited_for() {
    let rig = Rig::new();
    let late = error(ApiErrorKind::Unavailable, None);
    answer_a(&rig, [missing(404), Err(late), missing(404), Ok(stands(JobStatus::Completed))]);
    assert_eq!(standing(&poll_a(&rig, MINUTE).await), "stored");
}

/// An account that is paused is not asked, and a throttled answer pauses it for all.
#[tokio::test]
async fn asking_keeps_to_the_accounts_pauses() {
    let rig = Rig::new();
    let throttled = retry_after(error(ApiErrorKind::Throttled, Some(429)), 20 * SECOND);
    answer_a(&rig, [Err(throttled), Ok(stands(JobStatus::Completed))]);
    let polled = poll_a(&rig, 10 * SECOND).await;
    assert!(matches!(polled, Polled::Timeout(_)), "{polled:?}");
    assert_eq!(rig.jobs.calls().len(), 1);
    let polled = poll_a(&rig, SECOND).await;
    assert_eq!(polled, Polled::Timeout(Some(PutOff::Paused("throttled".to_owned()))));
    assert_eq!((rig.jobs.calls().len(), rig.ledger.entries()), (1, vec![]));
    assert_eq!(standing(&poll_a(&rig, MINUTE).await), "stored");
}

/// What the platform said last outlives a call that the deadline cuts.
#[tokio::test]
async fn the_platforms_last_word_is_kept() {
    let rig = Rig::new();
    say(&rig, [Ok(stands(JobStatus::Processing)), Err(error(ApiErrorKind::Unavailable, None))]);
    let slow = Slow { rig: &rig, takes: 4 * SECOND, log: Mutex::default() };
    let ports = Ports { jobs: &slow, ..rig.ports() };
    let brief = Patience { base: Duration::ZERO, ..patience(&rig, 6 * SECOND) };
    let polled = poll(ports, &extract("a"), brief).await.unwrap();
    assert_eq!(polled, Polled::Timeout(Some(PutOff::Unfinished(JobStatus::Processing))));
    assert_eq!(slow.log.into_inner().unwrap().len(), 2);
    // Trouble that leaves time for another look is news.
    let rig = Rig::new();
    say(&rig, [Ok(stands(JobStatus::Processing)), Err(error(ApiErrorKind::Unavailable, None))]);
    let polled = poll_a(&rig, 20 * SECOND).await;
    assert!(matches!(polled, Polled::Timeout(Some(PutOff::Trouble(_)))), "{polled:?}");
}

/// Who is asked to stop does so at once between two looks, and tells what was learned.
#[tokio::test]
async fn a_wait_stops_when_it_is_asked_to() {
    let rig = Rig::new();
    say(&rig, [Ok(stands(JobStatus::Processing))]);
    let patience = patience(&rig, HOUR);
    let stopped = poll_until(rig.ports(), &extract("a"), patience, ready(())).await.unwrap();
    let processing = PutOff::Unfinished(JobStatus::Processing);
    assert_eq!(stopped, Polled::Stopped(Some(processing)));
    assert_eq!(rig.jobs.calls().len(), 1);
}

/// A look that hangs is given up soon; one that ends is heard.
#[tokio::test]
async fn a_look_that_has_begun_is_given_a_moment() {
    struct Hangs;
    #[async_trait]
    impl Jobs for Hangs {
        async fn extract(&self, _: &JobId, _: Duration) -> Result<ExtractJob, ApiError> {
            pending().await
        }
        async fn parent(
            &self,
            _: &JobKey,
            _: PageRequest,
            _: Duration,
        ) -> Result<ParentPage, ApiError> {
            pending().await
        }
        async fn submit(&self, _: &JobRequest, _: Duration) -> Result<JobId, SubmitError> {
            pending().await
        }
        async fn list(&self, _: Kind, _: &ListQuery, _: Duration) -> Result<ListPage, ApiError> {
            pending().await
        }
        async fn probe(&self, _: Duration) -> Result<(), ApiError> {
            pending().await
        }
    }
    let rig = Rig::new();
    owe(&rig, &extract("a"));
    let ports = Ports { jobs: &Hangs, ..rig.ports() };
    let stopped = poll_until(ports, &extract("a"), patience(&rig, HOUR), ready(())).await.unwrap();
    assert_eq!(stopped, Polled::Stopped(None));
    assert_eq!(rig.clock.sleeps(), [STOP_GRACE]);
}
