//! A DynamoDB table on loopback that knows the two requests of the receiver and no other.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

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

type Items = Arc<Mutex<BTreeMap<String, Value>>>;

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
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.keys().cloned().collect()
    }
}

impl Drop for FakeTable {
    fn drop(&mut self) {
        self.task.abort();
    }
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
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, answer) = match asked(&parts.headers).as_deref() {
        Some("GetItem") => get(&body, &items),
        Some("PutItem") => put(&body, &mut items),
        other => refused("UnknownOperationException", other.unwrap_or("no operation")),
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
    (200, item.map_or_else(|| json!({}), |item| json!({ "Item": item })))
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
        && body["ConditionExpression"] == ABSENT
        && body["ExpressionAttributeNames"] == json!({ "#pk": "pk", "#expires_at": "expires_at" })
        && body["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD";
    if !is_known {
        return refused("ValidationException", "PutItem");
    }
    let key = body["Item"]["pk"]["S"].as_str().unwrap();
    if let Some(there) = items.get(key) {
        let code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let message = "The conditional request failed";
        return (400, json!({ "__type": code, "message": message, "Item": there }));
    }
    items.insert(key.to_owned(), body["Item"].clone());
    (200, json!({}))
}

fn members(body: &Value) -> Vec<&str> {
    let mut names: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn refused(code: &str, message: &str) -> (u16, Value) {
    (400, json!({ "__type": format!("com.amazon.coral.validate#{code}"), "message": message }))
}
