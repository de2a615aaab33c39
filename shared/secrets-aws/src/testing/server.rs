//! HTTP/1.1 around the fake.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::call::Answer;
use super::{Fate, Shared};

/// Largest body of a call, in bytes: the largest value as base64, and what stands around it.
const BODY_BYTES_MAX: usize = 128 * 1_024;

type Body = BoxBody<Bytes, io::Error>;

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
async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(io::Error::other)?;
    let now = shared.clock.now();
    let fate = shared.lock().handle(&parts, &body.to_bytes(), now);
    match fate {
        Fate::Answer(answer) => {
            let body = Full::new(Bytes::from(answer.body.clone()));
            response(&answer, body.map_err(|never: Infallible| match never {}).boxed())
        }
        Fate::Cut(answer) => {
            let half = Bytes::from(answer.body.clone()).slice(..answer.body.len() / 2);
            let cut = io::Error::from(io::ErrorKind::ConnectionReset);
            let frames = stream::iter([Ok(Frame::data(half)), Err(cut)]);
            response(&answer, BodyExt::boxed(StreamBody::new(frames)))
        }
        Fate::Close => Err(io::ErrorKind::ConnectionReset.into()),
        Fate::Hang => std::future::pending().await,
    }
}

fn response(answer: &Answer, body: Body) -> io::Result<Response<Body>> {
    Response::builder()
        .status(answer.status)
        .header("content-type", "application/x-amz-json-1.1")
        .header("content-length", answer.body.len())
        .header("x-amzn-requestid", "fake-request-1")
        .body(body)
        .map_err(io::Error::other)
}
