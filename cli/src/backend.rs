//! What a verb works with: the adapters of one process, made of the settings.
//!
//! [`Site`] is where everything is; [`Store`] is what lies there and needs neither key nor
//! platform; [`Adapters`] have the platform's API as well. What only the server of one machine needs
//! is in [`Embedded`].

#[cfg(feature = "aws")]
mod aws;
mod embedded;
mod held;
mod keeper;
mod key;
mod secrets;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::embedded::secrets::{FileVault, RotationLock, SecretsFile};
use async_trait::async_trait;
use domain::ports::{
    Clock, DeadLetterQueue, Jobs, Ledger, PortError, Queue, Results, SlotId, TaskSource, Vault,
    Webhooks,
};
use domain::time::Timestamp;
use scraper_api::{ApiKey, Config, KeySource, PaceSettings, Paced, Rekeyed, ScraperApi};
use settings::Settings;

pub(crate) use embedded::Embedded;
pub(crate) use held::Held;
pub(crate) use keeper::Keeper;
pub(crate) use key::SetKey;
pub(crate) use secrets::{Secrets, secret_places};

use crate::error::CliError;
use crate::exit::Exit;
use crate::pipeline::Pipeline;
use system::{SystemClock, SystemRandom};

/// Stands for the API key in a client whose calls send none.
const NO_KEY: &str = "no-key-is-sent-with-this-call";

/// Where the ledger, the queue, the results and the secrets are. Nothing is open yet.
pub(crate) struct Site {
    /// The settings in force, with those that the stack gives.
    pub(crate) settings: Settings,
    /// Names of the settings that the stack gave.
    pub(crate) from_stack: Vec<&'static str>,
    place: Place,
}

enum Place {
    /// The data folder.
    Folder,
    #[cfg(feature = "aws")]
    Aws(Box<aws::Bundle>),
}

impl Site {
    /// Finds everything that the settings name. A stack on AWS is asked for what they leave out.
    ///
    /// # Errors
    /// When this build lacks the backend that is asked for, or nothing is found where it is said
    /// to be.
    #[cfg_attr(not(feature = "aws"), expect(clippy::unused_async, reason = "AWS is asked"))]
    pub(crate) async fn of(settings: &Settings) -> Result<Self, CliError> {
        match &settings.backend {
            settings::Backend::Embedded => Ok(Self {
                settings: settings.clone(),
                from_stack: Vec::new(),
                place: Place::Folder,
            }),
            #[cfg(feature = "aws")]
            settings::Backend::Aws(named) => {
                let aws::Found { settings, from_stack, bundle } =
                    aws::find(settings, named).await?;
                Ok(Self { settings, from_stack, place: Place::Aws(Box::new(bundle)) })
            }
            // With the data folder in its place, jobs that the other ledger knows would be paid
            // again.
            #[cfg(not(feature = "aws"))]
            settings::Backend::Aws(_) => {
                Err(CliError::new(Exit::Configuration, "this build has no backend on AWS").hint(
                    "get it with `cargo install --path cli --features aws`, or leave the setting \
                     `backend` out to work with the data folder",
                ))
            }
        }
    }

    /// Opens ledger, queue and results. A data folder is made if it is not there.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(crate) fn store(&self) -> Result<Store, CliError> {
        match &self.place {
            Place::Folder => embedded::store(&self.settings),
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.store(&self.settings),
        }
    }

    /// The same for verbs that only look: a data folder must be there already.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub(crate) fn existing_store(&self) -> Result<Store, CliError> {
        if self.is_new() {
            return Err(embedded::no_ledger(&self.settings));
        }
        self.store()
    }

    /// Whether there is nothing yet that could be looked at.
    pub(crate) fn is_new(&self) -> bool {
        match &self.place {
            Place::Folder => !self.settings.ledger_file().exists(),
            #[cfg(feature = "aws")]
            Place::Aws(_) => false,
        }
    }

    /// The client of the platform's API. Nothing is sent to it.
    ///
    /// # Errors
    /// When the key is missing or wrong, or the address is.
    #[cfg_attr(not(feature = "aws"), expect(clippy::unused_async, reason = "AWS is asked"))]
    pub(crate) async fn api(&self) -> Result<Arc<ScraperApi>, CliError> {
        let key = match &self.place {
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.api_key(&self.settings).await?,
            Place::Folder => SetKey::of(&self.settings).load()?,
        };
        client(&self.settings, key)
    }

    /// The client of the platform's API for the calls that send no key.
    ///
    /// # Errors
    /// When the address is wrong.
    pub(crate) fn keyless_api(&self) -> Result<Arc<ScraperApi>, CliError> {
        let key = ApiKey::parse(NO_KEY)
            .map_err(|error| CliError::new(Exit::Bug, "cannot do without a key").because(error))?;
        client(&self.settings, key)
    }

    /// Where the API key is read again.
    fn keys(&self) -> Arc<dyn KeySource> {
        match &self.place {
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.keys(&self.settings),
            Place::Folder => Arc::new(SetKey::of(&self.settings)),
        }
    }

    /// The signing secrets in every stage, as they are found where receivers read them. What cannot
    /// be read is among them, with the reason.
    #[cfg_attr(not(feature = "aws"), expect(clippy::unused_async, reason = "AWS is asked"))]
    pub(crate) async fn held(&self) -> Vec<Held> {
        match &self.place {
            Place::Folder => held::on_this_machine(&self.settings),
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.held(&self.settings).await,
        }
    }

    /// How many tasks lie where those end that no worker could take; `None` where there is no such
    /// place, or nothing says where it is.
    ///
    /// # Errors
    /// When it cannot be asked.
    #[cfg_attr(not(feature = "aws"), expect(clippy::unused_async, reason = "AWS is asked"))]
    pub(crate) async fn count_dead_letters(&self) -> Result<Option<u64>, CliError> {
        match &self.place {
            Place::Folder => Ok(None),
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.count_dead_letters(&self.settings).await,
        }
    }

    /// The signing secrets of webhooks as a rotation sees them.
    pub(crate) fn vault(&self) -> Arc<dyn Vault> {
        match &self.place {
            Place::Folder => {
                let file = SecretsFile::new(&self.settings.secrets_file());
                Arc::new(FileVault::new(file, self.settings.limits.previous_grace))
            }
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => Arc::new(bundle.secrets(&self.settings)),
        }
    }

    /// The right to rotate the secrets that are kept in a file; `None` where there is no file.
    ///
    /// # Errors
    /// While another process has it.
    pub(crate) fn rotation_lock(&self, now: Timestamp) -> Result<Option<RotationLock>, CliError> {
        match &self.place {
            Place::Folder => embedded::rotation_lock(&self.settings, now),
            #[cfg(feature = "aws")]
            Place::Aws(_) => Ok(None),
        }
    }

    /// Whether somebody else takes the steps of rotations.
    pub(crate) fn rotates_elsewhere(&self) -> bool {
        match &self.place {
            Place::Folder => false,
            #[cfg(feature = "aws")]
            Place::Aws(_) => true,
        }
    }

    /// Has whoever takes the steps of rotations begin one.
    ///
    /// # Errors
    /// When it cannot be asked.
    #[cfg_attr(
        not(feature = "aws"),
        expect(clippy::unused_async, unused_variables, reason = "AWS is asked")
    )]
    pub(crate) async fn begin_rotation(&self, slot: &SlotId) -> Result<Begun, CliError> {
        match &self.place {
            Place::Folder => Ok(Begun::NotConfigured),
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => bundle.begin_rotation(&self.settings, slot).await,
        }
    }

    /// Where the signing secrets of webhooks are kept.
    pub(crate) fn keeper(&self) -> Arc<dyn Keeper> {
        match &self.place {
            Place::Folder => Arc::new(embedded::FileKeeper::of(&self.settings)),
            #[cfg(feature = "aws")]
            Place::Aws(bundle) => Arc::new(bundle.vault(&self.settings)),
        }
    }
}

/// Whether a rotation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It did.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "nobody begins one elsewhere"))]
    Now,
    /// Nobody is configured to take its steps.
    NotConfigured,
    /// Another one is under way.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "nobody begins one elsewhere"))]
    UnderWay,
}

/// Ledger, queue and results.
pub(crate) struct Store {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// The ledger.
    pub(crate) ledger: Arc<dyn Ledger>,
    /// The way to the workers.
    pub(crate) queue: Arc<dyn Queue>,
    /// The same queue, for who works here.
    pub(crate) tasks: Arc<dyn Tasks>,
    /// Where tasks end that no worker could take; `None` where there is no such place, or where it
    /// is not known.
    pub(crate) dead_letters: Option<Arc<dyn DeadLetterQueue>>,
    /// The stored results.
    pub(crate) results: Arc<dyn Results>,
    /// Where they lie.
    pub(crate) root: Root,
}

/// Where results lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Root {
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket, under a beginning of a URL that ends with `/`.
    #[cfg(feature = "aws")]
    Bucket(String),
}

impl Root {
    /// Where an object is, as a person and their programs name it: an absolute path, or a URL.
    ///
    /// # Errors
    /// When the folder is not there.
    pub(crate) fn locate(&self, key: &str) -> Result<String, CliError> {
        match self {
            Self::Folder(folder) => {
                let root = folder.canonicalize().map_err(|error| {
                    let text = format!("cannot find the folder `{}`", folder.display());
                    CliError::new(Exit::System, text).because(error)
                })?;
                Ok(root.join(key).display().to_string())
            }
            #[cfg(feature = "aws")]
            Self::Bucket(start) => Ok(format!("{start}{key}")),
        }
    }
}

/// Tasks for a verb that works some beside the servers.
#[async_trait]
pub(crate) trait Tasks: TaskSource {
    /// Returns when a task may be visible, at the latest after this time.
    ///
    /// # Errors
    /// Transient ones only.
    async fn wait(&self, longest: Duration) -> Result<(), PortError>;

    /// Counts the tasks that wait, roughly where no more is known at little cost.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn count_waiting(&self) -> Result<u64, PortError>;
}

/// The adapters of one process, the platform's API among them.
pub(crate) struct Adapters {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// What the steps work with.
    pub(crate) pipeline: Pipeline,
    /// The platform's webhooks and their delivery logs.
    pub(crate) webhooks: Arc<dyn Webhooks>,
    /// The queue, for who works here.
    pub(crate) tasks: Arc<dyn Tasks>,
}

impl Adapters {
    /// Finds and opens everything, and sets up the client. Nothing is sent to the platform.
    ///
    /// # Errors
    /// When something cannot be used, or the API key is missing.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, CliError> {
        let site = Site::of(settings).await?;
        // The key first: a verb that cannot work leaves no folder behind.
        let api = site.api().await?;
        let Store { settings, ledger, queue, tasks, results, .. } = site.store()?;
        let webhooks = webhooks(&settings, &api, site.keys());
        let pipeline = pipeline(&settings, (ledger, queue, results), &api, site.keys());
        Ok(Self { settings, pipeline, webhooks, tasks })
    }
}

/// Ledger, queue and results, for the steps.
type Stored = (Arc<dyn Ledger>, Arc<dyn Queue>, Arc<dyn Results>);

/// What the steps work with.
fn pipeline(
    settings: &Settings,
    (ledger, queue, results): Stored,
    api: &Arc<ScraperApi>,
    keys: Arc<dyn KeySource>,
) -> Pipeline {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let jobs = Paced::new(
        Rekeyed::new(api, keys, settings.limits.secret_cooldown, Arc::clone(&clock)),
        Arc::clone(api) as Arc<dyn scraper_api::Usage>,
        Arc::clone(&clock),
        PaceSettings {
            start: settings.pacing.start,
            ceiling: settings.pacing.ceiling,
            spacing: settings.pacing.spacing,
            ..PaceSettings::default()
        },
    );
    Pipeline {
        ledger,
        queue,
        jobs: Arc::new(jobs) as Arc<dyn Jobs>,
        results,
        clock,
        random: Arc::new(SystemRandom),
        limits: settings.limits.clone(),
        pauses: Arc::default(),
        looks: Arc::default(),
    }
}

/// The platform's webhooks, by a key that is read again when it is refused.
fn webhooks(
    settings: &Settings,
    api: &Arc<ScraperApi>,
    keys: Arc<dyn KeySource>,
) -> Arc<dyn Webhooks> {
    Arc::new(Rekeyed::new(api, keys, settings.limits.secret_cooldown, Arc::new(SystemClock)))
}

/// The client of the platform's API.
fn client(settings: &Settings, key: ApiKey) -> Result<Arc<ScraperApi>, CliError> {
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

/// Whether a call leaves this machine unencrypted.
pub(crate) fn is_exposed(url: &str) -> bool {
    let scheme = reqwest::Url::parse(url).ok().map(|url| url.scheme().to_owned());
    scheme.as_deref() == Some("http") && !is_here(url)
}

/// Whether a URL leads to this machine.
pub(crate) fn is_here(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// The error with the advice that fits where the settings say that everything is.
pub(crate) fn advised(error: CliError, settings: &Settings) -> CliError {
    match &settings.backend {
        #[cfg(feature = "aws")]
        settings::Backend::Aws(_) => aws::advised(error, settings),
        _ => error,
    }
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
