//! What a request asks for, and what S3 would not let pass in it.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use super::{BUCKET, REGION};

/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 1_024;
/// Headers of Amazon's own that are known here; others are refused.
const KNOWN: [&str; 4] =
    ["x-amz-checksum-sha256", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"];

/// A request that may be carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Put { key: String, bytes: Bytes, if_absent: bool, described: Described },
    Get { key: String, range: Option<(usize, usize)> },
    List { prefix: String, after: Option<String>, max_keys: usize },
}

/// What a put says of its object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) checksum_sha256: Option<String>,
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { key, .. } => write!(formatter, "PUT {key}"),
            Self::Get { key, .. } => write!(formatter, "GET {key}"),
            Self::List { prefix, .. } => write!(formatter, "LIST {prefix}"),
        }
    }
}

/// An answer before it is written.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}

impl Answer {
    /// An error as S3 writes it.
    pub(super) fn error(status: StatusCode, code: &str) -> Self {
        Self::error_saying(status, code, "the fake says so")
    }

    pub(super) fn error_saying(status: StatusCode, code: &str, message: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>{message}</Message><RequestId>FAKEREQUEST00001</RequestId>\
             <HostId>fake</HostId></Error>"
        );
        let headers = vec![("content-type", "application/xml".to_owned())];
        Self { status, headers, body: body.into() }
    }
}

fn bad(code: &str) -> Answer {
    Answer::error(StatusCode::BAD_REQUEST, code)
}

/// What the fake does not know, told in the answer so that it is seen in a test's output.
fn unknown(parts: &Parts, what: &str) -> Answer {
    let message = format!("{} {} has {what}", parts.method, parts.uri.path());
    Answer::error_saying(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &message)
}

/// Reads a request.
///
/// # Errors
/// S3's answer when it would refuse the request whatever lies in the bucket.
pub(super) fn read(parts: &Parts, body: &Bytes) -> Result<Call, Answer> {
    check_signature(&parts.headers)?;
    check_headers(parts, body)?;
    let path: String = percent_decode(parts.uri.path()).ok_or_else(|| bad("InvalidURI"))?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket != BUCKET {
        return Err(Answer::error(StatusCode::NOT_FOUND, "NoSuchBucket"));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(bad("KeyTooLongError"));
    }
    let query: BTreeMap<String, String> =
        form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    match (&parts.method, key) {
        (&Method::GET, "") => list(parts, query),
        _ if !query.is_empty() => Err(unknown(parts, "a query")),
        (&Method::PUT, key) if !key.is_empty() => put(parts, key, body),
        (&Method::GET, key) => {
            let range = match header(&parts.headers, "range") {
                Some(range) => Some(read_range(range).ok_or_else(|| unknown(parts, "a range"))?),
                None => None,
            };
            Ok(Call::Get { key: key.to_owned(), range })
        }
        _ => Err(unknown(parts, "a method")),
    }
}

fn put(parts: &Parts, key: &str, body: &Bytes) -> Result<Call, Answer> {
    let headers = &parts.headers;
    match header(headers, "content-length").map(str::parse::<usize>) {
        Some(Ok(length)) if body.len() == length => {}
        Some(_) => return Err(bad("IncompleteBody")),
        None => return Err(Answer::error(StatusCode::LENGTH_REQUIRED, "MissingContentLength")),
    }
    if header(headers, "if-match").is_some() {
        return Err(unknown(parts, "If-Match"));
    }
    let if_absent = match header(headers, "if-none-match") {
        None => false,
        Some("*") => true,
        Some(_) => return Err(unknown(parts, "an If-None-Match that is not *")),
    };
    let owned = |name| header(headers, name).map(str::to_owned);
    let described = Described {
        content_type: owned("content-type"),
        content_encoding: owned("content-encoding"),
        checksum_sha256: owned("x-amz-checksum-sha256"),
    };
    Ok(Call::Put { key: key.to_owned(), bytes: body.clone(), if_absent, described })
}

fn list(parts: &Parts, mut query: BTreeMap<String, String>) -> Result<Call, Answer> {
    if query.remove("list-type").as_deref() != Some("2") {
        return Err(unknown(parts, "another listing than the second version's"));
    }
    let max_keys = query.remove("max-keys").map_or(Ok(1_000), |text| text.parse::<usize>());
    let max_keys = max_keys.map_err(|_| bad("InvalidArgument"))?.min(1_000);
    let prefix = query.remove("prefix").unwrap_or_default();
    let start_after = query.remove("start-after");
    let token = query.remove("continuation-token");
    if !query.is_empty() {
        return Err(unknown(parts, "a query that is not known"));
    }
    // A token goes on where the last answer ended, whatever `start-after` says.
    let after = match token {
        Some(token) => Some(read_token(&token).ok_or_else(|| bad("InvalidArgument"))?),
        None => start_after,
    };
    Ok(Call::List { prefix, after, max_keys })
}

/// The token that goes on after a key.
pub(super) fn write_token(key: &str) -> String {
    STANDARD.encode(format!("after:{key}"))
}

fn read_token(token: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(token).ok()?).ok()?;
    text.strip_prefix("after:").map(str::to_owned)
}

/// A signature of the fourth version over the host, the type and all headers of Amazon's own.
fn check_signature(headers: &HeaderMap) -> Result<(), Answer> {
    let denied = || Answer::error(StatusCode::FORBIDDEN, "AccessDenied");
    let authorization = header(headers, "authorization").ok_or_else(denied)?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or_else(denied)?;
    let fields: BTreeMap<_, _> =
        fields.split(',').filter_map(|field| field.trim().split_once('=')).collect();
    let field = |name| fields.get(name).copied().ok_or_else(|| bad("AuthorizationHeaderMalformed"));
    let scope: Vec<_> = field("Credential")?.split('/').collect();
    let is_right = matches!(
        scope.as_slice(),
        [_, _, region, "s3", "aws4_request"] if *region == REGION
    );
    let signed: Vec<_> = field("SignedHeaders")?.split(';').collect();
    let mut must = headers
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|name| name.starts_with("x-amz-") || *name == "host" || *name == "content-type");
    let signature = field("Signature")?;
    let is_hex = signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_right || !is_hex || header(headers, "x-amz-date").is_none() {
        return Err(bad("AuthorizationHeaderMalformed"));
    }
    if !must.all(|name| signed.contains(&name)) {
        return Err(Answer::error(StatusCode::FORBIDDEN, "AccessDenied"));
    }
    Ok(())
}

/// Checksums are right, and nothing is asked that the fake would pass over.
fn check_headers(parts: &Parts, body: &Bytes) -> Result<(), Answer> {
    let names = parts.headers.keys().map(http::HeaderName::as_str);
    for name in names {
        if name.starts_with("x-amz-") && !KNOWN.contains(&name) {
            return Err(unknown(parts, name));
        }
    }
    if header(&parts.headers, "content-encoding").is_some_and(|it| it.contains("aws-chunked")) {
        return Err(unknown(parts, "a body in signed chunks"));
    }
    let sha256 = Sha256::digest(body);
    match header(&parts.headers, "x-amz-content-sha256") {
        None => return Err(bad("MissingSecurityHeader")),
        Some("UNSIGNED-PAYLOAD") => {}
        Some(given) if given == hex::encode(sha256) => {}
        Some(_) => return Err(bad("XAmzContentSHA256Mismatch")),
    }
    match header(&parts.headers, "x-amz-checksum-sha256") {
        Some(given) if given != STANDARD.encode(sha256) => Err(bad("BadDigest")),
        _ => Ok(()),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// First and last byte of `bytes=first-last`.
fn read_range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, after)
            }
            (b'%', _) => return None,
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
