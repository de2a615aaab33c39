//! Asking CloudFormation for a stack.
//!
//! One call of one service: the client that AWS makes for it is generated from about a hundred
//! operations, of which this needs one. So the request is made here, signed with the crate that
//! signs in all clients, and sent by the machinery below all clients, with the same connections,
//! time-outs and repetitions; its answer is read with the XML reader that results on S3 bring.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use aws_client::{SdkConfig, classify};
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, ModeledAsRetryableClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::metadata::{ErrorMetadata, ProvideErrorMetadata};
use aws_smithy_types::retry::{ErrorKind as RetryKind, ProvideErrorKind};
use aws_types::service_config::ServiceConfigKey;
use domain::ports::{Clock as _, ErrorKind, PortError};
use serde::Deserialize;

use crate::error::CliError;
use crate::exit::Exit;
use system::SystemClock;

/// The port and the operation in errors.
pub(super) const STACK: &str = "stack";
pub(super) const DESCRIBE: &str = "describe";
/// The service's name in signatures.
const SERVICE: &str = "cloudformation";
/// The version of the API. Source: AWS CloudFormation API reference.
const VERSION: &str = "2010-05-15";
/// The type of the request's body.
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// Codes of a wish for fewer calls.
const THROTTLED: [&str; 2] = ["Throttling", "ThrottlingException"];

/// A stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// How its deployment went, such as `CREATE_COMPLETE`.
    pub(super) status: String,
    /// Its outputs.
    pub(super) outputs: BTreeMap<String, String>,
}

/// Asks for the stack of this name.
///
/// # Errors
/// When there is none, or AWS refuses or does not answer.
pub(super) async fn describe(config: &SdkConfig, name: &str) -> Result<Stack, CliError> {
    let region = config.region().map(ToString::to_string).unwrap_or_default();
    let bug = || CliError::new(Exit::Bug, "AWS cannot be called as it is configured");
    let provider = config.credentials_provider().ok_or_else(bug)?;
    let credentials = provider
        .provide_credentials()
        .await
        .map_err(|error| bug().because(telemetry::Chain(&error).to_string()))?;
    let (Some(http), Some(timeouts), Some(retries), Some(sleep)) =
        (config.http_client(), config.timeout_config(), config.retry_config(), config.sleep_impl())
    else {
        return Err(bug());
    };
    let call = Call {
        endpoint: endpoint(config, &region),
        region: region.clone(),
        stack: name.to_owned(),
        identity: credentials.into(),
    };
    let operation = Operation::builder()
        .service_name("CloudFormation")
        .operation_name("DescribeStacks")
        .behavior_version(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .endpoint_url(&call.endpoint)
        .no_auth()
        .timeout_config(timeouts.clone())
        .standard_retry(retries)
        .retry_classifier(ModeledAsRetryableClassifier::<Refused>::new())
        .retry_classifier(TransientErrorClassifier::<Refused>::new())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .sleep_impl(sleep)
        .serializer(|call: Call| call.request())
        .deserializer(read)
        .build();
    let stack = operation.invoke(call).await.map_err(|error| {
        let is_absent = error.as_service_error().is_some_and(Refused::is_absent);
        let (kind, source) = classify(error);
        if is_absent {
            return CliError::new(
                Exit::Configuration,
                format!("there is no stack `{name}` in {region}"),
            )
            .hint(
                "check --stack and --region, and whose credentials these are: `aws sts \
                     get-caller-identity`; docs/aws.md tells how to deploy a stack",
            );
        }
        PortError::new(STACK, DESCRIBE, kind).with_source(source).into()
    })?;
    stack.ok_or_else(|| {
        PortError::new(STACK, DESCRIBE, ErrorKind::Corrupt)
            .with_source("the answer holds no stack")
            .into()
    })
}

/// Where the calls go: as configured, or to AWS.
fn endpoint(config: &SdkConfig, region: &str) -> String {
    let key = ServiceConfigKey::builder()
        .service_id("CloudFormation")
        .env("AWS_ENDPOINT_URL")
        .profile("endpoint_url")
        .build();
    let own = config.service_config().zip(key.ok());
    let own = own.and_then(|(services, key)| services.load_config(key));
    let given = own.or_else(|| config.endpoint_url().map(str::to_owned));
    if let Some(url) = given {
        return url.trim_end_matches('/').to_owned();
    }
    let fips = if config.use_fips() == Some(true) { "-fips" } else { "" };
    let domain = match (config.use_dual_stack(), region.starts_with("cn-")) {
        (Some(true), false) => "api.aws",
        (Some(true), true) => "api.amazonwebservices.com.cn",
        (_, false) => "amazonaws.com",
        (_, true) => "amazonaws.com.cn",
    };
    format!("https://{SERVICE}{fips}.{region}.{domain}")
}

/// One call.
struct Call {
    endpoint: String,
    region: String,
    stack: String,
    identity: Identity,
}

impl fmt::Debug for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl Call {
    /// The signed request.
    fn request(&self) -> Result<HttpRequest, BoxError> {
        // A stack's name has no characters that a form would escape.
        let body = format!("Action=DescribeStacks&StackName={}&Version={VERSION}", self.stack);
        let parameters = v4::SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name(SERVICE)
            .time(SystemTime::try_from(SystemClock.now())?)
            .settings(SigningSettings::default())
            .build()?
            .into();
        let url = format!("{}/", self.endpoint);
        let headers = [("content-type", FORM)].into_iter();
        let signable =
            SignableRequest::new("POST", &url, headers, SignableBody::Bytes(body.as_bytes()))?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let mut request =
            http::Request::post("/").header("content-type", FORM).body(SdkBody::from(body))?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(HttpRequest::try_from(request)?)
    }
}

/// What CloudFormation refused.
#[derive(Debug)]
struct Refused(ErrorMetadata);

impl Refused {
    /// Whether it says that there is no such stack. Its code for that is one for many things.
    fn is_absent(&self) -> bool {
        self.0.code() == Some("ValidationError")
            && self.0.message().is_some_and(|message| message.contains("does not exist"))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.code().unwrap_or("an error without a code"))
    }
}

impl std::error::Error for Refused {}

impl ProvideErrorMetadata for Refused {
    fn meta(&self) -> &ErrorMetadata {
        &self.0
    }
}

impl ProvideErrorKind for Refused {
    fn retryable_error_kind(&self) -> Option<RetryKind> {
        let is_throttled = self.0.code().is_some_and(|code| THROTTLED.contains(&code));
        is_throttled.then_some(RetryKind::ThrottlingError)
    }

    fn code(&self) -> Option<&str> {
        self.0.code()
    }
}

/// Reads an answer; `None` if it holds no stack.
fn read(response: &HttpResponse) -> Result<Option<Stack>, OrchestratorError<Refused>> {
    let unreadable = |error: BoxError| OrchestratorError::response(error);
    let body = response.body().bytes().unwrap_or_default();
    let body = std::str::from_utf8(body).map_err(|error| unreadable(error.into()))?;
    if response.status().is_success() {
        let answer: Answer =
            quick_xml::de::from_str(body).map_err(|error| unreadable(error.into()))?;
        return Ok(answer.result.stacks.member.into_iter().next().map(Described::into_stack));
    }
    // What cannot be read came from something in between.
    let refusal: Refusal = quick_xml::de::from_str(body).unwrap_or_default();
    let mut meta = ErrorMetadata::builder();
    if let Some(Problem { code, message }) = refusal.error {
        meta = meta.code(code).message(message);
    }
    Err(OrchestratorError::operation(Refused(meta.build())))
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "DescribeStacksResult")]
    result: Found,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    stacks: Members<Described>,
}

/// A list.
#[derive(Deserialize)]
struct Members<T> {
    #[serde(default = "Vec::new")]
    member: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    stack_status: String,
    outputs: Option<Members<Output>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Output {
    output_key: String,
    #[serde(default)]
    output_value: String,
}

impl Described {
    fn into_stack(self) -> Stack {
        let outputs = self.outputs.map_or_else(Vec::new, |outputs| outputs.member);
        let outputs = outputs.into_iter().map(|output| (output.output_key, output.output_value));
        Stack { status: self.stack_status, outputs: outputs.collect() }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Refusal {
    error: Option<Problem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Problem {
    code: String,
    #[serde(default)]
    message: String,
}

#[cfg(test)]
mod tests;
