//! HTTP/1.1 around the fake.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Fate, Shared};

/// Largest body of a request, in bytes: more than SQS takes, so that its own refusal is seen.
const BODY_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Serves until it is dropped, and its connections with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    // A connection that a client or a plan breaks has nothing more to say.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// An error closes the connection without an answer.
async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(io::Error::other)?;
    match shared.handle(&parts, &body.to_bytes()).await {
        Fate::Answer(answer) => {
            let mut builder = Response::builder()
                .status(answer.status)
                .header("content-type", "application/x-amz-json-1.0")
                .header("x-amzn-requestid", "fake-request-1");
            if let Some(error) = answer.query_error {
                builder = builder.header("x-amzn-query-error", error);
            }
            builder.body(Full::from(answer.body)).map_err(io::Error::other)
        }
        Fate::Close => Err(io::ErrorKind::ConnectionReset.into()),
    }
}
