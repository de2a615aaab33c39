//! One secret that holds a signing secret, or may.

use std::collections::BTreeSet;

use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueOutput;
use domain::job::Kind;
use domain::ports::Webhook;
use domain::signature::secret::Secret;
use sha2::{Digest as _, Sha256};

use crate::error::CliError;
use crate::exit::Exit;

/// One secret.
#[derive(Clone)]
pub(super) struct Slot {
    /// Its name or ARN.
    pub(super) id: String,
    /// The kind of webhook that it was made for, if its name tells.
    pub(super) kind: Option<Kind>,
    /// The id of its current version, if it has one.
    version: Option<String>,
    holds: Holds,
}

/// What a secret holds.
#[derive(Clone)]
enum Holds {
    /// No value.
    Nothing,
    /// A value that names its webhook.
    Named(Secret),
    /// A value that names none: a secret that somebody typed, or something unusable.
    Unnamed(Option<Secret>),
}

fn held(output: &GetSecretValueOutput) -> Holds {
    let bytes =
        output.secret_binary().map(AsRef::as_ref).and_then(|it| std::str::from_utf8(it).ok());
    let text = output.secret_string().or(bytes).unwrap_or_default();
    match Secret::parse_stored(text) {
        Ok(secret) if secret.webhook_id().is_some() => Holds::Named(secret),
        secret => Holds::Unnamed(secret.ok()),
    }
}

/// The kind of webhook that a secret was made for, as its name tells: `ExtractWebhookSecret-...`
/// of the template, or a name of somebody's own that has one kind in it.
pub(super) fn kind_of(id: &str) -> Option<Kind> {
    let name = id.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    let one = |form: fn(Kind) -> String| {
        let mut kinds = Kind::ALL.into_iter().filter(|kind| name.contains(&form(*kind)));
        kinds.next().filter(|_| kinds.next().is_none())
    };
    one(|kind| format!("{kind}webhook")).or_else(|| one(|kind| kind.to_string()))
}

impl Slot {
    /// A secret and its current version; `None` where it has no value.
    pub(super) fn new(id: &str, current: Option<&GetSecretValueOutput>) -> Self {
        Self {
            id: id.to_owned(),
            kind: kind_of(id),
            version: current.and_then(|current| current.version_id().map(str::to_owned)),
            holds: current.map_or(Holds::Nothing, held),
        }
    }

    /// The secret's name, without what its ARN has before it.
    pub(super) fn name(&self) -> &str {
        self.id.rsplit(':').next().unwrap_or(&self.id)
    }

    /// Whether a new value would take nothing from anybody: the webhook that the value belongs to
    /// is gone, or none is left whose secret it could be.
    pub(super) fn is_free(&self, present: &[Webhook], known: &BTreeSet<String>) -> bool {
        let is_known = |webhook: &Webhook| known.contains(webhook.id.as_str());
        match &self.holds {
            Holds::Nothing => true,
            Holds::Named(secret) => {
                let id = secret.webhook_id();
                present.iter().all(|webhook| Some(webhook.id.as_str()) != id)
            }
            Holds::Unnamed(_) => present.iter().all(is_known),
        }
    }

    /// The id of the version that follows the current one.
    pub(super) fn next_version(&self) -> String {
        let version = self.version.as_deref().unwrap_or_default();
        hex::encode(Sha256::digest(format!("gleaner\n{}\n{version}", self.id)))
    }

    /// The webhook whose secret it holds, if the value names one.
    pub(super) fn webhook_id(&self) -> Option<&str> {
        match &self.holds {
            Holds::Named(secret) => secret.webhook_id(),
            Holds::Nothing | Holds::Unnamed(_) => None,
        }
    }

    /// The signing secret in it.
    pub(super) fn secret(&self) -> Option<&Secret> {
        match &self.holds {
            Holds::Named(secret) | Holds::Unnamed(Some(secret)) => Some(secret),
            Holds::Nothing | Holds::Unnamed(None) => None,
        }
    }
}

/// What to say where no secret is left for a webhook of this kind.
pub(super) fn no_room(kind: Kind, slots: &[Slot]) -> CliError {
    let fits = |slot: &&Slot| slot.kind.is_none_or(|of| of == kind);
    let text = format!("there is no secret for the webhook of {kind} jobs");
    let hint = match slots.iter().find(fits) {
        None => format!(
            "name `{kind}` in the stack's parameter WebhookKinds and deploy it again, or leave \
             it out with --event"
        ),
        Some(slot) => match slot.webhook_id() {
            Some(id) => format!(
                "`{}` holds the one of webhook {id}: delete that with `gleaner webhooks delete \
                 {id}` first",
                slot.name()
            ),
            None => format!(
                "`{}` holds a value that names no webhook, and may be that of one that `gleaner \
                 webhooks list` shows with an unknown secret: delete that webhook first, or keep \
                 both",
                slot.name()
            ),
        },
    };
    CliError::new(Exit::Configuration, text).hint(hint)
}
