use std::time::Duration;

use super::rig::{HOUR, MINUTE, Rig, answer, dead, error, extract, retry_after};
use crate::backoff::parse_retry_after;
use crate::entry::DeadReason;
use crate::job::JobStatus;
use crate::pause::Scope;
use crate::ports::{ApiError, ApiErrorKind as Kind};
use crate::sweep::sweep;
use crate::work::{PutOff, Worked};

async fn pause_of(rig: &Rig, scope: Scope) -> Option<String> {
    let pauses = crate::pause::Pauses::default();
    pauses.active(&rig.ledger, scope, rig.now()).await.unwrap().map(|pause| pause.why)
}

/// WK-11: 404, 404, 200: reads may lag, and a look that finds the job forgets the misses.
#[tokio::test]
async fn a_job_that_turns_up_after_two_misses_is_stored() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    for _ in 0..2 {
        rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Missing, Some(404))));
    }
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
    assert_eq!(rig.jobs.calls().len(), 3);
}

/// WK-11: 404 for ever: five looks over a quarter of an hour, then gone.
#[tokio::test]
async fn a_job_that_stays_missing_is_gone_after_a_few_looks() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    let begun = rig.now();
    rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Missing, Some(404))));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead gone");
    assert_eq!(rig.jobs.calls().len(), 5);
    let lasted = crate::time::between(begun, rig.now());
    assert!(lasted >= 12 * MINUTE && lasted < HOUR, "{lasted:?}");
    assert_eq!(pause_of(&rig, Scope::All).await, None, "one missing job is no outage");
}

/// WK-11: 410 says of itself that it is for good.
#[tokio::test]
async fn a_job_that_is_gone_for_good_is_dead_at_once() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Missing, Some(410))));
    assert_eq!(rig.work(&key).await, dead(DeadReason::Gone));
}

/// WK-11: when most jobs are missing, everything pauses and nothing dies of it; when it is over,
/// every job is stored.
#[tokio::test]
async fn a_high_rate_of_missing_jobs_pauses_instead_of_killing() {
    let rig = Rig::new();
    let keys: Vec<_> = (0..40).map(|number| extract(&format!("j{number}"))).collect();
    for key in &keys {
        rig.announce(key).await;
        rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Missing, Some(404))));
    }
    for _ in 0..60 {
        rig.work_queue().await;
        sweep(rig.ports(), 100).await.unwrap();
        rig.clock.advance(MINUTE);
    }
    assert!(keys.iter().all(|key| !rig.entry(key).state.is_terminal()));
    assert!(rig.jobs.calls().len() < 150, "{} calls in a paused hour", rig.jobs.calls().len());
    for key in &keys {
        rig.jobs.clear_answers(key);
        rig.jobs.answer_extract(&key.job_id, Ok(answer(key, JobStatus::Completed)));
    }
    rig.settle().await;
    assert!(keys.iter().all(|key| rig.stands(key) == "stored"));
}

/// WK-11: jobs that are truly gone, and many, end at the longest age instead of pausing the
/// account for ever.
#[tokio::test]
async fn many_jobs_that_stay_missing_are_gone_at_their_longest_age() {
    let rig = Rig::new();
    let keys: Vec<_> = (0..30).map(|number| extract(&format!("j{number}"))).collect();
    for key in &keys {
        rig.announce(key).await;
        rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Missing, Some(404))));
    }
    for _ in 0..55 * 6 {
        rig.work_queue().await;
        sweep(rig.ports(), 100).await.unwrap();
        rig.clock.advance(10 * MINUTE);
    }
    assert!(keys.iter().all(|key| rig.stands(key) == "dead gone"));
}

/// What a status is expected to do.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    /// Put off, nothing else; the row lives as long as the trouble lasts.
    Later,
    /// The whole account pauses, and the row lives.
    Pauses(&'static str),
    /// The job is given up after a few looks.
    Parked(DeadReason),
}

/// WK-12: the table of status classes.
#[tokio::test]
async fn each_status_class_has_its_effect() {
    let minute = Duration::from_mins(1);
    let quota = ApiError { retryable: Some(false), ..error(Kind::Throttled, Some(429)) };
    let busy = retry_after(error(Kind::Unavailable, Some(503)), minute);
    for (error, effect) in [
        (error(Kind::Refused, Some(400)), Effect::Parked(DeadReason::Denied)),
        (error(Kind::Denied, Some(401)), Effect::Pauses("denied")),
        (error(Kind::PaymentRequired, Some(402)), Effect::Pauses("payment_required")),
        (error(Kind::Denied, Some(403)), Effect::Pauses("denied")),
        (error(Kind::Unavailable, Some(408)), Effect::Later),
        (error(Kind::Refused, Some(409)), Effect::Parked(DeadReason::Denied)),
        (error(Kind::Refused, Some(422)), Effect::Parked(DeadReason::Denied)),
        (error(Kind::Unavailable, Some(425)), Effect::Later),
        (quota, Effect::Later),
        (error(Kind::Unavailable, Some(500)), Effect::Later),
        (error(Kind::Unavailable, Some(502)), Effect::Later),
        (busy, Effect::Later),
        (error(Kind::Unreadable, Some(200)), Effect::Later),
    ] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        rig.jobs.answer_extract(&key.job_id, Err(error.clone()));
        rig.jobs.answer_probe(Err(error.clone()));
        let worked = rig.work(&key).await;
        assert!(matches!(&worked, Worked::PutOff { .. }), "{error}: {worked:?}");
        let Worked::PutOff { wait, .. } = worked else { continue };
        assert!(wait >= error.retry_after.unwrap_or_default(), "{error}");
        let paused = pause_of(&rig, Scope::All).await;
        for _ in 0..45 {
            rig.clock.advance(MINUTE);
            sweep(rig.ports(), 100).await.unwrap();
            rig.work_queue().await;
        }
        let stands = rig.stands(&key);
        match effect {
            Effect::Later => assert_eq!((stands.as_str(), paused), ("received", None), "{error}"),
            Effect::Pauses(why) => {
                assert_eq!(
                    (stands.as_str(), paused.as_deref()),
                    ("received", Some(why)),
                    "{error}"
                );
            }
            Effect::Parked(reason) => assert_eq!(stands, format!("dead {reason}"), "{error}"),
        }
    }
}

/// WK-12: a key that is in order, and one job that it may not read: that job alone is given up.
#[tokio::test]
async fn a_refusal_of_one_job_is_that_jobs_trouble_alone() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Denied, Some(403))));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead denied");
    assert_eq!(pause_of(&rig, Scope::All).await, None);
}

/// WK-12: an answer that is never usable ends at the longest age; an account in trouble ages
/// nobody.
#[tokio::test]
async fn unusable_answers_age_a_job_and_trouble_of_the_account_does_not() {
    for (kind, stands) in [
        (Kind::Unreadable, "dead never_settled"),
        (Kind::Unavailable, "received"),
        (Kind::PaymentRequired, "received"),
    ] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        rig.jobs.answer_extract(&key.job_id, Err(error(kind, None)));
        for _ in 0..50 * 6 {
            rig.clock.advance(10 * MINUTE);
            sweep(rig.ports(), 100).await.unwrap();
            rig.work_queue().await;
        }
        assert_eq!(rig.stands(&key), stands, "{kind:?}");
    }
}

/// An old job that nobody could ask for meanwhile does not die of the first bad answer.
#[tokio::test]
async fn one_unusable_answer_gives_no_job_up_however_old_it_is() {
    for kind in [Kind::Unreadable, Kind::Missing] {
        let rig = Rig::new();
        let key = extract("a");
        rig.announce(&key).await;
        if kind == Kind::Missing {
            (0..50).for_each(|_| rig.looks.note(true));
        }
        rig.clock.advance(rig.limits.max_age + HOUR);
        rig.jobs.answer_extract(&key.job_id, Err(error(kind, None)));
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
        rig.work(&key).await;
        rig.settle().await;
        assert_eq!(rig.stands(&key), "stored", "{kind:?}");
    }
}

/// WK-05: `Retry-After: 3600` and `50000`: no sleep; the account pauses, this row and its
/// neighbour are put off to the pause's end, and no receive of the queue is spent.
#[tokio::test]
async fn throttling_pauses_the_account_and_never_sleeps() {
    for header in ["3600", "50000"] {
        let rig = Rig::new();
        let (key, other) = (extract("a"), extract("b"));
        rig.announce(&key).await;
        rig.announce(&other).await;
        let wait = parse_retry_after(header, rig.now(), rig.limits.retry_after_clamp).unwrap();
        let throttled = retry_after(error(Kind::Throttled, Some(429)), wait);
        rig.jobs.answer_extract(&key.job_id, Err(throttled));
        rig.jobs.answer_extract(&other.job_id, Ok(answer(&other, JobStatus::Completed)));
        assert_eq!(rig.work_queue().await, 2);
        assert_eq!(rig.clock.sleeps(), [], "a worker does not sleep");
        assert_eq!(rig.queue.depth(), 0, "both are acknowledged, and too far off for the queue");
        assert_eq!(rig.jobs.calls().len(), 1, "the second job was not asked for");
        for key in [&key, &other] {
            let row = rig.entry(key);
            let off = crate::time::between(rig.now(), row.not_before.unwrap());
            assert!(off >= HOUR && off < HOUR + 2 * MINUTE, "{off:?}");
            assert_eq!(row.due_at, Some(crate::time::after(row.not_before.unwrap(), MINUTE)));
            assert_eq!(row.counters.sweeps, 0);
        }
        let worked = rig.work(&other).await;
        assert!(!matches!(worked, Worked::Stored { .. }), "{worked:?}");
        rig.jobs.clear_answers(&key);
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
        rig.settle().await;
        assert_eq!((rig.stands(&key), rig.stands(&other)), ("stored".into(), "stored".into()));
    }
}

/// CL-06: a plain 429 without a time concerns the call, not the account.
#[tokio::test]
async fn throttling_without_a_time_backs_off_alone() {
    let rig = Rig::new();
    let key = extract("a");
    rig.announce(&key).await;
    rig.jobs.answer_extract(&key.job_id, Err(error(Kind::Throttled, Some(429))));
    let worked = rig.work(&key).await;
    let because_of_it = |because: &PutOff| matches!(because, PutOff::Trouble(error) if error.kind == Kind::Throttled);
    assert!(matches!(&worked, Worked::PutOff { because, .. } if because_of_it(because)));
    assert_eq!(pause_of(&rig, Scope::All).await, None);
}
