//! A delivery as it arrived, and deliveries that somebody kept in a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::Value;

use crate::error::CliError;
use crate::exit::Exit;

/// Largest file, in bytes: the largest body of a receiver, and as much again.
const FILE_BYTES_MAX: u64 = 64 * 1_024 * 1_024; // 64 MiB
/// Most headers of a request in a file.
const HEADERS_MAX: usize = 128;

/// A delivery.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The path that it was sent to.
    pub(super) path: String,
    /// Its headers, in order of arrival.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// Its body, byte for byte.
    pub(super) body: Vec<u8>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Delivery")
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Delivery {
    /// A delivery of these parts.
    pub(super) fn of(path: &str, headers: &HeaderMap, body: Vec<u8>) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect();
        Self { path: path.to_owned(), headers, body }
    }

    /// The first value of a header, as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok()).map(str::trim)
    }

    /// The delivery as a request over HTTP/1.1, as [`read`] reads it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("POST {} HTTP/1.1\r\n", self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// What a file may hold.
const EXPECTED: &str = "it must hold one request as it came over HTTP: a request line, headers, an \
                        empty line and the body; or one event as Lambda hands it to the receiver";

/// Reads a delivery out of a file, in each of the readings that the file allows: an editor may have
/// put a line's end behind the body.
///
/// # Errors
/// When the file cannot be read, or holds neither form.
pub(super) fn read(path: &Path) -> Result<Vec<Delivery>, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::new(Exit::System, format!("cannot read the file `{}`", path.display()))
            .because(error)
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    let wrong = |what: &str| {
        let text = format!("the file `{}` {what}", path.display());
        CliError::new(Exit::Data, text).hint(EXPECTED)
    };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong("is larger than 64 MiB"));
    }
    let delivery = if bytes.trim_ascii_start().starts_with(b"{") {
        from_event(&bytes).ok_or_else(|| wrong("holds no event with headers and a body"))?
    } else {
        from_http(&bytes).ok_or_else(|| wrong("holds no HTTP request"))?
    };
    Ok(readings(&delivery))
}

/// The delivery as it is; then without what an editor may have put at its end.
fn readings(delivery: &Delivery) -> Vec<Delivery> {
    let declared = delivery.header("content-length").and_then(|text| text.parse::<usize>().ok());
    let mut trimmed = delivery.body.clone();
    while trimmed.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
        trimmed.pop();
    }
    let is_longer = trimmed.len() < delivery.body.len();
    let cut = declared.and_then(|length| delivery.body.get(..length)).map(<[u8]>::to_vec);
    let mut bodies = vec![delivery.body.clone()];
    bodies.extend(cut.filter(|cut| cut.len() < delivery.body.len()));
    bodies.extend(is_longer.then_some(trimmed));
    bodies.dedup();
    bodies.into_iter().map(|body| Delivery { body, ..delivery.clone() }).collect()
}

/// A request as it came over the wire. Lines may end as on any system.
fn from_http(bytes: &[u8]) -> Option<Delivery> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = request.parse(bytes).ok()? else { return None };
    let path = request.path?.to_owned();
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), header.value.to_vec()))
        .collect();
    let body = bytes.get(end..)?.to_vec();
    let delivery = Delivery { path, headers, body };
    let is_chunked = delivery
        .header("transfer-encoding")
        .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let whole = if is_chunked { unchunked(&delivery.body) } else { None };
    Some(match whole {
        Some(body) => Delivery { body, ..delivery },
        None => delivery,
    })
}

/// The body out of its chunks; `None` if it is not in chunks any more.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(bytes).ok()?
        else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        if size == 0 {
            return Some(body);
        }
        let end = start.checked_add(size)?;
        body.extend_from_slice(bytes.get(start..end)?);
        bytes = bytes.get(end..)?.strip_prefix(b"\r\n")?;
    }
}

/// An event of an HTTP API, a REST API, a function URL or a load balancer.
fn from_event(bytes: &[u8]) -> Option<Delivery> {
    let event: Value = serde_json::from_slice(bytes).ok()?;
    let mut headers = Vec::new();
    let map = |name: &str| event.get(name).and_then(Value::as_object);
    if let Some(multiple) = map("multiValueHeaders").filter(|map| !map.is_empty()) {
        for (name, values) in multiple {
            let texts = values.as_array()?.iter().filter_map(Value::as_str);
            headers.extend(texts.map(|text| (name.clone(), text.as_bytes().to_vec())));
        }
    } else {
        for (name, value) in map("headers")? {
            headers.extend(value.as_str().map(|text| (name.clone(), text.as_bytes().to_vec())));
        }
    }
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let is_base64 = event.get("isBase64Encoded").and_then(Value::as_bool).unwrap_or(false);
    let body = match text("body")? {
        body if is_base64 => STANDARD.decode(body).ok()?,
        body => body.as_bytes().to_vec(),
    };
    let path = text("rawPath").or_else(|| text("path")).unwrap_or("/").to_owned();
    Some(Delivery { path, headers, body })
}

#[cfg(test)]
mod tests;
