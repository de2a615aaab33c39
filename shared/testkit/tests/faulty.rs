//! The fault wrappers: with an empty plan they are the ports that they wrap; with a fault they
//! fail where it says.

use std::sync::Arc;
use std::time::Duration;

use domain::job::{JobId, Kind};
use domain::ports::{ApiErrorKind, ErrorKind, Jobs, PutOutcome, Results, SubmitError};
use domain::request::{FetchOptions, JobRequest};
use domain::testing::{
    ManualClock, MemoryDeadLetters, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs,
};
use testkit::conformance::{DeadLettersSubject, LedgerSubject, QueueSubject, ResultsSubject};
use testkit::faulty::{
    Fault, FaultPlan, FaultyDeadLetters, FaultyJobs, FaultyLedger, FaultyQueue, FaultyResults,
    Surroundings,
};

fn surroundings(plan: Arc<FaultPlan>) -> Surroundings {
    Surroundings::new(plan, Arc::new(ManualClock::default()))
}

fn ledger() -> LedgerSubject {
    let inner = Arc::new(MemoryLedger::new());
    let (entries, intents) = (inner.clone(), inner.clone());
    let ledger = FaultyLedger::new(inner, surroundings(FaultPlan::none()));
    LedgerSubject::new(Arc::new(ledger)).spoiling(
        move |key| assert!(entries.corrupt(key)),
        move |id| assert!(intents.corrupt_intent(id)),
    )
}

fn queue() -> QueueSubject<FaultyQueue<MemoryQueue>> {
    let clock = Arc::new(ManualClock::default());
    let inner = Arc::new(MemoryQueue::new(clock.clone()));
    let strange = inner.clone();
    let surroundings = Surroundings::new(FaultPlan::none(), clock.clone());
    QueueSubject::new(Arc::new(FaultyQueue::new(inner, surroundings)), clock)
        .sending_bodies(move |body| strange.send_body(body))
}

fn dead_letters() -> DeadLettersSubject {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let inner = Arc::new(MemoryDeadLetters::new(clock.clone(), queue.clone()));
    let past_the_port = inner.clone();
    let surroundings = Surroundings::new(FaultPlan::none(), clock.clone());
    let letters = Arc::new(FaultyDeadLetters::new(inner, surroundings));
    DeadLettersSubject::new(letters, queue, clock, move |body| past_the_port.put(body))
}

fn results() -> ResultsSubject {
    let inner = Arc::new(MemoryResults::new());
    let damaged = inner.clone();
    let results = FaultyResults::new(inner, surroundings(FaultPlan::none()));
    ResultsSubject::new(Arc::new(results)).spoiling(move |key| assert!(damaged.corrupt(key)))
}

testkit::ledger_conformance! { name: faulty_ledger, make: ledger() }
testkit::queue_conformance! { name: faulty_queue, make: queue() }
testkit::dead_letters_conformance! { name: faulty_dead_letters, make: dead_letters() }
testkit::results_conformance! { name: faulty_results, make: results() }

/// WK-15: the store fails at the first try; the second one stores the same object once.
#[test]
fn a_put_is_repeated_after_any_fault() {
    let content = "{\"html\":\"<p>&amp;</p>\"}\n".repeat(220_000);
    for fault in Fault::ALL {
        let inner = Arc::new(MemoryResults::new());
        let plan = FaultPlan::at(0, fault);
        let results = FaultyResults::new(inner.clone(), surroundings(plan.clone()));
        testkit::run(async {
            let put = results.put_new("a.json.gz", content.as_bytes()).await;
            assert_eq!(put.unwrap_err().kind, ErrorKind::Unavailable);
            let had_effect = matches!(fault, Fault::FailAfter | Fault::HangAfter);
            match results.put_new("a.json.gz", content.as_bytes()).await.unwrap() {
                PutOutcome::Now(_) => assert!(!had_effect, "{fault:?}"),
                PutOutcome::Already { content: found, .. } => {
                    assert!(had_effect, "{fault:?}");
                    assert!(found == content.as_bytes());
                }
            }
        });
        assert_eq!(inner.keys(), ["a.json.gz"]);
        assert_eq!(plan.calls(), ["results.put_new", "results.put_new"]);
        assert!(plan.is_used_up());
    }
}

/// A failed submission is always unanswered, and the job exists where it had its effect.
#[test]
fn a_failed_submission_may_have_made_a_job() {
    let request = JobRequest::extract("https://e.com/", FetchOptions::default()).unwrap();
    let within = Duration::from_secs(30);
    for (fault, made) in [(Fault::FailBefore, 0), (Fault::FailAfter, 1)] {
        let inner = Arc::new(ScriptedJobs::new(Arc::new(ManualClock::default())));
        let jobs = FaultyJobs::new(inner.clone(), surroundings(FaultPlan::at(1, fault)));
        testkit::run(async {
            jobs.probe(within).await.unwrap();
            let submitted = jobs.submit(&request, within).await;
            assert!(matches!(submitted, Err(SubmitError::Unanswered(_))));
            let missing = jobs.extract(&JobId::parse("none").unwrap(), within).await;
            assert_eq!(missing.unwrap_err().kind, ApiErrorKind::Missing);
        });
        assert_eq!(inner.listed(Kind::Extract).len(), made, "{fault:?}");
    }
}
