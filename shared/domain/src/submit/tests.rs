mod together;

use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::entry::{DeadReason, Entry, State};
use crate::job::{JobStatus, Kind};
use crate::limits::Limits;
use crate::ports::{ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage};
use crate::request::JobRequest;
use crate::sweep::sweep;
use crate::testing::ScriptedSubmit;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::tests::rig::{
    HOUR, MINUTE, Rig, answer, error, extract, id, link_of, page, recoverable_at, retry_after,
    submission,
};

async fn submit_page(rig: &Rig) -> Submitted {
    submit(rig.ports(), &submission(page())).await.unwrap()
}

fn accepted(name: &str, by: Submitter) -> Submitted {
    Submitted::Accepted { job_id: id(name), by }
}

fn intent(rig: &Rig) -> Intent {
    let intents = rig.ledger.intents();
    assert_eq!(intents.len(), 1);
    intents[0].clone()
}

fn jobs_made(rig: &Rig) -> usize {
    rig.jobs.listed(Kind::Extract).len()
}

#[tokio::test]
async fn a_submission_is_paid_once_and_owed_from_then_on() {
    let rig = Rig::new();
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::ThisCall));
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
    assert_eq!(rig.jobs.submits(), [page()]);
    let row = rig.entry(&extract("job-1"));
    assert_eq!(row.state, State::Expected);
    let link = row.link.unwrap();
    assert_eq!((link.submission, link.attempt), (intent(&rig).id, 0));
    assert_eq!(link.request, Some(page()));
}

#[tokio::test]
async fn another_position_run_or_request_is_another_submission() {
    let rig = Rig::new();
    let first = submission(page());
    let moved = Submission { position: 1, ..first.clone() };
    let renamed = Submission { run: "run-2".into(), ..first.clone() };
    let options = crate::request::FetchOptions { render_js: true, ..Default::default() };
    let rendered = submission(JobRequest::extract("https://example.com/page", options).unwrap());
    for submission in [&first, &moved, &renamed, &rendered, &first] {
        submit(rig.ports(), submission).await.unwrap();
    }
    assert_eq!(rig.jobs.submits().len(), 4);
}

/// DQ-07, PL-08: a webhook may be faster than our own bookkeeping; its row gets the link in
/// whatever state it is, and keeps that state.
#[tokio::test]
async fn a_row_that_a_webhook_made_first_is_linked_in_any_state() {
    for worked in [false, true] {
        let rig = Rig::new();
        let key = extract("job-1");
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
        rig.announce(&key).await;
        if worked {
            rig.work(&key).await;
        }
        let before = rig.entry(&key).state;
        assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::ThisCall));
        let row = rig.entry(&key);
        assert_eq!((row.state, row.link.is_some()), (before, true));
        rig.settle().await;
        assert_eq!(rig.stands(&key), "stored");
    }
}

/// WK-14: the row is linked before the intent is closed, so that a job always has an owner in
/// sight.
#[tokio::test]
async fn the_row_is_linked_before_the_intent_is_closed() {
    let rig = Rig::new();
    let dry = Faulty::new(&rig, []);
    run(submit(dry.ports(), &submission(page()))).unwrap().unwrap();
    let calls = dry.calls();
    let position = |name| calls.iter().rposition(|call| *call == name).unwrap();
    assert!(position("submit") < position("write"), "{calls:?}");
    assert!(position("write") < position("write_intent"), "{calls:?}");
    // Between the two, the failed job waits instead of dying unlinked.
    let rig = Rig::new();
    let cut = Faulty::new(&rig, [(position("write"), Fault::CrashBefore)]);
    assert!(run(submit(cut.ports(), &submission(page()))).is_none());
    let key = extract("job-1");
    let error = Some(JobError::new("TIMEOUT", "", true));
    let created_at = Some(rig.now());
    let failed = ExtractJob { created_at, error, ..answer(&key, JobStatus::Failed) };
    rig.jobs.answer_extract(&key.job_id, Ok(failed));
    let again = extract("job-2");
    rig.jobs.answer_extract(&again.job_id, Ok(answer(&again, JobStatus::Completed)));
    rig.announce(&key).await;
    rig.settle().await;
    assert_eq!(rig.stands(&key), "superseded job-2");
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
    assert_eq!(jobs_made(&rig), 2);
}

/// WK-14: the answer was lost: the same call finds out, not before the list can be trusted.
#[tokio::test]
async fn an_unanswered_submission_is_found_and_not_repeated() {
    let rig = Rig::new();
    rig.jobs.set_list_lag(rig.limits.adoption_margin);
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-9")));
    let look_at = recoverable_at(&rig);
    assert_eq!(submit_page(&rig).await, Submitted::Unanswered { look_at });
    assert_eq!(submit_page(&rig).await, Submitted::Unanswered { look_at });
    rig.clock.advance_to(look_at);
    assert_eq!(submit_page(&rig).await, accepted("job-9", Submitter::Earlier));
    assert_eq!(rig.jobs.submits().len(), 1);
    assert_eq!(rig.entry(&extract("job-9")).link.unwrap().lineage, id("job-9"));
}

/// WK-14: a POST that is proved not accepted is paid for again, once.
#[tokio::test]
async fn a_submission_that_was_not_accepted_is_made_again_once() {
    let rig = Rig::new();
    rig.jobs.answer_submit(ScriptedSubmit::LostUnanswered);
    submit_page(&rig).await;
    rig.clock.advance_to(recoverable_at(&rig));
    assert!(matches!(submit_page(&rig).await, Submitted::Deferred { .. }));
    assert_eq!(rig.jobs.submits().len(), 1, "recovering never pays");
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::ThisCall));
    assert_eq!((rig.jobs.submits().len(), jobs_made(&rig)), (2, 1));
}

/// WK-14: a list that cannot be read never leads to a second POST; at the limit the case is
/// ambiguous, and stays so.
#[tokio::test]
async fn a_submission_that_cannot_be_decided_ends_as_ambiguous() {
    let rig = Rig::new();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    rig.jobs.set_unreadable(1);
    submit_page(&rig).await;
    let limit = after(rig.now(), rig.limits.ambiguous_after);
    while rig.now() < limit {
        assert!(matches!(submit_page(&rig).await, Submitted::Unanswered { .. }));
        sweep(rig.ports(), 100).await.unwrap();
        rig.clock.advance(20 * MINUTE);
    }
    assert_eq!(submit_page(&rig).await, Submitted::Ambiguous);
    rig.jobs.set_unreadable(0);
    assert_eq!(submit_page(&rig).await, Submitted::Ambiguous);
    assert_eq!(rig.jobs.submits().len(), 1);
}

/// A machine that was off all night, and meets a moment's trouble in the morning, looks again.
#[tokio::test]
async fn one_failed_search_makes_nothing_ambiguous_however_late_it_is() {
    let rig = Rig::new();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    submit_page(&rig).await;
    rig.clock.advance(12 * HOUR);
    rig.jobs.fail_list(error(ApiErrorKind::Unavailable, None));
    let Submitted::Unanswered { look_at } = submit_page(&rig).await else { panic!("decided") };
    assert_eq!(submit_page(&rig).await, Submitted::Unanswered { look_at }, "not before its time");
    rig.clock.advance_to(look_at);
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
}

/// CL-06: a search pauses where the list says so, and waits where somebody else has paused.
#[tokio::test]
async fn a_search_keeps_to_the_pause_of_the_account() {
    let rig = Rig::new();
    rig.jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("job-1")));
    let look_at = recoverable_at(&rig);
    submit_page(&rig).await;
    rig.clock.advance_to(look_at);
    rig.jobs.fail_list(retry_after(error(ApiErrorKind::Throttled, Some(429)), 10 * MINUTE));
    submit_page(&rig).await;
    rig.jobs.clear_calls();
    rig.clock.advance(9 * MINUTE);
    let Submitted::Unanswered { look_at } = submit_page(&rig).await else { panic!("decided") };
    assert_eq!(rig.jobs.calls(), []);
    rig.clock.advance_to(look_at);
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
}

/// WK-12, CL-06: each refusal by its kind, what it pauses, and that the same call goes on later.
#[tokio::test]
async fn a_refused_submission_is_final_or_deferred_by_its_kind() {
    let minute = Some(MINUTE);
    for (refusal, probe, is_final, pauses) in [
        (error(ApiErrorKind::Refused, Some(422)), true, true, None),
        (error(ApiErrorKind::Missing, Some(404)), true, true, None),
        (error(ApiErrorKind::Denied, Some(403)), true, true, None),
        (error(ApiErrorKind::Denied, Some(401)), true, false, None),
        (error(ApiErrorKind::Denied, Some(401)), false, false, Some(Scope::All)),
        (error(ApiErrorKind::PaymentRequired, Some(402)), true, false, Some(Scope::Paying)),
        (error(ApiErrorKind::Throttled, Some(429)), true, false, None),
        (
            retry_after(error(ApiErrorKind::Throttled, Some(429)), MINUTE),
            true,
            false,
            Some(Scope::Paying),
        ),
        (error(ApiErrorKind::Unavailable, Some(503)), true, false, None),
    ] {
        let rig = Rig::new();
        rig.jobs.answer_submit(ScriptedSubmit::Refused(refusal.clone()));
        if !probe {
            rig.jobs.answer_probe(Err(refusal.clone()));
        }
        rig.jobs.answer_probe(Ok(()));
        let submitted = submit_page(&rig).await;
        assert_eq!(matches!(submitted, Submitted::Refused(_)), is_final, "{refusal}");
        let all = rig.pauses.active(&rig.ledger, Scope::All, rig.now()).await.unwrap();
        let paying = rig.pauses.active(&rig.ledger, Scope::Paying, rig.now()).await.unwrap();
        let paused = match (all, paying) {
            (Some(_), _) => Some(Scope::All),
            (None, Some(_)) => Some(Scope::Paying),
            (None, None) => None,
        };
        assert_eq!(paused, pauses, "{refusal}");
        if is_final {
            assert_eq!(submit_page(&rig).await, submitted, "{refusal}");
            assert_eq!(rig.jobs.submits().len(), 1);
            continue;
        }
        let Submitted::Deferred { wait, .. } = submitted else { panic!("{submitted:?}") };
        assert!(wait >= refusal.retry_after.unwrap_or_default());
        if pauses.is_some() {
            let held = submit_page(&rig).await;
            let until = matches!(&held, Submitted::Deferred { wait, because: Deferral::Paused(_) }
                if Some(*wait) >= minute);
            assert!(until, "{held:?}");
        }
        rig.clock.advance(2 * MINUTE);
        assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::ThisCall), "{refusal}");
    }
}

/// WK-13: the day's spend bounds what is paid; a refused POST spends nothing of the same day
/// twice.
#[tokio::test]
async fn the_days_spend_holds_submissions_back() {
    let mut rig = Rig::new();
    rig.limits = Limits { spend_per_day: Some(2), ..Limits::default() };
    for _ in 0..5 {
        rig.jobs
            .answer_submit(ScriptedSubmit::Refused(error(ApiErrorKind::Unavailable, Some(503))));
        let deferred = submit_page(&rig).await;
        let by_api = matches!(deferred, Submitted::Deferred { because: Deferral::Api(_), .. });
        assert!(by_api, "{deferred:?}");
    }
    assert!(matches!(submit_page(&rig).await, Submitted::Accepted { .. }));
    let second = Submission { position: 1, ..submission(page()) };
    let third = Submission { position: 2, ..submission(page()) };
    let done = submit(rig.ports(), &second).await.unwrap();
    assert!(matches!(done, Submitted::Accepted { .. }));
    let held = submit(rig.ports(), &third).await.unwrap();
    assert!(matches!(held, Submitted::Deferred { because: Deferral::Spent, .. }), "{held:?}");
    rig.clock.advance(12 * HOUR);
    let done = submit(rig.ports(), &third).await.unwrap();
    assert!(matches!(done, Submitted::Accepted { .. }));
}

/// WK-14: two processes with the same submission, the second one between any two calls of the
/// first: one POST.
#[tokio::test]
async fn two_processes_with_the_same_submission_pay_once() {
    let calls = {
        let rig = Rig::new();
        let dry = Faulty::new(&rig, []);
        run(submit(dry.ports(), &submission(page()))).unwrap().unwrap();
        dry.calls()
    };
    for lag in [Duration::ZERO, 20 * MINUTE] {
        for (k, call) in calls.iter().enumerate() {
            // A process that falls asleep after its last look at the clock and before the POST
            // cannot be kept from making it: the platform takes no token that would expire.
            if *call == "submit" && !lag.is_zero() {
                continue;
            }
            let rig = Rig::new();
            let second = || {
                rig.clock.advance(lag);
                // Twice: the first time may only prove that nothing was accepted.
                run(submit(rig.ports(), &submission(page()))).unwrap().unwrap();
                run(submit(rig.ports(), &submission(page()))).unwrap().unwrap();
            };
            let ports = Faulty::with_visitor(&rig, k, second);
            let first = submit(ports.ports(), &submission(page())).await.unwrap();
            rig.clock.advance(5 * MINUTE);
            let third = submit_page(&rig).await;
            let fourth = submit_page(&rig).await;
            let all = [&first, &third, &fourth];
            assert_eq!(jobs_made(&rig), 1, "at call {k}, {lag:?} apart: {all:?}");
            assert_eq!(fourth, accepted("job-1", Submitter::Earlier), "{all:?}");
        }
    }
}

/// WK-14: a process that slept between the platform's answer and its own write: what it knows
/// outweighs what others concluded from a list that lagged too long, and nobody pays again.
#[tokio::test]
async fn a_late_answer_closes_a_submission_that_others_deferred() {
    let rig = Rig::new();
    rig.jobs.set_list_lag(HOUR);
    let slow = Sleeper { rig: &rig };
    let ports = Ports { jobs: &slow, ..rig.ports() };
    let done = submit(ports, &submission(page())).await.unwrap();
    assert_eq!(done, accepted("job-1", Submitter::ThisCall));
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
    assert_eq!(rig.jobs.submits().len(), 1);
}

/// A platform whose answer reaches a process that was asleep meanwhile, while the sweep of
/// another one looked for the job in vain.
struct Sleeper<'a> {
    rig: &'a Rig,
}

#[async_trait]
impl Jobs for Sleeper<'_> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.rig.jobs.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.rig.jobs.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let answer = self.rig.jobs.submit(request, within).await;
        self.rig.clock.advance(10 * MINUTE);
        let swept = sweep(self.rig.ports(), 100).await.unwrap();
        assert_eq!(swept.not_accepted, 1);
        answer
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.rig.jobs.list(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.rig.jobs.probe(within).await
    }
}

/// A POST that could begin too late is not begun: its job would lie outside of the window.
#[tokio::test]
async fn a_post_is_not_begun_after_its_time() {
    let rig = Rig::new();
    let intended = Intent::open(&submission(page()), "t".into(), rig.now(), &rig.limits);
    rig.clock.advance(rig.limits.post_begin);
    let look_at = intended.due_at.unwrap();
    let submitted = pay(rig.ports(), intended).await.unwrap();
    assert_eq!(submitted, Submitted::Unanswered { look_at });
    assert_eq!(rig.jobs.submits(), []);
}

/// A job that belongs to somebody else is not taken, whoever names it.
#[tokio::test]
async fn an_answer_that_names_a_job_with_an_owner_is_not_believed() {
    let rig = Rig::new();
    let key = extract("job-1");
    let link = Some(link_of(&key, "another"));
    rig.ledger.place(&Entry::expected(key.clone(), link, Cause::Submit, rig.now(), &rig.limits));
    assert!(matches!(submit_page(&rig).await, Submitted::Unanswered { .. }));
    assert_eq!(rig.entry(&key).link.unwrap().submission, "another");
}

/// Outcomes that concern one POST never close a later one of the same submission.
#[test]
fn an_outcome_closes_its_own_post_alone() {
    let rig = Rig::new();
    let first = Intent::open(&submission(page()), "one".into(), rig.now(), &rig.limits);
    let IntentState::Open { post } = first.state.clone() else { panic!("it is open") };
    let later = IntentState::Open { post: post.next("two".into(), rig.now(), &rig.limits) };
    let deferred = IntentState::Deferred { post };
    let is_there = IntentState::Accepted { job_id: id("a") };
    let refused = IntentState::Refused { error: JobError::new("c", "m", false) };
    for (row, outcome, closes) in [
        (&first.state, &deferred, true),
        (&first.state, &IntentState::Ambiguous, true),
        (&later, &deferred, false),
        (&later, &refused, false),
        (&later, &IntentState::Ambiguous, false),
        (&later, &is_there, true),
        (&deferred, &is_there, true),
        (&IntentState::Ambiguous, &is_there, true),
        (&IntentState::Ambiguous, &refused, false),
        (&deferred, &refused, false),
        (&is_there, &IntentState::Accepted { job_id: id("b") }, false),
        (&refused, &is_there, false),
    ] {
        assert_eq!(still_closes(row, &first, outcome), closes, "{row:?} {outcome:?}");
    }
}

/// A stored answer outlives the intent's retention: after it, the same call is a new decision.
#[tokio::test]
async fn a_submission_is_remembered_as_long_as_the_ledger_remembers() {
    let rig = Rig::new();
    submit_page(&rig).await;
    rig.clock.advance(rig.limits.retention.saturating_sub(HOUR));
    assert_eq!(submit_page(&rig).await, accepted("job-1", Submitter::Earlier));
    rig.clock.advance(2 * HOUR);
    assert_eq!(submit_page(&rig).await, accepted("job-2", Submitter::ThisCall));
    assert_ne!(rig.stands(&extract("job-1")), format!("dead {}", DeadReason::Gone));
}
