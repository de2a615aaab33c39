use domain::job::{JobError, JobId, JobKey, JobStatus, Kind};
use domain::ports::{ApiError, ApiErrorKind, Jobs as _, PageRequest, ParentPage};

use crate::loopback::{Loopback, WITHIN};

async fn read(kind: Kind, body: &str) -> Result<ParentPage, ApiError> {
    let server = Loopback::json(200, body).await;
    let key = JobKey::new(kind, JobId::parse("job-1").unwrap());
    server.api().parent(&key, PageRequest { page: 1, page_size: 50 }, WITHIN).await
}

#[tokio::test]
async fn batch_is_read() {
    let body = r#"{"job_id":"job-1", "status":"completed","created_at":"2026-07-01T10:00:22.721Z",
        "batch_config":{"formats":["html"]},"total_urls":4,"completed_urls":1,"failed_urls":1,
        "cancelled_urls":1,"pending_urls":1,"results":[
            {"input_index":0, "url":"https://a.example/","status":"completed","data":{"html":"\u00e4"},"n":1.0},
            {"input_index":2,"url":"https://b.example/","status":"failed","error_code":"TIMEOUT","error_message":"m"}
        ],"token_summary":{"tokens_charged_total":1,"tokens_reserved":2},"new": 1.50}"#;
    let page = read(Kind::Batch, body).await.unwrap();
    assert_eq!(page.status, JobStatus::Completed);
    assert_eq!(page.created_at, Some("2026-07-01T10:00:22.721Z".parse().unwrap()));
    assert_eq!((page.total, page.ran, page.cancelled), (Some(4), 2, 1));
    assert_eq!(page.pending, 1);
    assert_eq!(page.tokens_reserved, 2);
    let [first, second] = &page.items.unwrap()[..] else { panic!("two items") };
    assert_eq!((first.key.as_str(), first.url.as_str()), ("0", "https://a.example/"));
    assert_eq!((first.status.as_str(), &first.error), ("completed", &None));
    let verbatim = r#"{"input_index":0, "url":"https://a.example/","status":"completed","data":{"html":"\u00e4"},"n":1.0}"#;
    assert_eq!(&*first.raw.0, verbatim);
    assert_eq!(second.key, "2");
    assert_eq!(second.error, Some(JobError::new("TIMEOUT", "m", true)));
    assert_eq!(
        &*page.summary.0,
        r#"{"job_id":"job-1","status":"completed","created_at":"2026-07-01T10:00:22.721Z","batch_config":{"formats":["html"]},"total_urls":4,"completed_urls":1,"failed_urls":1,"cancelled_urls":1,"pending_urls":1,"token_summary":{"tokens_charged_total":1,"tokens_reserved":2},"new":1.50}"#
    );
}

#[tokio::test]
async fn crawl_is_read() {
    let body = r#"{"job_id":"job-1","url":"https://a.example/","status":"cancelled","total_pages":7,
        "completed_pages":2,"failed_pages":1,"cancelled_pages":3,"token_summary":{"tokens_reserved":0},
        "results":[{"url":"https://a.example/","depth":1,"status":"failed","error_code":"INVALID_URL",
        "error_message":null,"links":["https://a.example/b"]},
        {"url":"https://a.example/b","depth":2,"status":"failed","error_message":"why"}]}"#;
    let page = read(Kind::Crawl, body).await.unwrap();
    assert_eq!(page.status, JobStatus::Cancelled);
    assert_eq!((page.total, page.ran, page.cancelled), (Some(7), 3, 3));
    assert_eq!(page.pending, 0);
    let items = page.items.unwrap();
    let keys: Vec<_> = items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["https://a.example/", "https://a.example/b"]);
    assert_eq!(items[0].error, Some(JobError::new("INVALID_URL", "", false)));
    assert_eq!(items[1].error, Some(JobError::new("UNKNOWN", "why", false)));
}

/// WK-16: nulls, absent and odd fields of a parent.
#[tokio::test]
async fn optional_fields_may_be_anything() {
    for (fields, items) in [
        ("", None),
        (r#","results":null"#, None),
        (r#","results":[]"#, Some(0)),
        (
            r#","results":[{"input_index":1,"url":null,"status":null,"data":null,"metadata":null}]"#,
            Some(1),
        ),
        (r#","token_summary":null,"created_at":null,"total_urls":null"#, None),
        (r#","token_summary":{"tokens_reserved":null},"failed_urls":-1"#, None),
    ] {
        let body = format!(r#"{{"job_id":"job-1","status":"processing"{fields}}}"#);
        let page = read(Kind::Batch, &body).await.unwrap();
        assert_eq!(page.items.map(|items| items.len()), items, "{fields}");
        assert_eq!((page.total, page.ran, page.cancelled), (None, 0, 0), "{fields}");
        assert_eq!((page.created_at, page.pending, page.tokens_reserved), (None, 0, 0), "{fields}");
    }
}

/// An item that cannot be told from its neighbours makes the page unreadable: a page that lacks
/// an item must not look whole.
#[tokio::test]
async fn items_without_a_key_make_the_page_unreadable() {
    for results in [
        "{}",
        "7",
        r#"[{"url":"https://a.example/","status":"completed"}]"#,
        r#"[{"input_index":"0"}]"#,
        r#"[{"input_index":0},null]"#,
        "[[0]]",
    ] {
        let body = format!(r#"{{"job_id":"job-1","status":"completed","results":{results}}}"#);
        let error = read(Kind::Batch, &body).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unreadable, "{results}");
        let position = results.contains("null").then_some("entry 1");
        assert!(position.is_none_or(|position| error.message.contains(position)), "{error}");
    }
}

#[tokio::test]
async fn extract_job_has_no_pages() {
    let server = Loopback::json(200, "{}").await;
    let key = JobKey::new(Kind::Extract, JobId::parse("job-1").unwrap());
    let page = PageRequest { page: 1, page_size: 50 };
    let error = server.api().parent(&key, page, WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Refused);
    assert_eq!(server.seen().len(), 0);
}
