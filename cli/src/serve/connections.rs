//! Connections over HTTP/1, bounded in number and in the time of a request's head.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::ports::Clock;
use http::header::ALLOW;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{STOP_GRACE, stopped};

/// Pause after `accept` failed, so that a lack of file descriptors is not a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is answered: a status, and hardly ever more.
pub(crate) type Answered = Response<Full<Bytes>>;

/// Bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections served at once; further ones wait in the system's backlog.
    pub(crate) connections: usize,
    /// Longest time in which a request's head must arrive.
    pub(crate) head_timeout: Duration,
}

/// Serves until it is told to stop, then lets what is open finish for a while.
pub(crate) async fn serve<A, F>(
    listener: TcpListener,
    bounds: Bounds,
    clock: &dyn Clock,
    mut stop: watch::Receiver<bool>,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    let connections = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = accept(clock, &listener, &connections) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let answer = answer.clone();
        let service = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
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
    clock: &dyn Clock,
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
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
            clock.sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

pub(crate) fn with_status(status: StatusCode) -> Answered {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

pub(crate) fn not_allowed(allowed: &'static str) -> Answered {
    let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
