//! Platform, server and verbs together: jobs are submitted, announced and stored.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::entry::StateName;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{Clock as _, Entries as _};
use embedded::SqliteStore;
use serde_json::Value;
use simulator::{Config, Running};
use system::SystemClock;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;

use super::http::{NAME, Request, SECRET, signature};
use super::process::{Process, command, run};

/// Longest wait for a result, after which the test fails.
const STORED_MAX: Duration = Duration::from_mins(1);
/// Pause between two looks at the ledger.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Minutes made short; a delivery that is lost is not waited for in these tests.
pub(crate) const SHORT: [(&str, &str); 10] = [
    ("GLEANER_TASK_HOLD", "2s"),
    ("GLEANER_TICK", "100ms"),
    ("GLEANER_API_CONNECT_TIMEOUT", "1s"),
    ("GLEANER_LIMITS_CALL_TIMEOUT", "1s"),
    ("GLEANER_LIMITS_PAGE_TIMEOUT", "1s"),
    ("GLEANER_LIMITS_POST_TIMEOUT", "1s"),
    ("GLEANER_LIMITS_ENQUEUE_GRACE", "1s"),
    ("GLEANER_LIMITS_BACKOFF_CAP", "1s"),
    ("GLEANER_LIMITS_ACCOUNT_PAUSE", "1s"),
    ("GLEANER_LIMITS_SECRET_COOLDOWN", "100ms"),
];

struct World {
    dir: TempDir,
    platform: Running,
}

impl World {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config { speed: 200.0, ..Config::default() };
        let clock = Arc::new(simulator::SystemClock);
        let platform = simulator::start(listener, config, clock).unwrap();
        Self { dir: TempDir::new().unwrap(), platform }
    }

    /// A verb that does not reach the platform.
    fn cut_off(&self, args: &[&str]) -> Command {
        let mut command = command(self.dir.path(), args);
        command.envs(SHORT).env("GLEANER_API_KEY", Config::default().api_key);
        command.env("GLEANER_WEBHOOK_SECRET", SECRET);
        command
    }

    /// A verb that reaches the platform.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cut_off(args);
        command.env("GLEANER_API_URL", self.platform.base_url());
        command
    }

    async fn run(&self, args: &[&str]) -> Vec<Value> {
        let (code, out, talk) = run(self.command(args)).await;
        assert_eq!(code, 0, "{args:?}: {talk}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Submits one URL, and returns the job's id.
    async fn submit(&self) -> String {
        let rows = self.run(&["submit", "--json", "https://example.com/page"]).await;
        let id = rows.iter().find_map(|row| row["job_id"].as_str());
        id.unwrap_or_else(|| panic!("no job: {rows:?}")).to_owned()
    }

    async fn state(&self, job_id: &str) -> StateName {
        let file = self.dir.path().join("gleaner-data/ledger.db");
        let store =
            SqliteStore::open(&file, Arc::new(SystemClock), embedded::Settings::default()).unwrap();
        let key = JobKey { kind: Kind::Extract, job_id: JobId::parse(job_id).unwrap() };
        store.load(&key).await.unwrap().expect("a row").state.name()
    }

    async fn wait_until_stored(&self, job_id: &str) {
        let look = async {
            while self.state(job_id).await != StateName::Stored {
                SystemClock.sleep(LOOK_PAUSE).await;
            }
        };
        tokio::time::timeout(STORED_MAX, look).await.expect("the result is stored in time");
        assert_eq!(files(&self.dir.path().join("gleaner-data/results"), job_id), 1);
    }
}

/// Files below a folder whose path holds this text.
fn files(dir: &Path, text: &str) -> usize {
    let holds = |path: std::path::PathBuf| {
        if path.is_dir() {
            files(&path, text)
        } else {
            usize::from(path.to_string_lossy().contains(text))
        }
    };
    std::fs::read_dir(dir).unwrap().map(|entry| holds(entry.unwrap().path())).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_submitted_announced_and_stored() {
    let world = World::new().await;
    let server =
        Process::start(world.command(&["serve", "--json", "--listen", "127.0.0.1:0"])).await;
    let url = server.started["listening"].as_str().unwrap().to_owned();
    world.run(&["webhooks", "--json", "create", "--url", &url]).await;
    let job_id = world.submit().await;
    world.wait_until_stored(&job_id).await;
    let (code, talk) = server.terminate().await;
    assert_eq!(code, 0, "{talk}");
    world.platform.stop.stop().await;
}

/// What a killed server had accepted is fetched and stored by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_takes_up_what_a_crash_left() {
    let world = World::new().await;
    let job_id = world.submit().await;
    // This server accepts, and cannot fetch: the platform is out of its reach.
    let server =
        Process::start(world.cut_off(&["serve", "--json", "--listen", "127.0.0.1:0"])).await;
    let body = format!(r#"{{"job_id":"{job_id}","event_type":"extract_completed"}}"#);
    let delivery =
        Request::unsigned(body.as_bytes()).header(NAME, signature(body.as_bytes(), SECRET));
    assert_eq!(delivery.send(server.addr()).await, 202);
    assert_eq!(world.state(&job_id).await, StateName::Received);
    server.kill().await;
    assert_eq!(world.state(&job_id).await, StateName::Received);
    let server = Process::start(world.command(&["serve", "--json", "--without-webhooks"])).await;
    world.wait_until_stored(&job_id).await;
    assert_eq!(server.terminate().await.0, 0);
    world.platform.stop.stop().await;
}
