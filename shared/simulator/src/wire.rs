//! How an answer travels over a connection, well or badly.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;

use crate::answer::{Answer, Transport};
use crate::server::{Shared, stopped};

/// Wait between the first half of a cut body and the end of the connection.
const CUT_PAUSE: Duration = Duration::from_millis(20);

/// Pieces of a slow body, and the wait before each.
const SLOW_PIECES: usize = 8;
const SLOW_PAUSE: Duration = Duration::from_millis(120);

/// Why a connection ends without a whole answer; never shown to anybody.
#[derive(Debug, thiserror::Error)]
#[error("the simulator closed the connection")]
pub(crate) struct Broken;

pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Broken>;

/// Sends an answer the way its transport says.
pub(crate) async fn deliver(
    shared: &Arc<Shared>,
    answer: &Answer,
    mut stop: watch::Receiver<bool>,
) -> Result<Response<AnswerBody>, Broken> {
    match answer.transport {
        Transport::Prompt => whole(answer),
        Transport::After(wait) => {
            shared.clock.sleep(wait).await;
            whole(answer)
        }
        Transport::Lost => Err(Broken),
        Transport::Hang(longest) => {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => {}
                () = shared.clock.sleep(longest) => {}
            }
            Err(Broken)
        }
        Transport::Slow => {
            let bytes = answer.bytes();
            let clock = Arc::clone(&shared.clock);
            let pieces = futures_util::stream::iter(pieces(&bytes)).then(move |piece| {
                let clock = Arc::clone(&clock);
                async move {
                    clock.sleep(SLOW_PAUSE).await;
                    Ok(Frame::data(piece))
                }
            });
            response(answer, bytes.len(), UnsyncBoxBody::new(StreamBody::new(pieces)))
        }
        Transport::Cut => {
            let bytes = answer.bytes();
            let half = bytes.slice(..bytes.len() / 2);
            let clock = Arc::clone(&shared.clock);
            // The pause lets the first half leave the buffer before the connection breaks.
            let end = futures_util::stream::once(async move {
                clock.sleep(CUT_PAUSE).await;
                Err(Broken)
            });
            let pieces = futures_util::stream::iter([Ok(Frame::data(half))]).chain(end);
            response(answer, bytes.len(), UnsyncBoxBody::new(StreamBody::new(pieces)))
        }
    }
}

fn pieces(bytes: &Bytes) -> Vec<Bytes> {
    let size = bytes.len().div_ceil(SLOW_PIECES).max(1);
    bytes.chunks(size).map(|piece| bytes.slice_ref(piece)).collect()
}

/// Sends a whole answer at once.
pub(crate) fn whole(answer: &Answer) -> Result<Response<AnswerBody>, Broken> {
    let bytes = answer.bytes();
    let length = bytes.len();
    response(answer, length, Full::new(bytes).map_err(|never| match never {}).boxed_unsync())
}

fn response(
    answer: &Answer,
    length: usize,
    body: AnswerBody,
) -> Result<Response<AnswerBody>, Broken> {
    let mut builder = Response::builder().status(answer.status);
    if answer.body.is_some() {
        builder = builder.header(header::CONTENT_TYPE, "application/json");
    }
    if answer.status != 204 {
        builder = builder.header(header::CONTENT_LENGTH, length);
    }
    if let Some(wait) = &answer.retry_after {
        builder = builder.header(header::RETRY_AFTER, wait);
    }
    builder.body(body).map_err(|_| Broken)
}
