//! The server is killed again and again in the middle of its deliveries, and loses none that it
//! acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Entry, StateName};
use domain::ports::{Clock as _, EntryFilter, Inspection as _, Random as _};
use domain::testing::SeededRandom;
use embedded::SqliteStore;
use simulator::Config;
use system::SystemClock;
use tempfile::TempDir;

use crate::couriers::Couriers;
use crate::finished::Platform;
use crate::http::SECRET;
use crate::process::{Process, command};
use crate::whole::SHORT;

/// Longest time for everything, after which the test fails.
const ALL_MAX: Duration = Duration::from_mins(5);
/// Pause between two looks at the ledger.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Connections that deliver at once.
const CONNECTIONS: usize = 16;
/// Most turns that a kill waits after its delivery, so that it falls anywhere in the server's work.
const TURNS_MAX: u64 = 2_000;

/// How much is delivered, and how often the server is killed meanwhile.
struct Plan {
    jobs: usize,
    kills: usize,
    seed: u64,
}

/// A data folder whose server is started anew after each kill.
struct Site<'a> {
    dir: TempDir,
    platform: &'a Platform,
}

impl Site<'_> {
    async fn start(&self) -> Process {
        let mut command = command(self.dir.path(), &["serve", "--json", "--listen", "127.0.0.1:0"]);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        command
            .envs(SHORT)
            .env("GLEANER_LOG", "warn")
            .env("GLEANER_API_KEY", Config::default().api_key)
            .env("GLEANER_API_URL", self.platform.running.base_url())
            .env("GLEANER_WEBHOOK_SECRET", SECRET)
            // A pipe that nobody reads would stop the server when it is full.
            .stderr(Stdio::from(log));
        Process::start(command).await
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn results(&self) -> Files {
        let mut files = Files::new();
        find(&self.dir.path().join("gleaner-data/results"), &mut files);
        files
    }

    fn store(&self) -> SqliteStore {
        let file = self.dir.path().join("gleaner-data/ledger.db");
        SqliteStore::open(&file, Arc::new(SystemClock), embedded::Settings::default()).unwrap()
    }
}

/// Result objects, and what would tell that one was written again.
type Files = BTreeMap<PathBuf, (u64, i64, i64, u64)>;

/// Finds the objects below a folder; what a crash left unfinished is none.
fn find(folder: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            let data = path.metadata().unwrap();
            files.insert(path, (data.ino(), data.mtime(), data.mtime_nsec(), data.len()));
        }
    }
}

/// Acknowledgements after which the server is killed, in order.
fn kill_points(plan: &Plan, random: &SeededRandom) -> Vec<usize> {
    // Requests are on their way up to the last one.
    let last = u64::try_from(plan.jobs - CONNECTIONS).unwrap();
    let point = |_| usize::try_from(random.next_u64() % last).unwrap();
    let mut points: Vec<_> = (0..plan.kills).map(point).collect();
    points.sort_unstable();
    points
}

async fn entries(store: &SqliteStore) -> Vec<Entry> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let filter = EntryFilter::default();
        let page = store.list_entries(&filter, after.as_ref(), 1_000).await.unwrap();
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        after = Some(next);
    }
}

/// Waits until the ledger says that all are stored, and returns its rows.
async fn stored(site: &Site<'_>) -> Vec<Entry> {
    let store = site.store();
    let wanted = u64::try_from(site.platform.jobs.len()).unwrap();
    while store.count_entries().await.unwrap().get("stored") != Some(&wanted) {
        SystemClock.sleep(LOOK_PAUSE).await;
    }
    entries(&store).await
}

#[expect(clippy::print_stdout, reason = "where the kills fell is shown with --nocapture")]
async fn kill_and_check(plan: Plan) {
    let platform = Platform::with(plan.jobs).await;
    let site = Site { dir: TempDir::new().unwrap(), platform: &platform };
    let random = SeededRandom::new(plan.seed);
    let couriers = Couriers::new(&platform.jobs);
    let delivering: Vec<_> =
        (0..CONNECTIONS).map(|_| tokio::spawn(Arc::clone(&couriers).deliver())).collect();
    let mut server = site.start().await;
    couriers.direct_to(Some(server.addr()));
    let (mut in_flight, mut unworked) = (Vec::new(), Vec::new());
    let mut seen = Files::new();
    for point in kill_points(&plan, &random) {
        couriers.acknowledged(point).await;
        for _ in 0..random.next_u64() % TURNS_MAX {
            tokio::task::yield_now().await;
        }
        couriers.direct_to(None);
        in_flight.push(couriers.in_flight());
        server.kill().await;
        let files = site.results();
        assert!(seen.iter().all(|(path, data)| files.get(path) == Some(data)), "none is changed");
        unworked.push(couriers.post().acknowledged.len().saturating_sub(files.len()));
        seen = files;
        server = site.start().await;
        couriers.direct_to(Some(server.addr()));
    }
    for courier in delivering {
        courier.await.unwrap();
    }
    let known = entries(&site.store()).await;
    let known: BTreeSet<_> = known.into_iter().map(|row| row.key.job_id.to_string()).collect();
    let acknowledged = couriers.post().acknowledged;
    let lost: Vec<_> = acknowledged.difference(&known).collect();
    assert!(lost.is_empty(), "{} acknowledged deliveries are lost: {lost:?}", lost.len());
    let rows = stored(&site).await;
    assert_eq!(server.terminate().await.0, 0);
    let post = couriers.post();
    println!("in flight at the kills: {in_flight:?}; acknowledged and not stored: {unworked:?}");
    println!("{} cut off, {} put off", post.cut_off, post.put_off);
    assert!(post.cut_off >= plan.kills, "the kills fall in the middle of deliveries");

    let log = std::fs::read_to_string(site.log()).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    let files = site.results();
    assert!(seen.iter().all(|(path, data)| files.get(path) == Some(data)), "none is changed");
    assert_eq!((rows.len(), files.len()), (plan.jobs, plan.jobs), "each is stored, none twice");
    for row in rows {
        let job_id = row.key.job_id.as_str();
        assert!(post.acknowledged.contains(job_id), "{job_id} is one of ours");
        let times = row.history.iter().filter(|line| line.to == StateName::Stored).count();
        assert_eq!(times, 1, "{job_id}: {:?}", row.history);
        let name = |path: &&PathBuf| path.to_string_lossy().contains(job_id);
        assert!(files.keys().any(|path| name(&path)), "{job_id} has an object");
    }
    platform.running.stop.stop().await;
}

/// DQ-01, DQ-06: twenty kills in the middle of 5,000 deliveries. Every delivery that got a 2xx is
/// stored in the end, and none twice.
#[tokio::test(flavor = "multi_thread")]
async fn kills_in_the_middle_lose_no_acknowledged_delivery() {
    let plan = Plan { jobs: 5_000, kills: 20, seed: 1 };
    let all = tokio::time::timeout(ALL_MAX, kill_and_check(plan));
    all.await.expect("everything is stored in time");
}
