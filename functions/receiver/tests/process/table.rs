//! A DynamoDB table on loopback that knows the requests of the receiver and no others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::site::{REGION, TABLE};

/// What a new row must not meet.
const ABSENT: &str = "attribute_not_exists(#pk) OR #expires_at <= :now";
/// What a row that was read must still be.
const SEEN: &str = "#state = :state AND #generation = :generation AND #version = :version";
const SEEN_NAMES: [&str; 3] = ["state", "generation", "version"];

/// What goes wrong with every request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TableTrouble {
    /// The answer is an error with this status and code.
    Refuse(u16, &'static str),
    /// No answer ever comes.
    Hang,
}

#[derive(Default)]
struct Shared {
    items: BTreeMap<String, Value>,
    trouble: Option<TableTrouble>,
}

type Items = Arc<Mutex<Shared>>;

/// A running table; stopped when dropped.
pub(crate) struct FakeTable {
    pub(crate) endpoint: String,
    items: Items,
    task: JoinHandle<()>,
}

impl FakeTable {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let items = Items::default();
        let task = tokio::spawn(accept(listener, Arc::clone(&items)));
        Self { endpoint, items, task }
    }

    /// The partition keys of the rows.
    pub(crate) fn keys(&self) -> Vec<String> {
        lock(&self.items).items.keys().cloned().collect()
    }

    /// Lets everything go wrong, or nothing any more.
    pub(crate) fn always(&self, trouble: Option<TableTrouble>) {
        lock(&self.items).trouble = trouble;
    }
}

impl Drop for FakeTable {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(items: &Items) -> MutexGuard<'_, Shared> {
    items.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, items: Items) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let items = Arc::clone(&items);
        let service = service_fn(move |request| answer(request, Arc::clone(&items)));
        connections.spawn(async move {
            // A process that ends breaks its connection.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    items: Items,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let trouble = lock(&items).trouble;
    let asked = asked(&parts.headers);
    let (status, answer) = match (trouble, asked.as_deref()) {
        (Some(TableTrouble::Hang), _) => std::future::pending().await,
        (Some(TableTrouble::Refuse(status, code)), _) => (status, refused(code, "planned").1),
        (None, Some("GetItem")) => get(&body, &lock(&items).items),
        (None, Some("PutItem")) => put(&body, &mut lock(&items).items),
        (None, other) => refused("UnknownOperationException", other.unwrap_or("no operation")),
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amzn-requestid", "fake-request-1");
    Ok(response.body(Full::from(answer.to_string())).unwrap())
}

/// The operation of a request that is signed for DynamoDB in our region.
fn asked(headers: &HeaderMap) -> Option<String> {
    let header = |name| headers.get(name)?.to_str().ok();
    let scope = format!("/{REGION}/dynamodb/aws4_request,");
    let is_signed = header("authorization")?.contains(&scope)
        && header("content-type")? == "application/x-amz-json-1.0";
    let operation = header("x-amz-target")?.strip_prefix("DynamoDB_20120810.")?;
    is_signed.then(|| operation.to_owned())
}

fn get(body: &Value, items: &BTreeMap<String, Value>) -> (u16, Value) {
    if members(body) != ["ConsistentRead", "Key", "TableName"] || body["TableName"] != TABLE {
        return refused("ValidationException", "GetItem");
    }
    let item = items.get(body["Key"]["pk"]["S"].as_str().unwrap());
    (200, with(json!({}), "Item", item))
}

fn put(body: &Value, items: &mut BTreeMap<String, Value>) -> (u16, Value) {
    let is_known = members(body)
        == [
            "ConditionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "Item",
            "ReturnValuesOnConditionCheckFailure",
            "TableName",
        ]
        && body["TableName"] == TABLE
        && body["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD";
    let names = &body["ExpressionAttributeNames"];
    let key = body["Item"]["pk"]["S"].as_str().unwrap();
    let there = items.get(key);
    let holds = match body["ConditionExpression"].as_str() {
        Some(ABSENT) if *names == json!({ "#pk": "pk", "#expires_at": "expires_at" }) => {
            there.is_none()
        }
        Some(SEEN) if names.as_object().is_some_and(|names| names.len() == SEEN_NAMES.len()) => {
            let is_as_seen = |name: &&str| {
                let is_named = names[format!("#{name}")] == **name;
                let seen = &body["ExpressionAttributeValues"][format!(":{name}")];
                is_named && there.is_some_and(|there| there[*name] == *seen)
            };
            SEEN_NAMES.iter().all(is_as_seen)
        }
        _ => return refused("ValidationException", "PutItem"),
    };
    if !is_known {
        return refused("ValidationException", "PutItem");
    }
    if !holds {
        let code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let answer = json!({ "__type": code, "message": "The conditional request failed" });
        return (400, with(answer, "Item", there));
    }
    items.insert(key.to_owned(), body["Item"].clone());
    (200, json!({}))
}

/// An object with one more member, if there is a value for it.
fn with(mut object: Value, name: &str, value: Option<&Value>) -> Value {
    if let Some(value) = value {
        object[name] = value.clone();
    }
    object
}

fn members(body: &Value) -> Vec<&str> {
    let mut names: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn refused(code: &str, message: &str) -> (u16, Value) {
    (400, json!({ "__type": format!("com.amazon.coral.validate#{code}"), "message": message }))
}
