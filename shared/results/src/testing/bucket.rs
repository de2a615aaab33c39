//! The objects of the bucket, and what each call does to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::S3Object;
use super::call::{Answer, Call, Described, write_token};

/// When everything was put.
const PUT_AT: &str = "2026-11-30T12:00:00.000Z";
/// The same as an HTTP date.
const PUT_AT_HTTP: &str = "Mon, 30 Nov 2026 12:00:00 GMT";

#[derive(Debug, Default)]
pub(super) struct Objects {
    by_key: BTreeMap<String, S3Object>,
    /// Keys by `Object Created` event, in order.
    created: Vec<String>,
    may_not_list: bool,
    page_max: Option<usize>,
}

impl Objects {
    pub(super) fn forbid_listing(&mut self) {
        self.may_not_list = true;
    }

    pub(super) fn limit_pages(&mut self, keys: usize) {
        self.page_max = Some(keys);
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.by_key.keys().cloned().collect()
    }

    pub(super) fn object(&self, key: &str) -> Option<S3Object> {
        self.by_key.get(key).cloned()
    }

    pub(super) fn creations(&self, key: &str) -> usize {
        self.created.iter().filter(|created| *created == key).count()
    }

    pub(super) fn put_bytes(&mut self, key: &str, bytes: Bytes) {
        let object =
            S3Object { bytes, content_type: None, content_encoding: None, checksum_sha256: None };
        self.by_key.insert(key.to_owned(), object);
    }

    /// Does what is asked, at once and whole.
    ///
    /// # Errors
    /// S3's answer when it refuses.
    pub(super) fn run(&mut self, call: Call) -> Result<Answer, Answer> {
        match call {
            Call::Put { key, bytes, if_absent, described } => {
                self.put(key, bytes, if_absent, described)
            }
            Call::Get { key, range } => self.get(&key, range),
            Call::List { prefix, after, max_keys } => {
                self.list(&prefix, after.as_deref(), max_keys)
            }
        }
    }

    fn put(
        &mut self,
        key: String,
        bytes: Bytes,
        if_absent: bool,
        described: Described,
    ) -> Result<Answer, Answer> {
        if if_absent && self.by_key.contains_key(&key) {
            return Err(Answer::error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed"));
        }
        let mut headers = vec![("etag", etag(&bytes))];
        if let Some(checksum) = &described.checksum_sha256 {
            headers.push(("x-amz-checksum-sha256", checksum.clone()));
        }
        let Described { content_type, content_encoding, checksum_sha256 } = described;
        let object = S3Object { bytes, content_type, content_encoding, checksum_sha256 };
        self.created.push(key.clone());
        self.by_key.insert(key, object);
        Ok(Answer { status: StatusCode::OK, headers, body: Bytes::new() })
    }

    fn get(&self, key: &str, range: Option<(usize, usize)>) -> Result<Answer, Answer> {
        let Some(object) = self.by_key.get(key) else {
            // Who may not list is not told whether there is an object.
            return Err(if self.may_not_list {
                Answer::error(StatusCode::FORBIDDEN, "AccessDenied")
            } else {
                Answer::error(StatusCode::NOT_FOUND, "NoSuchKey")
            });
        };
        let mut headers =
            vec![("etag", etag(&object.bytes)), ("last-modified", PUT_AT_HTTP.to_owned())];
        let described = [
            ("content-type", &object.content_type),
            ("content-encoding", &object.content_encoding),
        ];
        for (name, value) in described {
            headers.extend(value.clone().map(|value| (name, value)));
        }
        let Some((first, last)) = range else {
            return Ok(Answer { status: StatusCode::OK, headers, body: object.bytes.clone() });
        };
        let size = object.bytes.len();
        if first >= size || first > last {
            return Err(Answer::error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"));
        }
        let last = last.min(size - 1);
        headers.push(("content-range", format!("bytes {first}-{last}/{size}")));
        let body = object.bytes.slice(first..=last);
        Ok(Answer { status: StatusCode::PARTIAL_CONTENT, headers, body })
    }

    fn list(&self, prefix: &str, after: Option<&str>, max_keys: usize) -> Result<Answer, Answer> {
        if self.may_not_list {
            return Err(Answer::error(StatusCode::FORBIDDEN, "AccessDenied"));
        }
        let limit = max_keys.min(self.page_max.unwrap_or(max_keys));
        let wanted = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let mut found = self.by_key.iter().filter(|(key, _)| wanted(key));
        let page: Vec<_> = found.by_ref().take(limit).collect();
        let next = found.next().and(page.last()).map(|(key, _)| write_token(key));
        let mut body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{max_keys}</MaxKeys>\
             <IsTruncated>{}</IsTruncated>",
            super::BUCKET,
            escape(prefix),
            page.len(),
            next.is_some(),
        );
        if let Some(next) = next {
            // Writing into a string cannot fail.
            let _ = write!(body, "<NextContinuationToken>{next}</NextContinuationToken>");
        }
        for (key, object) in page {
            let _ = write!(
                body,
                "<Contents><Key>{}</Key><LastModified>{PUT_AT}</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                escape(key),
                escape(&etag(&object.bytes)),
                object.bytes.len(),
            );
        }
        body.push_str("</ListBucketResult>");
        let headers = vec![("content-type", "application/xml".to_owned())];
        Ok(Answer { status: StatusCode::OK, headers, body: body.into() })
    }
}

/// An opaque tag of the bytes, in quotes; S3's is an MD5 only for some objects.
fn etag(bytes: &Bytes) -> String {
    let sha256 = hex::encode(Sha256::digest(bytes));
    format!("\"{}\"", sha256.get(..32).unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
