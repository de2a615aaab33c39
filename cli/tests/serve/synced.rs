//! What is said is durable when it is said: the system calls of a server are traced, and each 2xx
//! must follow a sync that began after its row was written. A crash cannot show that, because what
//! a killed process has written stays in the system's memory.

mod careless;
mod order;
mod power;
mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::job::{JobId, JobKey, Kind};
use domain::ports::{Clock as _, Entries as _, Inspection as _};
use embedded::SqliteStore;
use simulator::Config;
use system::SystemClock;
use tempfile::TempDir;

use self::order::{answers, lapses_of_answers, lapses_of_results, names_synced};
use self::power::{content, last_sync};
use self::trace::{Call, parse, traced};
use crate::couriers::Couriers;
use crate::finished::Platform;
use crate::http::SECRET;
use crate::process::{Process, command};
use crate::whole::SHORT;

/// Longest time for one trace, after which the test fails.
const ALL_MAX: Duration = Duration::from_mins(3);
/// Pause between two looks at the ledger.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A data folder, the platform whose jobs are delivered, and where the trace goes.
struct Site {
    dir: TempDir,
    platform: Platform,
}

impl Site {
    async fn with(jobs: usize) -> Self {
        Self { dir: TempDir::new().unwrap(), platform: Platform::with(jobs).await }
    }

    fn data(&self) -> PathBuf {
        // As the system names it, so that it is found in the trace.
        self.dir.path().canonicalize().unwrap().join("gleaner-data")
    }

    fn ledger(&self) -> PathBuf {
        self.data().join("ledger.db")
    }

    fn wal(&self) -> String {
        format!("{}-wal", self.ledger().display())
    }

    fn trace(&self) -> PathBuf {
        self.dir.path().join("trace")
    }

    /// Starts the server under `strace`, which is told `more`.
    async fn start(&self, more: &[&str]) -> Process {
        let data = self.data();
        let args = ["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir"];
        let args = [&args[..], &[data.to_str().unwrap()]].concat();
        let mut command = command(self.dir.path(), &args);
        command
            .envs(SHORT)
            .env("GLEANER_LOG", "warn")
            .env("GLEANER_API_KEY", Config::default().api_key)
            .env("GLEANER_API_URL", self.platform.running.base_url())
            .env("GLEANER_WEBHOOK_SECRET", SECRET);
        Process::start(traced(&command, &self.trace(), more).await).await
    }

    /// Waits until each job is stored.
    async fn stored(&self) {
        let store = open(&self.ledger());
        let wanted = u64::try_from(self.platform.jobs.len()).unwrap();
        while store.count_entries().await.unwrap().get("stored") != Some(&wanted) {
            SystemClock.sleep(LOOK_PAUSE).await;
        }
    }

    /// The trace, which is whole.
    fn calls(&self) -> Vec<Call> {
        let trace = std::fs::read_to_string(self.trace()).unwrap();
        let last = trace.lines().last().unwrap_or_default();
        assert!(last.ends_with("+++ exited with 0 +++"), "{last}");
        parse(&trace)
    }
}

fn open(ledger: &Path) -> SqliteStore {
    SqliteStore::open(ledger, Arc::new(SystemClock), embedded::Settings::default()).unwrap()
}

/// What a server did from its start to its end.
struct Course {
    calls: Vec<Call>,
    /// Deliveries that were answered 503.
    put_off: usize,
    /// What it said, but for there being no webhooks, of which the couriers need none.
    talk: String,
}

/// What a server says of each event of an account without webhooks.
const NO_WEBHOOK: &str = "an event is not delivered to the receiver";

/// Delivers each job over so many connections, so many times at once.
async fn deliver(site: &Site, connections: usize, times: usize, strace: &[&str]) -> Course {
    let course = async {
        let server = site.start(strace).await;
        let couriers: Vec<_> = (0..times).map(|_| Couriers::new(&site.platform.jobs)).collect();
        let mut delivering = Vec::new();
        for couriers in &couriers {
            couriers.direct_to(Some(server.addr()));
            let deliver = |_| tokio::spawn(Arc::clone(couriers).deliver());
            delivering.extend((0..connections).map(deliver));
        }
        for courier in delivering {
            courier.await.unwrap();
        }
        site.stored().await;
        let (code, talk) = server.terminate().await;
        assert_eq!(code, 0, "{talk}");
        let talk = talk.lines().filter(|line| !line.contains(NO_WEBHOOK)).collect();
        let put_off = couriers.iter().map(|couriers| couriers.post().put_off).sum();
        Course { calls: site.calls(), put_off, talk }
    };
    tokio::time::timeout(ALL_MAX, course).await.expect("everything is stored in time")
}

/// Checks the whole of a trace: answers, rows, names and results.
async fn check(site: &Site, calls: &[Call], deliveries: usize) {
    let wal = site.wal();
    let answers = answers(calls);
    assert_eq!(answers.len(), deliveries);
    assert_eq!(lapses_of_answers(calls, &wal), []);
    assert_eq!(lapses_of_results(calls, &wal, &site.platform.jobs), []);
    let first = answers.iter().map(|answer| answer.began).min().unwrap();
    for file in [site.ledger().to_str().unwrap(), &wal] {
        let made = calls.iter().find(|call| call.writes(file)).unwrap().ended;
        assert_eq!(names_synced(calls, file, made, first), None, "{file}");
    }
    outlives_a_power_cut(site, calls).await;
}

/// If the power goes at the moment of any of the 2xx, what was synced until then holds the row.
async fn outlives_a_power_cut(site: &Site, calls: &[Call]) {
    let files = [site.ledger().to_str().unwrap().to_owned(), site.wal()];
    let dir = TempDir::new().unwrap();
    // Many answers rest on the same sync.
    let mut resting: BTreeMap<_, Vec<JobId>> = BTreeMap::new();
    for answer in answers(calls) {
        let syncs = files.each_ref().map(|file| last_sync(calls, file, answer.began).unwrap());
        resting.entry(syncs).or_default().push(JobId::parse(&answer.job_id).unwrap());
    }
    for (number, (syncs, jobs)) in resting.into_iter().enumerate() {
        let copy = dir.path().join(format!("{number}.db"));
        std::fs::write(&copy, content(calls, &files[0], syncs[0])).unwrap();
        let wal = dir.path().join(format!("{number}.db-wal"));
        std::fs::write(wal, content(calls, &files[1], syncs[1])).unwrap();
        let store = open(&copy);
        for job_id in jobs {
            let key = JobKey { kind: Kind::Extract, job_id };
            assert!(store.load(&key).await.unwrap().is_some(), "{key:?} is lost");
        }
    }
}

/// SQ-04: one delivery after another. Each 2xx follows a sync of the log that began after the
/// delivery's row was written and ended before the answer; each result is durable before the
/// ledger says that it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn each_2xx_follows_the_sync_of_its_row() {
    let site = Site::with(50).await;
    let course = deliver(&site, 1, 1, &[]).await;
    assert_eq!((course.put_off, course.talk.as_str()), (0, ""));
    check(&site, &course.calls, 50).await;
}

/// SQ-04: many deliveries at once share a sync, each job being delivered twice, and no 2xx comes
/// before the sync that it rests on.
#[tokio::test(flavor = "multi_thread")]
async fn each_2xx_follows_the_sync_of_its_group() {
    let site = Site::with(200).await;
    let course = deliver(&site, 8, 2, &[]).await;
    assert_eq!((course.put_off, course.talk.as_str()), (0, ""));
    check(&site, &course.calls, 400).await;
}

/// SQ-04, DQ-04: a disk that refuses to sync now and then. What was not synced is not acknowledged,
/// and what is acknowledged after it does not rest on the refused sync.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_is_not_acknowledged() {
    let site = Site::with(60).await;
    // Counted for each thread; none has synced so often before it listens.
    let refuse = ["-e", "inject=fsync,fdatasync:error=EIO:when=30+5"];
    // One delivery after another, so that there are many syncs to be refused on any machine.
    let course = deliver(&site, 1, 1, &refuse).await;
    assert!(course.put_off > 0, "{}", course.talk);
    check(&site, &course.calls, 60).await;
}
