//! Answers with fields that nobody reads, and that no parser should take to heart.

use domain::job::{JobId, JobKey, Kind};
use domain::ports::{ApiErrorKind, Jobs, ListQuery, PageRequest, WebhookId, Webhooks as _};

use crate::loopback::{Loopback, WITHIN};

/// PL-05: nesting of any depth and numbers of any size in unknown fields change nothing, whichever
/// answer they are in: of a job, of a batch, of a list, of a delivery log. NaN is no JSON anywhere.
#[tokio::test]
async fn unknown_fields_may_be_deep_and_odd() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let (job, webhook) = (JobId::parse("job-1").unwrap(), WebhookId::parse("w-1").unwrap());
    let batch = JobKey::new(Kind::Batch, job.clone());
    let page = PageRequest { page: 1, page_size: 50 };
    for (odd, is_json) in [
        (deep(200), true),
        (deep(100_000), true),
        ("1e400".to_owned(), true),
        ("123456789012345678901234567890".to_owned(), true),
        ("NaN".to_owned(), false),
    ] {
        let shown: String = odd.chars().take(30).collect();
        let job_fields = format!(r#""odd":{odd},"job_id":"job-1","status":"completed""#);
        let item = format!(r#"{{"odd":{odd},"input_index":0,"url":"u","status":"completed"}}"#);
        let body = format!(
            r#"{{{job_fields},"data":{{"odd":{odd},"html":"x"}},"results":[{item}],
                "jobs":[{{{job_fields}}}],
                "items":[{{{job_fields},"id":"d-1","event_type":"extract_completed"}}]}}"#
        );
        let server = Loopback::json(200, &body).await;
        let api = server.api();
        let query = ListQuery { page: 1, page_size: 50, created_from: None, created_to: None };
        let failed = [
            api.extract(&job, WITHIN).await.map(|read| assert!(read.has_data, "{shown}")).err(),
            api.parent(&batch, page, WITHIN)
                .await
                .map(|read| assert_eq!(read.items.map_or(0, |items| items.len()), 1))
                .err(),
            Jobs::list(&api, Kind::Batch, &query, WITHIN)
                .await
                .map(|read| assert_eq!((read.jobs.len(), read.unreadable), (1, 0), "{shown}"))
                .err(),
            api.deliveries(&webhook, 1, 50, WITHIN)
                .await
                .map(|read| assert_eq!((read.deliveries.len(), read.unreadable), (1, 0), "{shown}"))
                .err(),
        ];
        for error in failed {
            assert_eq!(error.is_none(), is_json, "{shown}: {error:?}");
            assert!(error.is_none_or(|error| error.kind == ApiErrorKind::Unreadable), "{shown}");
        }
    }
}
