//! The receiver over HTTP: bounded in connections, time and bytes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::announce::AnnounceOutcome;
use domain::receive::{ReceivePorts, Reception, Unavailable, diagnose, receive};
use domain::signature::Headers;
use domain::signature::verdict::{Answer, Diagnostics, Reason};
use http::header::{ALLOW, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::complaints::Trouble;
use super::{Chain, STOP_GRACE, Server, stopped};

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
/// Pause after `accept` failed, so that a lack of file descriptors is not a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Shared {
    server: Arc<Server>,
    budget: Arc<Semaphore>,
}

pub(super) async fn run(
    server: Arc<Server>,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let bounds = server.settings.bounds;
    let budget = Arc::new(Semaphore::new(bounds.bodies_bytes / BUDGET_UNIT));
    let shared = Arc::new(Shared { server: Arc::clone(&server), budget });
    let connections = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = accept(&server, &listener, &connections) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| answer(Arc::clone(&shared), request));
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(bounds.head_timeout);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A broken connection is the other side's affair; what was received is in the ledger.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
    }
    if tokio::time::timeout(STOP_GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open at the end");
    }
}

async fn accept(
    server: &Server,
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "connection without TCP_NODELAY");
            }
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            server.pipeline.clock.sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// The headers of a request, as verification wants them.
struct RequestHeaders<'a>(&'a HeaderMap);

impl Headers for RequestHeaders<'_> {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        self.0.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }
}

/// What is answered: a status, and hardly ever more.
type Answered = Response<Full<Bytes>>;

/// Answers one request. Two paths need no router, which would cost each delivery its allocations.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answered, Infallible> {
    let path = request.uri().path();
    let method = request.method();
    Ok(if path == shared.server.settings.path {
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
    })
}

fn with_status(status: StatusCode) -> Answered {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

fn not_allowed(allowed: &'static str) -> Answered {
    let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn deliver(shared: &Shared, request: Request<Incoming>) -> StatusCode {
    let server = &shared.server;
    let (head, body) = request.into_parts();
    let body = match read(shared, &head.headers, body).await {
        Ok(body) => body,
        Err(status) => {
            server.tally.count("webhooks_unread");
            tracing::info!(status = status.as_u16(), "delivery not read");
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
    let reception = receive(ports, &headers, &body.bytes).await;
    // Whoever reaches the receiver can send as much as they like: nothing is gathered for nobody.
    if let Reception::Rejected { reason, keys } = &reception
        && tracing::enabled!(tracing::Level::INFO)
    {
        note_rejection(&diagnose(keys, *reason, &headers, &body.bytes));
    }
    note(server, &reception);
    StatusCode::from_u16(reception.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

/// A body, and its share of the budget.
struct Held {
    bytes: Bytes,
    _share: tokio::sync::OwnedSemaphorePermit,
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

fn note(server: &Server, reception: &Reception) {
    let code = reception.code();
    let now = server.pipeline.clock.now();
    match reception {
        Reception::Accepted { key, outcome, delivery_id, secret } => {
            server.tally.count(match outcome {
                AnnounceOutcome::New | AnnounceOutcome::Sent(_) => "webhooks_accepted",
                AnnounceOutcome::Known(_) => "webhooks_repeated",
            });
            tracing::info!(
                job.id = %key.job_id,
                job.kind = %key.kind,
                delivery.id = delivery_id.as_deref().unwrap_or_default(),
                secret,
                code,
                "delivery accepted"
            );
        }
        Reception::Ignored { event } => {
            server.tally.count("webhooks_ignored");
            tracing::info!(event, code, "delivery acknowledged and not owed");
        }
        Reception::Rejected { reason, .. } => {
            server.tally.count("webhooks_rejected");
            if reason.answer() == Answer::Unauthorized {
                let trouble = match reason {
                    Reason::Mismatch => Trouble::Mismatch,
                    _ => Trouble::Unreadable,
                };
                server.complaints.note(trouble, code.to_owned(), now);
            }
        }
        Reception::Unusable { .. } => {
            server.tally.count("webhooks_unusable");
            tracing::warn!(code, "genuine delivery is not usable");
        }
        Reception::Unavailable(cause) => {
            server.tally.count("webhooks_unavailable");
            let error = Chain(cause);
            match cause {
                Unavailable::Secrets(_) | Unavailable::UnusableSecret => {
                    tracing::info!(code, %error, "delivery put off");
                    server.complaints.note(Trouble::NoSecret, error.to_string(), now);
                }
                Unavailable::Port(_) | Unavailable::Deadline => {
                    tracing::error!(code, %error, "delivery could not be received");
                }
            }
        }
    }
}

fn note_rejection(diagnostics: &Diagnostics) {
    let lengths: Vec<String> = diagnostics.signature_bytes.iter().map(usize::to_string).collect();
    tracing::info!(
        code = diagnostics.code,
        signature_bytes = lengths.join(","),
        body_bytes = diagnostics.body_bytes,
        body_hash = diagnostics.body_hash,
        content_type = diagnostics.content_type.as_deref().unwrap_or_default(),
        encoded = diagnostics.encoded,
        secrets = diagnostics.key_labels.join(","),
        "delivery rejected"
    );
}
