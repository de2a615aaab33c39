//! The platform behind HTTP/1.1.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::Answer;
use crate::call::Call;
use crate::clock::Clock;
use crate::config::Config;
use crate::content::Corpus;
use crate::error::SimulatorError;
use crate::moment::Moment;
use crate::platform::Platform;
use crate::sender;
use crate::wire::{AnswerBody, Broken, deliver, whole};

/// Largest request body read, in bytes: a batch of 1,000 URLs of 8 KiB.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Connections served at once; further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 1_024;

/// Longest time in which a request's head, and then its body, must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long open calls may take to finish when the simulator stops.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// What connections and the sender share.
pub(crate) struct Shared {
    platform: Mutex<Platform>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Shared {
    pub(crate) fn now(&self) -> Moment {
        Moment::from(self.clock.now())
    }

    pub(crate) fn with_platform<T>(&self, act: impl FnOnce(&mut Platform) -> T) -> T {
        // A panic in one call leaves a usable platform; the books show what it did.
        act(&mut self.platform.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A simulator that serves in the background.
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Ends it.
    pub stop: Stop,
    shared: Arc<Shared>,
}

/// Ends a running simulator.
pub struct Stop {
    signal: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Returns the URL under which clients reach the API.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Looks at the platform behind the server, at the clock's present moment.
    pub fn with_platform<T>(&self, act: impl FnOnce(&mut Platform, Moment) -> T) -> T {
        let now = self.shared.now();
        self.shared.with_platform(|platform| act(platform, now))
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Stop {
    /// Stops accepting calls, lets open ones finish for two seconds and ends the sender.
    pub async fn stop(self) {
        let _ = self.signal.send(true);
        let _ = self.task.await;
    }
}

/// Starts a simulator on a listener.
///
/// # Errors
///
/// Fails when a setting cannot be used, the corpus cannot be read, the listener has no address or the webhook sender
/// cannot be set up.
pub fn start(
    listener: TcpListener,
    config: Config,
    clock: Arc<dyn Clock>,
) -> Result<Running, SimulatorError> {
    config.check()?;
    let addr = listener.local_addr().map_err(SimulatorError::Listen)?;
    let corpus = config.corpus.as_deref().map(Corpus::load).transpose()?.unwrap_or_default();
    let client = sender::client()?;
    let platform = Mutex::new(Platform::new(config, corpus));
    let shared = Arc::new(Shared { platform, clock });
    let (signal, stop) = watch::channel(false);
    let sender = sender::send_due(Arc::clone(&shared), client, stop.clone());
    let calls = accept(listener, Arc::clone(&shared), stop);
    let task = tokio::spawn(async move {
        tokio::join!(sender, calls);
    });
    Ok(Running { addr, stop: Stop { signal, task }, shared })
}

/// Serves a simulator until `until` is ready.
///
/// # Errors
///
/// Fails like [`start`].
pub async fn serve(
    listener: TcpListener,
    config: Config,
    clock: Arc<dyn Clock>,
    until: impl Future<Output = ()>,
) -> Result<(), SimulatorError> {
    let running = start(listener, config, clock)?;
    until.await;
    running.stop.stop().await;
    Ok(())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let watched = stop.clone();
    loop {
        let has_room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if has_room => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&shared), watched.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of descriptors, most likely: give open connections time to end.
                    shared.clock.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
}

/// Returns once the simulator is told to stop, or nobody is left to tell it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    // Answers are small and clients wait for them; Nagle's algorithm would delay the last piece.
    let _ = stream.set_nodelay(true);
    let hang_stop = stop.clone();
    let service = service_fn(move |request| {
        let (shared, stop) = (Arc::clone(&shared), hang_stop.clone());
        async move { answer(&shared, request, stop).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = stopped(&mut stop) => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn answer(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    stop: watch::Receiver<bool>,
) -> Result<Response<AnswerBody>, Broken> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    let body = match tokio::time::timeout(READ_TIMEOUT, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return whole(&Answer::detail(413, "Request Entity Too Large")),
        Err(_) => return whole(&Answer::detail(408, "Request Timeout")),
    };
    let now = shared.now();
    let answer = shared.with_platform(|platform| {
        let call = Call {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            api_key: head.headers.get("x-api-key").and_then(|value| value.to_str().ok()),
            body: &body,
        };
        platform.call(&call, now)
    });
    deliver(shared, &answer, stop).await
}
