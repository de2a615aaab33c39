use async_trait::async_trait;

use super::PortError;
use crate::signature::secret::Secret;

/// Where the signing secrets come from.
#[async_trait]
pub trait SecretSource: Send + Sync {
    /// Reads all signing secrets in force: each subscription's current and pending one, and the
    /// previous one while its grace lasts.
    ///
    /// # Errors
    /// `Corrupt` when a secret is there and cannot be understood (its value is never in the
    /// error); otherwise transient or `Denied`. A source may give the others instead, and say so in
    /// [`LoadedSecrets::unread`], where a person has to mend that one.
    async fn load(&self) -> Result<LoadedSecrets, PortError>;
}

/// Signing secrets as they were read.
#[derive(Debug, Default)]
pub struct LoadedSecrets {
    /// Those in force, of those that can be read.
    pub secrets: Vec<Secret>,
    /// Why one of them cannot be: `Corrupt` or `Denied`. What matches none of the others may be
    /// signed with it.
    pub unread: Option<PortError>,
}

impl From<Vec<Secret>> for LoadedSecrets {
    /// All that there are.
    fn from(secrets: Vec<Secret>) -> Self {
        Self { secrets, unread: None }
    }
}
