use domain::envelope::EventType;
use domain::job::{JobId, Kind};
use domain::ports::{
    ApiErrorKind, DeliveryStatus, NewWebhook, SubmitError, WebhookChange, WebhookId, Webhooks as _,
};

use crate::loopback::{Loopback, Reply, WITHIN, answer, json};

const WEBHOOK: &str = r#"{"id":"w-1","url":"https://r.example/","description":null,"is_active":true,
    "event_type":"extract_completed","created_at":"2026-07-01T00:00:00Z","updated_at":null,"new":1}"#;

fn id() -> WebhookId {
    WebhookId::parse("w-1").unwrap()
}

fn new_webhook() -> NewWebhook {
    NewWebhook {
        url: "https://r.example/".to_owned(),
        event_type: EventType::completed(Kind::Extract),
        description: Some("mine".to_owned()),
    }
}

#[tokio::test]
async fn created_webhook_comes_with_its_secret() {
    let body = WEBHOOK.replacen('{', r#"{"secret":"whsec_1","#, 1);
    let server = Loopback::json(201, &body).await;
    let created = server.api().create(&new_webhook(), WITHIN).await.unwrap();
    assert_eq!(created.secret.expose(), "whsec_1");
    assert_eq!((created.webhook.id, created.webhook.is_active), (id(), true));
    assert_eq!(created.webhook.event_type, EventType::ExtractCompleted);
    assert_eq!(created.webhook.created_at, Some("2026-07-01T00:00:00Z".parse().unwrap()));
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v1/webhooks"));
    assert_eq!(
        seen.body,
        r#"{"url":"https://r.example/","event_type":"extract_completed","description":"mine"}"#
    );
}

/// A webhook whose secret nobody saw may exist: that is no refusal.
#[tokio::test]
async fn lost_secrets_are_unanswered() {
    for reply in [
        json(201, WEBHOOK),
        json(201, r#"{"secret":""}"#),
        json(201, "{}"),
        json(500, ""),
        Reply::Close(Vec::new()),
    ] {
        let server = Loopback::start(vec![reply]).await;
        let api = server.api();
        let error = api.create(&new_webhook(), WITHIN).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?}");
        let error = api.rotate_secret(&id(), WITHIN).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unanswered(_)), "{error:?}");
        assert_eq!(server.seen().len(), 2, "neither is repeated");
    }
    let server = Loopback::json(422, r#"{"detail":"too many webhooks"}"#).await;
    let error = server.api().create(&new_webhook(), WITHIN).await.unwrap_err();
    let SubmitError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!(error.message, "too many webhooks");
}

#[tokio::test]
async fn secret_is_rotated() {
    let server = Loopback::json(200, r#"{"secret":"whsec_2"}"#).await;
    let secret = server.api().rotate_secret(&id(), WITHIN).await.unwrap();
    assert_eq!(secret.expose(), "whsec_2");
    let seen = &server.seen()[0];
    assert_eq!(seen.target, "/v1/webhooks/w-1/rotate-secret");
    assert_eq!((seen.method.as_str(), seen.body.as_str()), ("POST", ""));
}

#[tokio::test]
async fn webhook_is_read_changed_and_deleted() {
    let gone = Reply::Keep(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec());
    let paused = WEBHOOK.replace("true", "false");
    let replies = vec![json(200, WEBHOOK), json(200, &paused), gone, json(404, "")];
    let server = Loopback::start(replies).await;
    let api = server.api();
    assert!(api.get(&id(), WITHIN).await.unwrap().is_active);
    let change = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
    assert!(!api.update(&id(), &change, WITHIN).await.unwrap().is_active);
    api.delete(&id(), WITHIN).await.unwrap();
    let error = api.delete(&id(), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Missing);
    let seen = server.seen();
    let calls: Vec<_> =
        seen.iter().map(|seen| (seen.method.as_str(), seen.body.as_str())).collect();
    let expected =
        [("GET", ""), ("PATCH", r#"{"is_active":false}"#), ("DELETE", ""), ("DELETE", "")];
    assert_eq!(calls, expected);
    assert!(seen.iter().all(|seen| seen.target == "/v1/webhooks/w-1"));
}

#[tokio::test]
async fn another_webhook_is_not_taken_for_the_one_asked_for() {
    let server = Loopback::json(200, &WEBHOOK.replace("w-1", "w-2")).await;
    let error = server.api().get(&id(), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unreadable);
}

/// SC-03, SC-07: webhooks are listed under `items`; odd entries are counted, unknown words kept.
#[tokio::test]
async fn webhooks_are_listed() {
    let unknown = WEBHOOK.replace("extract_completed", "page_changed");
    let list = format!(r#"{{"items":[{WEBHOOK},{unknown},{{}},null],"page_count":1}}"#);
    let server = Loopback::start(vec![json(200, &list), json(200, r#"{"jobs":[]}"#)]).await;
    let api = server.api();
    let page = api.list(1, 100, WITHIN).await.unwrap();
    let events: Vec<_> = page.webhooks.iter().map(|webhook| webhook.event_type.as_str()).collect();
    assert_eq!(events, ["extract_completed", "page_changed"]);
    assert_eq!((page.unreadable, page.page_count), (2, Some(1)));
    let error = api.list(2, 100, WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unreadable);
    let targets: Vec<_> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/v1/webhooks?page=1&page_size=100", "/v1/webhooks?page=2&page_size=100"]);
}

/// SC-03, SC-06 (the shape), SC-07: the delivery log.
#[tokio::test]
async fn deliveries_are_listed() {
    let list = r#"{"items":[
        {"id":"d-1","event_type":"batch_completed","job_id":"job-1","attempt_number":1,
            "status":"success","http_status":200,"delivered_at":"2026-07-01T00:00:01Z",
            "created_at":"2026-07-01T00:00:00Z"},
        {"id":"d-2","event_type":"new_event","job_id":null,"attempt_number":null,
            "status":"postponed","http_status":null,"delivered_at":null,"created_at":"soon"},
        {"id":"d-3","event_type":"batch_completed","job_id":"a/b","status":"failed"},
        {"id":"d-4","event_type":"batch_completed","job_id":"job-1"},
        "d-5"
    ],"page_count":0}"#;
    let replies = vec![json(200, list), Reply::Keep(answer(200, &[], b"{\"page\":1}"))];
    let server = Loopback::start(replies).await;
    let api = server.api();
    let page = api.deliveries(&id(), 1, 100, WITHIN).await.unwrap();
    assert_eq!((page.unreadable, page.page_count), (3, Some(0)));
    let [first, second] = &page.deliveries[..] else { panic!("{page:?}") };
    assert_eq!(first.job_id.as_ref().map(JobId::as_str), Some("job-1"));
    assert_eq!((&first.status, first.http_status), (&DeliveryStatus::Success, Some(200)));
    assert_eq!(first.attempt_number, Some(1));
    assert_eq!((second.job_id.as_ref(), second.status.as_str()), (None, "postponed"));
    assert_eq!(second.event_type, EventType::Unknown("new_event".to_owned()));
    assert_eq!((second.created_at, second.delivered_at), (None, None));
    let error = api.deliveries(&id(), 1, 100, WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unreadable);
    assert_eq!(server.seen()[0].target, "/v1/webhooks/w-1/deliveries?page=1&page_size=100");
}
