use domain::testing::ManualClock;
use futures_util::FutureExt as _;
use http::Request;
use http::request::Builder;
use serde_json::json;

use super::*;

const URL: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/gleaner-tasks";

fn shared() -> Shared {
    Shared::new(URL.to_owned(), Arc::new(ManualClock::default()))
}

fn request(operation: &str) -> Builder {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKID/20261130/{REGION}/sqs/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-target, Signature={}",
        "0".repeat(64)
    );
    Request::post("http://127.0.0.1/")
        .header("host", "127.0.0.1")
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-date", "20261130T120000Z")
        .header("x-amz-target", format!("AmazonSQS.{operation}"))
        .header("authorization", authorization)
}

/// The code of the older protocol in the answer to a request, and the answer's body.
fn answer(shared: &Shared, builder: Builder, body: &str) -> (String, Value) {
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    let Some(Fate::Answer(answer)) = shared.handle(&parts, body.as_bytes()).now_or_never() else {
        panic!("no answer");
    };
    let value = serde_json::from_str(&answer.body).unwrap();
    (answer.query_error.unwrap_or_default(), value)
}

/// The same for a call of this queue.
fn ask(shared: &Shared, operation: &str, mut members: Value) -> (String, Value) {
    members["QueueUrl"] = URL.into();
    answer(shared, request(operation), &members.to_string())
}

fn entry(id: &str, body: &str, delay: i64) -> Value {
    json!({ "Id": id, "MessageBody": body, "DelaySeconds": delay })
}

/// DQ-11: the fake refuses what SQS refuses, and whatever this crate does not ask for.
#[test]
fn it_refuses_what_sqs_refuses() {
    const BATCH: &str = "SendMessageBatch";
    let shared = shared();
    let eleven: Vec<_> = (0..11).map(|number| entry(&number.to_string(), "x", 0)).collect();
    let (large, half) = ("x".repeat(1_048_577), "x".repeat(524_289));
    let send = |body: &str, delay: i64| json!({ "MessageBody": body, "DelaySeconds": delay });
    let batch = |entries: &[Value]| json!({ "Entries": entries });
    let receive = |limit: i64, hold: i64, wait: i64| json!({ "MaxNumberOfMessages": limit, "VisibilityTimeout": hold, "WaitTimeSeconds": wait });
    for (operation, members, code) in [
        ("SendMessage", json!({ "DelaySeconds": 0 }), "MissingParameter"),
        ("SendMessage", send("", 0), "MissingParameter"),
        ("SendMessage", send("x", 901), "InvalidParameterValue"),
        ("SendMessage", send("x", -1), "InvalidParameterValue"),
        (
            "SendMessage",
            json!({ "MessageBody": "x", "DelaySeconds": 0.5 }),
            "InvalidParameterValue",
        ),
        ("SendMessage", json!({ "MessageBody": "x" }), "NotImplementedByTheFake"),
        ("SendMessage", send(&large, 0), "InvalidParameterValue"),
        ("SendMessage", send("a\u{0}", 0), "InvalidMessageContents"),
        ("SendMessage", send("a\u{b}", 0), "InvalidMessageContents"),
        ("SendMessage", send("a\u{ffff}", 0), "InvalidMessageContents"),
        (
            "SendMessage",
            json!({ "MessageBody": "x", "DelaySeconds": 0, "MessageGroupId": "g" }),
            "NotImplementedByTheFake",
        ),
        (BATCH, json!({}), "AWS.SimpleQueueService.EmptyBatchRequest"),
        (BATCH, batch(&[]), "AWS.SimpleQueueService.EmptyBatchRequest"),
        (BATCH, batch(&eleven), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
        (
            BATCH,
            batch(&[entry("a", "x", 0), entry("a", "y", 0)]),
            "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        ),
        (BATCH, batch(&[entry("", "x", 0)]), "AWS.SimpleQueueService.InvalidBatchEntryId"),
        (BATCH, batch(&[entry("a b", "x", 0)]), "AWS.SimpleQueueService.InvalidBatchEntryId"),
        (
            BATCH,
            batch(&[entry(&"a".repeat(81), "x", 0)]),
            "AWS.SimpleQueueService.InvalidBatchEntryId",
        ),
        (
            BATCH,
            batch(&[entry("a", &half, 0), entry("b", &half, 0)]),
            "AWS.SimpleQueueService.BatchRequestTooLong",
        ),
        ("ReceiveMessage", receive(0, 0, 0), "InvalidParameterValue"),
        ("ReceiveMessage", receive(11, 0, 0), "InvalidParameterValue"),
        ("ReceiveMessage", receive(1, 43_201, 0), "InvalidParameterValue"),
        ("ReceiveMessage", receive(1, -1, 0), "InvalidParameterValue"),
        ("ReceiveMessage", receive(1, 0, 21), "InvalidParameterValue"),
        ("ReceiveMessage", receive(1, 0, 20), "NotImplementedByTheFake"),
        (
            "ReceiveMessage",
            json!({ "WaitTimeSeconds": 0, "MessageSystemAttributeNames": ["All"] }),
            "NotImplementedByTheFake",
        ),
        ("ChangeMessageVisibility", json!({ "ReceiptHandle": "x" }), "MissingParameter"),
        ("ChangeMessageVisibility", json!({ "VisibilityTimeout": 0 }), "MissingParameter"),
        (
            "ChangeMessageVisibility",
            json!({ "ReceiptHandle": "x", "VisibilityTimeout": 43_201 }),
            "InvalidParameterValue",
        ),
        (
            "ChangeMessageVisibility",
            json!({ "ReceiptHandle": "x", "VisibilityTimeout": 0 }),
            "ReceiptHandleIsInvalid",
        ),
        ("DeleteMessage", json!({}), "MissingParameter"),
        ("DeleteMessage", json!({ "ReceiptHandle": "" }), "MissingParameter"),
        ("DeleteMessage", json!({ "ReceiptHandle": "x" }), "ReceiptHandleIsInvalid"),
        ("GetQueueAttributes", json!({ "AttributeNames": ["Depth"] }), "InvalidAttributeName"),
        ("PurgeQueue", json!({}), "NotImplementedByTheFake"),
    ] {
        let shown: String = members.to_string().chars().take(100).collect();
        let (error, answer) = ask(&shared, operation, members);
        let (said, fault) = error.split_once(';').unwrap_or_default();
        assert_eq!(said, code, "{operation} {shown}: {answer}");
        assert_eq!(fault, if code.starts_with("NotImpl") { "Receiver" } else { "Sender" });
    }
    assert!(shared.lock().queues.tasks.bodies().is_empty(), "what is refused leaves nothing");
}

/// Requests that are not signed, of another protocol, or about another queue.
#[test]
fn it_refuses_strangers() {
    let shared = shared();
    let own = json!({ "QueueUrl": URL, "MessageBody": "x", "DelaySeconds": 0 }).to_string();
    let other = json!({ "QueueUrl": "https://a/b", "MessageBody": "x" }).to_string();
    let bare = || {
        Request::post("http://127.0.0.1/")
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", "AmazonSQS.SendMessage")
    };
    let elsewhere = format!(
        "AWS4-HMAC-SHA256 Credential=AKID/20261130/us-east-1/sqs/aws4_request, \
         SignedHeaders=host;x-amz-target, Signature={}",
        "0".repeat(64)
    );
    for (builder, body, code) in [
        (bare(), &own, "MissingAuthenticationToken"),
        (bare().header("authorization", "Basic abc"), &own, "MissingAuthenticationToken"),
        (bare().header("authorization", elsewhere), &own, "SignatureDoesNotMatch"),
        (request("SendMessage").header("x-amz-new", "1"), &own, "SignatureDoesNotMatch"),
        (request("SendMessage"), &other, "AWS.SimpleQueueService.NonExistentQueue"),
        (request("SendMessage"), &"{}".to_owned(), "MissingParameter"),
        (request("SendMessage"), &"{".to_owned(), "SerializationException"),
        (Request::post("http://127.0.0.1/?Action=SendMessage"), &own, "NotImplementedByTheFake"),
    ] {
        let (error, _) = answer(&shared, builder, body);
        assert_eq!(error.split(';').next(), Some(code));
    }
    assert!(shared.lock().queues.tasks.bodies().is_empty());
}

/// A batch is taken in part: what is wrong with one message is told in its own entry.
#[test]
fn a_batch_is_taken_in_part() {
    let shared = shared();
    let entries =
        [entry("a", "x", 0), entry("b", "\u{1}", 0), entry("c", "y", 901), entry("d", "z", 900)];
    let (error, answer) = ask(&shared, "SendMessageBatch", json!({ "Entries": entries }));
    assert_eq!(error, "");
    let ids = |list: &str| -> Vec<Value> {
        answer[list].as_array().unwrap().iter().map(|entry| entry["Id"].clone()).collect()
    };
    assert_eq!(
        (ids("Successful"), ids("Failed")),
        (vec!["a".into(), "d".into()], vec!["b".into(), "c".into()])
    );
    assert!(answer["Failed"].as_array().unwrap().iter().all(|entry| entry["SenderFault"] == true));
    assert_eq!(shared.lock().queues.tasks.bodies(), ["x", "z"]);
    let (_, answer) = ask(&shared, "SendMessageBatch", json!({ "Entries": [entry("a", "x", 0)] }));
    assert!(answer.get("Failed").is_none(), "an empty list is left out");
    let full = "x".repeat(1_048_576);
    let entries = json!({ "Entries": [entry("a", &full, 0)] });
    assert_eq!(ask(&shared, "SendMessageBatch", entries).0, "", "the limit itself is allowed");
}
