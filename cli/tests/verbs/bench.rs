//! A folder, a platform, and the binary run as a process.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use simulator::{Config, Detail, Running, SystemClock};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// Longest run of one process, after which the test fails: far longer than any needs.
const RUN_MAX: Duration = Duration::from_mins(2);
/// The key that opens the simulator.
pub(crate) const KEY: &str = "simulated-key";

/// Settings that shorten the minutes after which a lost answer is looked for.
const SETTINGS: &str = r#"
api_connect_timeout = "1s"

[limits]
call_timeout = "2s"
page_timeout = "3s"
post_begin = "1s"
post_timeout = "2s"
adoption_margin = "1s"
backoff_base = "100ms"
backoff_cap = "1s"
missing_pause = "100ms"
settle_grace = "2s"
account_pause = "1s"
announce_grace = "1s"
"#;

/// A folder for one test.
pub(crate) struct Folder {
    dir: TempDir,
    /// Where the API is.
    url: String,
}

/// What a process left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    /// A folder with settings for tests.
    pub(crate) fn new(url: &str) -> Self {
        let folder = Self { dir: TempDir::new().unwrap(), url: url.to_owned() };
        folder.write("gleaner.toml", SETTINGS);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The process before it runs: in the folder, with no environment but ours.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("GLEANER_API_KEY", KEY)
            .env("GLEANER_API_URL", &self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs the binary to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        ended(self.command(args).spawn().unwrap()).await
    }

    /// Runs the binary with something on standard input.
    pub(crate) async fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A process that refuses its arguments reads nothing.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        ended(child).await
    }
}

/// Waits for a process.
pub(crate) async fn ended(child: Child) -> Ran {
    let output: Output =
        tokio::time::timeout(RUN_MAX, child.wait_with_output()).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().expect("it ends by itself"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Ran {
    /// The documents on standard output.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The documents of one type.
    pub(crate) fn of_type(&self, name: &str) -> Vec<Value> {
        self.json().into_iter().filter(|value| value["type"] == name).collect()
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }
}

/// A folder and a simulated platform.
pub(crate) struct Bench {
    pub(crate) folder: Folder,
    pub(crate) platform: Running,
}

/// A platform whose jobs take a moment, and on which nothing goes wrong.
pub(crate) fn quick() -> Config {
    Config { speed: 1_000.0, ..Config::default() }
}

impl Bench {
    pub(crate) async fn new(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform = simulator::start(listener, config, Arc::new(SystemClock)).unwrap();
        Self { folder: Folder::new(&platform.base_url()), platform }
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        self.folder.run(args).await
    }

    /// The platform's own books of all jobs.
    pub(crate) fn books(&self) -> Vec<Value> {
        let books = self.platform.with_platform(|platform, now| {
            platform.roll(now);
            platform.books(Detail::Jobs)
        });
        books["jobs"].as_array().unwrap().clone()
    }

    /// All URLs that the platform took a job for, in order.
    pub(crate) fn urls(&self) -> Vec<String> {
        let mut urls: Vec<String> = self
            .books()
            .iter()
            .flat_map(|job| job["urls"].as_array().unwrap().clone())
            .map(|url| url.as_str().unwrap().to_owned())
            .collect();
        urls.sort();
        urls
    }
}

/// A list of URLs, one per line, and the URLs in order.
pub(crate) fn list(count: usize) -> (String, Vec<String>) {
    let mut urls: Vec<String> =
        (0..count).map(|number| format!("https://example.com/{number:04}")).collect();
    urls.sort();
    (urls.join("\n"), urls)
}
