//! Rows as a damaged or foreign file may hold them: an error, never a panic, and never a reason not
//! to read the rows beside them.
//!
//! An input is the JSON of an entry, the JSON of an intent, and the columns (see [`Columns`]),
//! with a line `--` in between.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::entry::{Announcement, Cause, Entry};
use domain::intent::{Intent, IntentState};
use domain::job::{JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{
    Control as _, Due as _, Entries as _, EntryFilter, ErrorKind, Expected, Inspection as _,
    IntentExpected, IntentWritten, Intents as _, PortError, Queue as _, TaskSource as _, Written,
};
use domain::request::{FetchOptions, JobRequest};
use domain::task::Task;
use domain::testing::ManualClock;
use domain::time::Timestamp;
use embedded::{Settings, SqliteStore};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Pages after which a listing of three rows must have ended.
const PAGES_MAX: usize = 8;

pub(crate) fn check(input: &[u8]) {
    // Opening a file costs a hundred times what one input does.
    static RIG: OnceLock<Mutex<Rig>> = OnceLock::new();
    let rig = RIG.get_or_init(|| Mutex::new(Rig::new()));
    let rig = rig.lock().unwrap_or_else(PoisonError::into_inner);
    rig.clear();
    let [entry, intent, columns] = split(input);
    let columns = Columns::read(columns);
    rig.check_entry(entry, &columns);
    rig.check_intent(intent, &columns);
    rig.check_task(entry);
    rig.check_control(columns.name, columns.integers[1]);
}

fn split(input: &[u8]) -> [&[u8]; 3] {
    let mut parts = [&[][..]; 3];
    let mut rest = input;
    for part in &mut parts {
        let at = rest.windows(4).position(|four| four == b"\n--\n").unwrap_or(rest.len());
        (*part, rest) = rest.split_at(at);
        rest = rest.get(4..).unwrap_or_default();
    }
    parts
}

/// The columns beside the JSON: a line with the name, one with the state, and one with kind,
/// version, due and expiry.
struct Columns<'a> {
    name: &'a [u8],
    state: &'a [u8],
    integers: [i64; 4],
}

impl<'a> Columns<'a> {
    fn read(text: &'a [u8]) -> Self {
        let mut lines = text.splitn(3, |byte| *byte == b'\n');
        let name = lines.next().unwrap_or_default();
        let state = lines.next().unwrap_or_default();
        let rest = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let mut words = rest.split_whitespace().map(|word| word.parse().unwrap_or(0));
        Self { name, state, integers: [(); 4].map(|()| words.next().unwrap_or(0)) }
    }

    fn kind(&self) -> Option<Kind> {
        let place = usize::try_from(self.integers[0]).ok()?;
        Kind::ALL.get(place).copied()
    }

    /// The key under which the row can be asked for.
    fn key(&self) -> Option<JobKey> {
        let name = std::str::from_utf8(self.name).ok()?;
        let id = JobId::parse(name).ok().filter(|id| id.as_str() == name)?;
        Some(JobKey::new(self.kind()?, id))
    }
}

/// A store, and a connection that knows nothing of it.
struct Rig {
    runtime: Runtime,
    store: SqliteStore,
    stranger: Connection,
    _folder: TempDir,
}

impl Rig {
    fn new() -> Self {
        // Nothing here must outlive the process, so nothing waits for a disk where that can be had.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(folder).unwrap();
        let path = folder.path().join("gleaner.db");
        let clock = Arc::new(ManualClock::at(Timestamp::constant(1_796_000_000, 0)));
        let store = SqliteStore::open(&path, clock, Settings::default()).unwrap();
        let stranger = Connection::open(&path).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { runtime, store, stranger, _folder: folder }
    }

    fn clear(&self) {
        self.stranger
            .execute_batch(
                "DELETE FROM entries; DELETE FROM intents; DELETE FROM control; DELETE FROM tasks",
            )
            .unwrap();
    }

    fn check_entry(&self, json: &[u8], columns: &Columns<'_>) {
        let [kind, version, due_at, expires_at] = columns.integers;
        let good = good_entry();
        self.runtime.block_on(self.store.write(&good, Expected::Absent(now()))).unwrap();
        let inserted = self.stranger.execute(
            "INSERT INTO entries (kind, job_id, state, generation, version, due_at, expires_at, json) \
             VALUES (?1, CAST(?2 AS TEXT), CAST(?3 AS TEXT), 0, ?4, ?5, ?6, CAST(?7 AS TEXT)) \
             ON CONFLICT DO NOTHING",
            params![kind, columns.name, columns.state, version, due_at, expires_at, json],
        );
        if inserted.unwrap() == 0 {
            return;
        }
        let expected = self.check_load(json, columns);
        self.check_due(&good, expected.as_ref());
        self.check_listings(&good);
        self.check_announce(columns, expected.as_ref());
        self.runtime.block_on(self.store.remove_expired()).unwrap();
        if let Some(entry) = expected {
            self.check_entry_round_trip(&entry);
        }
    }

    /// The row is read exactly if its JSON is an entry of the columns' key.
    fn check_load(&self, json: &[u8], columns: &Columns<'_>) -> Option<Entry> {
        let key = columns.key()?;
        let expected = decoded::<Entry>(json).filter(|entry| entry.key == key);
        match (self.runtime.block_on(self.store.load(&key)), &expected) {
            (Ok(Some(found)), Some(expected)) => assert_eq!(found, *expected),
            (Err(error), None) => check_corrupt(&error),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
        expected
    }

    /// A row that does not decode is left out and counted, and does not stop the listing.
    fn check_due(&self, good: &Entry, expected: Option<&Entry>) {
        let mut cursor = None;
        let mut found = Vec::new();
        let mut unreadable = 0;
        for page in 0.. {
            assert!(page < PAGES_MAX, "the listing does not end");
            let due = self.store.list_due(Timestamp::MAX, cursor.as_ref(), 1);
            let page = self.runtime.block_on(due).unwrap();
            found.extend(page.items);
            unreadable += page.unreadable.len();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert!(found.contains(good), "the row beside it is lost");
        assert!(found.len() + unreadable <= 2, "a row is listed twice");
        if let Some(expected) = expected {
            let is_due = found.contains(expected);
            assert!(is_due || unreadable == 0, "a row that is read is not listed");
        }
    }

    fn check_listings(&self, good: &Entry) {
        let filter = EntryFilter::default();
        let page = self.runtime.block_on(self.store.list_entries(&filter, None, 10)).unwrap();
        assert_eq!(page.items.len() + page.unreadable.len(), 2);
        assert!(page.items.contains(good), "the row beside it is lost");
        if let Err(error) = self.runtime.block_on(self.store.count_entries()) {
            check_corrupt(&error);
        }
    }

    /// Word of a job whose row is damaged is an error, and leaves the row for somebody to look at.
    fn check_announce(&self, columns: &Columns<'_>, expected: Option<&Entry>) {
        let Some(key) = columns.key() else { return };
        let (cause, token) = (Cause::Delivery, "token".to_owned());
        let announcement = Announcement { cause, delivery_id: None, token };
        let limits = Limits::default();
        let announced = self.store.announce(&key, &announcement, now(), &limits);
        match (self.runtime.block_on(announced), expected) {
            (Ok(_), Some(_)) => {
                let row = self.runtime.block_on(self.store.load(&key)).unwrap().unwrap();
                assert_eq!(row.key, key);
            }
            (Ok(announced), None) => panic!("{announced:?} of a damaged row"),
            (Err(error), None) => check_corrupt(&error),
            // Too large to be written again, or of columns that say something else.
            (Err(error), Some(_)) => assert_ne!(error.kind, ErrorKind::Denied, "{error:?}"),
        }
    }

    fn check_entry_round_trip(&self, entry: &Entry) {
        self.clear();
        match self.runtime.block_on(self.store.write(entry, Expected::Absent(now()))) {
            Ok(written) => assert_eq!(written, Written::Done),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Invalid);
                return;
            }
        }
        let load = || self.runtime.block_on(self.store.load(&entry.key)).unwrap().unwrap();
        assert_eq!(load(), *entry);
        let again = self.store.write(entry, Expected::As(entry.seen()));
        assert_eq!(self.runtime.block_on(again).unwrap(), Written::Done);
        assert_eq!(load(), *entry);
    }

    fn check_intent(&self, json: &[u8], columns: &Columns<'_>) {
        self.clear();
        let good = good_intent();
        let absent = IntentExpected::Absent(now());
        self.runtime.block_on(self.store.write_intent(&good, absent)).unwrap();
        let [kind, version, due_at, expires_at] = columns.integers;
        let inserted = self.stranger.execute(
            "INSERT INTO intents (id, run, position, kind, state, version, due_at, expires_at, json) \
             VALUES (CAST(?1 AS TEXT), 'run', 0, ?2, CAST(?3 AS TEXT), ?4, ?5, ?6, \
             CAST(?7 AS TEXT)) ON CONFLICT DO NOTHING",
            params![columns.name, kind, columns.state, version, due_at, expires_at, json],
        );
        if inserted.unwrap() == 0 {
            return;
        }
        let expected =
            decoded::<Intent>(json).filter(|intent| intent.id.as_bytes() == columns.name);
        if let Ok(id) = std::str::from_utf8(columns.name) {
            match (self.runtime.block_on(self.store.load_intent(id)), &expected) {
                (Ok(Some(found)), Some(expected)) => assert_eq!(found, *expected),
                (Err(error), None) => check_corrupt(&error),
                (found, _) => panic!("{found:?}, not {expected:?}"),
            }
        }
        let due = self.store.list_due_intents(Timestamp::MAX, None, 10);
        let due = self.runtime.block_on(due).unwrap();
        assert!(due.items.contains(&good), "the row beside it is lost");
        if let Err(error) = self.runtime.block_on(self.store.list_intents(None, None, 10)) {
            check_corrupt(&error);
        }
        self.check_unresolved(json, columns, expected.as_ref());
        if let Some(intent) = expected {
            self.clear();
            match self.runtime.block_on(self.store.write_intent(&intent, absent)) {
                Ok(written) => assert_eq!(written, IntentWritten::Done),
                Err(error) => assert_eq!(error.kind, ErrorKind::Invalid),
            }
        }
    }

    /// Money is at stake: a row that does not decode counts.
    fn check_unresolved(&self, json: &[u8], columns: &Columns<'_>, expected: Option<&Intent>) {
        // The good row would count.
        self.stranger.execute("DELETE FROM intents WHERE run = 'good'", []).unwrap();
        let Some(kind) = columns.kind() else { return };
        let unresolved = self.store.has_unresolved_post(kind, now());
        let counts = self.runtime.block_on(unresolved).unwrap();
        if columns.state != b"open" {
            assert!(!counts);
        } else if serde_json::from_slice::<serde::de::IgnoredAny>(json).is_err() {
            assert!(counts, "what is no JSON is not counted");
        } else if let Some(Intent { state: IntentState::Open { post }, .. }) = expected {
            let is_earlier = post.intended_at.as_second() <= now().as_second();
            assert_eq!(counts, is_earlier, "intended at {}", post.intended_at);
        }
    }

    /// A message that is no task is dropped, and does not stop the queue.
    fn check_task(&self, body: &[u8]) {
        let task = Task { key: good_entry().key };
        self.stranger
            .execute(
                "INSERT INTO tasks (visible_at, takes, body) VALUES (0, 0, CAST(?1 AS TEXT))",
                [body],
            )
            .unwrap();
        self.runtime.block_on(self.store.send(&task, Duration::ZERO)).unwrap();
        let held = self.store.receive(10, Duration::from_secs(1));
        let held = self.runtime.block_on(held).unwrap();
        assert!(held.iter().any(|held| held.task == task), "the message behind it is stuck");
        let is_task = std::str::from_utf8(body).is_ok_and(|body| Task::decode(body).is_ok());
        assert_eq!(held.len(), 1 + usize::from(is_task));
        for held in &held {
            self.runtime.block_on(self.store.acknowledge(held)).unwrap();
        }
        let left = self.stranger.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0));
        assert_eq!(left, Ok(0_i64));
    }

    fn check_control(&self, value: &[u8], version: i64) {
        self.stranger
            .execute(
                "INSERT INTO control (name, version, value) VALUES ('name', ?1, CAST(?2 AS TEXT))",
                params![version, value],
            )
            .unwrap();
        match self.runtime.block_on(self.store.load_control("name")) {
            Ok(row) => assert_eq!(row.unwrap().value.as_bytes(), value),
            Err(error) => check_corrupt(&error),
        }
    }
}

/// What serde makes of the bytes of a row.
fn decoded<T: serde::de::DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(json).ok()?).ok()
}

/// The error says that the row is damaged, on one line.
fn check_corrupt(error: &PortError) {
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error:?}");
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
        next = error.source();
    }
}

fn now() -> Timestamp {
    Timestamp::constant(1_796_000_000, 0)
}

fn good_entry() -> Entry {
    let key = JobKey::new(Kind::Extract, JobId::parse("good").unwrap());
    Entry::expected(key, None, Cause::Submit, now(), &Limits::default())
}

fn good_intent() -> Intent {
    let submission = domain::intent::Submission {
        run: "good".to_owned(),
        position: 0,
        request: JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap(),
        reference: None,
    };
    Intent::open(&submission, "token".to_owned(), now(), &Limits::default())
}

#[test]
fn the_seeds_of_rows_hold() {
    testkit::corpus::check("rows", 8, check);
}
