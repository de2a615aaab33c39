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
    /// error); otherwise transient or `Denied`.
    async fn load(&self) -> Result<Vec<Secret>, PortError>;
}
