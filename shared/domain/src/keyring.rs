//! The signing secrets as one process holds them: loaded on first use, again when they are old,
//! and once per cool-down when a signature matches none of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::limits::Limits;
use crate::ports::{PortError, SecretSource};
use crate::signature::Verifier;
use crate::signature::scheme::Scheme;
use crate::signature::verdict::Unconfigured;
use crate::time::{Timestamp, between};

/// How long a failed first load is not repeated, so that a storm of deliveries is not a storm of
/// loads.
const COLD_PAUSE: Duration = Duration::from_secs(1);

/// Holds the verifier made of the secrets in force.
pub struct Keyring {
    source: Arc<dyn SecretSource>,
    scheme: Scheme,
    cooldown: Duration,
    max_age: Duration,
    // One load at a time: whoever waits here finds the winner's verifier.
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    verifier: Option<Arc<Verifier>>,
    loaded_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
}

/// Why there is no verifier. To be answered 503, never 401: the sender shall come again.
#[derive(Debug, thiserror::Error)]
pub enum NoKeys {
    /// The secrets could not be loaded.
    #[error("cannot load the signing secrets")]
    Load(#[source] PortError),
    /// The last try to load them failed a moment ago.
    #[error("the signing secrets could not be loaded a moment ago")]
    Cold,
    /// None is configured, or none can be used.
    #[error(transparent)]
    Unconfigured(Unconfigured),
}

impl NoKeys {
    /// The stable code for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Load(_) | Self::Cold => "secrets_unavailable",
            Self::Unconfigured(reason) => reason.code(),
        }
    }
}

impl Keyring {
    /// An empty keyring; the first delivery loads it, or [`Keyring::current`] at start-up.
    pub fn new(source: Arc<dyn SecretSource>, scheme: Scheme, limits: &Limits) -> Self {
        Self {
            source,
            scheme,
            cooldown: limits.secret_cooldown,
            max_age: limits.secret_max_age,
            held: Mutex::new(Held::default()),
        }
    }

    /// The verifier in force. While the source is down the last good one stays in force.
    ///
    /// # Errors
    /// When there has never been one.
    pub async fn current(&self, now: Timestamp) -> Result<Arc<Verifier>, NoKeys> {
        let mut held = self.held.lock().await;
        let age = held.loaded_at.map(|at| between(at, now));
        let rested = |held: &Held, pause| held.tried_at.is_none_or(|at| between(at, now) >= pause);
        match held.verifier.clone() {
            Some(verifier) => {
                let old = age.is_none_or(|age| age >= self.max_age);
                if old && rested(&held, self.cooldown) {
                    // The error of a refresh is not an error of this delivery.
                    return Ok(self.load(&mut held, now).await.unwrap_or(verifier));
                }
                Ok(verifier)
            }
            None if rested(&held, COLD_PAUSE) => self.load(&mut held, now).await,
            None => Err(NoKeys::Cold),
        }
    }

    /// A verifier newer than the one that found no match, if there is one to be had now.
    ///
    /// At most one load per cool-down, however many deliveries ask.
    pub async fn newer_than(&self, used: &Arc<Verifier>, now: Timestamp) -> Option<Arc<Verifier>> {
        let mut held = self.held.lock().await;
        if let Some(verifier) = &held.verifier
            && !Arc::ptr_eq(verifier, used)
        {
            return Some(Arc::clone(verifier));
        }
        if held.tried_at.is_some_and(|at| between(at, now) < self.cooldown) {
            return None;
        }
        self.load(&mut held, now).await.ok()
    }

    async fn load(&self, held: &mut Held, now: Timestamp) -> Result<Arc<Verifier>, NoKeys> {
        held.tried_at = Some(now);
        let secrets = self.source.load().await.map_err(NoKeys::Load)?;
        let verifier =
            Verifier::new(self.scheme.clone(), &secrets).map_err(NoKeys::Unconfigured)?;
        let verifier = Arc::new(verifier);
        held.verifier = Some(Arc::clone(&verifier));
        held.loaded_at = Some(now);
        Ok(verifier)
    }
}
