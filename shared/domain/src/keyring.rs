//! The signing secrets as one process holds them: loaded on first use, again when they are old,
//! and once per cool-down when a signature matches none of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::Limits;
use crate::ports::{Clock, ErrorKind, LoadedSecrets, PortError, SecretSource};
use crate::signature::scheme::Scheme;
use crate::signature::secret::Secret;
use crate::signature::verdict::Unconfigured;
use crate::signature::{SECRETS_MAX, Verifier};
use crate::time::{Timestamp, between};
use crate::within::within;

/// How long a failed first load is not repeated, so that a storm of deliveries is not a storm of
/// loads.
const COLD_PAUSE: Duration = Duration::from_secs(1);
/// How many maximum ages the last good secrets stay in force while the source is down, or one of
/// them cannot be read: with the default age, one hour. After that a retired secret might be
/// accepted for ever.
const LAST_GOOD_AGES: u32 = 12;
/// Share of the receiver's deadline that a load may take, in fifths: the ledger and the queue
/// need the rest.
const LOAD_FIFTHS: u32 = 3;

/// Holds the verifier made of the secrets in force.
pub struct Keyring {
    source: Arc<dyn SecretSource>,
    scheme: Scheme,
    cooldown: Duration,
    max_age: Duration,
    load_limit: Duration,
    held: Mutex<Held>,
    // One load at a time: whoever waits here finds the winner's verifier.
    loading: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Held {
    verifier: Option<Arc<Verifier>>,
    loaded_at: Option<Timestamp>,
    /// When the oldest of the secrets in force were read.
    read_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    /// Whether the last load failed or was given up half-way, so that nothing is known of newer
    /// secrets.
    is_stale: bool,
    /// The last load that lacked none.
    whole: Option<Whole>,
}

/// All secrets, as a load that began then found them.
#[derive(Clone)]
struct Whole {
    secrets: Arc<[Secret]>,
    read_at: Timestamp,
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
            load_limit: limits.receive_deadline.saturating_mul(LOAD_FIFTHS) / 5,
            held: Mutex::new(Held::default()),
            loading: tokio::sync::Mutex::new(()),
        }
    }

    /// The verifier in force. While the source is down the last good one stays in force, for a
    /// limited time; a source that says there is no secret any more is obeyed at once. Where a
    /// secret cannot be read, the others are in force, for that time beside all secrets as they
    /// were last; what matches none of them is
    /// [`Verdict::Unconfigured`](crate::signature::verdict::Verdict::Unconfigured).
    ///
    /// Of many deliveries that find the secrets old, one waits for the refresh; the others go on
    /// with the verifier that they found.
    ///
    /// # Errors
    /// When there is none.
    pub async fn current(&self, clock: &dyn Clock) -> Result<Arc<Verifier>, NoKeys> {
        if let Some(verifier) = self.in_force(clock.now()) {
            let Ok(_flight) = self.loading.try_lock() else { return Ok(verifier) };
            let (held, now) = (self.held().clone(), clock.now());
            let is_due = has_passed(held.loaded_at, self.max_age, now)
                && has_passed(held.tried_at, self.cooldown, now);
            if !is_due {
                return Ok(held.verifier.unwrap_or(verifier));
            }
            return match self.load(clock).await {
                // The error of a refresh is not an error of this delivery.
                Err(NoKeys::Load(_)) => Ok(verifier),
                outcome => outcome,
            };
        }
        let _flight = self.loading.lock().await;
        let now = clock.now();
        if let Some(verifier) = self.in_force(now) {
            return Ok(verifier);
        }
        let tried_at = self.held().tried_at;
        if has_passed(tried_at, COLD_PAUSE, now) {
            self.load(clock).await
        } else {
            Err(NoKeys::Cold)
        }
    }

    /// A verifier newer than the one that found no match; `None` if the secrets were read a moment
    /// ago and there is none.
    ///
    /// At most one load per cool-down, however many deliveries ask.
    ///
    /// # Errors
    /// When the secrets could not be read, now or a moment ago: whether there is a newer one is
    /// not known, so the delivery cannot be refused.
    pub async fn newer_than(
        &self,
        used: &Arc<Verifier>,
        clock: &dyn Clock,
    ) -> Result<Option<Arc<Verifier>>, NoKeys> {
        let _flight = self.loading.lock().await;
        let now = clock.now();
        if let Some(verifier) = self.in_force(now)
            && !Arc::ptr_eq(&verifier, used)
        {
            return Ok(Some(verifier));
        }
        let (tried_at, is_stale) = {
            let held = self.held();
            (held.tried_at, held.is_stale)
        };
        if has_passed(tried_at, self.cooldown, now) {
            return self.load(clock).await.map(Some);
        }
        if is_stale { Err(NoKeys::Cold) } else { Ok(None) }
    }

    /// Loads the secrets. To be called by the holder of `loading` only.
    async fn load(&self, clock: &dyn Clock) -> Result<Arc<Verifier>, NoKeys> {
        let began_at = clock.now();
        {
            // Noted before the call: its caller may hang up in the middle of it.
            let mut held = self.held();
            held.tried_at = Some(began_at);
            held.is_stale = true;
        }
        let mut read_at = began_at;
        let outcome = match within(clock, self.load_limit, self.source.load()).await {
            None => Err(NoKeys::Load(
                PortError::new("secrets", "load", ErrorKind::Unavailable)
                    .with_source("no answer within the receiver's deadline"),
            )),
            Some(Err(error)) => Err(NoKeys::Load(error)),
            // Neither this nor an error that passes leaves fewer secrets in force than there were.
            Some(Ok(LoadedSecrets { secrets, unread: Some(error) })) if secrets.is_empty() => {
                Err(NoKeys::Load(error))
            }
            Some(Ok(LoadedSecrets { secrets, unread: Some(_) })) => {
                let known = self.beside_the_last(secrets, clock.now(), &mut read_at);
                let verifier = Verifier::new(self.scheme.clone(), &known);
                verifier.map(Verifier::beside_an_unread_one).map_err(NoKeys::Unconfigured)
            }
            Some(Ok(LoadedSecrets { secrets, unread: None })) => {
                let verifier = Verifier::new(self.scheme.clone(), &secrets);
                if verifier.is_ok() {
                    self.held().whole = Some(Whole { secrets: secrets.into(), read_at: began_at });
                }
                verifier.map_err(NoKeys::Unconfigured)
            }
        };
        let outcome = outcome.map(Arc::new);
        let mut held = self.held();
        held.tried_at = Some(clock.now());
        match &outcome {
            Ok(verifier) => {
                held.verifier = Some(Arc::clone(verifier));
                held.loaded_at = Some(began_at);
                held.read_at = Some(read_at);
                held.is_stale = false;
            }
            Err(NoKeys::Unconfigured(Unconfigured::NoSecret)) => {
                (held.verifier, held.whole) = (None, None);
            }
            Err(_) => {}
        }
        outcome
    }

    /// Secrets that could be read where one could not, and after them those that were in force when
    /// all could: the one that is missing is among these, and which of them it is nobody says. With
    /// these, all are trusted as long only as they are.
    fn beside_the_last(
        &self,
        mut secrets: Vec<Secret>,
        now: Timestamp,
        read_at: &mut Timestamp,
    ) -> Vec<Secret> {
        let Some(whole) = self.held().whole.clone() else { return secrets };
        if self.has_outlived(whole.read_at, now) {
            return secrets;
        }
        for last in whole.secrets.iter() {
            let is_read = secrets.iter().any(|secret| secret.expose() == last.expose());
            if !is_read && secrets.len() < SECRETS_MAX {
                secrets.push(last.clone());
                *read_at = whole.read_at;
            }
        }
        secrets
    }

    fn in_force(&self, now: Timestamp) -> Option<Arc<Verifier>> {
        let held = self.held();
        let read_at = held.read_at?;
        held.verifier.clone().filter(|_| !self.has_outlived(read_at, now))
    }

    /// Whether secrets that were read then are too old to be trusted.
    fn has_outlived(&self, read_at: Timestamp, now: Timestamp) -> bool {
        between(read_at, now) >= self.max_age.saturating_mul(LAST_GOOD_AGES)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `pause` has passed since `at`. A clock that was set back does not make it wait.
fn has_passed(at: Option<Timestamp>, pause: Duration, now: Timestamp) -> bool {
    at.is_none_or(|at| at > now || between(at, now) >= pause)
}

#[cfg(test)]
mod tests;
