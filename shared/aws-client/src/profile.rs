//! The configuration of a person's machine.

use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_types::SdkConfig;

use crate::environment::app_name;
use crate::http;
use crate::patience::Patience;
use crate::roots::{RootsError, trusted};

/// The configuration as the SDK's whole chain finds it: variables, profiles, SSO, programs, the
/// roles of containers and machines. `profile` goes before `AWS_PROFILE`.
///
/// Credentials are looked for at the first call, not here; where there are none, [`port_error`]
/// says `Denied`.
///
/// [`port_error`]: crate::port_error
///
/// # Errors
/// When the file that `AWS_CA_BUNDLE` names cannot be used.
pub async fn from_profile(
    variables: &dyn Fn(&str) -> Option<String>,
    profile: Option<&str>,
    patience: Patience,
) -> Result<SdkConfig, RootsError> {
    let bundle = variables("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
    let roots = trusted(bundle.as_deref().map(std::path::Path::new))?;
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http::client(roots))
        .timeout_config(patience.timeouts())
        .retry_config(patience.retries());
    if let Some(name) = app_name() {
        loader = loader.app_name(name);
    }
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    Ok(loader.load().await)
}
