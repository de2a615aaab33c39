//! The receivers that are compared, each a process of its own over a file of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags};

use super::deliveries::SECRET;
use crate::served::{Served, gleaner};

/// Where the receiver in Python is.
const RECEIVER_PY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/receiver.py");

/// One of the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Receiver {
    /// `FastAPI` and uvicorn over `SQLite` as people first write it
    First,
    /// The same with uvloop, httptools, and the WAL with synchronous=FULL
    Tuned,
    /// A handler of axum that reads the body and checks the HMAC, and keeps nothing
    Bare,
    /// `gleaner serve`
    Ours,
}

impl Receiver {
    pub(super) const ALL: [Self; 4] = [Self::First, Self::Tuned, Self::Bare, Self::Ours];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::First => "FastAPI, as first written",
            Self::Tuned => "FastAPI, tuned",
            Self::Bare => "bare axum, keeps nothing",
            Self::Ours => "gleaner serve",
        }
    }

    /// Whether it is written in Python.
    pub(super) fn needs_python(self) -> bool {
        matches!(self, Self::First | Self::Tuned)
    }

    /// Starts it in this folder.
    pub(super) fn start(self, folder: &Path, python: Option<&Path>) -> Result<Running> {
        let (mut command, rows, platform) = match self {
            Self::First | Self::Tuned => {
                let database = folder.join("deliveries.db");
                let mut command = Command::new(python.context("it needs --python")?);
                let setup = if self == Self::First { "first" } else { "tuned" };
                command.arg(RECEIVER_PY).arg(setup).arg(&database).arg(SECRET).env_clear();
                (command, Some((database, "deliveries")), None)
            }
            Self::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("bare-receiver").env_clear();
                (command, None, None)
            }
            Self::Ours => {
                // A platform that lets everybody wait: connections are made, and nothing is ever
                // answered. So the workers hang in their first calls, and accepting is measured
                // without the work that follows it.
                let platform = TcpListener::bind("127.0.0.1:0")?;
                let url = format!("http://{}", platform.local_addr()?);
                let mut command = gleaner(folder, &["serve", "--json", "--listen", "127.0.0.1:0"])?;
                command
                    .env("GLEANER_API_URL", url)
                    .env("GLEANER_API_KEY", "key")
                    .env("GLEANER_WEBHOOK_SECRET", SECRET);
                let ledger = folder.join("gleaner-data/ledger.db");
                (command, Some((ledger, "entries")), Some(platform))
            }
        };
        command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
        let served = Served::start(command)?;
        let url = served.started.get("listening").and_then(|url| url.as_str());
        let (address, path) = split(url.context("it does not say where it listens")?)?;
        Ok(Running { served, address, path, rows, _platform: platform })
    }
}

/// Address and path of a URL.
fn split(url: &str) -> Result<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://").context("it does not listen for HTTP")?;
    let at = rest.find('/').context("its URL has no path")?;
    let (address, path) = rest.split_at(at);
    Ok((address.parse()?, path.to_owned()))
}

/// A receiver that listens.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) served: Served,
    pub(super) address: SocketAddr,
    pub(super) path: String,
    rows: Option<(PathBuf, &'static str)>,
    _platform: Option<TcpListener>,
}

impl Running {
    /// Ends it at once, and counts the jobs in its file; `None` if it keeps none.
    pub(super) fn end(mut self) -> Result<Option<usize>> {
        self.served.process.kill()?;
        let Some((file, table)) = self.rows else { return Ok(None) };
        // Writable, since what lies in the log of a process that was killed is read back first.
        let file = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let counted = format!("SELECT count(DISTINCT job_id) FROM {table}");
        let rows: i64 = file.query_row(&counted, [], |row| row.get(0))?;
        Ok(Some(usize::try_from(rows)?))
    }
}
