//! A way to the table on which answers get lost, and calls are refused.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::server;

/// What becomes of a call.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// It is made and answered.
    Pass,
    /// It is made, and its answer is lost.
    Lose,
    /// It is not made, and nobody answers.
    Hang,
    /// It is refused: status and code.
    Refuse(u16, &'static str),
    /// A transaction is cancelled, with one code for each of its parts.
    Cancel([&'static str; 2]),
    /// It is not made, and this is the answer.
    Answer(Value),
    /// Of a batch so many keys are read, and the rest is left unprocessed.
    Part(usize),
}

/// What refuses for a while or for good, and does nothing.
pub(crate) const BROKEN: Fate = Fate::Refuse(500, "InternalServerError");
pub(crate) const THROTTLED: Fate = Fate::Refuse(400, "ProvisionedThroughputExceededException");

/// A call as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Such as `PutItem`.
    pub(crate) operation: String,
    pub(crate) body: Value,
}

type Plan = dyn Fn(usize, &Call) -> Fate + Send + Sync;

struct Shared {
    plan: Box<Plan>,
    calls: Mutex<Vec<Call>>,
}

/// The way; ends when dropped.
pub(crate) struct Wire {
    pub(crate) endpoint: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Wire {
    /// A way on which each call, counted from 0, has the fate that the plan says.
    pub(crate) async fn new(plan: impl Fn(usize, &Call) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { plan: Box::new(plan), calls: Mutex::default() });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Self { endpoint, shared, task }
    }

    /// A way on which one call has this fate, and all others pass.
    pub(crate) async fn with(at: usize, fate: Fate) -> Self {
        Self::new(move |call, _| if call == at { fate.clone() } else { Fate::Pass }).await
    }

    /// A way on which every call has this fate.
    pub(crate) async fn always(fate: Fate) -> Self {
        Self::new(move |_, _| fate.clone()).await
    }

    /// The calls since the last look.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.shared.calls.lock().unwrap())
    }

    /// The operations that were called since the last look.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.take().into_iter().map(|call| call.operation).collect()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, calls) = (shared.clone(), calls.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let number = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                answer(shared.clone(), number, request)
            });
            // A lost answer ends the connection, as it should.
            let connection = hyper::server::conn::http1::Builder::new();
            drop(connection.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    number: usize,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let target = head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = target.and_then(|target| target.split('.').next_back()).unwrap_or_default();
    let call = Call {
        operation: operation.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let fate = (shared.plan)(number, &call);
    shared.calls.lock().unwrap().push(call.clone());
    match fate {
        Fate::Pass => forward(head, body).await,
        Fate::Lose => {
            forward(head, body).await?;
            Err(io::Error::other("the answer is lost"))
        }
        Fate::Hang => std::future::pending().await,
        Fate::Refuse(status, code) => Ok(said(
            status,
            &json!({
                "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"),
                "message": "said the table",
            }),
        )),
        Fate::Cancel(codes) => Ok(said(
            400,
            &json!({
                "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "Message": "Transaction cancelled, please refer to the reasons",
                "CancellationReasons": codes.map(|code| json!({ "Code": code })),
            }),
        )),
        Fate::Answer(answer) => Ok(said(200, &answer)),
        Fate::Part(keys) => part(head, call.body, keys).await,
    }
}

fn said(status: u16, body: &Value) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amzn-requestid", "REQUEST")
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

/// Makes the call at the emulator.
async fn forward(
    head: hyper::http::request::Parts,
    body: Bytes,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let host = server::endpoint().trim_start_matches("http://");
    let stream = TcpStream::connect(host).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(connection);
    let mut request =
        Request::post("/").body(Full::<Bytes>::new(body)).map_err(io::Error::other)?;
    for (name, value) in &head.headers {
        if name != "content-length" {
            request.headers_mut().insert(name, value.clone());
        }
    }
    let answer = sender.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Response::from_parts(head, Full::new(body)))
}

/// Reads the first keys of a batch and leaves the rest.
async fn part(
    head: hyper::http::request::Parts,
    mut asked: Value,
    keys: usize,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let tables = asked["RequestItems"].as_object().unwrap();
    let table = tables.keys().next().unwrap().clone();
    let all = asked["RequestItems"][&table]["Keys"].as_array().unwrap().clone();
    let (read, left) = all.split_at(keys.min(all.len()));
    let left = json!({ &table: { "Keys": left, "ConsistentRead": true } });
    if read.is_empty() {
        return Ok(said(200, &json!({ "Responses": { &table: [] }, "UnprocessedKeys": left })));
    }
    asked["RequestItems"][&table]["Keys"] = json!(read);
    let answer = forward(head, asked.to_string().into()).await?;
    let Ok(body) = answer.into_body().collect().await.map_err(|never: Infallible| never);
    let mut answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    answer["UnprocessedKeys"] = left;
    Ok(said(200, &answer))
}
