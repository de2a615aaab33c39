//! Waiting for one delivery, which is answered so that the platform sends it again.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::signature::detect::may_be_signed;
use domain::signature::secret::Secret;
use domain::within::within;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde::Serialize;
use settings::Settings;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::request::Delivery;
use crate::commands::Interrupt;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::note;
use crate::serve::connections::{Answered, Bounds, not_allowed, serve, with_status};
use system::SystemClock;

/// What deliveries are answered: not now, try again.
pub(super) const ANSWER: u16 = 503;
/// Connections served at once: a platform's few, and some strangers'.
const CONNECTIONS: usize = 16;
/// Where a receiver says that it runs.
const HEALTH_PATH: &str = "/healthz";

/// A listener that waits.
pub(super) struct Listening {
    address: SocketAddr,
    path: String,
    listener: TcpListener,
    head_timeout: Duration,
    shared: Arc<Shared>,
    caught: oneshot::Receiver<Delivery>,
}

struct Shared {
    path: String,
    body_bytes: usize,
    body_timeout: Duration,
    secrets: Vec<Secret>,
    /// Where the first delivery goes; taken once.
    catch: Mutex<Option<oneshot::Sender<Delivery>>>,
}

/// Where deliveries are waited for.
#[derive(Debug, Serialize)]
pub(super) struct Started {
    version: u32,
    r#type: &'static str,
    listening: String,
}

impl fmt::Display for Started {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "listening   {}", self.listening)
    }
}

impl Listening {
    /// Listens at an address.
    ///
    /// # Errors
    /// When something else does.
    pub(super) async fn start(
        address: SocketAddr,
        settings: &Settings,
        secrets: &[Secret],
    ) -> Result<Self, CliError> {
        let cannot = |error: std::io::Error| {
            CliError::new(Exit::System, format!("cannot listen on {address}")).because(error).hint(
                "stop `gleaner serve` for the while, or name another address with --listen and \
                 lead the platform's deliveries there",
            )
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (catch, caught) = oneshot::channel();
        let shared = Shared {
            path: settings.webhook_path.clone(),
            body_bytes: settings.receiver.body_bytes,
            body_timeout: settings.receiver.body_timeout,
            secrets: secrets.to_vec(),
            catch: Mutex::new(Some(catch)),
        };
        let head_timeout = settings.receiver.head_timeout;
        let path = shared.path.clone();
        Ok(Self { address, path, listener, head_timeout, shared: Arc::new(shared), caught })
    }

    pub(super) fn started(&self) -> Started {
        let listening = format!("http://{}{}", self.address, self.path);
        Started { version: 1, r#type: "listening", listening }
    }

    /// Waits for one delivery. It is answered before this returns.
    ///
    /// # Errors
    /// When none comes in time, or the process is asked to end.
    pub(super) async fn wait(self, longest: Duration) -> Result<Delivery, CliError> {
        let Self { listener, head_timeout, shared, caught, .. } = self;
        let (stop, stopped) = watch::channel(false);
        let answer = move |request| answer(Arc::clone(&shared), request);
        let bounds = Bounds { connections: CONNECTIONS, head_timeout };
        let interrupted = Interrupt::listen();
        let waiting = async {
            let outcome = tokio::select! {
                caught = within(&SystemClock, longest, caught) => match caught {
                    Some(Ok(delivery)) => Ok(delivery),
                    Some(Err(_)) => Err(CliError::new(Exit::Bug, "the listener broke down")),
                    None => Err(none_came(longest)),
                },
                () = interrupted.wait() => {
                    Err(CliError::new(Exit::TryAgain, "interrupted before a delivery came"))
                }
            };
            // What is being answered is answered to its end.
            let _ = stop.send(true);
            outcome
        };
        let serving = serve(listener, bounds, &SystemClock, stopped, answer);
        let (outcome, ()) = tokio::join!(waiting, serving);
        outcome
    }
}

fn none_came(longest: Duration) -> CliError {
    CliError::new(Exit::Timeout, format!("no delivery came within {} s", longest.as_secs())).hint(
        "submit a job and wait for its end; `gleaner doctor` tells whether webhooks lead here; a \
         delivery that was kept elsewhere is read with --from FILE",
    )
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Answered {
    let (path, method) = (request.uri().path(), request.method());
    if path == HEALTH_PATH && matches!(*method, Method::GET | Method::HEAD) {
        return Response::new(Full::from("ok"));
    }
    if path != shared.path {
        return with_status(StatusCode::NOT_FOUND);
    }
    if *method != Method::POST {
        return not_allowed("POST");
    }
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let reading = Limited::new(body, shared.body_bytes).collect();
    let body = match within(&SystemClock, shared.body_timeout, reading).await {
        Some(Ok(body)) => body.to_bytes().to_vec(),
        Some(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            note(&format!(
                "note: a delivery is larger than `receiver.body_bytes` ({} bytes)",
                shared.body_bytes
            ));
            return with_status(StatusCode::PAYLOAD_TOO_LARGE);
        }
        _ => return with_status(StatusCode::REQUEST_TIMEOUT),
    };
    let delivery = Delivery::of(&path, &head.headers, body);
    if is_ours(&delivery, &shared.secrets) {
        let catch = shared.catch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(catch) = catch {
            // Whoever waited may have been asked to end.
            drop(catch.send(delivery));
        }
    } else {
        note("note: a request without anything like a signature is passed over");
    }
    with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// Whether a request is a delivery, as far as that can be told before it is verified.
fn is_ours(delivery: &Delivery, secrets: &[Secret]) -> bool {
    let says_so = |(name, _): &(String, Vec<u8>)| name.to_ascii_lowercase().contains("webhook");
    let agent = delivery.header("user-agent").unwrap_or_default().to_ascii_lowercase();
    may_be_signed(&delivery.headers, secrets)
        || delivery.headers.iter().any(says_so)
        || agent.contains("webhook")
}
