//! The receiver over HTTP: bounded in connections, time and bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::receive::{ReceivePorts, Reception, Unavailable, receive};
use domain::signature::Headers;
use domain::signature::verdict::{Answer, Reason};
use domain::time::between;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use telemetry::{Chain, tell};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Server;
use super::complaints::Trouble;
use super::connections::{Answered, Bounds, not_allowed, serve, with_status};

/// Bounds of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverBounds {
    /// Connections served at once; further ones wait in the system's backlog.
    pub connections: usize,
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// Bytes of bodies held at once; a body that does not fit is answered 503.
    pub bodies_bytes: usize,
    /// Longest time in which a request's head must arrive.
    pub head_timeout: Duration,
    /// Longest time in which a request's body must arrive.
    pub body_timeout: Duration,
}

impl Default for ReceiverBounds {
    fn default() -> Self {
        Self {
            connections: 1_024,
            body_bytes: 32 * 1_024 * 1_024,
            bodies_bytes: 128 * 1_024 * 1_024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
        }
    }
}

/// Bytes per permit of the budget of bodies in flight.
const BUDGET_UNIT: usize = 1_024;
/// Where it says that it runs.
const HEALTH_PATH: &str = "/healthz";

struct Shared {
    server: Arc<Server>,
    budget: Arc<Semaphore>,
}

pub(super) async fn run(server: Arc<Server>, listener: TcpListener, stop: watch::Receiver<bool>) {
    let bounds = server.settings.bounds;
    let budget = Arc::new(Semaphore::new(bounds.bodies_bytes / BUDGET_UNIT));
    let shared = Arc::new(Shared { server: Arc::clone(&server), budget });
    let answer = move |request| answer(Arc::clone(&shared), request);
    let bounds = Bounds { connections: bounds.connections, head_timeout: bounds.head_timeout };
    serve(listener, bounds, &*server.pipeline.clock, stop, answer).await;
}

/// The headers of a request, as verification wants them.
struct RequestHeaders<'a>(&'a HeaderMap);

impl Headers for RequestHeaders<'_> {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.0.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }
}

/// Answers one request. Two paths need no router, which would cost each delivery its allocations.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Answered {
    let path = request.uri().path();
    let method = request.method();
    if path == shared.server.settings.path {
        match *method {
            Method::POST => with_status(deliver(&shared, request).await),
            _ => not_allowed("POST"),
        }
    } else if path == HEALTH_PATH {
        match *method {
            Method::GET | Method::HEAD => Response::new(Full::from("ok")),
            _ => not_allowed("GET,HEAD"),
        }
    } else {
        with_status(StatusCode::NOT_FOUND)
    }
}

async fn deliver(shared: &Shared, request: Request<Incoming>) -> StatusCode {
    let server = &shared.server;
    let (head, body) = request.into_parts();
    let body = match read(shared, &head.headers, body).await {
        Ok(body) => body,
        Err(status) => {
            tell::delivery_unread(&server.metrics, status.as_u16());
            return status;
        }
    };
    let pipeline = &server.pipeline;
    let ports = ReceivePorts {
        announcing: pipeline.ports().announcing(),
        keyring: &server.keyring,
        format: &server.format,
    };
    let headers = RequestHeaders(&head.headers);
    let begun = pipeline.clock.now();
    let reception = receive(ports, &headers, &body.bytes).await;
    let took = between(begun, pipeline.clock.now());
    tell::delivery(&server.metrics, &reception, &headers, &body.bytes, took);
    complain(server, &reception);
    StatusCode::from_u16(reception.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

/// A body, and its share of the budget.
struct Held {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

/// Reads the body within the bounds. The share of the budget is the declared length, or the
/// largest body where none is declared.
async fn read(shared: &Shared, headers: &HeaderMap, body: Incoming) -> Result<Held, StatusCode> {
    let bounds = shared.server.settings.bounds;
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    if declared.is_some_and(|bytes| bytes > bounds.body_bytes) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let units = declared.unwrap_or(bounds.body_bytes).div_ceil(BUDGET_UNIT).max(1);
    let share = Arc::clone(&shared.budget)
        .try_acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX))
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let reading = Limited::new(body, bounds.body_bytes).collect();
    let collected = tokio::time::timeout(bounds.body_timeout, reading)
        .await
        .map_err(|_| StatusCode::REQUEST_TIMEOUT)?
        .map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            }
        })?;
    Ok(Held { bytes: collected.to_bytes(), _share: share })
}

/// Notes what an operator has to mend.
fn complain(server: &Server, reception: &Reception) {
    let (trouble, last) = match reception {
        Reception::Rejected { reason, .. } if reason.answer() == Answer::Unauthorized => {
            let trouble = match reason {
                Reason::Mismatch => Trouble::Mismatch,
                _ => Trouble::Unreadable,
            };
            (trouble, reception.code().to_owned())
        }
        Reception::Unavailable(cause) => match cause {
            Unavailable::Secrets(_) | Unavailable::UnusableSecret => {
                (Trouble::NoSecret, Chain(cause).to_string())
            }
            Unavailable::Port(_) | Unavailable::Deadline => return,
        },
        _ => return,
    };
    server.complaints.note(trouble, last, server.pipeline.clock.now());
}
