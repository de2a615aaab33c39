use domain::job::{JobStatus, Kind};
use domain::ports::{ApiErrorKind, Jobs as _, ListPage, ListQuery};
use domain::request::Format;

use crate::loopback::{Loopback, WITHIN};

const QUERY: ListQuery =
    ListQuery { page: 2, page_size: 100, created_from: None, created_to: None };

async fn list(body: &str) -> ListPage {
    let server = Loopback::json(200, body).await;
    server.api().list(Kind::Extract, &QUERY, WITHIN).await.unwrap()
}

fn ids(page: &ListPage) -> Vec<&str> {
    page.jobs.iter().map(|job| job.job_id.as_str()).collect()
}

/// SC-03: one bad entry does not hide its neighbours; it is counted.
#[tokio::test]
async fn unreadable_entries_are_counted() {
    let page = list(
        r#"{"jobs":[
            {"job_id":"no-created-at","status":"completed"},
            {"job_id":"bad-created-at","status":"completed","created_at":"yesterday"},
            {"job_id":"no-status","created_at":"2026-01-01T00:00:00Z"},
            {"job_id":"good","status":"failed","created_at":"2026-01-01T00:00:00Z"},
            {"job_id":null,"status":"failed"},
            {"job_id":"a/b","status":"failed"},
            null, 7, [], ["good-2","failed"], {}
        ],"page":1}"#,
    )
    .await;
    assert_eq!(ids(&page), ["no-created-at", "bad-created-at", "good"]);
    assert_eq!(page.unreadable, 8);
    let created: Vec<_> = page.jobs.iter().map(|job| job.created_at.is_some()).collect();
    assert_eq!(created, [false, false, true], "an unknown age is left to the caller");
    assert!(!page.is_empty());
}

/// SC-07: an answer without the list is never an empty list.
#[tokio::test]
async fn answers_without_the_list_are_unreadable() {
    for body in [
        r#"{"items":[{"job_id":"good","status":"failed"}],"page":1}"#,
        r#"{"page":1,"page_count":0}"#,
        r#"{"jobs":null}"#,
        r#"{"jobs":{}}"#,
        r#"{"jobs":"none"}"#,
        r#"{"code":"INTERNAL_ERROR","message":"m","retryable":true}"#,
        r#"{"error":{"code":"INTERNAL_ERROR","message":"m","retryable":true}}"#,
        "[]",
        "<html></html>",
        "",
    ] {
        let server = Loopback::json(200, body).await;
        let api = server.api();
        for kind in Kind::ALL {
            let error = api.list(kind, &QUERY, WITHIN).await.unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Unreadable, "{body}");
        }
    }
    let page = list(r#"{"jobs":[]}"#).await;
    assert!(page.is_empty());
}

/// SC-06 (the shape): counters may be missing, zero, lying or of a wrong type.
#[tokio::test]
async fn page_counters_are_told_as_they_are() {
    let job = r#"{"job_id":"a","status":"queued"}"#;
    for (counters, page_count, is_capped) in [
        ("", None, false),
        (r#","page_count":0"#, Some(0), false),
        (r#","page_count":2,"is_capped":true,"page":9,"page_size":1"#, Some(2), true),
        (r#","page_count":null,"is_capped":null"#, None, false),
        (r#","page_count":-1,"is_capped":"yes""#, None, false),
    ] {
        let page = list(&format!(r#"{{"jobs":[{job}]{counters}}}"#)).await;
        assert_eq!((page.page_count, page.is_capped), (page_count, is_capped), "{counters}");
        assert_eq!(ids(&page), ["a"]);
    }
}

/// SC-12: dates are sent in one form, and read in many.
#[tokio::test]
async fn dates_are_sent_with_microseconds_and_z() {
    let server = Loopback::json(200, r#"{"jobs":[]}"#).await;
    let query = ListQuery {
        created_from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        created_to: Some("2026-12-31T23:59:59.123456789Z".parse().unwrap()),
        ..QUERY
    };
    server.api().list(Kind::Batch, &query, WITHIN).await.unwrap();
    server.api().list(Kind::Crawl, &QUERY, WITHIN).await.unwrap();
    let targets: Vec<_> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        [
            "/v1/batch/jobs?page=2&page_size=100&start_date=2026-01-01T00%3A00%3A00.000000Z\
             &end_date=2026-12-31T23%3A59%3A59.123456Z",
            "/v1/crawl/jobs?page=2&page_size=100",
        ]
    );
    let page = list(
        r#"{"jobs":[{"job_id":"a","status":"queued","created_at":"2026-01-01T00:00:00+0000"},
            {"job_id":"b","status":"queued","created_at":"2026-01-01 02:00:00+02:00"}]}"#,
    )
    .await;
    let midnight = "2026-01-01T00:00:00Z".parse().unwrap();
    assert!(page.jobs.iter().all(|job| job.created_at == Some(midnight)));
}

#[tokio::test]
async fn listed_options_are_read() {
    let page = list(
        r#"{"jobs":[
            {"job_id":"extract","status":"expired","url":"https://a.example/","output":["markdown"]},
            {"job_id":"batch","status":"queued","accepted_urls":3,
                "config":{"formats":["html","markdown"],"render_js":true,"proxy":null}},
            {"job_id":"new-format","status":"queued","output":["html","pdf"]},
            {"job_id":"nulls","status":"queued","url":null,"output":null,"config":null}
        ]}"#,
    )
    .await;
    let [extract, batch, new_format, nulls] = &page.jobs[..] else { panic!("{page:?}") };
    assert_eq!(extract.status, JobStatus::Unknown("expired".into()));
    assert_eq!(extract.url.as_deref(), Some("https://a.example/"));
    assert_eq!(extract.formats, Some(vec![Format::Markdown]));
    assert_eq!((batch.accepted_urls, batch.render_js), (Some(3), Some(true)));
    assert_eq!(batch.formats, Some(vec![Format::Html, Format::Markdown]));
    assert_eq!(new_format.formats, None);
    assert_eq!((&nulls.url, &nulls.formats, nulls.render_js), (&None, &None, None));
}
