//! Deliveries and the log that describes them.

use serde_json::{Value, json};

use super::{Stage, accept, envelope, header};
use crate::signature::sign;
use crate::{
    AttemptOutcome, Config, EventScope, LogRows, RETRY_SECS, SignatureEncoding, WebhookConfig,
};

const EVENT_TYPES: [&str; 3] = ["extract_completed", "batch_completed", "crawl_completed"];

/// Longer than all retries together.
const LONG: u64 = 10_000;

fn configured(change: impl FnOnce(&mut WebhookConfig)) -> Stage {
    let mut config = Config::default();
    change(&mut config.webhooks);
    Stage::new(config)
}

fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

#[test]
fn each_kind_is_announced_to_its_own_subscribers_with_signed_envelopes() {
    for encoding in
        [SignatureEncoding::Sha256Hex, SignatureEncoding::Hex, SignatureEncoding::Base64]
    {
        let mut stage = configured(|webhooks| webhooks.signature = encoding);
        let webhooks = EVENT_TYPES.map(|event_type| stage.webhook(event_type));
        let jobs = [
            stage.extract("https://a.example/1"),
            stage.batch(3),
            stage.accepted("/v1/crawl", &json!({ "url": "https://a.example/?pages=2" })),
        ];
        let sent = stage.deliver(600, accept);
        assert_eq!(sent.len(), 3);
        for ((webhook, job), event_type) in webhooks.iter().zip(&jobs).zip(EVENT_TYPES) {
            let request =
                sent.iter().find(|request| header(request, "X-Webhook-Event") == event_type);
            let request = request.unwrap();
            let body = envelope(request);
            assert_eq!(body["event"], event_type);
            assert_eq!(body["webhook_id"], webhook["id"]);
            assert_eq!(body["data"]["job_id"], **job);
            assert_eq!(body["data"]["status"], "completed");
            assert!(body.get("job_id").is_none());
            let secret = webhook["secret"].as_str().unwrap();
            let signature = sign(encoding, secret.as_bytes(), &request.body);
            assert_eq!(header(request, "X-Webhook-Signature"), signature);
            assert_eq!(header(request, "Content-Type"), "application/json");
            assert_eq!(header(request, "User-Agent"), "scraper-api-webhook/1.0");
            assert_eq!(header(request, "X-Webhook-Delivery-Id"), body["delivery_id"]);
            let log = stage.log(webhook);
            assert_eq!(log.len(), 1);
            assert_eq!(log[0]["id"], body["delivery_id"]);
            assert_eq!(log[0]["job_id"], **job);
            assert_eq!(
                (&log[0]["status"], &log[0]["http_status"]),
                (&json!("success"), &json!(200))
            );
            assert!(log[0]["delivered_at"].is_string());
        }
    }
}

#[test]
fn an_extraction_event_carries_the_whole_job_and_a_batch_event_its_counters() {
    let mut stage = Stage::calm();
    stage.webhook("extract_completed");
    stage.webhook("batch_completed");
    let job = stage.extract("https://a.example/1");
    stage.batch(3);
    let sent = stage.deliver(600, accept);
    let data = |event: &str| {
        let request = sent.iter().find(|request| header(request, "X-Webhook-Event") == event);
        envelope(request.unwrap())["data"].clone()
    };
    assert_eq!(data("extract_completed"), stage.read(&format!("/v1/extract/{job}")));
    let batch = data("batch_completed");
    assert_eq!((&batch["total_urls"], &batch["completed_urls"]), (&json!(3), &json!(3)));
    assert!(batch.get("results").is_none());
}

#[test]
fn a_refused_delivery_is_tried_again_on_schedule_and_then_abandoned() {
    let mut stage = Stage::calm();
    let webhook = stage.webhook("extract_completed");
    stage.extract("https://a.example/1");
    let mut times = Vec::new();
    for answer in [500, 302, 429, 404, 0, 503] {
        let mut sent = Vec::new();
        while sent.is_empty() {
            sent = stage.deliver(1, |_| match answer {
                0 => AttemptOutcome::Unanswered,
                status => AttemptOutcome::Answered(status),
            });
        }
        assert_eq!(sent.len(), 1);
        times.push(stage.now);
    }
    assert!(stage.deliver(LONG, accept).is_empty());
    let waits: Vec<f64> =
        times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    assert_eq!(waits, RETRY_SECS);
    let log = stage.log(&webhook);
    assert_eq!(column(&log, "attempt_number"), [6, 5, 4, 3, 2, 1]);
    assert_eq!(
        column(&log, "status"),
        ["abandoned", "failed", "failed", "failed", "failed", "failed"]
    );
    let statuses = [json!(503), Value::Null, json!(404), json!(429), json!(302), json!(500)];
    assert_eq!(column(&log, "http_status"), statuses);
    let mut ids = column(&log, "id");
    ids.dedup();
    assert_eq!(ids.len(), 6);
    let deliveries = &stage.books()[0]["deliveries"];
    assert_eq!((&deliveries["sent"], &deliveries["abandoned"]), (&json!(6), &json!(1)));
    assert_eq!((&deliveries["refused"], &deliveries["unanswered"]), (&json!(5), &json!(1)));
}

#[test]
fn the_log_can_have_one_row_per_delivery() {
    let mut stage = configured(|webhooks| webhooks.log = LogRows::RowPerDelivery);
    let webhook = stage.webhook("extract_completed");
    stage.extract("https://a.example/1");
    let mut refusals = 2;
    let sent = stage.deliver(LONG, |_| {
        refusals -= 1;
        AttemptOutcome::Answered(if refusals >= 0 { 500 } else { 204 })
    });
    assert_eq!(sent.len(), 3);
    let log = stage.log(&webhook);
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["attempt_number"], 3);
    assert_eq!((&log[0]["status"], &log[0]["http_status"]), (&json!("success"), &json!(204)));
    assert!(sent.iter().all(|request| header(request, "X-Webhook-Delivery-Id") == log[0]["id"]));
}

#[test]
fn the_log_is_paged_and_filtered_and_shows_waiting_rows() {
    let mut stage = Stage::calm();
    let webhook = stage.webhook("extract_completed");
    for i in 0..30 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    let mut count = 0;
    stage.deliver(700, |_| {
        count += 1;
        AttemptOutcome::Answered(if count % 3 == 0 { 500 } else { 200 })
    });
    let id = webhook["id"].as_str().unwrap();
    let mut total = 0;
    for status in ["pending", "success", "failed", "abandoned"] {
        let list = stage.read(&format!("/v1/webhooks/{id}/deliveries?status={status}"));
        let items = list["items"].as_array().unwrap();
        assert!(items.iter().all(|item| item["status"] == status));
        total += items.len();
    }
    assert!(total > 30);
    let first = stage.read(&format!("/v1/webhooks/{id}/deliveries?page_size=25"));
    let second = stage.read(&format!("/v1/webhooks/{id}/deliveries?page_size=25&page=2"));
    assert_eq!(first["items"].as_array().unwrap().len(), 25);
    assert_eq!(second["items"].as_array().unwrap().len(), total - 25);
    assert_eq!(first["page_count"], 2);
}

#[test]
fn a_retry_is_signed_with_the_rotated_secret() {
    let mut stage = Stage::calm();
    let webhook = stage.webhook("extract_completed");
    stage.extract("https://a.example/1");
    while stage.deliver(1, |_| AttemptOutcome::Answered(500)).is_empty() {}
    let target = format!("/v1/webhooks/{}/rotate-secret", webhook["id"].as_str().unwrap());
    let secret = stage.call("POST", &target, b"").body.unwrap()["secret"].clone();
    let sent = stage.deliver(60, accept);
    let key = secret.as_str().unwrap().as_bytes();
    let expected = sign(SignatureEncoding::Sha256Hex, key, &sent[0].body);
    assert_eq!(header(&sent[0], "X-Webhook-Signature"), expected);
}

#[test]
fn a_paused_or_deleted_webhook_gets_nothing() {
    for pause in [true, false] {
        let mut stage = Stage::calm();
        let webhook = stage.webhook("extract_completed");
        let target = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
        stage.extract("https://a.example/1");
        while stage.deliver(1, |_| AttemptOutcome::Answered(500)).is_empty() {}
        if pause {
            stage.call("PATCH", &target, b"{\"is_active\":false}");
        } else {
            stage.call("DELETE", &target, b"");
        }
        stage.extract("https://a.example/2");
        assert!(stage.deliver(LONG, accept).is_empty());
        if pause {
            assert_eq!(column(&stage.log(&webhook), "status"), ["abandoned", "failed"]);
        } else {
            assert_eq!(stage.get(&format!("{target}/deliveries")).status, 404);
        }
        assert_eq!(stage.books()[1]["deliveries"]["planned"], 0);
    }
}

#[test]
fn every_subscription_of_an_event_type_is_told() {
    let mut stage = Stage::calm();
    let webhooks = [stage.webhook("extract_completed"), stage.webhook("extract_completed")];
    stage.extract("https://a.example/1");
    let sent = stage.deliver(600, accept);
    assert_eq!(sent.len(), 2);
    for webhook in &webhooks {
        let request = sent.iter().find(|request| envelope(request)["webhook_id"] == webhook["id"]);
        let request = request.unwrap();
        let key = webhook["secret"].as_str().unwrap().as_bytes();
        let expected = sign(SignatureEncoding::Sha256Hex, key, &request.body);
        assert_eq!(header(request, "X-Webhook-Signature"), expected);
    }
}

#[test]
fn failed_and_cancelled_jobs_send_events_unless_configured_otherwise() {
    for (events, expected) in [(EventScope::AllTerminal, 2), (EventScope::CompletedOnly, 0)] {
        let mut stage = configured(|webhooks| webhooks.events = events);
        stage.post("/sim/faults", &json!({ "jobs": { "fail_final": 1 } }));
        stage.webhook("extract_completed");
        stage.webhook("batch_completed");
        stage.extract("https://a.example/1");
        let batch = stage.batch(3);
        stage.call("DELETE", &format!("/v1/batch/{batch}"), b"");
        let sent = stage.deliver(600, accept);
        assert_eq!(sent.len(), expected);
        let mut statuses: Vec<Value> =
            sent.iter().map(|request| envelope(request)["data"]["status"].clone()).collect();
        statuses.sort_by_key(Value::to_string);
        assert_eq!(statuses, [json!("cancelled"), json!("failed")][..expected]);
    }
}

#[test]
fn dropped_deliveries_are_never_sent_and_half_leave_an_abandoned_row() {
    let mut stage = Stage::with_faults(|faults| faults.deliveries.dropped = 0.5);
    let webhook = stage.webhook("extract_completed");
    for i in 0..100 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    let sent = stage.deliver(600, accept);
    let log = stage.log(&webhook);
    let abandoned = log.iter().filter(|row| row["status"] == "abandoned").count();
    assert!((35..65).contains(&sent.len()), "{}", sent.len());
    assert!((10..40).contains(&abandoned), "{abandoned}");
    assert_eq!(log.len(), sent.len() + abandoned);
    let dropped = stage.books().iter().filter(|job| job["deliveries"]["dropped"] == 1).count();
    assert_eq!(dropped, 100 - sent.len());
    for job in stage.books() {
        let is_dropped = job["deliveries"]["dropped"] == 1;
        assert_eq!(job["deliveries"]["first_accepted"], !is_dropped);
    }
}

#[test]
fn repeated_deliveries_come_twice_half_of_them_under_the_same_id() {
    let mut stage = Stage::with_faults(|faults| faults.deliveries.repeated = 1.0);
    let webhook = stage.webhook("extract_completed");
    for i in 0..60 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    let sent = stage.deliver(700, accept);
    assert_eq!(sent.len(), 120);
    let mut ids: Vec<&str> = sent.iter().map(|r| header(r, "X-Webhook-Delivery-Id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!((75..105).contains(&ids.len()), "{}", ids.len());
    assert_eq!(stage.log(&webhook).len(), ids.len());
}

#[test]
fn delayed_deliveries_overtake_each_other() {
    let mut stage = Stage::with_faults(|faults| {
        faults.deliveries.delayed = 0.5;
        faults.deliveries.delay_max_secs = 300.0;
    });
    stage.webhook("extract_completed");
    for i in 0..50 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    let sent = stage.deliver(1_200, accept);
    let ended: Vec<String> = sent
        .iter()
        .map(|request| envelope(request)["data"]["completed_at"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ended.len(), 50);
    assert!(!ended.is_sorted());
}

#[test]
fn missigned_attempts_fail_verification_and_their_retries_need_not() {
    let mut stage = Stage::with_faults(|faults| faults.deliveries.missigned = 0.5);
    let webhook = stage.webhook("extract_completed");
    let secret = webhook["secret"].as_str().unwrap().to_owned();
    for i in 0..60 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    let mut refused = 0;
    stage.deliver(LONG, |request| {
        let expected = sign(SignatureEncoding::Sha256Hex, secret.as_bytes(), &request.body);
        let valid = header(request, "X-Webhook-Signature") == expected;
        refused += u64::from(!valid);
        AttemptOutcome::Answered(if valid { 200 } else { 401 })
    });
    assert!(refused > 30, "{refused}");
    let counters = stage.read("/sim/counters");
    assert_eq!(counters["counters"]["webhooks"]["missigned"], refused);
    assert_eq!(counters["counters"]["webhooks"]["refused"], refused);
    assert_eq!(counters["counters"]["missigned_answers"], json!({ "401": refused }));
    let genuine = &counters["counters"]["genuine_answers"];
    assert_eq!(genuine, &json!({ "200": counters["counters"]["webhooks"]["accepted"] }));
    let books = stage.books();
    let late = |job: &&Value| job["deliveries"]["first_accepted"] == false;
    let refused_first = |job: &&Value| job["deliveries"]["missigned"].as_u64() > Some(0);
    assert_eq!(books.iter().filter(late).count(), books.iter().filter(refused_first).count());
    let accepted = stage.books().iter().filter(|job| job["deliveries"]["accepted"] == 1).count();
    assert!(accepted >= 57, "{accepted}");
}

#[test]
fn log_rows_can_lose_their_job_id() {
    let mut stage = Stage::with_faults(|faults| faults.deliveries.null_job_id = 1.0);
    let webhook = stage.webhook("extract_completed");
    stage.extract("https://a.example/1");
    stage.deliver(600, accept);
    assert_eq!(column(&stage.log(&webhook), "job_id"), [Value::Null]);
}
