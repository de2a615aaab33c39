//! Where the results lie on S3, and how long it may take.

use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
use aws_types::service_config::ServiceConfigKey;
use domain::object::check_key;

/// Longest key prefix, in bytes: keys of the layout have at most some 700 bytes, S3's 1,024.
const PREFIX_BYTES_MAX: usize = 256;

/// Where the results lie on S3.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// The bucket's name.
    pub bucket: String,
    /// The bucket's region.
    pub region: String,
    /// What comes before each key, such as `gleaner/results`; empty for nothing.
    pub prefix: String,
    /// The URL of another service that speaks as S3 does; the bucket's name is then part of the
    /// path. Only such a URL may be plain http.
    pub endpoint: Option<String>,
    /// Whether S3's endpoints with validated cryptography are used.
    pub fips: bool,
    /// Whether S3's endpoints with IPv6 are used.
    pub dual_stack: bool,
    /// Signs the requests.
    pub credentials: SharedCredentialsProvider,
    /// How long it may take.
    pub tempo: S3Tempo,
}

/// How long one call of S3 may take. The defaults end before the domain's call time-out of 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S3Tempo {
    /// Longest time to connect.
    pub connect: Duration,
    /// Longest time of one attempt, its bodies included.
    pub attempt: Duration,
    /// Attempts after the first one.
    pub retries: usize,
    /// No attempt begins later than this after the first one, but for the pause before it.
    pub retrying: Duration,
    /// Shortest pause before another attempt.
    pub pause: Duration,
    /// Longest pause before another attempt.
    pub pause_max: Duration,
}

impl Default for S3Tempo {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            attempt: Duration::from_secs(20),
            retries: 3,
            retrying: Duration::from_secs(8),
            pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(1),
        }
    }
}

impl S3Tempo {
    /// Longest time of one call with all its attempts. A put that finds an object there makes a
    /// second call to read it.
    pub const fn call_max(&self) -> Duration {
        self.retrying.saturating_add(self.pause_max).saturating_add(self.attempt)
    }
}

impl S3Settings {
    /// From the configuration that all clients of AWS share, with the default tempo.
    ///
    /// The endpoint is that of S3 (`AWS_ENDPOINT_URL_S3`), or else that of all services
    /// (`AWS_ENDPOINT_URL`). The shared configuration's HTTP client, time-outs and retries are not
    /// used; the proxies' variables and the system's certificates, or those of
    /// `SSL_CERT_FILE`, count here too.
    ///
    /// # Errors
    /// When there is no region, or nothing that gives credentials.
    pub fn new(config: &SdkConfig, bucket: &str, prefix: &str) -> Result<Self, S3Error> {
        let key = ServiceConfigKey::builder()
            .service_id("S3")
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url")
            .build();
        let own = config.service_config().zip(key.ok());
        let own = own.and_then(|(services, key)| services.load_config(key));
        Ok(Self {
            bucket: bucket.to_owned(),
            region: config.region().ok_or(S3Error::NoRegion)?.to_string(),
            prefix: prefix.to_owned(),
            endpoint: own.or_else(|| config.endpoint_url().map(str::to_owned)),
            fips: config.use_fips().unwrap_or(false),
            dual_stack: config.use_dual_stack().unwrap_or(false),
            credentials: config.credentials_provider().ok_or(S3Error::NoCredentials)?,
            tempo: S3Tempo::default(),
        })
    }

    /// The bucket's URL, and whether it is the bucket's name that the host begins with.
    pub(super) fn url(&self) -> (String, bool) {
        let Self { bucket, region, .. } = self;
        if let Some(endpoint) = &self.endpoint {
            return (endpoint.clone(), false);
        }
        let fips = if self.fips { "-fips" } else { "" };
        let dual_stack = if self.dual_stack { ".dualstack" } else { "" };
        let partition = if region.starts_with("cn-") { ".cn" } else { "" };
        let host = format!("s3{fips}{dual_stack}.{region}.amazonaws.com{partition}");
        // A dot in the bucket's name is beyond what the certificate of S3 is for.
        if bucket.contains('.') {
            (format!("https://{host}"), false)
        } else {
            (format!("https://{bucket}.{host}"), true)
        }
    }
}

/// Why a bucket cannot be used. Nothing was asked of S3 yet.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The configuration names no region.
    #[error("there is no region for S3: set AWS_REGION")]
    NoRegion,
    /// The configuration has no source of credentials.
    #[error("there are no credentials for S3")]
    NoCredentials,
    /// The bucket's name is none.
    #[error(
        "`{bucket}` is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens"
    )]
    Bucket {
        /// The name.
        bucket: String,
    },
    /// The region's name is none.
    #[error("`{region}` is not the name of a region, such as `eu-central-1`")]
    Region {
        /// The name.
        region: String,
    },
    /// The prefix has characters that keys do not have.
    #[error(
        "`{prefix}` is no key prefix: up to 256 letters, digits, `-`, `_`, `=`, `.` between single slashes"
    )]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// The endpoint is no URL.
    #[error("the endpoint of S3 is not an http or https URL of a host")]
    Endpoint,
    /// No client could be made.
    #[error("no client of S3 can be made")]
    Client(#[source] object_store::Error),
}

/// Checks the settings and gives the prefix without slashes at its ends.
pub(super) fn check(settings: &S3Settings) -> Result<String, S3Error> {
    let S3Settings { bucket, region, prefix, endpoint, .. } = settings;
    let is_low = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(|byte| is_low(byte) || byte == b'.')
    {
        return Err(S3Error::Bucket { bucket: bucket.clone() });
    }
    if region.is_empty() || region.len() > 32 || !region.bytes().all(is_low) {
        return Err(S3Error::Region { region: region.clone() });
    }
    if endpoint.as_deref().is_some_and(|endpoint| !is_endpoint(endpoint)) {
        return Err(S3Error::Endpoint);
    }
    let trimmed = prefix.strip_prefix('/').unwrap_or(prefix);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    // Upper-case letters are as good as others here, where no file system folds them.
    let is_layout =
        matches!(prefix.as_str(), "" | "/") || check_key(&trimmed.to_ascii_lowercase()).is_ok();
    if !is_layout || trimmed.len() > PREFIX_BYTES_MAX {
        return Err(S3Error::Prefix { prefix: prefix.clone() });
    }
    Ok(trimmed.to_owned())
}

/// Whether this is a URL with a host and neither user, query nor fragment.
fn is_endpoint(endpoint: &str) -> bool {
    endpoint.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && uri.query().is_none()
    }) && !endpoint.contains('#')
}

#[cfg(test)]
mod tests;
