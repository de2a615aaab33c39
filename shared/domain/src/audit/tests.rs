use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::entry::{Announcement, Cause, DeadReason, Entry, State};
use crate::envelope::EventType;
use crate::intent::{Intent, Submission};
use crate::job::{JobId, JobKey, JobStatus};
use crate::looks::LookRate;
use crate::pause::Pauses;
use crate::place::extract_key;
use crate::ports::{
    ApiErrorKind, Clock as _, Counted, Delivery, DeliveryStatus, Entries as _, Expected,
    IntentExpected, Intents as _, Listed, NewWebhook, PutOutcome, Results as _, Written,
};
use crate::request::{FetchOptions, JobRequest};
use crate::testing::{
    ManualClock, MemoryLedger, MemoryQueue, MemoryResults, MemoryWebhooks, ScriptedJobs,
    SeededRandom,
};
use crate::time::utc_date;

mod lists;
mod objects;
mod outside;

const DAY: Duration = Duration::from_hours(24);

fn start() -> Timestamp {
    "2026-07-01T00:00:00Z".parse().unwrap()
}

fn at(minutes: u64) -> Timestamp {
    after(start(), Duration::from_mins(minutes))
}

fn key(name: &str) -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse(name).unwrap())
}

/// The platform's own count, as it is told, and from when it was asked for last.
struct Told {
    answer: Mutex<Result<Counted, ApiError>>,
    asked: Mutex<Option<Timestamp>>,
}

#[async_trait::async_trait]
impl Statistics for Told {
    async fn counted_since(&self, from: Timestamp, _within: Duration) -> Result<Counted, ApiError> {
        *self.asked.lock().unwrap() = Some(from);
        self.answer.lock().unwrap().clone()
    }
}

struct Rig {
    clock: Arc<ManualClock>,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    jobs: ScriptedJobs,
    results: MemoryResults,
    webhooks: MemoryWebhooks,
    statistics: Told,
    random: SeededRandom,
    limits: Limits,
    pauses: Pauses,
    looks: LookRate,
}

impl Rig {
    /// The morning after a day of jobs.
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(after(start(), DAY + Duration::from_hours(1))));
        Self {
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(clock.clone()),
            jobs: ScriptedJobs::new(clock.clone()),
            results: MemoryResults::new(),
            webhooks: MemoryWebhooks::new(clock.clone()),
            statistics: Told {
                answer: Mutex::new(Ok(Counted { succeeded: 1_000, ..Counted::default() })),
                asked: Mutex::new(None),
            },
            random: SeededRandom::new(1),
            limits: Limits::default(),
            pauses: Pauses::default(),
            looks: LookRate::default(),
            clock,
        }
    }

    fn ports(&self) -> Ports<'_> {
        Ports {
            ledger: &self.ledger,
            queue: &self.queue,
            jobs: &self.jobs,
            results: &self.results,
            clock: &*self.clock,
            random: &self.random,
            limits: &self.limits,
            pauses: &self.pauses,
            looks: &self.looks,
        }
    }

    async fn audit(&self) -> Sheet {
        self.audit_of(Period { from: start(), to: after(start(), DAY) }).await
    }

    async fn audit_of(&self, period: Period) -> Sheet {
        audit(self.sources(), period).await.unwrap()
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            ports: self.ports(),
            webhooks: &self.webhooks,
            statistics: &self.statistics,
            deliveries: true,
            objects: true,
            left: Duration::from_mins(15),
        }
    }

    /// The platform lists a job.
    fn list(&self, name: &str, minute: u64, status: JobStatus) {
        let job = Listed {
            job_id: key(name).job_id,
            status,
            created_at: Some(at(minute)),
            url: None,
            accepted_urls: None,
            formats: None,
            render_js: None,
        };
        self.jobs.list_job(Kind::Extract, job);
    }

    async fn write(&self, entry: Entry) {
        let absent = Expected::Absent(self.clock.now());
        assert_eq!(self.ledger.write(&entry, absent).await.unwrap(), Written::Done);
    }

    fn received(&self, name: &str, minute: u64) -> Entry {
        let word =
            Announcement { cause: Cause::Delivery, delivery_id: None, token: "t".to_owned() };
        let entry = Entry::announced(&key(name), &word, at(minute), &self.limits);
        entry.dated(utc_date(at(minute)), Some(at(minute))).unwrap()
    }

    /// A job that went all the way.
    async fn stored(&self, name: &str, minute: u64) -> String {
        self.list(name, minute, JobStatus::Completed);
        let object = extract_key(&key(name).job_id, utc_date(at(minute)));
        let put = self.results.put_new(&object, name.as_bytes()).await.unwrap();
        let PutOutcome::Now(result) = put else { panic!("{put:?}") };
        let state = State::Stored { result };
        self.write(self.received(name, minute).settled(
            state,
            Cause::Work,
            at(minute),
            &self.limits,
        ))
        .await;
        object
    }

    async fn dead(&self, name: &str, reason: DeadReason, status: JobStatus) {
        self.list(name, 5, status);
        let state = State::Dead { reason, error: None, result: None };
        self.write(self.received(name, 5).settled(state, Cause::Work, at(6), &self.limits)).await;
    }
}

fn found(sheet: &Sheet) -> Vec<(Discrepancy, u64)> {
    sheet.discrepancies.iter().map(|(discrepancy, count)| (*discrepancy, *count)).collect()
}

#[tokio::test]
async fn books_that_agree_balance() {
    let rig = Rig::new();
    rig.stored("job-1", 1).await;
    rig.stored("job-2", 2).await;
    rig.dead("job-3", DeadReason::Failed, JobStatus::Failed).await;
    let sheet = rig.audit().await;
    assert!(sheet.balances(), "{sheet:?}");
    assert_eq!(sheet.unproved, Vec::new());
    let extract = &sheet.kinds[&Kind::Extract];
    assert_eq!((extract.listed, extract.unknown, extract.unlisted), (3, 0, 0));
    assert_eq!(extract.statuses["completed"], 2);
    assert_eq!(extract.ledger.values().sum::<u64>() + extract.unknown, extract.listed);
    assert_eq!((sheet.objects.named, sheet.objects.whole), (2, 2));
}

#[tokio::test]
async fn a_finished_job_that_nobody_announced_is_found() {
    let rig = Rig::new();
    for (name, status) in [
        ("job-1", JobStatus::Completed),
        ("job-2", JobStatus::Failed),
        ("job-3", JobStatus::Cancelled),
        ("job-4", JobStatus::Processing),
    ] {
        rig.list(name, 1, status);
    }
    let sheet = rig.audit().await;
    assert_eq!(found(&sheet), [(Discrepancy::UnknownJob, 3)]);
    assert_eq!(sheet.kinds[&Kind::Extract].unknown, 4);
    let facts = "the platform lists it as completed; the ledger does not know it";
    assert_eq!(sheet.findings[0].facts, facts);
    assert_eq!(sheet.findings[0].key, Some(key("job-1")));
}

/// A row that the period's rows lack, since it was made later, is no discrepancy.
#[tokio::test]
async fn what_looks_wrong_is_read_once_more() {
    let rig = Rig::new();
    rig.list("job-1", 24 * 60 - 1, JobStatus::Completed);
    let late = at(24 * 60 + 30);
    let word = Announcement { cause: Cause::Replay, delivery_id: None, token: "t".to_owned() };
    let row = Entry::announced(&key("job-1"), &word, late, &rig.limits);
    rig.write(row.put_off(after(late, DAY), row.counters.clone(), &rig.limits)).await;
    let sheet = rig.audit().await;
    assert!(sheet.balances(), "{sheet:?}");
    assert_eq!(sheet.kinds[&Kind::Extract].unknown, 0);
}

#[tokio::test]
async fn an_owed_row_is_a_discrepancy_once_it_is_overdue() {
    let rig = Rig::new();
    rig.list("job-1", 1, JobStatus::Completed);
    let row = rig.received("job-1", 1);
    let spacing = rig.limits.sweep_spacing;
    let late = before(rig.clock.now(), spacing);
    let put_off =
        |at| row.put_off(before(at, rig.limits.enqueue_grace), row.counters.clone(), &rig.limits);
    rig.write(put_off(late)).await;
    let sheet = rig.audit().await;
    assert_eq!(found(&sheet), [(Discrepancy::Overdue, 1)]);
    let facts = "the platform lists it as completed; the ledger has it as received, due ";
    assert!(sheet.findings[0].facts.starts_with(facts), "{sheet:?}");
    let seen = Expected::As(put_off(late).seen());
    let fresh = put_off(after(late, Duration::from_secs(1)));
    assert_eq!(rig.ledger.write(&fresh.unsent(), seen).await.unwrap(), Written::Done);
    assert!(rig.audit().await.balances());
}

#[tokio::test]
async fn states_that_contradict_the_platform_are_found() {
    for reason in DeadReason::ALL {
        let rig = Rig::new();
        rig.dead("job-1", reason, JobStatus::Completed).await;
        let reported = [
            DeadReason::TooLarge,
            DeadReason::CorruptObject,
            DeadReason::Inconsistent,
            DeadReason::Discarded,
        ];
        let sheet = rig.audit().await;
        assert_eq!(sheet.balances(), reported.contains(&reason), "{reason}: {sheet:?}");
    }
    for status in [JobStatus::Failed, JobStatus::Cancelled, JobStatus::Processing] {
        let rig = Rig::new();
        rig.stored("job-1", 1).await;
        rig.list("job-1", 1, status);
        assert_eq!(found(&rig.audit().await), [(Discrepancy::StateDiffers, 1)]);
    }
}

#[tokio::test]
async fn a_submission_that_nobody_recovers_is_found() {
    let rig = Rig::new();
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let submission = Submission { run: "r".to_owned(), position: 3, request, reference: None };
    let intent = Intent::open(&submission, "token".to_owned(), at(1), &rig.limits);
    let absent = IntentExpected::Absent(at(1));
    rig.ledger.write_intent(&intent, absent).await.unwrap();
    let sheet = rig.audit().await;
    assert_eq!(found(&sheet), [(Discrepancy::OverdueSubmission, 1)]);
    assert_eq!(sheet.findings[0].facts, "position 3 of run r is open");
    assert_eq!(sheet.submissions["open"], 1);
}

/// What the ledger forgets, and what lists may not yet hold, is not called proved.
#[tokio::test]
async fn the_provable_part_is_told() {
    let rig = Rig::new();
    let now = rig.clock.now();
    let remembered = rig.limits.remembered_from(now);
    let settled = before(now, rig.limits.adoption_margin);
    let (long_ago, tomorrow) = (before(remembered, DAY), after(now, DAY));
    let sheet = rig.audit_of(Period { from: long_ago, to: tomorrow }).await;
    let unproved = [
        Unproved::Forgotten(Period { from: long_ago, to: remembered }),
        Unproved::TooFresh(Period { from: settled, to: tomorrow }),
    ];
    assert_eq!(sheet.unproved, unproved);
    assert_eq!(sheet.proved, Some(Period { from: remembered, to: settled }));
    assert_eq!(sheet.verdict(), Verdict::Balances);
    // Nothing of it at all: nothing is asked.
    rig.jobs.clear_calls();
    let sheet = rig.audit_of(Period { from: long_ago, to: before(remembered, DAY / 2) }).await;
    assert_eq!((sheet.unproved.len(), sheet.verdict()), (1, Verdict::NothingProved));
    assert_eq!((sheet.balances(), sheet.proved, &sheet.outside), (false, None, &None));
    assert_eq!(rig.jobs.calls(), Vec::new());
    let sheet = rig.audit_of(Period { from: settled, to: tomorrow }).await;
    assert_eq!((sheet.balances(), sheet.verdict()), (false, Verdict::NothingProved));
}

#[tokio::test]
async fn a_platform_that_cannot_be_asked_leaves_its_part_unproved() {
    let rig = Rig::new();
    rig.stored("job-1", 1).await;
    let refused = ApiError::new(ApiErrorKind::Denied, "the key may not do this");
    rig.jobs.fail_list(refused.clone());
    rig.webhooks.fail(refused);
    let sheet = rig.audit().await;
    assert_eq!((sheet.balances(), sheet.verdict()), (false, Verdict::Troubled));
    let troubles: Vec<_> = sheet.unproved.iter().map(|part| format!("{part:?}")).collect();
    assert_eq!(troubles.len(), 2, "{troubles:?}");
    assert!(troubles[0].contains("the list of extract jobs cannot be read"), "{troubles:?}");
    assert!(troubles[1].contains("the webhooks cannot be listed"), "{troubles:?}");
    // The row is there all the same.
    assert_eq!(sheet.kinds[&Kind::Extract].unlisted, 1);
}

/// A row that asks for failed items of a batch is no job that the platform should list.
#[tokio::test]
async fn a_follow_up_is_not_missed_in_the_lists() {
    let rig = Rig::new();
    let parent = JobKey::new(Kind::Batch, JobId::parse("batch-1").unwrap());
    let link = crate::follow_up::own_link(&parent, None);
    let key = crate::follow_up::key_of(&parent);
    let at = after(start(), Duration::from_mins(1));
    let row = Entry::follow_up(key, parent, link, at, &rig.limits);
    let by = JobId::parse("batch-2").unwrap();
    rig.ledger.place(&row.settled(State::Superseded { by }, Cause::Work, at, &rig.limits));
    let sheet = rig.audit().await;
    assert!(sheet.balances());
    assert_eq!(sheet.kinds.get(&Kind::Batch).map_or(0, |kind| kind.unlisted), 0);
}
