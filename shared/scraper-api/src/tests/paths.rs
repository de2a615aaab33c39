use domain::job::{JobId, JobKey, Kind};
use domain::ports::{ApiErrorKind, Jobs as _, PageRequest, WebhookId, Webhooks as _};

use crate::loopback::{Loopback, WITHIN, api_at};

/// WK-21 (the path part), PL-07: an id stays one segment, whatever it is made of, and each kind of job
/// is asked for where it is.
#[tokio::test]
async fn ids_cannot_change_the_path() {
    let server = Loopback::json(404, "").await;
    let api = server.api();
    for (id, segment) in [
        ("a%2Fb", "a%252Fb"),
        ("..%2f", "..%252f"),
        ("%2e%2e", "%252e%252e"),
        ("%2E", "%252E"),
        ("?x", "%3Fx"),
        ("#", "%23"),
        ("a\\b", "a%5Cb"),
        ("..\\..", "..%5C.."),
        ("...", "..."),
        ("a;b=c&d", "a;b=c&d"),
        ("jobs", "jobs"),
        ("395CF7E2-0000-4000-8000-000000000001", "395cf7e2-0000-4000-8000-000000000001"),
    ] {
        let id = JobId::parse(id).unwrap();
        let page = PageRequest { page: 3, page_size: 50 };
        api.extract(&id, WITHIN).await.unwrap_err();
        for kind in [Kind::Batch, Kind::Crawl] {
            let key = JobKey::new(kind, id.clone());
            api.parent(&key, page, WITHIN).await.unwrap_err();
        }
        let webhook = WebhookId::parse(id.as_str()).unwrap();
        api.rotate_secret(&webhook, WITHIN).await.unwrap_err();
        let seen = server.seen();
        let targets: Vec<_> =
            seen[seen.len() - 4..].iter().map(|seen| seen.target.as_str()).collect();
        assert_eq!(
            targets,
            [
                format!("/v1/extract/{segment}"),
                format!("/v1/batch/{segment}?page=3&page_size=50"),
                format!("/v1/crawl/{segment}?page=3&page_size=50"),
                format!("/v1/webhooks/{segment}/rotate-secret"),
            ]
        );
    }
}

#[tokio::test]
async fn base_path_is_a_prefix() {
    for slash in ["", "/"] {
        let server = Loopback::json(404, "").await;
        let api = api_at(&format!("{}/prefix{slash}", server.base_url));
        api.extract(&JobId::parse("a").unwrap(), WITHIN).await.unwrap_err();
        assert_eq!(server.seen()[0].target, "/prefix/v1/extract/a");
    }
}

#[tokio::test]
async fn answer_about_another_job_is_unreadable() {
    for body in [
        r#"{"job_id":"job-2","status":"completed"}"#,
        r#"{"job_id":null,"status":"completed"}"#,
        r#"{"job_id":7,"status":"completed"}"#,
        r#"{"job_id":"a/b","status":"completed"}"#,
        r#"{"status":"completed"}"#,
        r#"{"job_id":"job-1"}"#,
        r#"{"job_id":"job-1","status":null}"#,
    ] {
        let server = Loopback::json(200, body).await;
        let api = server.api();
        let id = JobId::parse("job-1").unwrap();
        let error = api.extract(&id, WITHIN).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unreadable, "{body}");
        let page = PageRequest { page: 1, page_size: 50 };
        let error = api.parent(&JobKey::new(Kind::Crawl, id), page, WITHIN).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unreadable, "{body}");
    }
}

#[tokio::test]
async fn spelling_of_a_uuid_does_not_matter() {
    let body = r#"{"job_id":"395CF7E2-0000-4000-8000-000000000001","status":"queued"}"#;
    let server = Loopback::json(200, body).await;
    let id = JobId::parse("395cf7e2-0000-4000-8000-000000000001").unwrap();
    assert!(server.api().extract(&id, WITHIN).await.is_ok());
}

#[tokio::test]
async fn client_names_itself() {
    let server = Loopback::json(404, "").await;
    server.api().extract(&JobId::parse("a").unwrap(), WITHIN).await.unwrap_err();
    let headers = server.seen()[0].headers.to_lowercase();
    assert!(headers.contains("user-agent: gleaner/"), "{headers}");
    assert!(headers.contains("x-api-key: marker-key-5f2c"), "{headers}");
    assert!(!headers.contains("cookie"), "{headers}");
}
