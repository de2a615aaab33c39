//! Region and credentials, as the SDK finds them on a person's machine. What it logs meanwhile,
//! whole answers among it, is dropped: what a person should know is in the errors.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_client::{Patience, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use aws_types::region::Region;
use domain::ports::Clock as _;
use domain::time::{Timestamp, after};
use tokio::sync::Mutex;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use crate::error::CliError;
use crate::exit::Exit;
use system::SystemClock;

/// How long a call may take from a person's machine, which may be far from the region.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(5),
    attempt: Duration::from_secs(15),
    operation: Duration::from_secs(40),
    attempts: 4,
};
/// Longest search for credentials: time for somebody to answer a program that asks for a code.
const CREDENTIALS_WITHIN: Duration = Duration::from_mins(1);
/// How long before their end credentials are asked for again.
const RENEWED_BEFORE: Duration = Duration::from_mins(2);

/// Longest text about credentials that cannot be had, in characters: a program's own words.
const CAUSE_CHARS_MAX: usize = 500;

/// What a person can do to be known to AWS.
const SIGN_IN: &str = "sign in with `aws sso login` or `aws configure`, name a profile in \
                       AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// The configuration of all clients, whose credentials are known to be there.
///
/// # Errors
/// When there is no region, or there are no credentials, or they have expired.
pub(super) async fn open(region: Option<&str>) -> Result<SdkConfig, CliError> {
    #[expect(clippy::disallowed_methods, reason = "the SDK reads its own variables, and so do we")]
    let variables = |name: &str| std::env::var(name).ok();
    let finding = aws_client::from_profile(&variables, None, PATIENCE);
    let config = finding.with_subscriber(NoSubscriber::default()).await.map_err(|error| {
        CliError::new(Exit::Configuration, "the certificates for AWS cannot be used").because(error)
    })?;
    let region = match region {
        Some(region) => Some(Region::new(region.to_owned())),
        None => config.region().cloned(),
    };
    let region = region.ok_or_else(|| {
        CliError::new(Exit::Configuration, "there is no AWS region")
            .hint("give --region, set AWS_REGION or GLEANER_REGION, or name one in the profile")
    })?;
    let profile = variables("AWS_PROFILE");
    let found = config.credentials_provider().ok_or_else(|| missing(profile.as_deref()))?;
    let credentials = Arc::new(Remembered { found, last: Mutex::default() });
    let sought = tokio::time::timeout(CREDENTIALS_WITHIN, credentials.get()).await;
    let sought =
        sought.unwrap_or_else(|_| Err(CredentialsError::provider_timed_out(CREDENTIALS_WITHIN)));
    match sought {
        Ok(_) => {}
        Err(CredentialsError::CredentialsNotLoaded(_)) => return Err(missing(profile.as_deref())),
        Err(error) => return Err(unusable(&error)),
    }
    let provider = SharedCredentialsProvider::new(Shared(credentials));
    Ok(config.into_builder().region(region).credentials_provider(provider).build())
}

fn missing(profile: Option<&str>) -> CliError {
    let text = match profile {
        Some(profile) => format!("there are no AWS credentials in the profile `{profile}`"),
        None => "there are no AWS credentials".to_owned(),
    };
    CliError::new(Exit::Configuration, text).hint(SIGN_IN)
}

fn unusable(error: &CredentialsError) -> CliError {
    // The causes above the last one say no more than this error itself.
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    let told: String = last.to_string().trim().chars().take(CAUSE_CHARS_MAX).collect();
    CliError::new(Exit::Configuration, "the AWS credentials cannot be had")
        .because(told)
        .hint(format!("`aws sts get-caller-identity` shows the same; {SIGN_IN}"))
}

/// Credentials that are asked for once, and again shortly before they expire: every client asks
/// for its own, and each answer may take a program or a call.
#[derive(Debug)]
struct Remembered {
    found: SharedCredentialsProvider,
    last: Mutex<Option<Credentials>>,
}

impl Remembered {
    async fn get(&self) -> Result<Credentials, CredentialsError> {
        let mut last = self.last.lock().await;
        if let Some(credentials) = last.as_ref().filter(|last| is_lasting(last)) {
            return Ok(credentials.clone());
        }
        let asking = self.found.provide_credentials();
        let credentials = asking.with_subscriber(NoSubscriber::default()).await?;
        Ok(last.insert(credentials).clone())
    }
}

fn is_lasting(credentials: &Credentials) -> bool {
    let Some(expiry) = credentials.expiry() else { return true };
    let soon = after(SystemClock.now(), RENEWED_BEFORE);
    Timestamp::try_from(expiry).is_ok_and(|expiry| expiry > soon)
}

/// The remembered credentials, for the clients.
#[derive(Debug)]
struct Shared(Arc<Remembered>);

impl ProvideCredentials for Shared {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.0.get())
    }
}
