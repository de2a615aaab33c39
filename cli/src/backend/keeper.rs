//! Where the signing secrets of webhooks are kept.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::job::Kind;
use domain::ports::{Webhook, WebhookId};
use domain::signature::secret::Secret;

use crate::error::CliError;

/// Keeps the signing secrets of webhooks for whoever receives deliveries.
#[async_trait]
pub(crate) trait Keeper: Send + Sync {
    /// Sees to it that secrets can be kept, before the platform is asked for any. Repeating it is
    /// harmless.
    ///
    /// # Errors
    /// When they cannot.
    async fn prepare(&self) -> Result<(), CliError>;

    /// The ids of the webhooks whose secrets are here and in force.
    ///
    /// # Errors
    /// When the secrets cannot be read.
    async fn known(&self) -> Result<BTreeSet<String>, CliError>;

    /// The kinds of job for whose webhooks there is a place, where nobody says which are wanted.
    ///
    /// # Errors
    /// As [`Keeper::known`].
    async fn kinds(&self) -> Result<Vec<Kind>, CliError>;

    /// Chooses a place for the secret of one more webhook of each of these kinds; `present` are
    /// those that the account has. To be called once, before [`Keeper::keep`].
    ///
    /// # Errors
    /// When there is no place, and those of [`Keeper::known`].
    async fn make_room(&self, kinds: &[Kind], present: &[Webhook]) -> Result<(), CliError>;

    /// Keeps the secret of a webhook of this kind, which knows its webhook's id. It is durable when
    /// this returns. A second identical call changes nothing, and may be refused. When the answer is
    /// lost it may be kept.
    ///
    /// # Errors
    /// When it cannot be kept; what was kept before is untouched.
    async fn keep(&self, kind: Kind, webhook: &Webhook, secret: &Secret) -> Result<(), CliError>;

    /// Notes where a webhook delivers now; whether its secret is here.
    ///
    /// # Errors
    /// As [`Keeper::known`].
    async fn follow(&self, webhook: &Webhook) -> Result<bool, CliError>;

    /// Lets go of the secret of a webhook that is deleted; whether it was here.
    ///
    /// # Errors
    /// As [`Keeper::known`].
    async fn release(&self, id: &WebhookId) -> Result<bool, CliError>;

    /// The secrets that are here, for whoever must not repeat them.
    fn exposed(&self) -> Vec<Secret>;
}
