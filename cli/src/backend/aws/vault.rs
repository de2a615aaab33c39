//! Signing secrets of webhooks in Secrets Manager, one in each of the secrets that were made for
//! them.

mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use aws_client::{SdkConfig, classify};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::http::HttpResponse;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use aws_sdk_secretsmanager::operation::put_secret_value::PutSecretValueError;
use domain::job::Kind;
use domain::ports::{ErrorKind, PortError, Webhook, WebhookId};
use domain::signature::secret::Secret;

use self::slot::{Slot, no_room};
use crate::backend::Keeper;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::note;

/// The port and the operations in errors.
pub(super) const SECRETS: &str = "secrets";
pub(super) const LOAD: &str = "load";
pub(super) const KEEP: &str = "keep";
/// The code for a secret that is marked for deletion.
pub(super) const GOING: &str = "InvalidRequestException";
/// The label of the version that counts.
const CURRENT: &str = "AWSCURRENT";

/// What to do when somebody else was faster.
const BUSY: &str = "see what is there with `gleaner webhooks list`, and run it again; if it was you \
                    who made an older version the current one, put any value into it by hand first";

/// The secrets of a stack that hold the signing secrets of webhooks.
///
/// A secret is written by one call that takes effect only if its current version is still the one
/// that was read: the new version's id follows from the old one's, and Secrets Manager refuses an
/// id that is in use for another value. Of two calls that meet, one fails.
pub(in crate::backend) struct Vault {
    client: Client,
    ids: Vec<String>,
    /// What each secret holds, in the order of `ids`; `None` until it was read.
    slots: Mutex<Option<Vec<Slot>>>,
    chosen: Mutex<BTreeMap<Kind, Slot>>,
    /// What was put, or tried to be.
    put: Mutex<Vec<Secret>>,
}

impl Vault {
    /// The secrets of these names or ARNs. Nothing is read yet.
    pub(super) fn new(config: &SdkConfig, ids: Vec<String>) -> Self {
        Self {
            client: Client::new(config),
            ids,
            slots: Mutex::default(),
            chosen: Mutex::default(),
            put: Mutex::default(),
        }
    }

    /// What each secret holds, as it was when this was first asked.
    async fn slots(&self) -> Result<Vec<Slot>, CliError> {
        if let Some(slots) = locked(&self.slots).clone() {
            return Ok(slots);
        }
        let mut slots = Vec::new();
        for id in &self.ids {
            slots.push(self.read(id).await?);
        }
        *locked(&self.slots) = Some(slots.clone());
        Ok(slots)
    }

    async fn read(&self, id: &str) -> Result<Slot, CliError> {
        let call = self.client.get_secret_value().secret_id(id).version_stage(CURRENT);
        match call.send().await {
            Ok(current) => Ok(Slot::new(id, Some(&current))),
            // A secret without a value, as a stack makes it; one that is not there at all shows
            // when it is written.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetSecretValueError::is_resource_not_found_exception) =>
            {
                Ok(Slot::new(id, None))
            }
            Err(error) => Err(failed(LOAD, error)),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that failed. A secret that is marked for deletion is an operator's to mend, and no bug.
fn failed<E>(operation: &'static str, error: SdkError<E, HttpResponse>) -> CliError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let is_going = error.code() == Some(GOING);
    let (kind, source) = classify(error);
    let kind = if is_going { ErrorKind::Denied } else { kind };
    PortError::new(SECRETS, operation, kind).with_source(source).into()
}

#[async_trait]
impl Keeper for Vault {
    async fn prepare(&self) -> Result<(), CliError> {
        if self.ids.is_empty() {
            return Err(CliError::new(
                Exit::Configuration,
                "nothing says where signing secrets go",
            )
            .hint("give --stack, or name the secrets in the setting `webhook_secret_ids`"));
        }
        Ok(())
    }

    async fn known(&self) -> Result<BTreeSet<String>, CliError> {
        let slots = self.slots().await?;
        Ok(slots.iter().filter_map(Slot::webhook_id).map(str::to_owned).collect())
    }

    async fn kinds(&self) -> Result<Vec<Kind>, CliError> {
        let slots = self.slots().await?;
        let is_open = slots.iter().any(|slot| slot.kind.is_none());
        let is_wanted = |kind: &Kind| is_open || slots.iter().any(|slot| slot.kind == Some(*kind));
        Ok(Kind::ALL.into_iter().filter(is_wanted).collect())
    }

    async fn make_room(&self, kinds: &[Kind], present: &[Webhook]) -> Result<(), CliError> {
        let (mut free, known) = (self.slots().await?, self.known().await?);
        free.retain(|slot| slot.is_free(present, &known));
        // Those that were made for a kind first, so that none is taken by another.
        for strict in [true, false] {
            for kind in kinds {
                if locked(&self.chosen).contains_key(kind) {
                    continue;
                }
                let wanted = if strict { Some(*kind) } else { None };
                if let Some(at) = free.iter().position(|slot| slot.kind == wanted) {
                    locked(&self.chosen).insert(*kind, free.remove(at));
                }
            }
        }
        let chosen = locked(&self.chosen);
        match kinds.iter().find(|kind| !chosen.contains_key(kind)) {
            None => Ok(()),
            Some(kind) => Err(no_room(*kind, locked(&self.slots).as_deref().unwrap_or_default())),
        }
    }

    async fn keep(&self, kind: Kind, _webhook: &Webhook, secret: &Secret) -> Result<(), CliError> {
        let slot = locked(&self.chosen).get(&kind).cloned();
        let slot = slot.ok_or_else(|| CliError::new(Exit::Bug, "no place was chosen"))?;
        let value = serde_json::json!({
            "secret": secret.expose(),
            "webhook_id": secret.webhook_id(),
        });
        let call = self
            .client
            .put_secret_value()
            .secret_id(&slot.id)
            .client_request_token(slot.next_version())
            .secret_string(value.to_string())
            .version_stages(CURRENT);
        // Before it may be repeated by anybody.
        locked(&self.put).push(secret.clone());
        match call.send().await {
            Ok(_) => {
                note(&format!("note: its signing secret is in `{}`", slot.name()));
                Ok(())
            }
            Err(error) => {
                let refused = error.as_service_error();
                if refused.is_some_and(PutSecretValueError::is_resource_exists_exception) {
                    let text = format!("somebody else has just put a value into `{}`", slot.name());
                    return Err(CliError::new(Exit::TryAgain, text).hint(BUSY));
                }
                Err(failed(KEEP, error))
            }
        }
    }

    async fn follow(&self, webhook: &Webhook) -> Result<bool, CliError> {
        Ok(self.known().await?.contains(webhook.id.as_str()))
    }

    async fn release(&self, id: &WebhookId) -> Result<bool, CliError> {
        let slots = self.slots().await?;
        let Some(slot) = slots.iter().find(|slot| slot.webhook_id() == Some(id.as_str())) else {
            return Ok(false);
        };
        // An empty secret would refuse the deliveries of all webhooks.
        note(&format!(
            "note: its signing secret stays in `{}` until the next webhook's takes its place",
            slot.name()
        ));
        Ok(true)
    }

    fn exposed(&self) -> Vec<Secret> {
        let read = locked(&self.slots);
        let read = read.iter().flatten().filter_map(Slot::secret);
        read.chain(locked(&self.put).iter()).cloned().collect()
    }
}

#[cfg(test)]
#[cfg(feature = "aws-testing")]
mod tests;
