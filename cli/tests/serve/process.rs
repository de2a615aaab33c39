//! `gleaner serve` as a process: start, deliveries, stop and crash.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use domain::entry::Entry;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::Entries as _;
use embedded::SqliteStore;
use serde_json::Value;
use system::SystemClock;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::http::{NAME, Request, SECRET, V1};

/// Longest wait for a process, after which the test fails.
const PROCESS_MAX: Duration = Duration::from_mins(1);

/// The binary in a folder of its own, with no environment but ours, and no platform that answers.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("GLEANER_API_KEY", "key-1")
        // Nobody listens on the discard port: what is called fails at once.
        .env("GLEANER_API_URL", "http://127.0.0.1:9")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs the binary to its end.
pub(crate) async fn run(mut command: Command) -> (i32, String, String) {
    finish(command.spawn().unwrap()).await
}

async fn finish(child: Child) -> (i32, String, String) {
    let waiting = tokio::time::timeout(PROCESS_MAX, child.wait_with_output());
    let Output { status, stdout, stderr } = waiting.await.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// A server that has said where it listens.
pub(crate) struct Process {
    child: Child,
    pub(crate) started: Value,
}

impl Process {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(PROCESS_MAX, lines.next_line()).await.unwrap().unwrap();
        let Some(line) = line else { panic!("it did not start: {:?}", finish(child).await) };
        Self { child, started: serde_json::from_str(&line).unwrap() }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        let url = self.started["listening"].as_str().unwrap();
        url.strip_prefix("http://").unwrap().strip_suffix("/webhook").unwrap().parse().unwrap()
    }

    /// What it says on standard error, up to the first line that holds this text.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        let mut lines = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let found = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                said.push_str(&line);
                if line.contains(text) {
                    return;
                }
            }
            panic!("it ended");
        };
        tokio::time::timeout(PROCESS_MAX, found).await.expect("it says so");
        said
    }

    /// Asks it to end, and returns exit code and standard error.
    pub(crate) async fn terminate(self) -> (i32, String) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
        assert!(sent.success());
        let (code, _, talk) = finish(self.child).await;
        (code, talk)
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

const SERVE: [&str; 4] = ["serve", "--json", "--listen", "127.0.0.1:0"];

fn serve(dir: &Path) -> Command {
    let mut command = command(dir, &SERVE);
    command.env("GLEANER_WEBHOOK_SECRET", SECRET);
    command
}

/// The row of V1's job.
async fn row(dir: &Path) -> Option<Entry> {
    let file = dir.join("gleaner-data/ledger.db");
    let store =
        SqliteStore::open(&file, Arc::new(SystemClock), embedded::Settings::default()).unwrap();
    let key = JobKey { kind: Kind::Extract, job_id: JobId::parse("j1").unwrap() };
    store.load(&key).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_receives_and_ends_cleanly_when_asked() {
    let dir = TempDir::new().unwrap();
    let mut command = serve(dir.path());
    command.env("GLEANER_PUBLIC_URL", "https://hooks.example.org/webhook");
    let server = Process::start(command).await;
    assert_eq!(server.started["register"], "https://hooks.example.org/webhook");
    let addr = server.addr();
    assert_eq!(Request::v1().send(addr).await, 202);
    let forged = Request::unsigned(V1).header(NAME, "00".repeat(32));
    assert_eq!(forged.send(addr).await, 401);
    assert_eq!(Request::unsigned(b"").by("GET").at("/healthz").send(addr).await, 200);
    assert!(row(dir.path()).await.is_some(), "what is accepted is in the ledger");
    let (code, talk) = server.terminate().await;
    assert_eq!(code, 0, "{talk}");
    assert!(!talk.contains("panicked") && !talk.contains(SECRET), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_outlives_a_crash() {
    let dir = TempDir::new().unwrap();
    let server = Process::start(serve(dir.path())).await;
    assert_eq!(Request::v1().send(server.addr()).await, 202);
    server.kill().await;
    let received = row(dir.path()).await.expect("the row outlives the process");
    // The lock went with the process; the delivery is known when it is repeated.
    let server = Process::start(serve(dir.path())).await;
    assert_eq!(Request::v1().send(server.addr()).await, 202);
    let known = row(dir.path()).await.unwrap();
    assert_eq!(known.key, received.key);
    assert_eq!(server.terminate().await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_is_refused() {
    let dir = TempDir::new().unwrap();
    let first = Process::start(serve(dir.path())).await;
    let (code, out, talk) = run(serve(dir.path())).await;
    assert_eq!((code, out.as_str()), (75, ""), "{talk}");
    assert!(talk.contains("a server is running already"), "{talk}");
    assert!(talk.contains("ledger.db") && talk.contains("data directory"), "{talk}");
    assert_eq!(Request::v1().send(first.addr()).await, 202);
    assert_eq!(first.terminate().await.0, 0);
}

/// SG-06: without a secret, or with a blank one, no receiver is started.
#[tokio::test(flavor = "multi_thread")]
async fn sg_06_without_a_secret_it_does_not_start() {
    let dir = TempDir::new().unwrap();
    let (code, out, talk) = run(command(dir.path(), &SERVE)).await;
    assert_eq!((code, out.as_str()), (78, ""));
    assert!(talk.contains("there is no signing secret"), "{talk}");
    assert!(talk.contains("gleaner webhooks create") && talk.contains("--without-webhooks"));
    for blank in ["", "   ", "{\"secret\":\"\"}"] {
        let mut command = command(dir.path(), &SERVE);
        command.env("GLEANER_WEBHOOK_SECRET", blank);
        let (code, out, talk) = run(command).await;
        assert_eq!((code, out.as_str()), (78, ""), "{talk}");
        assert!(talk.contains("`webhook_secret` from GLEANER_WEBHOOK_SECRET"), "{talk}");
    }
    let mut command = command(dir.path(), &SERVE);
    command.env("GLEANER_SECRETS_FILE", "nowhere.json");
    let (code, _, talk) = run(command).await;
    assert_eq!(code, 78, "{talk}");
    assert!(talk.contains("nowhere.json does not exist"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_webhooks_it_only_polls() {
    let dir = TempDir::new().unwrap();
    let server =
        Process::start(command(dir.path(), &["serve", "--json", "--without-webhooks"])).await;
    assert_eq!(server.started["listening"], Value::Null);
    assert_eq!(server.terminate().await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "key-from-file\n").unwrap();
    for (mode, code) in [(0o644, 78), (0o640, 78), (0o600, 0)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let args = ["serve", "--json", "--without-webhooks", "--api-key-file", "key"];
        if code == 0 {
            assert_eq!(Process::start(command(dir.path(), &args)).await.terminate().await.0, 0);
        } else {
            let (ended, _, talk) = run(command(dir.path(), &args)).await;
            assert_eq!(ended, code, "{talk}");
            assert!(talk.contains("chmod 600 key") && !talk.contains("key-from-file"), "{talk}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_told() {
    let dir = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = command(dir.path(), &["serve", "--listen", &address]);
    command.env("GLEANER_WEBHOOK_SECRET", SECRET);
    let (code, _, talk) = run(command).await;
    assert_eq!(code, 71, "{talk}");
    assert!(talk.contains(&format!("cannot listen on {address}")), "{talk}");
    assert!(talk.contains("--listen"), "{talk}");
}
