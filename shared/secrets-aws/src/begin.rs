//! Having Secrets Manager begin a rotation.

use aws_sdk_secretsmanager::operation::rotate_secret::RotateSecretError;
use domain::ports::{PortError, SlotId, VersionId};
use domain::signature::secret::Stage;

use crate::AwsVault;

/// The operation in errors.
const BEGIN: &str = "begin_rotation";

/// Whether a rotation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Secrets Manager calls its function now, step by step.
    Now,
    /// No function is configured for the secret.
    NotConfigured,
    /// Another rotation is under way.
    UnderWay,
}

impl AwsVault {
    /// Has Secrets Manager rotate a secret, as the console's *Rotate secret immediately* does.
    ///
    /// Needs `secretsmanager:RotateSecret` and `DescribeSecret`. A second call with the same version
    /// begins nothing new; when the answer is lost, the rotation may have begun.
    ///
    /// # Errors
    /// As those of the vault.
    pub async fn begin_rotation(
        &self,
        slot: &SlotId,
        version: &VersionId,
    ) -> Result<Begun, PortError> {
        let described = self.describe(BEGIN, slot).await?;
        if !described.is_rotated {
            return Ok(Begun::NotConfigured);
        }
        let pending = described.holder(Stage::Pending);
        if pending.is_some() && pending != described.holder(Stage::Current) {
            return Ok(Begun::UnderWay);
        }
        let call = self.client.rotate_secret().secret_id(slot.as_str());
        match call.client_request_token(version.as_str()).send().await {
            Ok(_) => Ok(Begun::Now),
            // Somebody else was faster.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(RotateSecretError::is_invalid_request_exception) =>
            {
                Ok(Begun::UnderWay)
            }
            Err(error) => Err(self.failed(BEGIN, slot, error)),
        }
    }
}
