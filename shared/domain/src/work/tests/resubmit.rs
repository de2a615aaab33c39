use super::rig::{
    HOUR, MINUTE, Rig, answer, dead, error, extract, id, link_of, page, recoverable_at,
    retry_after, stored_object,
};
use crate::entry::{DeadReason, State};
use crate::job::{JobError, JobId, JobKey, JobStatus, Kind};
use crate::limits::Limits;
use crate::ports::{ApiErrorKind, ExtractJob, Results};
use crate::steps::Ports;
use crate::testing::ScriptedSubmit;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::{PutOff, Skip, Worked};

fn failed(key: &JobKey) -> ExtractJob {
    let error = Some(JobError::new("TEMPORARY_BLOCK", "", true));
    ExtractJob { error, ..answer(key, JobStatus::Failed) }
}

/// A linked row whose job failed retryably, and a replacement that will be completed.
fn failing() -> (Rig, JobKey, JobKey) {
    let rig = Rig::new();
    let (key, replacement) = (extract("a"), extract("job-1"));
    rig.receive_linked(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(failed(&key)));
    let done = answer(&replacement, JobStatus::Completed);
    rig.jobs.answer_extract(&replacement.job_id, Ok(done));
    (rig, key, replacement)
}

fn jobs_made(rig: &Rig) -> Vec<JobId> {
    rig.jobs.listed(Kind::Extract)
}

fn is_recovering(worked: &Worked) -> bool {
    matches!(worked, Worked::PutOff { because: PutOff::Recovering, .. })
}

#[tokio::test]
async fn a_retryable_failure_is_resubmitted_as_the_next_attempt_of_its_lineage() {
    let (rig, key, replacement) = failing();
    assert_eq!(rig.work(&key).await, Worked::Superseded { by: id("job-1") });
    let row = rig.entry(&replacement);
    let link = row.link.clone().unwrap();
    assert_eq!(row.state, State::Expected);
    assert_eq!((link.lineage.clone(), link.attempt, link.base), (id("a"), 1, 0));
    assert_eq!(link.submission, "s-1");
    assert_eq!(link.reference.as_deref(), Some("my-ref"));
    assert_eq!(rig.jobs.submits(), [page()]);
    rig.settle().await;
    let object = rig.json(&stored_object(&rig.entry(&replacement)).key);
    assert_eq!(object["lineage"], serde_json::json!({ "root": "a", "attempt": 1 }));
}

/// WK-13: the API always fails retryably and issues new ids: the first submission and three
/// resubmits are paid for, and then the lineage is dead.
#[tokio::test]
async fn a_lineage_is_resubmitted_only_so_often() {
    let rig = Rig::new();
    let asked = super::rig::submission(page());
    crate::submit::submit(rig.ports(), &asked).await.unwrap();
    for number in 1..=20 {
        let key = extract(&format!("job-{number}"));
        rig.jobs.answer_extract(&key.job_id, Ok(failed(&key)));
    }
    for round in 0..20 {
        let newest = extract(&format!("job-{}", 1 + round % 4));
        if rig.ledger.entry(&newest).is_some() {
            // Webhooks of every attempt, again and again.
            rig.announce(&newest).await;
        }
        rig.work_queue().await;
        rig.clock.advance(MINUTE);
    }
    rig.settle().await;
    let posts = usize::try_from(rig.limits.resubmits_max).unwrap() + 1;
    assert_eq!(rig.jobs.submits().len(), posts);
    let ends: Vec<_> = (1..=4).map(|n| rig.stands(&extract(&format!("job-{n}")))).collect();
    assert_eq!(
        ends,
        ["superseded job-2", "superseded job-3", "superseded job-4", "dead resubmits_exhausted"]
    );
}

/// WK-08, WK-13: a redrive gives the lineage a fresh budget, and no more than that: what fails
/// for good is given up again.
#[tokio::test]
async fn a_redrive_begins_with_a_fresh_budget() {
    let rig = Rig::new();
    let key = extract("a");
    rig.receive_linked(&key);
    for number in 1..=20 {
        let key = extract(&format!("job-{number}"));
        rig.jobs.answer_extract(&key.job_id, Ok(failed(&key)));
    }
    rig.jobs.answer_extract(&key.job_id, Ok(failed(&key)));
    rig.settle().await;
    assert_eq!(rig.jobs.submits().len(), 3);
    let last = rig.entry(&extract("job-3"));
    rig.ledger.place(&last.redriven(None, rig.now(), &rig.limits).unwrap());
    rig.settle().await;
    assert_eq!(rig.jobs.submits().len(), 6);
    assert_eq!(rig.stands(&extract("job-6")), "dead resubmits_exhausted");
}

/// WK-14: the platform accepts and closes the connection: the job is found, nobody pays again.
#[tokio::test]
async fn an_accepted_post_without_an_answer_is_adopted() {
    let (rig, key, replacement) = failing();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    let look_at = recoverable_at(&rig);
    let worked = rig.work(&key).await;
    assert!(is_recovering(&worked), "{worked:?}");
    // The same message twice, and a webhook, before the list can be trusted.
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::NotYet));
    rig.announce(&key).await;
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::NotYet));
    rig.clock.advance_to(look_at);
    assert_eq!(rig.work(&key).await, Worked::Superseded { by: id("job-1") });
    rig.settle().await;
    assert_eq!((rig.jobs.submits().len(), rig.stands(&replacement)), (1, "stored".into()));
}

/// WK-14: a POST that is proved not accepted is made once more, and once only.
#[tokio::test]
async fn a_post_that_was_not_accepted_is_made_again_once() {
    let (rig, key, _) = failing();
    rig.jobs.answer_submit(ScriptedSubmit::LostUnanswered);
    assert!(is_recovering(&rig.work(&key).await));
    rig.clock.advance_to(rig.entry(&key).due_at.unwrap());
    assert_eq!(rig.work(&key).await, Worked::Superseded { by: id("job-1") });
    assert_eq!((rig.jobs.submits().len(), jobs_made(&rig)), (2, vec![id("job-1")]));
}

/// WK-14: POSTs that are lost every time end after a named number of them.
#[tokio::test]
async fn posts_that_are_never_accepted_end() {
    let (rig, key, _) = failing();
    for _ in 0..20 {
        rig.jobs.answer_submit(ScriptedSubmit::LostUnanswered);
    }
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead resubmit_refused");
    assert_eq!(rig.jobs.submits().len(), usize::try_from(rig.limits.posts_max).unwrap());
}

/// WK-14: a crash between the POST and recording the new id; also with the same message in the
/// hands of a second worker at the same time.
#[tokio::test]
async fn a_crash_after_the_post_pays_once() {
    let task = crate::task::Task { key: extract("a") };
    let (dry, ..) = failing();
    let whole = Faulty::new(&dry, []);
    run(crate::work::work(whole.ports(), &task)).unwrap().unwrap();
    let post = whole.calls().iter().position(|call| *call == "submit").unwrap();
    let (rig, key, replacement) = failing();
    let crashing = Faulty::new(&rig, [(post, Fault::CrashAfter)]);
    assert!(run(crate::work::work(crashing.ports(), &task)).is_none());
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::NotYet));
    rig.settle().await;
    assert_eq!((jobs_made(&rig).len(), rig.stands(&replacement)), (1, "stored".into()));
}

/// WK-14: a worker dies at each of its calls, and a second one has the same message: one job.
#[tokio::test]
async fn the_same_message_for_a_second_worker_pays_once() {
    let task = crate::task::Task { key: extract("a") };
    for k in 0..12 {
        let (rig, key, _) = failing();
        let first = Faulty::new(&rig, [(k, Fault::CrashAfter)]);
        run(crate::work::work(first.ports(), &task));
        rig.work(&key).await;
        rig.settle().await;
        assert_eq!(jobs_made(&rig).len(), 1, "after call {k}: {:?}", first.calls());
    }
}

/// WK-14: a list that cannot be read, or holds what cannot be read, proves nothing: nobody pays
/// again, and at the limit the case is reported as ambiguous.
#[tokio::test]
async fn a_list_that_cannot_be_read_never_leads_to_a_second_post() {
    let (rig, key, _) = failing();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    rig.jobs.set_unreadable(1);
    rig.work(&key).await;
    let until = crate::time::after(rig.now(), rig.limits.ambiguous_after);
    while rig.now() < until {
        assert_eq!(rig.stands(&key), "resubmitting");
        rig.jobs.fail_list(error(ApiErrorKind::Unavailable, Some(502)));
        crate::sweep::sweep(rig.ports(), 100).await.unwrap();
        rig.work_queue().await;
        rig.clock.advance(10 * MINUTE);
    }
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead ambiguous");
    assert_eq!(rig.jobs.submits().len(), 1);
}

/// WK-14: lists may lag, within the margin.
#[tokio::test]
async fn a_lagging_list_is_given_its_time() {
    let (rig, key, _) = failing();
    rig.jobs.set_list_lag(rig.limits.adoption_margin);
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    rig.work(&key).await;
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-1");
    assert_eq!(rig.jobs.submits().len(), 1);
}

/// WK-14: a job that belongs to another submission is no answer to this POST.
#[tokio::test]
async fn a_candidate_that_has_an_owner_is_not_taken() {
    let (rig, key, _) = failing();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("theirs")));
    rig.work(&key).await;
    let theirs = extract("theirs");
    let row = crate::entry::Entry::expected(
        theirs.clone(),
        Some(link_of(&theirs, "another")),
        crate::entry::Cause::Submit,
        rig.now(),
        &rig.limits,
    );
    rig.ledger.place(&row);
    rig.clock.advance_to(rig.entry(&key).due_at.unwrap());
    assert_eq!(rig.work(&key).await, Worked::Superseded { by: id("job-1") });
    assert_eq!(rig.entry(&theirs).link.unwrap().submission, "another");
}

/// The job was called completed once: what is stored is not paid for again.
#[tokio::test]
async fn a_job_whose_object_is_there_is_not_resubmitted() {
    let (rig, key, _) = failing();
    let at = "kind=extract/dt=2026-11-29/a.json.gz";
    let content = br#"{"format":"gleaner-extract/1","kind":"extract","job_id":"a"}"#;
    rig.results.put_new(at, content).await.unwrap();
    assert_eq!(rig.work(&key).await, Worked::Stored { key: at.into(), follow_up: None });
    let (rig, key, _) = failing();
    rig.results.place(at, b"damaged".to_vec());
    assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
    let (rig, key, _) = failing();
    rig.results.put_new(at, b"{}").await.unwrap();
    assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
    assert_eq!(rig.jobs.submits(), []);
}

/// The day's spend bounds what is paid; the job waits, and is resubmitted the next day.
#[tokio::test]
async fn a_resubmit_waits_while_the_days_spend_is_used_up() {
    let (mut rig, key, replacement) = failing();
    rig.limits = Limits { spend_per_day: Some(1), ..Limits::default() };
    assert!(crate::spend::reserve(rig.ports(), 1).await.unwrap());
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Spent, .. }), "{worked:?}");
    rig.clock.advance(11 * HOUR);
    rig.work(&key).await;
    assert_eq!(rig.jobs.submits(), []);
    rig.settle().await;
    assert_eq!((rig.jobs.submits().len(), rig.stands(&replacement)), (1, "stored".into()));
}

/// WK-12, CL-06: what a refused resubmit does, and that it leaves nothing to be found.
#[tokio::test]
async fn a_refused_resubmit_is_final_or_waits_by_its_kind() {
    let minute = MINUTE;
    for (refusal, probe, stands) in [
        (error(ApiErrorKind::Refused, Some(422)), true, "dead resubmit_refused"),
        (error(ApiErrorKind::Missing, Some(404)), true, "dead resubmit_refused"),
        (error(ApiErrorKind::Denied, Some(403)), true, "dead resubmit_refused"),
        (error(ApiErrorKind::Denied, Some(403)), false, "received"),
        (error(ApiErrorKind::Denied, Some(401)), true, "received"),
        (error(ApiErrorKind::PaymentRequired, Some(402)), true, "received"),
        (retry_after(error(ApiErrorKind::Throttled, Some(429)), minute), true, "received"),
        (error(ApiErrorKind::Unavailable, Some(503)), true, "received"),
    ] {
        let (rig, key, _) = failing();
        rig.jobs.answer_submit(ScriptedSubmit::Refused(refusal.clone()));
        if !probe {
            rig.jobs.answer_probe(Err(refusal.clone()));
            rig.jobs.answer_probe(Ok(()));
        }
        rig.work(&key).await;
        assert_eq!(rig.stands(&key), stands, "{refusal}, probe {probe}");
        rig.settle().await;
        let is_final = stands.starts_with("dead");
        assert_eq!(rig.jobs.submits().len(), if is_final { 1 } else { 2 }, "{refusal}");
        assert_eq!(jobs_made(&rig).len(), usize::from(!is_final), "{refusal}");
    }
}

/// A platform that takes nothing for hours poisons no row: each refusal was a look at the job.
#[tokio::test]
async fn a_resubmit_that_is_refused_for_hours_is_no_poison() {
    let (rig, key, _) = failing();
    for _ in 0..=rig.limits.sweeps_max {
        let refusal = retry_after(error(ApiErrorKind::Throttled, Some(429)), HOUR);
        rig.jobs.answer_submit(ScriptedSubmit::Refused(refusal));
    }
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-1");
}

/// POSTs that the platform refused bought nothing, and use up one reservation a day between them.
#[tokio::test]
async fn refused_resubmits_do_not_use_up_the_days_spend() {
    let (mut rig, key, _) = failing();
    rig.limits.spend_per_day = Some(2);
    for _ in 0..4 {
        let refusal = error(ApiErrorKind::Unavailable, Some(503));
        rig.jobs.answer_submit(ScriptedSubmit::Refused(refusal));
    }
    for _ in 0..4 {
        rig.work_when_due(&key).await;
    }
    assert!(crate::spend::reserve(rig.ports(), 1).await.unwrap());
    assert!(!crate::spend::reserve(rig.ports(), 1).await.unwrap());
    assert_eq!(rig.work_when_due(&key).await, Worked::Superseded { by: id("job-1") });
}

/// The day's spend also holds for a resubmit whose first POST was made the day before.
#[tokio::test]
async fn a_resubmit_that_is_made_again_the_next_day_needs_a_token_of_that_day() {
    for (others, paid) in [(0, 2), (1, 1)] {
        let (mut rig, key, _) = failing();
        rig.limits.spend_per_day = Some(1);
        rig.clock.advance(11 * HOUR + 59 * MINUTE);
        rig.jobs.answer_submit(ScriptedSubmit::LostUnanswered);
        rig.work(&key).await;
        rig.clock.advance_to(recoverable_at(&rig));
        for _ in 0..others {
            assert!(crate::spend::reserve(rig.ports(), 1).await.unwrap());
        }
        let worked = rig.work(&key).await;
        let is_spent = matches!(worked, Worked::PutOff { because: PutOff::Spent, .. });
        assert_eq!((rig.jobs.submits().len(), is_spent), (paid, others > 0), "{worked:?}");
    }
}

/// A pause of paying keeps resubmits back and nothing else.
#[tokio::test]
async fn a_resubmit_waits_while_paying_is_paused() {
    let (rig, key, _) = failing();
    let until = crate::time::after(rig.now(), HOUR);
    let ports: Ports<'_> = rig.ports();
    let scope = crate::pause::Scope::Paying;
    ports.pauses.extend(ports.ledger, scope, until, "payment_required").await.unwrap();
    let worked = rig.work(&key).await;
    let paused = PutOff::Paused("payment_required".into());
    assert!(matches!(worked, Worked::PutOff { because, .. } if because == paused));
    assert_eq!(rig.jobs.submits(), []);
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-1");
}

/// WK-14: a second worker with the same message between any two calls of the first, at once or
/// after a long sleep of the first: one job.
#[tokio::test]
async fn two_workers_with_the_same_message_pay_once() {
    let task = crate::task::Task { key: extract("a") };
    let calls = {
        let (rig, ..) = failing();
        let dry = Faulty::new(&rig, []);
        run(crate::work::work(dry.ports(), &task)).unwrap().unwrap();
        dry.calls()
    };
    for lag in [std::time::Duration::ZERO, 20 * MINUTE] {
        for (k, call) in calls.iter().enumerate() {
            // A worker that falls asleep after its last look at the clock cannot be held.
            if *call == "submit" && !lag.is_zero() {
                continue;
            }
            let (rig, key, replacement) = failing();
            let second = || {
                rig.clock.advance(lag);
                run(rig.work(&key)).unwrap();
            };
            let first = Faulty::with_visitor(&rig, k, second);
            crate::work::work(first.ports(), &task).await.unwrap();
            rig.settle().await;
            assert_eq!(jobs_made(&rig), [id("job-1")], "at call {k}, {lag:?} apart");
            assert_eq!(rig.stands(&key), "superseded job-1");
            assert_eq!(rig.stands(&replacement), "stored");
        }
    }
}
