//! A server that is killed in the middle of a crawl goes on where it stopped: no page that lies
//! in the store is fetched again but the last, and each is stored once.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::ports::Clock as _;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use simulator::{Call, Config, Running};
use system::SystemClock;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::http::{NAME, Request, SECRET, signature};
use super::process::{Process, command};

/// Pages of results, each of 50 items, and after how many stored ones the server is killed.
const RESULT_PAGES: usize = 30;
const KILLS: [usize; 4] = [3, 9, 16, 22];
/// Result pages that are fetched again after a kill: the one that was stored and not yet saved as
/// such, and the one that was on its way.
const AGAIN_MAX: usize = 2;
/// Longest time for everything, after which the test fails: far less than the five minutes that a
/// hold lasts.
const ALL_MAX: Duration = Duration::from_mins(2);
/// Pause between two looks at the stored parts.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

struct World {
    dir: TempDir,
    platform: Running,
    job_id: String,
}

impl World {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config { speed: 1_000_000.0, result_bytes: 8_192, ..Config::default() };
        let clock = Arc::new(simulator::SystemClock);
        let platform = simulator::start(listener, config, clock).unwrap();
        let pages = RESULT_PAGES * 50;
        let url = format!("https://example.com/?pages={pages}");
        let body = json!({ "url": url, "limit": pages, "depth": 10, "formats": ["html"] });
        let answer = ask(&platform, "POST", "/v1/crawl", &body.to_string());
        let job_id = answer["job_id"].as_str().unwrap().to_owned();
        Self { dir: TempDir::new().unwrap(), platform, job_id }
    }

    async fn serve(&self) -> Process {
        let mut command = command(self.dir.path(), &["serve", "--json", "--listen", "127.0.0.1:0"]);
        command
            .env("GLEANER_API_KEY", Config::default().api_key)
            .env("GLEANER_API_URL", self.platform.base_url())
            .env("GLEANER_WEBHOOK_SECRET", SECRET);
        Process::start(command).await
    }

    async fn deliver(&self, server: &Process) {
        let body = json!({ "job_id": self.job_id, "event_type": "crawl_completed" }).to_string();
        let body = body.as_bytes();
        let delivery = Request::unsigned(body).header(NAME, signature(body, SECRET));
        assert_eq!(delivery.send(server.addr()).await, 202);
    }

    /// Result pages that the platform gave so far.
    fn pages_read(&self) -> usize {
        let counters = ask(&self.platform, "GET", "/sim/counters", "");
        let calls = &counters["counters"]["calls"]["GET /v1/crawl/{job_id}"];
        let read = calls.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64());
        usize::try_from(read.sum::<u64>()).unwrap()
    }

    fn stored(&self, end: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        find(&self.dir.path().join("gleaner-data/results"), end, &mut found);
        found
    }

    async fn wait_for(&self, count: usize, end: &str) {
        while self.stored(end).len() < count {
            SystemClock.sleep(LOOK_PAUSE).await;
        }
    }
}

fn ask(platform: &Running, method: &str, path: &str, body: &str) -> Value {
    let key = Config::default().api_key;
    let body = body.as_bytes();
    let call = Call { method, path, query: "", api_key: Some(&key), body };
    platform.with_platform(|platform, now| platform.call(&call, now)).body.unwrap()
}

fn find(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// The keys of the items in the parts that the manifest names.
fn items(results: &Path, manifest: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    for part in manifest["parts"].as_array().unwrap() {
        let stored = std::fs::read(results.join(part["key"].as_str().unwrap())).unwrap();
        let mut lines = String::new();
        MultiGzDecoder::new(stored.as_slice()).read_to_string(&mut lines).unwrap();
        for line in lines.lines() {
            let item: Value = serde_json::from_str(line).unwrap();
            keys.push(item["item_key"].as_str().unwrap().to_owned());
        }
    }
    keys
}

async fn kill_and_resume(world: &World) {
    let mut server = world.serve().await;
    world.deliver(&server).await;
    for stored in KILLS {
        world.wait_for(stored, ".ndjson.gz").await;
        server.kill().await;
        assert_eq!(world.stored("_manifest.json").len(), 0, "it was killed in the middle");
        server = world.serve().await;
    }
    world.wait_for(1, "_manifest.json").await;
    assert_eq!(server.terminate().await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_goes_on_where_a_kill_stopped_it() {
    let world = World::new().await;
    let all = tokio::time::timeout(ALL_MAX, kill_and_resume(&world)).await;
    all.expect("no kill makes the next server wait for a hold");
    let read = world.pages_read();
    assert!(read <= RESULT_PAGES + AGAIN_MAX * KILLS.len(), "{read} pages were read");
    let manifests = world.stored("_manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(&manifests[0]).unwrap()).unwrap();
    assert_eq!(manifest["parts"].as_array().unwrap().len(), RESULT_PAGES);
    assert_eq!(world.stored(".ndjson.gz").len(), RESULT_PAGES, "each page is stored once");
    let keys = items(&world.dir.path().join("gleaner-data/results"), &manifest);
    assert_eq!(keys.len(), RESULT_PAGES * 50);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "each item once");
    world.platform.stop.stop().await;
}
