//! The measured server: `gleaner serve` with a data folder of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use domain::ports::{Clock as _, Inspection as _};
use embedded::SqliteStore;
use system::SystemClock;

use crate::platform::{API_KEY, Platform};
use crate::served::{Served, gleaner};

/// Pause between two looks at what was done.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Looks after which something is wrong: a quarter of an hour.
const LOOKS_MAX: u32 = 4_500;

/// Where a server keeps its things, and the platform that it asks.
pub(crate) struct Site<'a> {
    folder: PathBuf,
    platform: &'a Platform,
}

impl<'a> Site<'a> {
    /// A folder that is made if it is not there.
    pub(crate) fn new(folder: PathBuf, platform: &'a Platform) -> Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, platform })
    }

    /// Starts the server with its defaults and these arguments.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Result<Served> {
        Served::start(self.gleaner(&[&["serve", "--json"], arguments].concat())?)
    }

    /// Registers a receiver at the platform, then starts it.
    pub(crate) fn serve_webhooks(&self) -> Result<Served> {
        // The port is free again, and the system gives it to nobody else that soon.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let url = format!("http://{address}/webhook");
        let mut create = self.gleaner(&["webhooks", "create", "--url", &url])?;
        let created = create.stdout(Stdio::null()).status()?;
        ensure!(created.success(), "the webhooks could not be made");
        self.serve(&["--listen", &address])
    }

    fn gleaner(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = gleaner(&self.folder, arguments)?;
        command.env("GLEANER_API_URL", &self.platform.url).env("GLEANER_API_KEY", API_KEY);
        Ok(command)
    }

    /// The server's ledger.
    pub(crate) fn ledger(&self) -> Result<SqliteStore> {
        let folder = self.folder.join("gleaner-data");
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("ledger.db");
        Ok(SqliteStore::open(&file, Arc::new(SystemClock), embedded::Settings::default())?)
    }

    /// The folder of results.
    pub(crate) fn results(&self) -> PathBuf {
        self.folder.join("gleaner-data/results")
    }
}

/// Waits until the ledger holds so many stored jobs.
pub(crate) async fn until_stored(ledger: &SqliteStore, count: u64) -> Result<()> {
    let mut last = 0;
    for _ in 0..LOOKS_MAX {
        let counts = ledger.count_entries().await?;
        last = counts.get("stored").copied().unwrap_or_default();
        if last >= count {
            return Ok(());
        }
        pause(LOOK_PAUSE).await;
    }
    anyhow::bail!("{last} of {count} jobs were stored in time")
}

/// Waits until the platform was called so often at one endpoint.
pub(crate) async fn until_called(platform: &Platform, endpoint: &str, count: u64) -> Result<()> {
    for _ in 0..LOOKS_MAX {
        if platform.calls_to(endpoint).await? >= count {
            return Ok(());
        }
        pause(LOOK_PAUSE).await;
    }
    anyhow::bail!("{endpoint} was not called {count} times in time")
}

pub(crate) async fn pause(time: Duration) {
    SystemClock.sleep(time).await;
}

/// Files below a folder whose name ends so.
pub(crate) fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found
}
