//! The table: a server on loopback that the tests of this process share, and tables in it as
//! docs/table.md says.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

/// The server. It ends with this process, whose end closes its standard input.
struct Server {
    endpoint: String,
    _process: Child,
}

/// The server's URL.
pub(crate) fn endpoint() -> &'static str {
    static SERVER: OnceLock<Server> = OnceLock::new();
    &SERVER.get_or_init(start).endpoint
}

/// Builds and starts the server of the ledger's own tests.
fn start() -> Server {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/dynamodb/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../dynamodb-server");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path", package, "--target-dir"])
        .arg(&target)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the tests' DynamoDB does not build");
    let mut process = Command::new(target.join("debug/dynamodb-server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Server { endpoint: format!("http://127.0.0.1:{}", port.trim()), _process: process }
}

/// Makes a table of a test's own; gives its name.
pub(crate) async fn table() -> String {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    let name = format!("gleaner-{}-{number}", std::process::id());
    let keys = ["pk", "sk", "due_shard", "due_sort", "list_key", "list_sort"];
    let definitions: Vec<Value> =
        keys.iter().map(|key| json!({ "AttributeName": key, "AttributeType": "S" })).collect();
    let schema = |partition: &str, sort: &str| {
        json!([
            { "AttributeName": partition, "KeyType": "HASH" },
            { "AttributeName": sort, "KeyType": "RANGE" },
        ])
    };
    let body = json!({
        "TableName": name,
        "AttributeDefinitions": definitions,
        "KeySchema": schema("pk", "sk"),
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "due",
                "KeySchema": schema("due_shard", "due_sort"),
                "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["posted_at"] },
            },
            {
                "IndexName": "listing",
                "KeySchema": schema("list_key", "list_sort"),
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            },
        ],
    });
    // The server looks for a signature, and does not verify it.
    let signature = "AWS4-HMAC-SHA256 Credential=AKIATEST/20261130/eu-central-1/dynamodb/aws4_request, \
                     SignedHeaders=host;x-amz-date, Signature=0";
    let client = tls::client().no_proxy().build().unwrap();
    let made = client
        .post(endpoint())
        .header("authorization", signature)
        .header("x-amz-date", "20261130T000000Z")
        .header("x-amz-target", "DynamoDB_20120810.CreateTable")
        .header("content-type", "application/x-amz-json-1.0")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert!(made.status().is_success(), "{}", made.text().await.unwrap());
    name
}
