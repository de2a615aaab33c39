//! Ledgers of a size: filled through the product's own store, with rows as the product writes
//! them.

use std::time::Duration;

use anyhow::Result;
use domain::entry::{Announced, Announcement, Cause, DeadReason, Entry, State};
use domain::intent::{Intent, IntentState, Submission};
use domain::job::{JobError, JobKey, Kind};
use domain::limits::Limits;
use domain::place::{extract_key, manifest_key};
use domain::ports::{
    Clock as _, Entries as _, Expected, IntentExpected, Intents as _, Random as _,
};
use domain::post::Post;
use domain::request::{FetchOptions, JobRequest};
use domain::time::{Timestamp, after, before, utc_date};
use embedded::SqliteStore;
use futures_util::future::try_join_all;

use super::ports::{Seeded, SetClock, object};

/// Writes that wait for one commit together.
const GROUP: usize = 512;
/// Rows that are overdue at any moment of the measurements.
pub(super) const OVERDUE: usize = 1_000;
/// Paid POSTs whose answer is open. It follows how much is submitted at once, not how much ever
/// was.
const UNRESOLVED: usize = 20;
/// Submissions of one run.
const RUN_LENGTH: usize = 1_000;
/// Of 10,000 rows, those that are stored; the rest is dead, superseded and open.
const STORED: u64 = 9_400;
const DEAD: u64 = 300;
const SUPERSEDED: u64 = 200;
/// How long ago the oldest row was first seen: less than the retention of 90 days, so that nothing
/// expires during the measurements.
const OLDEST: Duration = Duration::from_hours(80 * 24);

/// The ref of the n-th row.
pub(super) fn reference(number: usize) -> String {
    format!("order-{number}")
}

/// The run of the n-th row.
pub(super) fn run(number: usize) -> String {
    format!("run-{:05}", number / RUN_LENGTH)
}

/// Whether the n-th row was submitted with a ref.
const fn has_reference(number: usize) -> bool {
    number % 10 < 3
}

/// Whether the n-th row was submitted from here.
const fn is_linked(number: usize) -> bool {
    number % 10 < 6
}

/// The last ref that was given.
pub(super) fn last_reference(size: usize) -> Option<String> {
    let given = size.saturating_sub(OVERDUE + UNRESOLVED);
    (0..given).rev().find(|number| has_reference(*number)).map(reference)
}

/// Fills an empty ledger.
///
/// The indexes by expiry are taken off meanwhile and made again at the end: the rows expire in no
/// order, so that keeping them up would cost a third of the time. The others stay, so that they
/// are as full as a long life leaves them.
pub(super) async fn fill(store: &SqliteStore, clock: &SetClock, size: usize) -> Result<()> {
    let raw = rusqlite::Connection::open(store.path())?;
    let taken_off = raw
        .prepare("SELECT name, sql FROM sqlite_schema WHERE name GLOB '*_by_expiry'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    for (name, _) in &taken_off {
        raw.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    write_rows(store, clock, size).await?;
    for (_, sql) in &taken_off {
        raw.execute_batch(sql)?;
    }
    Ok(())
}

async fn write_rows(store: &SqliteStore, clock: &SetClock, size: usize) -> Result<()> {
    let maker = Maker { random: Seeded::new(3), limits: Limits::default(), now: clock.now() };
    let mut made = 0;
    while made < size {
        let end = size.min(made + GROUP);
        let rows = (made..end).map(|number| maker.row(number, size)).collect::<Result<Vec<_>>>()?;
        let now = maker.now;
        try_join_all(rows.iter().map(|(entry, intent)| async move {
            store.write(entry, Expected::Absent(now)).await?;
            if let Some(intent) = intent {
                store.write_intent(intent, IntentExpected::Absent(now)).await?;
            }
            Ok::<_, domain::ports::PortError>(())
        }))
        .await?;
        made = end;
    }
    Ok(())
}

struct Maker {
    random: Seeded,
    limits: Limits,
    now: Timestamp,
}

impl Maker {
    /// The n-th row, and its submission if it was submitted from here.
    fn row(&self, number: usize, size: usize) -> Result<(Entry, Option<Intent>)> {
        let key = JobKey::new(self.kind(), self.random.job_id()?);
        let age = Duration::from_secs(self.random.below(OLDEST.as_secs()));
        let at = before(self.now, age);
        // The first rows after the linked ones of each ten are the overdue ones and the like.
        let left = size - number;
        if left <= OVERDUE {
            return Ok((self.overdue(&key, left)?, None));
        }
        if left <= OVERDUE + UNRESOLVED {
            return self.unresolved(key, number);
        }
        let intent = is_linked(number).then(|| self.accepted(&key, number, at)).transpose()?;
        let link = intent.as_ref().map(|intent| intent.link(&key.job_id));
        let expected = Entry::expected(key.clone(), link, Cause::Submit, at, &self.limits);
        let before = intent.is_some().then_some(&expected);
        let received = self.received(before, &key, after(at, Duration::from_secs(40)))?;
        let draw = self.random.below(10_000);
        let entry = match draw {
            0..STORED => self.settled(&received, at, None),
            STORED.. if draw < STORED + DEAD => self.settled(&received, at, Some(self.reason())),
            _ if draw < STORED + DEAD + SUPERSEDED => self.superseded(&received, at)?,
            _ => {
                // Nothing but the overdue rows becomes due meanwhile.
                let wait = Duration::from_hours(12 + self.random.below(36));
                let mut open = if draw.is_multiple_of(2) { expected } else { received };
                open.due_at = Some(after(self.now, wait));
                open
            }
        };
        Ok((entry, intent))
    }

    fn kind(&self) -> Kind {
        match self.random.below(100) {
            0..90 => Kind::Extract,
            90..96 => Kind::Batch,
            _ => Kind::Crawl,
        }
    }

    fn reason(&self) -> DeadReason {
        match self.random.below(10) {
            0..5 => DeadReason::Failed,
            5..7 => DeadReason::ResubmitsExhausted,
            7 => DeadReason::Gone,
            8 => DeadReason::UnlinkedFailure,
            _ => DeadReason::Cancelled,
        }
    }

    fn received(&self, row: Option<&Entry>, key: &JobKey, at: Timestamp) -> Result<Entry> {
        let announcement = Announcement {
            cause: Cause::Delivery,
            delivery_id: Some(format!("evt_{}", self.random.token())),
            token: self.random.token(),
        };
        match Entry::announce(row, key, &announcement, at, &self.limits) {
            Announced::Write(entry) => Ok(*entry),
            _ => anyhow::bail!("a row was not announced"),
        }
    }

    fn settled(&self, received: &Entry, at: Timestamp, reason: Option<DeadReason>) -> Entry {
        let (dt, job_id) = (utc_date(at), &received.key.job_id);
        let dated = received.dated(dt, Some(at)).unwrap_or_else(|| received.clone());
        let key = match received.key.kind {
            Kind::Extract => extract_key(job_id, dt),
            kind => manifest_key(kind, job_id, dt),
        };
        let state = match reason {
            None => State::Stored { result: object(&key) },
            Some(reason) => {
                let error = Some(JobError::new("TARGET_ERROR", "the target answered 503", true));
                State::Dead { reason, error, result: None }
            }
        };
        dated.settled(state, Cause::Work, after(at, Duration::from_secs(41)), &self.limits)
    }

    fn superseded(&self, received: &Entry, at: Timestamp) -> Result<Entry> {
        let state = State::Superseded { by: self.random.job_id()? };
        Ok(received.settled(state, Cause::Work, after(at, Duration::from_secs(41)), &self.limits))
    }

    fn submission(kind: Kind, number: usize) -> Result<Submission> {
        let (url, options) = (
            format!("https://shop.example.com/products/{number}?view=full"),
            FetchOptions::default(),
        );
        let request = match kind {
            Kind::Extract => JobRequest::extract(&url, options)?,
            Kind::Batch => JobRequest::batch([url.as_str()], options)?,
            Kind::Crawl => JobRequest::crawl(&url, options, 1, 10)?,
        };
        Ok(Submission {
            run: run(number),
            position: u64::try_from(number % RUN_LENGTH)?,
            request,
            reference: has_reference(number).then(|| reference(number)),
        })
    }

    fn accepted(&self, key: &JobKey, number: usize, at: Timestamp) -> Result<Intent> {
        let submission = Self::submission(key.kind, number)?;
        let open = Intent::open(&submission, self.random.token(), at, &self.limits);
        let state = IntentState::Accepted { job_id: key.job_id.clone() };
        Ok(open.moved(state, at, &self.limits))
    }

    /// A row whose task was lost, `left` seconds ago.
    fn overdue(&self, key: &JobKey, left: usize) -> Result<Entry> {
        let mut row = self.received(None, key, self.now)?;
        row.due_at = Some(before(self.now, Duration::from_secs(u64::try_from(left)?)));
        Ok(row)
    }

    /// A row that is being submitted again, beside a submission that has no answer yet. Both are
    /// younger than any job that is worked.
    fn unresolved(&self, key: JobKey, number: usize) -> Result<(Entry, Option<Intent>)> {
        let later = after(self.now, Duration::from_hours(24));
        let post = Post::first(self.random.token(), later, &self.limits);
        let row = Entry::expected(key, None, Cause::Submit, self.now, &self.limits);
        let row = row.resubmitting(post, after(later, Duration::from_hours(1)), self.now);
        let submission = Self::submission(Kind::Extract, number)?;
        let open = Intent::open(&submission, self.random.token(), later, &self.limits);
        Ok((row, Some(open)))
    }
}
