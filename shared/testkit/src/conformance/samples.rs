//! Rows to try ledgers with.

use std::time::Duration;

use domain::entry::{
    Cause, DeadReason, Entry, Link, Note, State, StateName, StoredObject, Transition,
};
use domain::intent::{Intent, IntentState, Submission};
use domain::job::{JobError, JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{Entries, Expected, IntentExpected, IntentWritten, Intents, Written};
use domain::post::Post;
use domain::request::{FetchOptions, Format, JobRequest};
use domain::run::{Part, Run};
use domain::time::{Timestamp, after};

/// Ids that differ in what databases, file systems and languages like to forget.
pub(super) const ODD_IDS: [&str; 16] = [
    "a", "A", "a.", ".a", "a_b", "a%b", "a%2Fb", "*", "'", "\"", "\\", "--", "#", "null", "0", "~",
];

/// The instant at which the tests begin.
pub(super) fn start() -> Timestamp {
    Timestamp::constant(1_796_040_000, 0)
}

pub(super) fn later(seconds: u64) -> Timestamp {
    after(start(), Duration::from_secs(seconds))
}

pub(super) fn key(id: &str) -> JobKey {
    key_of(Kind::Extract, id)
}

pub(super) fn key_of(kind: Kind, id: &str) -> JobKey {
    JobKey::new(kind, JobId::parse(id).unwrap())
}

/// A row that the sweep looks at `due` seconds after the start.
pub(super) fn open(key: JobKey, due: u64) -> Entry {
    let mut entry = Entry::expected(key, None, Cause::Submit, start(), &Limits::default());
    entry.due_at = Some(later(due));
    entry
}

/// The row, given up.
pub(super) fn dead(entry: &Entry, reason: DeadReason) -> Entry {
    let state = State::Dead { reason, error: None, result: None };
    entry.settled(state, Cause::Work, start(), &Limits::default())
}

/// The row before a paid POST.
pub(super) fn resubmitting(entry: &Entry) -> Entry {
    let post = Post::first("token".to_owned(), start(), &Limits::default());
    entry.resubmitting(post, later(60), start())
}

/// A row with every field in use.
pub(super) fn full(key: JobKey) -> Entry {
    let part =
        Part { key: "kind=crawl/a".to_owned(), items: 50, bytes: 1 << 53, sha256: "0f".repeat(32) };
    let options = FetchOptions {
        formats: vec![Format::Html, Format::Markdown],
        render_js: true,
        proxy_country: Some("DE".to_owned()),
    };
    let mut entry = open(key.clone(), 5);
    entry.generation = u32::MAX;
    entry.version = (1 << 53) + 1;
    entry.job_created_at = Some("2026-11-30T11:59:59.123456789Z".parse().unwrap());
    entry.dt = Some("2026-11-30".parse().unwrap());
    entry.not_before = Some(later(1));
    entry.enqueued_at = Some(start());
    entry.token = Some("t".to_owned());
    entry.counters.put_offs = 7;
    entry.counters.settling_since = Some(later(2));
    entry.link = Some(Link {
        submission: "s".repeat(64),
        lineage: key.job_id,
        attempt: 2,
        base: 1,
        request: JobRequest::extract("https://example.com/?q=\u{e9}'\"\\", options).ok(),
        reference: Some("r\u{e9}f \u{1f980} \u{0} \"'\\ \u{2028}".to_owned()),
    });
    entry.run = Some(Run {
        id: "r".to_owned(),
        number: 1,
        holder: "h".to_owned(),
        held_until: later(300),
        page_size: 50,
        next_page: 2,
        parts: vec![part],
    });
    entry.history.push(Transition {
        at: later(3),
        from: Some(StateName::Expected),
        to: StateName::Received,
        cause: Cause::Delivery,
        delivery_id: Some("d".to_owned()),
        note: Note::new(Some("me"), Some("r\u{e9}f \u{1f980} \"'\\")),
    });
    entry
}

/// One row per state; the versions are 1 or 2.
pub(super) fn one_per_state() -> Vec<Entry> {
    let stored = StoredObject {
        key: "kind=extract/dt=2026-11-30/a.json.gz".to_owned(),
        bytes: 20,
        sha256: "0f".repeat(32),
        empty: true,
        unsettled: true,
    };
    let states = [
        State::Stored { result: stored.clone() },
        State::Superseded { by: JobId::parse("next").unwrap() },
        State::Dead {
            reason: DeadReason::Failed,
            error: Some(JobError::new("code", "mess\u{e4}ge", true)),
            result: Some(stored),
        },
    ];
    let mut received = open(key("received"), 5);
    received.state = State::Received;
    let mut entries =
        vec![open(key("expected"), 5), received, resubmitting(&open(key("resubmitting"), 5))];
    for state in states {
        let row = open(key(state.name().as_str()), 5);
        entries.push(row.settled(state, Cause::Work, start(), &Limits::default()));
    }
    entries
}

/// Writes a row where none is.
pub(super) async fn put(ledger: &(impl Entries + ?Sized), entry: &Entry) {
    let written = ledger.write(entry, Expected::Absent(start())).await.unwrap();
    assert_eq!(written, Written::Done, "{}", entry.key);
}

/// Writes a row over another.
pub(super) async fn put_over(ledger: &(impl Entries + ?Sized), before: &Entry, entry: &Entry) {
    let written = ledger.write(entry, Expected::As(before.seen())).await.unwrap();
    assert_eq!(written, Written::Done, "{}", entry.key);
}

/// Writes rows where none are.
pub(super) async fn put_all(ledger: &(impl Entries + ?Sized), entries: &[Entry]) {
    for entry in entries {
        put(ledger, entry).await;
    }
}

pub(super) fn extract_request(url: &str) -> JobRequest {
    JobRequest::extract(url, FetchOptions::default()).unwrap()
}

/// An open intent.
pub(super) fn intent(run: &str, position: u64, request: JobRequest) -> Intent {
    let submission =
        Submission { run: run.to_owned(), position, request, reference: Some("r\u{e9}f".into()) };
    Intent::open(&submission, "token".to_owned(), start(), &Limits::default())
}

/// An open intent for one URL.
pub(super) fn plain_intent(run: &str, position: u64) -> Intent {
    intent(run, position, extract_request("https://example.com/"))
}

/// The intent after its POST was accepted.
pub(super) fn accepted(intent: &Intent) -> Intent {
    let job_id = JobId::parse("job").unwrap();
    intent.moved(IntentState::Accepted { job_id }, start(), &Limits::default())
}

/// Writes an intent where none is.
pub(super) async fn put_intent(ledger: &(impl Intents + ?Sized), intent: &Intent) {
    let written = ledger.write_intent(intent, IntentExpected::Absent(start())).await.unwrap();
    assert_eq!(written, IntentWritten::Done, "{}", intent.id);
}
