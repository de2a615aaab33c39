//! What a call asks for, and what Secrets Manager would not let pass in it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::versions::Value;

pub(super) const REGION: &str = "eu-central-1";
pub(super) const ACCESS_KEY: &str = "AKIDMARKER";
pub(super) const SESSION_TOKEN: &str = "marker-session-token";

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn error(status: u16, code: &str, message: &str) -> Self {
        Self { status, body: json!({ "__type": code, "Message": message }).to_string() }
    }
}

/// A call that may be carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get(Get),
    Put(Put),
    Restage(Restage),
    Describe(Named),
    Rotate(Rotate),
}

/// A call that names a secret and nothing else.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(super) struct Named {
    pub(super) secret_id: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(super) struct Rotate {
    pub(super) secret_id: String,
    pub(super) client_request_token: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(super) struct Get {
    pub(super) secret_id: String,
    pub(super) version_id: Option<String>,
    pub(super) version_stage: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) secret_id: String,
    pub(super) token: String,
    pub(super) value: Value,
    pub(super) stages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct RawPut {
    secret_id: String,
    client_request_token: String,
    secret_string: Option<String>,
    secret_binary: Option<String>,
    version_stages: Option<Vec<String>>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(super) struct Restage {
    pub(super) secret_id: String,
    pub(super) version_stage: String,
    pub(super) move_to_version_id: Option<String>,
    pub(super) remove_from_version_id: Option<String>,
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(get) => {
                write!(formatter, "GetSecretValue {}", get.secret_id)?;
                let version = [&get.version_id, &get.version_stage];
                version.into_iter().flatten().try_for_each(|part| write!(formatter, " {part}"))
            }
            Self::Put(put) => {
                write!(formatter, "PutSecretValue {} {}", put.secret_id, put.stages.join("+"))
            }
            Self::Restage(moved) => write!(
                formatter,
                "UpdateSecretVersionStage {} {}",
                moved.secret_id, moved.version_stage
            ),
            Self::Describe(named) => write!(formatter, "DescribeSecret {}", named.secret_id),
            Self::Rotate(rotate) => write!(formatter, "RotateSecret {}", rotate.secret_id),
        }
    }
}

/// Reads a call; the answer where it is none.
pub(super) fn read(parts: &Parts, body: &[u8]) -> Result<Call, Answer> {
    if parts.method != Method::POST || parts.uri.path() != "/" {
        return Err(Answer::error(404, "UnknownOperationException", ""));
    }
    if header(parts, "content-type") != Some("application/x-amz-json-1.1") {
        return Err(Answer::error(404, "UnknownOperationException", ""));
    }
    check_credentials(parts)?;
    let operation = header(parts, "x-amz-target").unwrap_or_default();
    let call = match operation.strip_prefix("secretsmanager.") {
        Some("GetSecretValue") => Call::Get(parse(body)?),
        Some("PutSecretValue") => Call::Put(put(parse(body)?)?),
        Some("UpdateSecretVersionStage") => Call::Restage(parse(body)?),
        Some("DescribeSecret") => Call::Describe(parse(body)?),
        Some("RotateSecret") => Call::Rotate(parse(body)?),
        _ => return Err(Answer::error(501, "NotInThisFake", operation)),
    };
    check_lengths(&call)?;
    Ok(call)
}

fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

fn check_credentials(parts: &Parts) -> Result<(), Answer> {
    let refused = |code, message| Err(Answer::error(400, code, message));
    let Some(authorization) = header(parts, "authorization") else {
        return refused("MissingAuthenticationTokenException", "Missing Authentication Token");
    };
    let scope = authorization
        .strip_prefix("AWS4-HMAC-SHA256 Credential=")
        .and_then(|rest| rest.split(',').next())
        .unwrap_or_default();
    let mut scope = scope.split('/');
    let key = scope.next();
    let (date, rest) = (scope.next(), scope.collect::<Vec<_>>());
    let signed_at = header(parts, "x-amz-date").unwrap_or_default();
    if key != Some(ACCESS_KEY) || header(parts, "x-amz-security-token") != Some(SESSION_TOKEN) {
        let message = "The security token included in the request is invalid.";
        return refused("UnrecognizedClientException", message);
    }
    let is_dated = date.is_some_and(|date| !date.is_empty() && signed_at.starts_with(date));
    let is_signed =
        ["SignedHeaders=", "Signature="].iter().all(|part| authorization.contains(part));
    if !is_dated || !is_signed || rest != [REGION, "secretsmanager", "aws4_request"] {
        return refused("InvalidSignatureException", "Credential should be scoped otherwise.");
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Answer> {
    serde_json::from_slice(body).map_err(|_| Answer::error(400, "SerializationException", ""))
}

fn put(raw: RawPut) -> Result<Put, Answer> {
    let refused = |message| Err(Answer::error(400, "InvalidParameterException", message));
    let value = match (raw.secret_string, raw.secret_binary) {
        (Some(text), None) => Value::Text(text),
        (None, Some(base64)) => match STANDARD.decode(base64) {
            Ok(bytes) => Value::Bytes(bytes),
            Err(_) => return Err(Answer::error(400, "SerializationException", "")),
        },
        (Some(_), Some(_)) => {
            return refused(
                "You can't specify both a binary secret value and a string secret value in the \
                 same secret.",
            );
        }
        (None, None) => return refused("You must provide either SecretString or SecretBinary."),
    };
    Ok(Put {
        secret_id: raw.secret_id,
        token: raw.client_request_token,
        value,
        stages: raw.version_stages.unwrap_or_else(|| vec!["AWSCURRENT".to_owned()]),
    })
}

/// The lengths that the API's model demands.
fn check_lengths(call: &Call) -> Result<(), Answer> {
    let (id, versions, stages): (_, Vec<&String>, Vec<&String>) = match call {
        Call::Get(get) => {
            (&get.secret_id, get.version_id.iter().collect(), get.version_stage.iter().collect())
        }
        Call::Put(put) => (&put.secret_id, vec![&put.token], put.stages.iter().collect()),
        Call::Restage(moved) => (
            &moved.secret_id,
            moved.move_to_version_id.iter().chain(&moved.remove_from_version_id).collect(),
            vec![&moved.version_stage],
        ),
        Call::Describe(named) => (&named.secret_id, Vec::new(), Vec::new()),
        Call::Rotate(rotate) => (&rotate.secret_id, vec![&rotate.client_request_token], Vec::new()),
    };
    let is_valid = (1..=2_048).contains(&id.len())
        && versions.iter().all(|version| (32..=64).contains(&version.len()))
        && stages.iter().all(|stage| (1..=256).contains(&stage.len()))
        && match call {
            Call::Put(put) => (1..=20).contains(&put.stages.len()) && put.value.is_allowed(),
            Call::Get(_) | Call::Restage(_) | Call::Describe(_) | Call::Rotate(_) => true,
        };
    if is_valid {
        return Ok(());
    }
    Err(Answer::error(400, "ValidationException", "1 validation error detected"))
}
