//! A strict Amazon S3 on loopback: one bucket, and the three requests that this crate makes.
//!
//! It refuses what S3 refuses, and answers 501 to whatever else is asked, so that a new kind of
//! request cannot pass unnoticed. Signatures are looked at, not verified.

mod bucket;
mod call;
mod server;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use bytes::Bytes;
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{S3Settings, S3Tempo};
use bucket::Objects;
use call::Answer;

/// The fake's bucket.
pub const BUCKET: &str = "gleaner-results";
/// The fake's region.
pub const REGION: &str = "eu-central-1";

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Trouble {
    /// Nothing.
    Pass,
    /// The answer is an error, and nothing is done.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// S3's code.
        code: &'static str,
    },
    /// The answer sends the client to the object under the key `moved`, and nothing is done.
    Redirect {
        /// The HTTP status.
        status: u16,
    },
    /// The connection is closed, and nothing is done.
    Reset,
    /// All is done, and the connection is closed without an answer.
    LoseAnswer,
    /// All is done, and half of the answer's body arrives.
    CutAnswer,
    /// Nothing is done, and no answer ever comes.
    Hang,
}

impl S3Trouble {
    /// S3's wish for fewer requests.
    pub const SLOW_DOWN: Self = Self::Refuse { status: 503, code: "SlowDown" };
    /// S3's own failure.
    pub const INTERNAL: Self = Self::Refuse { status: 500, code: "InternalError" };
    /// Another request is changing the same key.
    pub const CONFLICT: Self = Self::Refuse { status: 409, code: "ConditionalRequestConflict" };
    /// A permission is missing.
    pub const DENIED: Self = Self::Refuse { status: 403, code: "AccessDenied" };
}

/// An object as it lies in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Object {
    /// Its bytes.
    pub bytes: Bytes,
    /// The header `Content-Type` that it was put with.
    pub content_type: Option<String>,
    /// The header `Content-Encoding` that it was put with.
    pub content_encoding: Option<String>,
    /// The header `x-amz-checksum-sha256` that it was put with, which was verified.
    pub checksum_sha256: Option<String>,
}

/// A running S3; stopped when dropped.
#[derive(Debug)]
pub struct FakeS3 {
    endpoint: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What the connections share.
#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: Objects,
    planned: VecDeque<S3Trouble>,
    seen: Vec<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeS3 {
    /// Starts one with an empty bucket.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(server::accept(listener, Arc::clone(&shared)));
        Ok(Self { endpoint, shared, task })
    }

    /// Its URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What makes a store of its bucket, with pauses of a millisecond.
    pub fn settings(&self) -> S3Settings {
        let keys =
            Credentials::new("AKIDFAKE", "marker-secret-key", Some("token".into()), None, "");
        let pause = Duration::from_millis(1);
        S3Settings {
            bucket: BUCKET.to_owned(),
            region: REGION.to_owned(),
            prefix: String::new(),
            endpoint: Some(self.endpoint.clone()),
            fips: false,
            dual_stack: false,
            credentials: SharedCredentialsProvider::new(keys),
            tempo: S3Tempo { pause, pause_max: pause, ..S3Tempo::default() },
        }
    }

    /// Plans trouble for the next requests, one after the other, after what was planned before.
    pub fn plan(&self, next: impl IntoIterator<Item = S3Trouble>) {
        self.shared.lock().planned.extend(next);
    }

    /// Takes the right to list the bucket from the caller.
    pub fn forbid_listing(&self) {
        self.shared.lock().objects.forbid_listing();
    }

    /// Lists at most so many keys in one answer, as S3 is free to.
    pub fn limit_pages(&self, keys: usize) {
        self.shared.lock().objects.limit_pages(keys);
    }

    /// The requests so far, as method and key, or `LIST` and prefix.
    pub fn seen(&self) -> Vec<String> {
        self.shared.lock().seen.clone()
    }

    /// The keys of the objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.shared.lock().objects.keys()
    }

    /// The object under a key.
    pub fn object(&self, key: &str) -> Option<S3Object> {
        self.shared.lock().objects.object(key)
    }

    /// How many `Object Created` events consumers of the bucket have seen for a key.
    pub fn creations(&self, key: &str) -> usize {
        self.shared.lock().objects.creations(key)
    }

    /// Puts an object past the protocol, or other bytes into one.
    pub fn put_bytes(&self, key: &str, bytes: impl Into<Bytes>) {
        self.shared.lock().objects.put_bytes(key, bytes.into());
    }
}

impl Drop for FakeS3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What becomes of a request.
enum Fate {
    Answer(Answer),
    Cut(Answer),
    Close,
    Hang,
}

impl State {
    /// Does what a request asks, or what was planned for it.
    fn handle(&mut self, parts: &http::request::Parts, body: &Bytes) -> Fate {
        let call = call::read(parts, body);
        self.seen.push(match &call {
            Ok(call) => call.to_string(),
            Err(_) => format!("{} {} (refused)", parts.method, parts.uri.path()),
        });
        let trouble = self.planned.pop_front().unwrap_or(S3Trouble::Pass);
        match trouble {
            S3Trouble::Refuse { status, code } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                return Fate::Answer(Answer::error(status, code));
            }
            S3Trouble::Redirect { status } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FOUND);
                let mut answer = Answer::error(status, "TemporaryRedirect");
                answer.headers.push(("location", format!("/{BUCKET}/moved")));
                return Fate::Answer(answer);
            }
            S3Trouble::Reset => return Fate::Close,
            S3Trouble::Hang => return Fate::Hang,
            S3Trouble::Pass | S3Trouble::LoseAnswer | S3Trouble::CutAnswer => {}
        }
        let answer = call.and_then(|call| self.objects.run(call)).unwrap_or_else(|refusal| refusal);
        match trouble {
            S3Trouble::LoseAnswer => Fate::Close,
            S3Trouble::CutAnswer => Fate::Cut(answer),
            _ => Fate::Answer(answer),
        }
    }
}

#[cfg(test)]
mod tests;
