use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::intent::Submission;
use crate::job::{JobKey, JobStatus};
use crate::pause::Pauses;
use crate::ports::ApiError;
use crate::reconcile::{self, Manner, Reconciled, reconcile};
use crate::replay::{self, Replayed, replay};
use crate::submit::{Deferral, Submitted, submit};
use crate::task::Task;
use crate::testing::{Call, MemoryWebhooks, ScriptedSubmit};
use crate::time::between;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::tests::rig::{Rig, answer, error, extract, page, submission};
use crate::work::{PutOff, Worked, work};

/// A rig whose account was in trouble, as another process wrote, until just now.
async fn ended(scope: Scope, why: &str) -> Rig {
    let rig = Rig::new();
    let until = after(rig.now(), rig.limits.account_pause);
    Pauses::default().extend(&rig.ledger, scope, until, why).await.unwrap();
    rig.clock.advance_to(until);
    rig
}

fn received(rig: &Rig, name: &str) -> JobKey {
    let key = extract(name);
    rig.receive_linked(&key);
    rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    key
}

/// How long the account is paused yet, as another process reads it.
async fn left(rig: &Rig, scope: Scope) -> Option<Duration> {
    let pause = Pauses::default().active(&rig.ledger, scope, rig.now()).await.unwrap();
    pause.map(|pause| between(rig.now(), pause.until))
}

fn submission_of(position: u64) -> Submission {
    Submission { position, ..submission(page()) }
}

fn denied() -> ApiError {
    error(ApiErrorKind::Denied, Some(401))
}

fn probes(rig: &Rig) -> usize {
    rig.jobs.calls().iter().filter(|call| matches!(call, Call::Probe)).count()
}

#[tokio::test]
async fn the_account_is_asked_once_and_work_goes_on_when_it_is_in_order() {
    for why in ["denied", "payment_required", "missing", "refused"] {
        let rig = ended(Scope::All, why).await;
        for name in ["a", "b"] {
            let worked = rig.work(&received(&rig, name)).await;
            assert!(matches!(worked, Worked::Stored { .. }), "{why}: {worked:?}");
        }
        assert_eq!((probes(&rig), left(&rig, Scope::All).await), (1, None), "{why}");
    }
}

#[tokio::test]
async fn trouble_that_goes_on_is_found_by_the_probe_alone() {
    let rig = ended(Scope::All, "denied").await;
    let pause = rig.limits.account_pause;
    for round in 1..=3 {
        rig.jobs.answer_probe(Err(denied()));
        for name in ["a", "b"] {
            let worked = rig.work(&received(&rig, name)).await;
            let because = PutOff::Paused("denied".into());
            assert!(
                matches!(&worked, Worked::PutOff { because: found, .. } if *found == because),
                "{worked:?}"
            );
        }
        assert_eq!(rig.jobs.calls(), vec![Call::Probe; round], "no job is asked for");
        assert_eq!(left(&rig, Scope::All).await, Some(pause));
        rig.clock.advance(pause);
    }
}

/// Neither lists nor logs are read, and a plan leaves the probe to whoever carries it out.
#[tokio::test]
async fn upkeep_is_held_by_the_probe_as_well() {
    let rig = ended(Scope::All, "denied").await;
    let webhooks = MemoryWebhooks::new(rig.clock.clone());
    let (dry, wet) = (true, false);
    for (is_dry, asked) in [(dry, 0), (wet, 1)] {
        rig.jobs.answer_probe(Err(denied()));
        let manner = Manner { look: Look::Scheduled, is_dry };
        assert_eq!(manner.is_held(rig.ports()).await.unwrap(), !is_dry);
        assert_eq!((probes(&rig), rig.jobs.calls().len()), (asked, asked));
    }
    let manner = Manner { look: Look::Scheduled, is_dry: false };
    let (ports, mut read, mut compared) = (rig.ports(), Replayed::default(), Reconciled::default());
    rig.clock.advance(rig.limits.account_pause);
    let rules = reconcile::Rules::default();
    reconcile(ports, &rules, manner, &mut compared, &mut |_| {}).await.unwrap();
    let rules = replay::Rules::default();
    replay(ports, &webhooks, &rules, manner, &mut read, &mut |_| {}).await.unwrap();
    assert!(compared.partial && read.partial);
    assert_eq!((rig.jobs.calls().len(), webhooks.calls()), (2, Vec::new()), "probes alone");
}

/// Silence says nothing about the account: the probe's own time passes, then comes the next.
#[tokio::test]
async fn a_probe_without_an_answer_is_made_again() {
    for kind in [ApiErrorKind::Unavailable, ApiErrorKind::Throttled] {
        let rig = ended(Scope::All, "denied").await;
        rig.jobs.answer_probe(Err(error(kind, None)));
        rig.jobs.answer_probe(Ok(()));
        let worked = rig.work(&received(&rig, "a")).await;
        assert!(matches!(worked, Worked::PutOff { .. }), "{worked:?}");
        assert_eq!(left(&rig, Scope::All).await, Some(rig.limits.probe_hold()));
        rig.clock.advance(rig.limits.probe_hold());
        let worked = rig.work(&received(&rig, "b")).await;
        assert!(matches!(worked, Worked::Stored { .. }), "{kind:?}: {worked:?}");
    }
}

/// An endpoint that changed its shape, or is gone, says at least that the key is taken.
#[tokio::test]
async fn an_answer_that_does_not_refuse_the_key_is_enough() {
    for kind in [ApiErrorKind::Missing, ApiErrorKind::Refused, ApiErrorKind::Unreadable] {
        let rig = ended(Scope::All, "denied").await;
        rig.jobs.answer_probe(Err(error(kind, None)));
        let worked = rig.work(&received(&rig, "a")).await;
        assert!(matches!(worked, Worked::Stored { .. }), "{kind:?}: {worked:?}");
        assert_eq!((probes(&rig), left(&rig, Scope::All).await), (1, None), "{kind:?}");
    }
}

/// A caller without time does not begin a probe that is cut short.
#[tokio::test]
async fn a_probe_is_not_begun_after_the_deadline() {
    let rig = ended(Scope::All, "denied").await;
    let look = Look::ScheduledUntil(rig.now());
    assert!(held(rig.ports(), Scope::All, look).await.unwrap().is_some());
    assert_eq!(probes(&rig), 0);
}

/// Which paid POST shows that the account can pay again: the next one, and no other until then.
#[tokio::test]
async fn one_paid_post_is_the_probe_of_paying_calls() {
    let rig = ended(Scope::Paying, "payment_required").await;
    let payment_required =
        || ScriptedSubmit::Refused(error(ApiErrorKind::PaymentRequired, Some(402)));
    rig.jobs.answer_submit(payment_required());
    let first = submit(rig.ports(), &submission_of(0)).await.unwrap();
    assert!(matches!(&first, Submitted::Deferred { because: Deferral::Api(_), .. }), "{first:?}");
    assert_eq!(left(&rig, Scope::Paying).await, Some(rig.limits.account_pause));
    let second = submit(rig.ports(), &submission_of(1)).await.unwrap();
    let paused = Deferral::Paused("payment_required".into());
    assert!(
        matches!(&second, Submitted::Deferred { because, .. } if *because == paused),
        "{second:?}"
    );
    assert_eq!((rig.jobs.submits().len(), probes(&rig)), (1, 0), "nothing else is paid or asked");
    rig.clock.advance(rig.limits.account_pause);
    for position in [0, 1] {
        let made = submit(rig.ports(), &submission_of(position)).await.unwrap();
        assert!(matches!(made, Submitted::Accepted { .. }), "{made:?}");
        assert_eq!(left(&rig, Scope::Paying).await, None);
    }
    assert_eq!(rig.jobs.submits().len(), 3);
}

/// Whoever is in the middle of the probe keeps all other processes from calling.
#[tokio::test]
async fn while_one_probes_nobody_else_calls() {
    for (scope, why, call) in
        [(Scope::All, "denied", "probe"), (Scope::Paying, "payment_required", "submit")]
    {
        let calls = {
            let rig = ended(scope, why).await;
            let faulty = Faulty::new(&rig, []);
            run(submit(faulty.ports(), &submission_of(0))).unwrap().unwrap();
            faulty.calls()
        };
        let at = calls.iter().position(|made| *made == call).unwrap();
        let rig = ended(scope, why).await;
        let (other, seen) = (Pauses::default(), Mutex::new(None));
        let visit = || {
            let ports = Ports { pauses: &other, ..rig.ports() };
            *seen.lock().unwrap() = run(submit(ports, &submission_of(1)));
        };
        let faulty = Faulty::with_visitor(&rig, at, visit);
        let made = run(submit(faulty.ports(), &submission_of(0))).unwrap().unwrap();
        assert!(matches!(made, Submitted::Accepted { .. }), "{made:?}");
        let seen = seen.lock().unwrap().take().unwrap().unwrap();
        let Submitted::Deferred { because: Deferral::Paused(told), .. } = &seen else {
            panic!("{seen:?}");
        };
        assert_eq!((told.as_str(), left(&rig, scope).await), (why, None));
        assert_eq!(rig.jobs.submits().len(), 1);
    }
}

/// Each call of a look that has the probe fails, or its process ends there: at most one probe in
/// each process, and no more than two holds later the work is done.
#[tokio::test]
async fn whatever_befalls_the_probe_work_goes_on() {
    let calls = {
        let rig = ended(Scope::All, "denied").await;
        let faulty = Faulty::new(&rig, []);
        let task = Task { key: received(&rig, "a") };
        run(work(faulty.ports(), &task)).unwrap().unwrap();
        faulty.calls().len()
    };
    for k in 0..calls {
        for fault in Fault::ALL {
            let rig = ended(Scope::All, "denied").await;
            let key = received(&rig, "a");
            rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
            let faulty = Faulty::new(&rig, [(k, fault)]);
            drop(run(work(faulty.ports(), &Task { key: key.clone() })));
            let trouble = format!("call {k} {fault:?}");
            assert!(probes(&rig) <= 1, "{trouble}");
            // Another process, after the probe's time.
            let other = Pauses::default();
            rig.clock.advance(rig.limits.probe_hold());
            let ports = Ports { pauses: &other, ..rig.ports() };
            assert_eq!(held(ports, Scope::All, Look::Scheduled).await.unwrap(), None, "{trouble}");
            assert!(probes(&rig) <= 2, "{trouble}");
            assert_eq!(left(&rig, Scope::All).await, None, "{trouble}");
            rig.settle().await;
            assert_eq!(rig.stands(&key), "stored", "{trouble}");
        }
    }
}
