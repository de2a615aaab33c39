//! The function that takes deliveries: it verifies each over its raw bytes, writes the job's entry,
//! sends its task, and only then answers 2xx.
//!
//! It answers events of HTTP APIs, REST APIs, function URLs and load balancers alike. Anything else
//! is an error of that one invocation.

mod event;
mod route;

use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use domain::announce::AnnouncePorts;
use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{Clock, Entries, Queue, Random};
use domain::receive::{ReceivePorts, receive};
use domain::signature::Headers;
use domain::time::between;
use futures_util::FutureExt as _;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use lambda_http::request::RequestContext;
use lambda_http::{Body, IntoResponse, Request, RequestExt as _};
use telemetry::{Counter, Metrics, tell};

pub use event::Event;
use route::{Route, route};

/// What the function works with.
pub struct Receiver {
    /// The ledger's rows.
    pub entries: Arc<dyn Entries>,
    /// The way to the workers.
    pub queue: Arc<dyn Queue>,
    /// The signing secrets.
    pub keyring: Keyring,
    /// Where the ids are in a body.
    pub format: EnvelopeFormat,
    /// The bounds.
    pub limits: Limits,
    /// The path of deliveries.
    pub webhook_path: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

impl Receiver {
    /// Answers one request. Whatever happens, the answer is a status that the sender understands:
    /// 2xx once the job is owed, 4xx for what will never do, 503 for what may do later.
    pub async fn answer(&self, request: &Request) -> Answer {
        let stage = stage(request);
        match route(request.method(), request.uri().path(), stage, &self.webhook_path) {
            Route::Delivery => {
                Answer::of(self.deliver(request.headers(), request.body()).await, "")
            }
            Route::Health => Answer::of(StatusCode::OK, "ok"),
            Route::WrongMethod(allowed) => {
                let Answer(mut response) = Answer::of(StatusCode::METHOD_NOT_ALLOWED, "");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
                Answer(response)
            }
            Route::Unknown => Answer::of(StatusCode::NOT_FOUND, ""),
        }
    }

    async fn deliver(&self, headers: &HeaderMap, body: &[u8]) -> StatusCode {
        let began = self.clock.now();
        let ports = ReceivePorts {
            announcing: AnnouncePorts {
                entries: &*self.entries,
                queue: &*self.queue,
                clock: &*self.clock,
                random: &*self.random,
                limits: &self.limits,
            },
            keyring: &self.keyring,
            format: &self.format,
        };
        let headers = RequestHeaders(headers);
        // The runtime would show what a panic says to whoever reads the answer.
        let receiving = AssertUnwindSafe(receive(ports, &headers, body)).catch_unwind();
        let Ok(reception) = Box::pin(receiving).await else {
            self.metrics.count(Counter::DeliveriesUnavailable);
            return StatusCode::SERVICE_UNAVAILABLE;
        };
        let took = between(began, self.clock.now());
        tell::delivery(&self.metrics, &reception, &headers, body, took);
        StatusCode::from_u16(reception.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
    }
}

/// An answer: a status and, for people, a word. It is text as it is, so that nothing need know how
/// other texts are encoded, which is a good part of a small program.
pub struct Answer(pub Response<Body>);

impl Answer {
    fn of(status: StatusCode, word: &str) -> Self {
        let mut response = Response::new(Body::from(word));
        *response.status_mut() = status;
        Self(response)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        Box::pin(ready(self.0))
    }
}

/// The headers of a request, as verification wants them.
struct RequestHeaders<'a>(&'a HeaderMap);

impl Headers for RequestHeaders<'_> {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.0.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }
}

/// The stage of the API that the request came through.
fn stage(request: &Request) -> Option<&str> {
    match request.request_context_ref()? {
        RequestContext::ApiGatewayV2(context) => context.stage.as_deref(),
        RequestContext::ApiGatewayV1(context) => context.stage.as_deref(),
        _ => None,
    }
}
