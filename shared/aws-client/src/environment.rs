//! The configuration of a function, from the variables that Lambda sets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_types::SdkConfig;
use aws_types::app_name::AppName;
use aws_types::region::Region;
use aws_types::sdk_config::SharedCredentialsProvider;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::http;
use crate::patience::Patience;
use crate::roots::{RootsError, trusted};

/// Where the region is, the better place first.
const REGION: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
const CA_BUNDLE: &str = "AWS_CA_BUNDLE";
const FIPS: &str = "AWS_USE_FIPS_ENDPOINT";
const DUAL_STACK: &str = "AWS_USE_DUALSTACK_ENDPOINT";
/// The services that we call, as they stand at the end of the names of their endpoints' variables.
const SERVICES: [&str; 4] = ["DYNAMODB", "S3", "SECRETS_MANAGER", "SQS"];

/// All that is wrong with the environment. Shows no value.
#[derive(Debug, thiserror::Error)]
pub struct EnvironmentError {
    /// One for each variable that is missing or wrong.
    pub problems: Vec<Problem>,
}

/// What is wrong with one variable.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not set, or blank.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// It is no address.
    #[error("{0} must begin with http:// or https://")]
    NotAnAddress(String),
    /// It is neither of the two words.
    #[error("{0} must be `true` or `false`")]
    NotABool(&'static str),
    /// The file that it names cannot be used.
    #[error("AWS_CA_BUNDLE: {0}")]
    Roots(#[source] RootsError),
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the environment lacks what the AWS SDK needs: ")?;
        for (index, problem) in self.problems.iter().enumerate() {
            write!(formatter, "{}{problem}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// Endpoints of single services, which go before the one for all.
#[derive(Debug)]
struct Endpoints(BTreeMap<String, String>);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        if key.env() != ENDPOINT {
            return None;
        }
        self.0.get(&key.service_id().replace(' ', "_").to_ascii_uppercase()).cloned()
    }
}

/// The configuration as the environment of a function says.
///
/// Region and credentials are those that Lambda sets: they stay as they are as long as the process
/// lives, so that they are read once; no file, no metadata service and no other chain is asked.
/// `AWS_ENDPOINT_URL` and the variables of single services, such as `AWS_ENDPOINT_URL_DYNAMODB`,
/// may name other endpoints, of plain `http` too. `AWS_CA_BUNDLE` names a file of certificates that
/// are trusted in place of the system's. Nothing is sent.
///
/// # Errors
/// All that is missing or wrong, at once.
pub fn from_environment(
    variables: &dyn Fn(&str) -> Option<String>,
    patience: Patience,
) -> Result<SdkConfig, EnvironmentError> {
    let mut reader = Reader { variables, problems: Vec::new() };
    let region = reader.region();
    let access_key = reader.required(ACCESS_KEY);
    let secret_key = reader.required(SECRET_KEY);
    let session_token = reader.optional(SESSION_TOKEN);
    let endpoint = reader.endpoint(ENDPOINT);
    let endpoints = SERVICES.iter().filter_map(|service| {
        Some(((*service).to_owned(), reader.endpoint(&format!("{ENDPOINT}_{service}"))?))
    });
    let endpoints = Endpoints(endpoints.collect());
    let (use_fips, use_dual_stack) = (reader.flag(FIPS), reader.flag(DUAL_STACK));
    let bundle = reader.optional(CA_BUNDLE).map(PathBuf::from);
    let roots = trusted(bundle.as_deref())
        .map_err(|error| reader.problems.push(Problem::Roots(error)))
        .unwrap_or_default();
    if !reader.problems.is_empty() {
        return Err(EnvironmentError { problems: reader.problems });
    }
    let credentials = Credentials::new(access_key, secret_key, session_token, None, "environment");
    let mut builder = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .service_config(endpoints)
        .timeout_config(patience.timeouts())
        .retry_config(patience.retries())
        .http_client(http::client(roots));
    builder.set_app_name(app_name());
    builder.set_endpoint_url(endpoint);
    builder.set_use_fips(use_fips);
    builder.set_use_dual_stack(use_dual_stack);
    Ok(builder.build())
}

/// The product's name in the calls' user agent, which AWS's own logs show.
pub(crate) fn app_name() -> Option<AppName> {
    AppName::new("gleaner").ok()
}

struct Reader<'a> {
    variables: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn optional(&self, name: &str) -> Option<String> {
        (self.variables)(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &'static str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(Problem::Missing(name));
            String::new()
        })
    }

    fn region(&mut self) -> String {
        let [first, second] = REGION;
        self.optional(first).or_else(|| self.optional(second)).unwrap_or_else(|| {
            self.problems.push(Problem::Missing(first));
            String::new()
        })
    }

    fn endpoint(&mut self, name: &str) -> Option<String> {
        let url = self.optional(name)?;
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            self.problems.push(Problem::NotAnAddress(name.to_owned()));
        }
        Some(url)
    }

    fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.optional(name)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.problems.push(Problem::NotABool(name));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
