//! Lambda's runtime API on loopback: hands events to a function's process and takes its answers.
//!
//! It speaks version 2018-06-01 as the AWS Lambda Developer Guide says ("Using the Lambda runtime
//! API for custom runtimes"), one event at a time. What a runtime must not do, such as answer an
//! event that it was not given, is refused.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Where the API's paths begin.
const ROOT: &str = "/2018-06-01/runtime/";
/// Largest answer of a function, in bytes. Source: AWS Lambda quotas, synchronous payload of 6 MB.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;
/// When an event must be answered, in milliseconds of Unix time: in the year 2100, since nothing is
/// ended here.
const DEADLINE_MS: &str = "4102444800000";
/// The function's name for itself.
const ARN: &str = "arn:aws:lambda:eu-central-1:123456789012:function:tested";

/// What a function made of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It answered.
    Answered(Bytes),
    /// It said that the invocation failed, and why.
    Failed(Bytes),
}

/// A running runtime API for one process; stopped when dropped.
#[derive(Debug)]
pub struct RuntimeApi {
    address: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    next: Mutex<Option<Event>>,
    given: Mutex<Option<Event>>,
    is_there: Notify,
    polls: watch::Sender<u64>,
    events: AtomicU64,
}

#[derive(Debug)]
struct Event {
    id: String,
    body: Bytes,
    outcome: oneshot::Sender<Outcome>,
}

impl RuntimeApi {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no port for it.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let shared = Arc::new(Shared {
            next: Mutex::default(),
            given: Mutex::default(),
            is_there: Notify::new(),
            polls: watch::Sender::new(0),
            events: AtomicU64::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// The variables that Lambda sets for the runtime.
    pub fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_LAMBDA_RUNTIME_API", &self.address),
            ("AWS_LAMBDA_FUNCTION_NAME", "tested"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ]
    }

    /// Waits until the function has asked for an event for the first time.
    pub async fn polled(&self) {
        // The sender lives as long as this.
        let _ = self.shared.polls.subscribe().wait_for(|polls| *polls > 0).await;
    }

    /// Hands over an event, as soon as the function asks for one, and waits for what it makes of it:
    /// for ever if it ends meanwhile. One at a time.
    ///
    /// # Panics
    /// When another event is not answered yet.
    pub async fn invoke(&self, event: impl Into<Bytes>) -> Outcome {
        let (outcome, told) = oneshot::channel();
        let id = format!("event-{}", self.shared.events.fetch_add(1, Ordering::Relaxed));
        let before = lock(&self.shared.next).replace(Event { id, body: event.into(), outcome });
        assert!(before.is_none(), "an event at a time");
        self.shared.is_there.notify_one();
        match told.await {
            Ok(outcome) => outcome,
            // Dropped with the server alone.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(event: &Mutex<Option<Event>>) -> MutexGuard<'_, Option<Event>> {
    event.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until it is dropped, and its connections with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it an answer may wait; nothing is wrong with it then.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    // A process that ends breaks its connection.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, ANSWER_BYTES_MAX).collect().await else {
            return said(StatusCode::PAYLOAD_TOO_LARGE);
        };
        let body = body.to_bytes();
        let path = parts.uri.path().strip_prefix(ROOT).unwrap_or_default();
        match (&parts.method, path.strip_prefix("invocation/")) {
            (&Method::GET, Some("next")) => self.hand_over().await,
            (&Method::POST, Some(path)) => match path.split_once('/') {
                Some((id, "response")) => self.take(id, Outcome::Answered(body)),
                Some((id, "error")) => self.take(id, Outcome::Failed(body)),
                _ => said(StatusCode::NOT_FOUND),
            },
            (&Method::POST, None) if path == "init/error" => said(StatusCode::ACCEPTED),
            _ => said(StatusCode::NOT_FOUND),
        }
    }

    /// The next event, once there is one.
    async fn hand_over(&self) -> Response<Full<Bytes>> {
        self.polls.send_modify(|polls| *polls += 1);
        let event = loop {
            let next = lock(&self.next).take();
            match next {
                Some(event) => break event,
                None => self.is_there.notified().await,
            }
        };
        let response = Response::builder()
            .header("content-type", "application/json")
            .header("lambda-runtime-aws-request-id", &event.id)
            .header("lambda-runtime-deadline-ms", DEADLINE_MS)
            .header("lambda-runtime-invoked-function-arn", ARN)
            .header("lambda-runtime-trace-id", "Root=1-6b0d6546-5a1f4e7d2c9b8a0f6e3d1c5b")
            .body(Full::new(event.body.clone()));
        *lock(&self.given) = Some(event);
        response.unwrap_or_else(|_| said(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// What became of the event that was handed over.
    fn take(&self, id: &str, outcome: Outcome) -> Response<Full<Bytes>> {
        let Some(event) = lock(&self.given).take_if(|event| event.id == id) else {
            return said(StatusCode::BAD_REQUEST);
        };
        // Whoever handed it over may have stopped waiting.
        let _ = event.outcome.send(outcome);
        said(StatusCode::ACCEPTED)
    }
}

fn said(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
