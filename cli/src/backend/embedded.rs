//! Everything in the data folder: ledger and queue in one file, results in a folder, signing
//! secrets in another file.

mod keeper;

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{Clock, PortError, Webhooks};
use domain::time::Timestamp;
use embedded::secrets::{RotationLock, RotationLockError, SecretsFile};
use embedded::{OpenError, SqliteStore};
use results::ObjectResults;
use scraper_api::KeySource;
use settings::Settings;

pub(super) use keeper::FileKeeper;

use super::{Root, SetKey, Store, Tasks, client, pipeline, webhooks};
use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use system::SystemClock;

/// What the server of one machine is made of.
pub(crate) struct Embedded {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// What the steps work with.
    pub(crate) pipeline: Pipeline,
    /// The platform's webhooks and their delivery logs.
    pub(crate) webhooks: Arc<dyn Webhooks>,
    /// The ledger and the queue.
    pub(crate) store: SqliteStore,
}

impl Embedded {
    /// Opens the data folder and sets up the client. Nothing is sent to the platform.
    ///
    /// # Errors
    /// When the backend is another one, the data folder cannot be used, or the API key is missing.
    pub(crate) fn open(settings: &Settings) -> Result<Self, CliError> {
        if settings.backend != settings::Backend::Embedded {
            return Err(CliError::new(
                Exit::Configuration,
                "`serve` is the server of one machine, and the backend is on AWS",
            )
            .hint(
                "there the functions receive, work and sweep, see docs/aws.md; leave the setting \
                 `backend` out to serve from the data folder",
            ));
        }
        let key = SetKey::of(settings);
        // The key first: a server that cannot work leaves no folder behind.
        let api = client(settings, key.load()?)?;
        let (store, results) = open(settings)?;
        let stored = (Arc::new(store.clone()) as _, Arc::new(store.clone()) as _, results as _);
        let keys: Arc<dyn KeySource> = Arc::new(key);
        let webhooks = webhooks(settings, &api, Arc::clone(&keys));
        let pipeline = pipeline(settings, stored, &api, keys);
        Ok(Self { settings: settings.clone(), pipeline, webhooks, store })
    }
}

/// Opens the data folder, which is made if it is not there.
///
/// # Errors
/// When it cannot be used.
pub(super) fn store(settings: &Settings) -> Result<Store, CliError> {
    let (store, results) = open(settings)?;
    Ok(Store {
        settings: settings.clone(),
        ledger: Arc::new(store.clone()),
        queue: Arc::new(store.clone()),
        tasks: Arc::new(store),
        // A task that no worker gets anywhere with is told by its row: the sweep gives it up.
        dead_letters: None,
        results,
        root: Root::Folder(settings.results_dir()),
    })
}

/// The right to rotate the secrets of the file; `None` where there is none.
///
/// # Errors
/// While another process has it.
pub(super) fn rotation_lock(
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<RotationLock>, CliError> {
    let file = settings.secrets_file();
    if !file.exists() {
        return Ok(None);
    }
    let holder = format!("process {}, since {now:.0}", std::process::id());
    let lock = RotationLock::acquire(&SecretsFile::new(&file), &holder);
    lock.map(Some).map_err(|error| match error {
        RotationLockError::Held { .. } => CliError::new(Exit::TryAgain, error.to_string()).hint(
            "wait for its end: each webhook takes it five minutes at most; or end that process, and \
             run the same command again, which goes on where it stopped",
        ),
        RotationLockError::Io { .. } => {
            CliError::new(Exit::System, "cannot lock the secrets file").because(error)
        }
    })
}

/// What to say where there is no data folder.
pub(super) fn no_ledger(settings: &Settings) -> CliError {
    let dir = settings.data_dir.display();
    CliError::new(Exit::NotFound, format!("there is no ledger in `{dir}`")).hint(
        "name the data folder with --data-dir or GLEANER_DATA_DIR; `gleaner settings` shows where \
         it is looked for",
    )
}

fn open(settings: &Settings) -> Result<(SqliteStore, Arc<ObjectResults>), CliError> {
    make_data_dir(&settings.data_dir)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let now = clock.now();
    let ledger = settings.ledger_file();
    if let Some(concern) = embedded::filesystem_concern(&ledger) {
        tracing::warn!("{concern}");
    }
    let store =
        SqliteStore::open(&ledger, clock, embedded::Settings::default()).map_err(|error| {
            // A file that is not ours is left alone, and is no trouble of the system.
            let exit = match error {
                OpenError::NotOurs { .. } | OpenError::Newer { .. } => Exit::Data,
                _ => Exit::System,
            };
            CliError::new(exit, "cannot open the ledger").because(error)
        })?;
    let results = ObjectResults::on_disk(&settings.results_dir(), now)
        .map_err(|error| CliError::new(Exit::System, "cannot open the results").because(error))?;
    Ok((store, Arc::new(results)))
}

#[async_trait]
impl Tasks for SqliteStore {
    async fn wait(&self, longest: Duration) -> Result<(), PortError> {
        self.wait_for_task(longest).await
    }

    async fn count_waiting(&self) -> Result<u64, PortError> {
        // The store's own.
        Self::count_waiting(self).await
    }
}

/// Makes the data folder, for its owner alone, and makes its name durable: with the name, a power
/// cut would take everything that was acknowledged below it.
///
/// # Errors
/// When the system refuses.
fn make_data_dir(dir: &Path) -> Result<(), CliError> {
    let missing = dir.ancestors().take_while(|folder| !folder.exists()).count();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(dir);
    made.and_then(|()| dir.ancestors().take(missing).try_for_each(sync_name)).map_err(|error| {
        CliError::new(Exit::System, format!("cannot make the data folder `{}`", dir.display()))
            .because(error)
            .hint("name another one with --data-dir or GLEANER_DATA_DIR")
    })?;
    if missing == 0 {
        // Whoever made it may have crashed before this. The folder above may be closed to us, if
        // somebody else made it.
        let _ = sync_name(dir);
    }
    Ok(())
}

/// Makes the name of a folder durable in the folder above it.
#[cfg(unix)]
fn sync_name(folder: &Path) -> std::io::Result<()> {
    match folder.parent() {
        Some(above) if above.as_os_str().is_empty() => std::fs::File::open(".")?.sync_all(),
        Some(above) => std::fs::File::open(above)?.sync_all(),
        None => Ok(()),
    }
}

/// Other systems cannot sync a folder.
#[cfg(not(unix))]
fn sync_name(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}
