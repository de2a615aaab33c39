//! The serving process: `gleaner serve` on the demo's folder, which is killed and started again.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Clock as _, Random as _};
use system::{SystemClock, SystemRandom};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Child;

use super::folder::Folder;
use crate::error::CliError;
use crate::exit::Exit;

/// How long a server may take to say that it listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Tries to start it, since its port may be taken for a moment by somebody who connects.
const STARTS_MAX: u32 = 5;
/// Pause between two of them.
const START_PAUSE: Duration = Duration::from_millis(200);
/// Ports to choose from: below those that systems give to whoever connects, so that nobody takes
/// the port while the server is down.
const PORTS: std::ops::Range<u64> = 20_000..30_000;
/// Ports that are tried.
const PORT_TRIES_MAX: u32 = 100;
/// The server's log in the folder.
const LOG: &str = "server.log";
/// Bytes of the log that are shown when the server does not run.
const SHOWN_MAX: usize = 2_000;

/// Opens a port of the loopback interface that stays free while nobody listens on it.
pub(super) async fn listen() -> Result<(TcpListener, u16), CliError> {
    let mut refusal = None;
    for _ in 0..PORT_TRIES_MAX {
        let roll = SystemRandom.next_u64() % (PORTS.end - PORTS.start);
        let Ok(port) = u16::try_from(PORTS.start + roll) else { continue };
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => return Ok((listener, port)),
            Err(error) => refusal = Some(error),
        }
    }
    let error = CliError::new(Exit::System, "cannot open a port");
    Err(match refusal {
        Some(refusal) => error.because(refusal),
        None => error,
    })
}

/// A server as a process of its own.
pub(super) struct Process {
    folder: Arc<Folder>,
    child: Child,
}

impl Process {
    /// Starts it, and waits until it listens.
    pub(super) async fn start(folder: Arc<Folder>) -> Result<Self, CliError> {
        let child = started(&folder).await?;
        Ok(Self { folder, child })
    }

    /// Ends it with SIGKILL, in the middle of whatever it does.
    pub(super) async fn kill(&mut self) -> Result<(), CliError> {
        self.check()?;
        self.child.kill().await.map_err(|error| {
            CliError::new(Exit::System, "the server could not be killed").because(error)
        })
    }

    /// Starts it again after a kill.
    pub(super) async fn restart(&mut self) -> Result<(), CliError> {
        self.child = started(&self.folder).await?;
        Ok(())
    }

    /// Whether it runs: nothing but a kill ends it.
    ///
    /// # Errors
    /// When it ended by itself, with the end of its log.
    pub(super) fn check(&mut self) -> Result<(), CliError> {
        if matches!(self.child.try_wait(), Ok(None)) {
            return Ok(());
        }
        let error = CliError::new(Exit::Bug, "the server ended by itself");
        Err(error.hint(log_end(&self.folder)))
    }

    /// Whether something in it panicked since the demo began.
    pub(super) fn has_panicked(&self) -> bool {
        let log = std::fs::read(log(&self.folder)).unwrap_or_default();
        String::from_utf8_lossy(&log).contains("panicked at")
    }
}

async fn started(folder: &Folder) -> Result<Child, CliError> {
    let mut tries = 1;
    loop {
        match start_once(folder).await {
            Ok(child) => return Ok(child),
            Err(error) if tries >= STARTS_MAX => return Err(error),
            Err(_) => tries += 1,
        }
        SystemClock.sleep(START_PAUSE).await;
    }
}

async fn start_once(folder: &Folder) -> Result<Child, CliError> {
    let failed = || CliError::new(Exit::System, "the server does not start");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(log(folder));
    let file = file.map_err(|error| failed().because(error))?;
    let mut command = folder.command(&["serve", "--json"]);
    // A pipe that nobody reads would stop the server when it is full.
    command.env("GLEANER_LOG", "warn").stderr(Stdio::from(file));
    let mut child = command.spawn().map_err(|error| failed().because(error))?;
    let output = child.stdout.take().ok_or_else(failed)?;
    let mut lines = BufReader::new(output).lines();
    let line = tokio::time::timeout(START_TIMEOUT, lines.next_line())
        .await
        .map_err(|error| failed().because(error))?
        .map_err(|error| failed().because(error))?;
    match line {
        Some(_) => Ok(child),
        None => Err(failed().hint(log_end(folder))),
    }
}

fn log(folder: &Folder) -> PathBuf {
    folder.dir().join(LOG)
}

fn log_end(folder: &Folder) -> String {
    let text = std::fs::read(log(folder)).unwrap_or_default();
    let from = text.len().saturating_sub(SHOWN_MAX);
    let end = text.get(from..).unwrap_or_default();
    format!("its log ends with: {}", String::from_utf8_lossy(end).trim())
}
