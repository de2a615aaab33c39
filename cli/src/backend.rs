//! What a verb works with: the adapters of one process, made of the settings.
//!
//! [`Local`] is what lies on this machine and needs neither key nor network; [`Backend`] has the
//! platform's API as well.

mod rekeyed;
mod secrets;

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::Arc;

use domain::ports::{Clock, Jobs};
use embedded::{OpenError, SqliteStore};
use results::ObjectResults;
use scraper_api::{Config, PaceSettings, Paced, ScraperApi};
use settings::Settings;

pub(crate) use rekeyed::KeySource;
pub(crate) use secrets::{Secrets, secret_places};

use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use system::{SystemClock, SystemRandom};

/// The ledger and the results of this machine.
pub(crate) struct Local {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// The ledger and the queue.
    pub(crate) store: SqliteStore,
    /// The stored results.
    pub(crate) results: ObjectResults,
}

impl Local {
    /// Opens the data folder, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn open(settings: &Settings) -> Result<Self, CliError> {
        require_embedded(settings)?;
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
        let results = ObjectResults::on_disk(&settings.results_dir(), now).map_err(|error| {
            CliError::new(Exit::System, "cannot open the results").because(error)
        })?;
        Ok(Self { settings: settings.clone(), store, results })
    }

    /// Opens a data folder that is there already, for verbs that only look.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub(crate) fn open_existing(settings: &Settings) -> Result<Self, CliError> {
        require_embedded(settings)?;
        if !settings.ledger_file().exists() {
            let dir = settings.data_dir.display();
            return Err(CliError::new(Exit::NotFound, format!("there is no ledger in `{dir}`"))
                .hint("name the data folder with --data-dir or GLEANER_DATA_DIR; `gleaner settings` shows where it is looked for"));
        }
        Self::open(settings)
    }
}

/// The adapters of one process, the platform's API among them.
pub(crate) struct Backend {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// What the steps work with.
    pub(crate) pipeline: Pipeline,
    /// The ledger and the queue.
    pub(crate) store: SqliteStore,
}

impl Backend {
    /// Opens the data folder and sets up the client. Nothing is sent.
    ///
    /// # Errors
    /// When the data folder cannot be used, or the API key is missing.
    pub(crate) fn open(settings: &Settings) -> Result<Self, CliError> {
        // The key first: a verb that cannot work leaves no folder behind.
        let api = api(settings)?;
        Ok(Self::with_api(Local::open(settings)?, &api))
    }

    fn with_api(local: Local, api: &Arc<ScraperApi>) -> Self {
        let Local { settings, store, results } = local;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let jobs = Paced::new(
            KeySource::of(&settings).rekeyed(api, Arc::clone(&clock)),
            Arc::clone(api) as Arc<dyn scraper_api::Usage>,
            Arc::clone(&clock),
            PaceSettings {
                start: settings.pacing.start,
                ceiling: settings.pacing.ceiling,
                spacing: settings.pacing.spacing,
                ..PaceSettings::default()
            },
        );
        let pipeline = Pipeline {
            ledger: Arc::new(store.clone()),
            queue: Arc::new(store.clone()),
            jobs: Arc::new(jobs) as Arc<dyn Jobs>,
            results: Arc::new(results),
            clock,
            random: Arc::new(SystemRandom),
            limits: settings.limits.clone(),
            pauses: Arc::default(),
            looks: Arc::default(),
        };
        Self { settings, pipeline, store }
    }
}

/// The client of the platform's API. Nothing is sent.
///
/// # Errors
/// When the key is missing or wrong, or the address is.
pub(crate) fn api(settings: &Settings) -> Result<Arc<ScraperApi>, CliError> {
    require_embedded(settings)?;
    let key = KeySource::of(settings).load()?;
    if is_exposed(&settings.api_url) {
        tracing::warn!("api_url is plain http: whoever is in between reads the API key");
    }
    let mut config = Config::new(&settings.api_url, key).map_err(|error| {
        CliError::new(Exit::Configuration, "the setting `api_url` is wrong").because(error)
    })?;
    config.body_bytes_max = settings.api_answer_bytes;
    config.connect_timeout = settings.api_connect_timeout;
    config.retry_after_max = settings.limits.retry_after_clamp;
    let api = ScraperApi::new(config, Arc::new(SystemClock))
        .map_err(|error| CliError::new(Exit::System, "cannot set up the client").because(error))?;
    Ok(Arc::new(api))
}

/// Refuses a backend that this build has not: with the ledger of this machine in its place, jobs
/// that the other one knows would be paid again.
fn require_embedded(settings: &Settings) -> Result<(), CliError> {
    match settings.backend {
        settings::Backend::Embedded => Ok(()),
        settings::Backend::Aws(_) => {
            Err(CliError::new(Exit::Configuration, "this build has no backend on AWS")
                .hint("leave the setting `backend` out to work with the data folder"))
        }
    }
}

/// Whether a call leaves this machine unencrypted.
fn is_exposed(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let is_here = url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    url.scheme() == "http" && !is_here
}

/// Makes the data folder, for its owner alone, and makes its name durable: with the name, a power
/// cut would take everything that was acknowledged below it.
///
/// # Errors
/// When the system refuses.
pub(crate) fn make_data_dir(dir: &Path) -> Result<(), CliError> {
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

#[cfg(test)]
mod tests {
    use super::is_exposed;

    #[test]
    fn plain_http_is_exposed_unless_it_stays_on_this_machine() {
        for url in ["http://scraper.geonode.io", "http://10.0.0.1:8700", "http://[2001:db8::1]/"] {
            assert!(is_exposed(url), "{url}");
        }
        let kept = ["https://scraper.geonode.io", "http://127.0.0.1:1", "http://localhost/x"];
        for url in kept.into_iter().chain(["http://[::1]:8700", "nonsense"]) {
            assert!(!is_exposed(url), "{url}");
        }
    }
}
