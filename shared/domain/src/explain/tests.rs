use std::time::Duration;

use super::*;
use crate::entry::{Announcement, Cause, Counters, DeadReason, Link, State, StoredObject};
use crate::envelope::EventType;
use crate::intent::Submission;
use crate::job::{JobId, Kind};
use crate::ports::DeliveryStatus;
use crate::post::Post;
use crate::request::{FetchOptions, JobRequest};
use crate::time::after;

fn at(seconds: u64) -> Timestamp {
    let start: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
    after(start, Duration::from_secs(seconds))
}

fn key() -> JobKey {
    JobKey::new(Kind::Extract, JobId::parse("job-1").unwrap())
}

fn received(second: u64) -> Entry {
    let word = Announcement {
        cause: Cause::Delivery,
        delivery_id: Some("delivery-7".to_owned()),
        token: "t".to_owned(),
    };
    Entry::announced(&key(), &word, at(second), &Limits::default())
}

fn stored(second: u64) -> Entry {
    let result = StoredObject {
        key: "kind=extract/dt=2026-07-01/job-1.json.gz".to_owned(),
        bytes: 120,
        sha256: "ab".to_owned(),
        empty: false,
        unsettled: false,
    };
    received(0).settled(State::Stored { result }, Cause::Work, at(second), &Limits::default())
}

fn dead(reason: DeadReason) -> Entry {
    let state = State::Dead { reason, error: None, result: None };
    received(0).settled(state, Cause::Work, at(9), &Limits::default())
}

fn logged(second: u64, status: DeliveryStatus, http_status: Option<u16>) -> Logged {
    Logged {
        webhook: WebhookId::parse("webhook-1").unwrap(),
        delivery: Delivery {
            id: format!("delivery-{second}"),
            event_type: EventType::ExtractCompleted,
            job_id: Some(key().job_id),
            attempt_number: Some(1),
            status,
            http_status,
            delivered_at: Some(at(second)),
            created_at: None,
        },
    }
}

fn job(status: JobStatus) -> Sight {
    Sight::Job { status, created_at: Some(at(0)), error: None }
}

/// What is known, beside what a test changes.
struct Facts {
    now: Timestamp,
    limits: Limits,
    key: JobKey,
    entry: Option<Entry>,
    intent: Option<Intent>,
    sight: Sight,
    deliveries: Vec<Logged>,
    object: ObjectSight,
    pause: Option<Pause>,
}

impl Facts {
    fn of(entry: Option<Entry>) -> Self {
        Self {
            now: at(10),
            limits: Limits::default(),
            key: key(),
            entry,
            intent: None,
            sight: Sight::NotAsked,
            deliveries: Vec::new(),
            object: ObjectSight::NotAsked,
            pause: None,
        }
    }

    fn explained(&self) -> Explanation {
        explain(Known {
            now: self.now,
            limits: &self.limits,
            key: &self.key,
            entry: self.entry.as_ref(),
            intent: self.intent.as_ref(),
            sight: &self.sight,
            deliveries: &self.deliveries,
            object: &self.object,
            pause: self.pause.as_ref(),
        })
    }
}

fn says(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "{text:?} lacks {wanted:?}");
}

#[test]
fn moments_of_all_sources_stand_in_one_order() {
    let mut facts = Facts::of(Some(stored(9)));
    facts.sight = job(JobStatus::Completed);
    facts.deliveries = vec![
        logged(6, DeliveryStatus::Success, Some(200)),
        logged(5, DeliveryStatus::Failed, Some(503)),
    ];
    let told = facts.explained();
    let texts: Vec<_> = told.timeline.iter().map(|moment| moment.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "job created",
            "received: a webhook was delivered (delivery-7)",
            "delivery attempt 1 by webhook webhook-1: failed, answered 503",
            "delivery attempt 1 by webhook webhook-1: success, answered 200",
            "received -> stored: a worker looked at it",
        ]
    );
    assert!(told.timeline.is_sorted());
    says(&told.present, "Stored as kind=extract/dt=2026-07-01/job-1.json.gz, 120 bytes.");
    assert_eq!(told.remarks, Vec::<String>::new());
    assert_eq!(told.next_at, Some(after(at(9), facts.limits.retention)));
}

#[test]
fn each_state_says_what_comes_next_and_when() {
    let limits = Limits::default();
    let expected = Entry::expected(key(), None, Cause::Submit, at(0), &limits);
    let told = Facts::of(Some(expected)).explained();
    says(&told.present, "nobody has said yet");
    assert_eq!(told.next_at, Some(after(at(0), limits.announce_grace)));

    let told = Facts::of(Some(received(0))).explained();
    says(&told.next, "A worker takes its task");
    assert_eq!(told.next_at, Some(after(at(0), limits.enqueue_grace)));

    let counters = Counters { missing: 2, put_offs: 3, ..Counters::default() };
    let told = Facts::of(Some(received(0).put_off(at(70), counters, &limits))).explained();
    says(&told.present, "2 answers of 404 in a row");
    says(&told.present, "3 times put off");
    assert_eq!((told.next.as_str(), told.next_at), ("A worker looks again.", Some(at(70))));

    let told = Facts::of(Some(received(0).unsent())).explained();
    says(&told.next, "none is on its way");

    let post = Post::first("token".to_owned(), at(1), &limits);
    let due_at = post.recover_from(&limits);
    let told = Facts::of(Some(received(0).resubmitting(post.clone(), due_at, at(1)))).explained();
    says(&told.present, "POST number 1");
    says(&told.next, "before anybody pays again");
    assert_eq!(told.next_at, Some(due_at));
    let searched = received(0).resubmitting(post.searched(), due_at, at(1));
    says(&Facts::of(Some(searched)).explained().next, "1 searches so far");

    let by = JobId::parse("job-2").unwrap();
    let replaced = received(0).settled(State::Superseded { by }, Cause::Work, at(9), &limits);
    says(&Facts::of(Some(replaced)).explained().next, "gleaner explain job-2");
}

/// A follow-up is no job of the platform's, and says whose items it asks for.
#[test]
fn a_follow_up_is_told_as_what_it_is() {
    let parent = JobKey::new(Kind::Batch, JobId::parse("parent-1").unwrap());
    let entry = Entry { follow_up: Some(parent), ..received(0) };
    says(&Facts::of(Some(entry)).explained().present, "failed items of batch parent-1");
}

#[test]
fn each_reason_of_death_is_told_in_words_of_its_own() {
    let mut told: Vec<_> = DeadReason::ALL
        .into_iter()
        .map(|reason| {
            let present = Facts::of(Some(dead(reason))).explained().present;
            says(&present, &format!("Dead ({reason}): "));
            present.split_once(": ").unwrap().1.to_owned()
        })
        .collect();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), DeadReason::ALL.len());
}

#[test]
fn an_unknown_job_is_told_apart_from_a_forgotten_one() {
    let mut facts = Facts::of(None);
    assert_eq!(facts.explained().present, "The ledger does not know this job.");
    facts.sight = Sight::Missing;
    says(&facts.explained().present, "Neither the ledger nor the platform");
    facts.sight = job(JobStatus::Completed);
    says(&facts.explained().present, "the platform says that it is completed");
    says(&facts.explained().next, "gleaner reconcile");
    facts.now = after(at(0), facts.limits.retention);
    says(&facts.explained().next, "older than the ledger's memory");
    // A row that expired counts as absent, and its history is still told.
    facts.entry = Some(stored(0));
    facts.sight = Sight::NotAsked;
    let told = facts.explained();
    assert_eq!(told.present, "The ledger does not know this job.");
    assert!(!told.timeline.is_empty());
}

#[test]
fn a_pause_moves_what_comes_next() {
    let mut facts = Facts::of(Some(received(0)));
    facts.pause =
        Some(Pause { until: at(500), why: "payment_required".to_owned(), unproved: true });
    let told = facts.explained();
    assert_eq!(told.next_at, Some(at(500)));
    says(&told.remarks[0], "payment_required");
    facts.entry = Some(stored(9));
    assert_eq!(facts.explained().remarks, Vec::<String>::new());
}

#[test]
fn what_does_not_fit_together_is_remarked() {
    let remark = |facts: &Facts, wanted: &str| {
        let remarks = facts.explained().remarks;
        assert!(remarks.iter().any(|remark| remark.contains(wanted)), "{remarks:?}: {wanted}");
    };
    let mut facts = Facts::of(Some(stored(9)));
    facts.object = ObjectSight::Missing;
    remark(&facts, "not where the row says");
    facts.object = ObjectSight::Differs;
    remark(&facts, "size or checksum differs");
    facts.object = ObjectSight::Failed("it is away".to_owned());
    remark(&facts, "it is away");
    facts.object = ObjectSight::Whole;
    assert_eq!(facts.explained().remarks, Vec::<String>::new());

    let mut facts = Facts::of(Some(received(0)));
    facts.now = at(3_600);
    remark(&facts, "overdue");
    facts.sight = Sight::Missing;
    remark(&facts, "after a few looks it counts as gone");
    facts.sight = Sight::Failed("time-out".to_owned());
    remark(&facts, "time-out");

    let limits = Limits::default();
    let mut facts = Facts::of(Some(Entry::expected(key(), None, Cause::Submit, at(0), &limits)));
    facts.sight = job(JobStatus::Failed);
    remark(&facts, "nobody has announced it");
    facts.sight = job(JobStatus::Processing);
    assert_eq!(facts.explained().remarks, Vec::<String>::new());

    let mut facts = Facts::of(Some(dead(DeadReason::Gone)));
    facts.sight = job(JobStatus::Completed);
    remark(&facts, "brings it back");
}

#[test]
fn deliveries_in_vain_are_explained_unless_one_was_taken() {
    let mut facts = Facts::of(Some(received(0)));
    for (status, wanted) in [
        (401, "the signing secret here is not the webhook's"),
        (413, "larger than the receiver may take"),
        (404, "the webhook's URL is not the receiver's"),
        (503, "see the receiver's log"),
    ] {
        facts.deliveries = vec![logged(5, DeliveryStatus::Abandoned, Some(status))];
        let remarks = facts.explained().remarks;
        assert!(remarks[0].contains(wanted), "{remarks:?}");
    }
    facts.deliveries.push(logged(6, DeliveryStatus::Success, Some(200)));
    assert_eq!(facts.explained().remarks, Vec::<String>::new());
    facts.deliveries = vec![logged(5, DeliveryStatus::Pending, None)];
    assert_eq!(facts.explained().remarks, Vec::<String>::new());
}

#[test]
fn an_open_submission_begins_the_story() {
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let submission = Submission { run: "run".to_owned(), position: 0, request, reference: None };
    let intent = Intent::open(&submission, "token".to_owned(), at(1), &Limits::default());
    let link: Link = intent.link(&key().job_id);
    let mut facts = Facts::of(received(2).linked(&link));
    facts.intent = Some(intent);
    let told = facts.explained();
    assert_eq!(told.timeline[0].source, Source::Intent);
    assert_eq!(told.timeline[0].text, "POST number 1 intended");
}
