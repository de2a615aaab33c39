//! Each use case, with each of its port calls failing or crashing, before and after its effect,
//! once and twice; then left alone until quiet. The end is the same as without faults.

use std::time::Duration;

use super::faults::{Fault, Faulty, run};
use super::follow_ups::partly;
use super::parents::{item_keys, whole};
use super::rig::{
    MINUTE, Rig, answer, batch, error, extract, id, items, page, retry_after, stored_object,
    submission,
};
use crate::entry::State;
use crate::follow_up::key_of;
use crate::job::{JobError, JobKey, JobStatus, Kind};
use crate::limits::Limits;
use crate::pause::{Pauses, Scope};
use crate::ports::{ApiErrorKind, ExtractJob};
use crate::submit::{Submitted, submit};
use crate::task::Task;
use crate::testing::ScriptedSubmit;
use crate::time::after;
use crate::work::work;

/// A use case: how the world stands before it, and whose call it is.
struct Case {
    name: &'static str,
    world: fn() -> Rig,
    act: Act,
}

#[derive(Clone, Copy)]
enum Act {
    /// A worker has the task of job `a`, which is of this kind.
    Work(Kind),
    /// A worker has the task of batch `a`, and then that of its follow-up.
    FollowUp,
    /// Somebody submits [`page`].
    Submit,
}

impl Act {
    fn key(self) -> JobKey {
        match self {
            Self::Work(kind) => JobKey::new(kind, id("a")),
            Self::FollowUp => key_of(&batch("a")),
            Self::Submit => extract("job-1"),
        }
    }

    /// One process that does it, to its end or to where it crashes.
    fn once(self, faulty: &Faulty<'_>) {
        match self {
            Self::Work(_) => drop(run(work(faulty.ports(), &Task { key: self.key() }))),
            Self::FollowUp => {
                drop(run(work(faulty.rig_ports(), &Task { key: batch("a") })));
                drop(run(work(faulty.ports(), &Task { key: self.key() })));
            }
            Self::Submit => drop(run(submit(faulty.ports(), &submission(page())))),
        }
    }
}

fn announced(kind: Kind) -> Rig {
    let rig = Rig::new();
    run(rig.announce(&JobKey::new(kind, id("a")))).unwrap();
    rig
}

fn stored() -> Rig {
    let rig = announced(Kind::Extract);
    rig.jobs.answer_extract(&id("a"), Ok(answer(&extract("a"), JobStatus::Completed)));
    rig
}

fn put_off() -> Rig {
    let rig = announced(Kind::Extract);
    rig.jobs.answer_extract(&id("a"), Ok(answer(&extract("a"), JobStatus::Queued)));
    rig.jobs.answer_extract(&id("a"), Ok(answer(&extract("a"), JobStatus::Processing)));
    rig.jobs.answer_extract(&id("a"), Ok(answer(&extract("a"), JobStatus::Completed)));
    rig
}

fn cancelled() -> Rig {
    let rig = announced(Kind::Extract);
    rig.jobs.answer_extract(&id("a"), Ok(answer(&extract("a"), JobStatus::Cancelled)));
    rig
}

/// A linked job that failed retryably, and what becomes of the POSTs for it.
fn resubmit(posts: impl IntoIterator<Item = ScriptedSubmit>) -> Rig {
    let mut rig = paid(posts);
    rig.limits = Limits { spend_per_day: Some(10), ..Limits::default() };
    let key = extract("a");
    rig.receive_linked(&key);
    let error = Some(JobError::new("TIMEOUT", "", true));
    let failed = ExtractJob { error, ..answer(&key, JobStatus::Failed) };
    rig.jobs.answer_extract(&key.job_id, Ok(failed));
    rig
}

/// An account in which what becomes of the POSTs is laid down; each job made is completed.
fn paid(posts: impl IntoIterator<Item = ScriptedSubmit>) -> Rig {
    let mut rig = Rig::new();
    rig.limits = Limits { spend_per_day: Some(10), ..Limits::default() };
    // The list shows a job as late as it may: whoever looks too early sees nothing.
    rig.jobs.set_list_lag(rig.limits.adoption_margin);
    for post in posts {
        rig.jobs.answer_submit(post);
    }
    for name in ["job-1", "job-2", "job-3"] {
        let key = extract(name);
        rig.jobs.answer_extract(&key.job_id, Ok(answer(&key, JobStatus::Completed)));
    }
    rig
}

fn unanswered() -> [ScriptedSubmit; 1] {
    [ScriptedSubmit::AcceptedUnanswered(id("job-1"))]
}

fn refused() -> impl Iterator<Item = ScriptedSubmit> {
    (0..10).map(|_| ScriptedSubmit::Refused(error(ApiErrorKind::Refused, Some(422))))
}

fn throttled() -> [ScriptedSubmit; 1] {
    let throttled = error(ApiErrorKind::Throttled, Some(429));
    [ScriptedSubmit::Refused(retry_after(throttled, MINUTE))]
}

fn parent(status: JobStatus, count: u32) -> Rig {
    let rig = announced(Kind::Batch);
    let key = batch("a");
    rig.jobs.answer_parent(&key, Ok(whole(&key, status, items(0..count))));
    rig
}

/// A submitted batch one of whose items failed retryably, and what becomes of the POSTs for it.
fn follow_up(posts: impl IntoIterator<Item = ScriptedSubmit>) -> Rig {
    let mut rig = paid(posts);
    rig.limits.policies.resubmit_failed_items = true;
    let key = batch("a");
    rig.receive_linked(&key);
    rig.jobs.answer_parent(&key, Ok(partly(&key)));
    let next = batch("job-1");
    rig.jobs.answer_parent(&next, Ok(whole(&next, JobStatus::Completed, items(1..2))));
    rig
}

/// The account was in trouble until now, as another process wrote.
fn paused(rig: Rig, scope: Scope, why: &str) -> Rig {
    let until = after(rig.now(), rig.limits.account_pause);
    run(Pauses::default().extend(&rig.ledger, scope, until, why)).unwrap().unwrap();
    rig.clock.advance_to(until);
    rig
}

/// It is in trouble still, when it is asked for the first time.
fn still_denied(rig: Rig) -> Rig {
    rig.jobs.answer_probe(Err(error(ApiErrorKind::Denied, Some(401))));
    rig.jobs.answer_probe(Ok(()));
    paused(rig, Scope::All, "denied")
}

fn out_of_tokens() -> [ScriptedSubmit; 1] {
    [ScriptedSubmit::Refused(error(ApiErrorKind::PaymentRequired, Some(402)))]
}

const EXTRACT: Act = Act::Work(Kind::Extract);
const BATCH: Act = Act::Work(Kind::Batch);

fn cases() -> Vec<Case> {
    let case = |name, act, world| Case { name, world, act };
    vec![
        case("stored", EXTRACT, stored),
        case("put off", EXTRACT, put_off),
        case("dead", EXTRACT, cancelled),
        case("resubmit accepted", EXTRACT, || resubmit([])),
        case("resubmit unanswered", EXTRACT, || resubmit(unanswered())),
        case("resubmit lost", EXTRACT, || resubmit([ScriptedSubmit::LostUnanswered])),
        case("resubmit refused", EXTRACT, || resubmit(refused())),
        case("resubmit throttled", EXTRACT, || resubmit(throttled())),
        case("parent of three pages", BATCH, || parent(JobStatus::Completed, 101)),
        case("parent without items", BATCH, || parent(JobStatus::Completed, 0)),
        case("failed parent", BATCH, || parent(JobStatus::Failed, 60)),
        case("followed up", BATCH, || follow_up([])),
        case("follow-up accepted", Act::FollowUp, || follow_up([])),
        case("follow-up unanswered", Act::FollowUp, || follow_up(unanswered())),
        case("follow-up lost", Act::FollowUp, || follow_up([ScriptedSubmit::LostUnanswered])),
        case("follow-up refused", Act::FollowUp, || follow_up(refused())),
        case("follow-up throttled", Act::FollowUp, || follow_up(throttled())),
        case("submit accepted", Act::Submit, || paid([])),
        case("submit unanswered", Act::Submit, || paid(unanswered())),
        case("submit lost", Act::Submit, || paid([ScriptedSubmit::LostUnanswered])),
        case("submit refused", Act::Submit, || paid(refused())),
        case("submit throttled", Act::Submit, || paid(throttled())),
        case("probed", EXTRACT, || paused(stored(), Scope::All, "denied")),
        case("probed in vain", EXTRACT, || still_denied(stored())),
        case("resubmit probed", EXTRACT, || paused(resubmit([]), Scope::All, "denied")),
        case("resubmit as probe", EXTRACT, || {
            paused(resubmit(unanswered()), Scope::Paying, "payment_required")
        }),
        case("submit probed in vain", Act::Submit, || still_denied(paid([]))),
        case("submit as probe", Act::Submit, || {
            paused(paid([]), Scope::Paying, "payment_required")
        }),
        case("submit as probe in vain", Act::Submit, || {
            paused(paid(out_of_tokens()), Scope::Paying, "payment_required")
        }),
    ]
}

/// What must be the same in the end, whatever went wrong on the way.
#[derive(Debug, PartialEq, Eq)]
struct End {
    rows: Vec<String>,
    intents: Vec<String>,
    /// Each of them is paid for.
    jobs: Vec<String>,
    /// Objects that count: parts only where a manifest names them.
    results: Vec<String>,
}

fn end(rig: &Rig) -> End {
    let mut results = Vec::new();
    let rows = rig.ledger.entries().into_iter().map(|entry| {
        let link = entry.link.as_ref().map(|link| (link.lineage.clone(), link.attempt));
        let has_object = match &entry.state {
            State::Stored { .. } => true,
            State::Dead { result, .. } => result.is_some(),
            _ => false,
        };
        if has_object {
            let object = stored_object(&entry);
            let bytes = rig.results.bytes(&object.key).expect("the object is there");
            assert_eq!(crate::object::describe(&object.key, &bytes).sha256, object.sha256);
            let items = (entry.key.kind == Kind::Batch).then(|| item_keys(rig, &object.key));
            let flags = (object.empty, object.unsettled);
            results.push(format!("{} {flags:?} {items:?}", object.key));
        }
        assert_eq!(entry.due_at.is_some(), !entry.state.is_terminal());
        let date = entry.dt;
        format!("{} {} {link:?} {date:?}", entry.key, super::rig::standing(&entry))
    });
    let rows = rows.collect();
    let intents = rig.ledger.intents().into_iter().map(|intent| intent.state.name().to_owned());
    let kinds = [Kind::Extract, Kind::Batch].into_iter();
    let jobs = kinds.flat_map(|kind| rig.jobs.listed(kind)).map(|id| id.to_string()).collect();
    End { rows, intents: intents.collect(), jobs, results }
}

/// Nothing fails any more: whoever submits asks again, and the rest runs until it is quiet.
async fn heal(rig: &Rig, act: Act) {
    if matches!(act, Act::Submit) {
        for _ in 0..120 {
            match submit(rig.ports(), &submission(page())).await.unwrap() {
                Submitted::Accepted { .. } | Submitted::Refused(_) => break,
                Submitted::Ambiguous => panic!("ambiguous"),
                Submitted::Deferred { .. } | Submitted::Unanswered { .. } => {
                    rig.clock.advance(MINUTE);
                }
            }
        }
    }
    rig.settle().await;
}

/// Two processes, one after the other, with these faults among their calls; then none.
async fn end_with(case: &Case, plan: &[(usize, Fault)]) -> End {
    let rig = (case.world)();
    let faulty = Faulty::new(&rig, plan.iter().copied());
    case.act.once(&faulty);
    if plan.len() > 1 {
        case.act.once(&faulty);
    }
    let objects = rig.objects();
    heal(&rig, case.act).await;
    let later = rig.objects();
    for (key, bytes) in objects {
        assert_eq!(later.get(&key), Some(&bytes), "{}: {key} changed", case.name);
    }
    let end = end(&rig);
    let whole = later.keys().filter(|key| !key.contains("-part-")).count();
    assert_eq!(whole, end.results.len(), "{}: one object for each job", case.name);
    end
}

fn calls_of(case: &Case, processes: usize) -> usize {
    let rig = (case.world)();
    let faulty = Faulty::new(&rig, []);
    for _ in 0..processes {
        case.act.once(&faulty);
    }
    faulty.calls().len()
}

/// WK-14, DQ-02, DQ-06, SC-02: one fault, anywhere.
#[tokio::test]
async fn any_one_fault_leads_to_the_same_end() {
    for case in cases() {
        let without = end_with(&case, &[]).await;
        for k in 0..calls_of(&case, 1) {
            for fault in Fault::ALL {
                let with = end_with(&case, &[(k, fault)]).await;
                assert_eq!(with, without, "{}: call {k} {fault:?}", case.name);
            }
        }
    }
}

/// WK-14, DQ-02, DQ-06, SC-02: two faults, anywhere in the first try and in the second.
#[tokio::test]
async fn any_two_faults_lead_to_the_same_end() {
    for case in cases() {
        let without = end_with(&case, &[]).await;
        let calls = calls_of(&case, 1);
        for k in 0..calls {
            for second in k + 1..=k + calls {
                for faults in [[Fault::FailAfter; 2], [Fault::CrashAfter, Fault::FailBefore]] {
                    let plan = [(k, faults[0]), (second, faults[1])];
                    let with = end_with(&case, &plan).await;
                    assert_eq!(with, without, "{}: {plan:?}", case.name);
                }
            }
        }
    }
}

/// DQ-06, WK-14: a whole second process in the middle of the first, at once or after the first
/// slept longer than any of its claims last.
#[tokio::test]
async fn a_second_process_at_any_moment_leads_to_the_same_end() {
    for case in cases() {
        let without = end_with(&case, &[]).await;
        let calls = {
            let rig = (case.world)();
            let dry = Faulty::new(&rig, []);
            case.act.once(&dry);
            dry.calls()
        };
        for lag in [Duration::ZERO, 20 * MINUTE] {
            for (k, call) in calls.iter().enumerate() {
                // Whoever falls asleep after the last look at the clock and before the POST
                // cannot be kept from making it: the platform takes no token that expires.
                if *call == "submit" && !lag.is_zero() {
                    continue;
                }
                let rig = (case.world)();
                let second = || {
                    rig.clock.advance(lag);
                    case.act.once(&Faulty::new(&rig, []));
                };
                case.act.once(&Faulty::with_visitor(&rig, k, second));
                heal(&rig, case.act).await;
                assert_eq!(end(&rig), without, "{}: {lag:?} before {call} ({k})", case.name);
            }
        }
    }
}
