use domain::ports::{ApiErrorKind, Counted, Jobs as _, Statistics as _};

use crate::account::{
    Concurrency, DayRequests, DayTokens, HealthStatus, StatisticsWindow, Usage as _,
};
use crate::loopback::{Loopback, WITHIN, json};

#[tokio::test]
async fn concurrency_is_read_and_is_the_probe() {
    let body = r#"{"work_concurrency_in_use":3,"work_concurrency_limit":50,"new":null}"#;
    let replies = vec![json(200, body), json(200, body), json(401, ""), json(200, "<p>portal</p>")];
    let server = Loopback::start(replies).await;
    let api = server.api();
    assert_eq!(api.concurrency(WITHIN).await, Ok(Concurrency { in_use: 3, limit: 50 }));
    assert_eq!(api.probe(WITHIN).await, Ok(()));
    assert_eq!(api.probe(WITHIN).await.unwrap_err().kind, ApiErrorKind::Denied);
    assert_eq!(api.probe(WITHIN).await.unwrap_err().kind, ApiErrorKind::Unreadable);
    assert!(server.seen().iter().all(|seen| seen.target == "/v1/usage/concurrency"));
}

#[tokio::test]
async fn statistics_are_read() {
    let body = r#"{"extraction_count":9,"previous_period_extraction_count":0,"success_rate":0.5,
        "average_extraction_duration":1200,"period_tokens_used":7,
        "requests":[{"date":"2026-07-01","success_request_count":4,"failed_request_count":1},
            {"date":"2026-07-02"}],
        "tokens_used":[{"date":"2026-07-01","tokens_used":7}]}"#;
    let sparse = r#"{"extraction_count":0,"success_rate":null,"requests":null}"#;
    let server = Loopback::start(vec![json(200, body), json(200, sparse), json(200, "{}")]).await;
    let api = server.api();
    let window = StatisticsWindow { from: Some("2026-07-01T00:00:00Z".parse().unwrap()), to: None };
    let statistics = api.statistics(window, WITHIN).await.unwrap();
    assert_eq!(statistics.extraction_count, Some(9));
    assert_eq!(statistics.success_rate, Some(0.5));
    assert_eq!(statistics.average_extraction_duration_ms, Some(1200.0));
    let day = DayRequests {
        date: "2026-07-01".to_owned(),
        success_request_count: 4,
        failed_request_count: 1,
    };
    assert_eq!((statistics.requests, statistics.unreadable), (vec![day], 1));
    let day = DayTokens { date: "2026-07-01".to_owned(), tokens_used: 7 };
    assert_eq!(statistics.tokens_used, vec![day]);

    let statistics = api.statistics(StatisticsWindow::default(), WITHIN).await.unwrap();
    assert_eq!((statistics.extraction_count, statistics.success_rate), (Some(0), None));
    let error = api.statistics(StatisticsWindow::default(), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unreadable);
    let targets: Vec<_> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets[0], "/v1/statistics?start_date=2026-07-01T00%3A00%3A00.000000Z");
    assert_eq!(targets[1], "/v1/statistics");
}

#[tokio::test]
async fn days_are_summed_up() {
    let body = r#"{"extraction_count":9,"period_tokens_used":7,
        "requests":[{"date":"2026-07-01","success_request_count":4,"failed_request_count":1},
            {"date":"2026-07-02","success_request_count":2,"failed_request_count":0},
            {"date":"2026-07-03"}]}"#;
    let server = Loopback::start(vec![json(200, body)]).await;
    let from = "2026-07-01T00:00:00Z".parse().unwrap();
    let counted = server.api().counted_since(from, WITHIN).await.unwrap();
    let wanted = Counted { succeeded: 6, failed: 1, extractions: Some(9), unreadable: 1 };
    assert_eq!((counted, counted.most()), (wanted, 9));
}

#[tokio::test]
async fn health_is_read_whatever_it_is() {
    for (status, word, expected) in [
        (200, "ok", HealthStatus::Ok),
        (200, "degraded", HealthStatus::Degraded),
        (503, "unavailable", HealthStatus::Unavailable),
        (200, "sleepy", HealthStatus::Unknown("sleepy".to_owned())),
    ] {
        let body = format!(r#"{{"status":"{word}","service":"s","version":null,"timestamp":7}}"#);
        let server = Loopback::json(status, &body).await;
        let health = server.api().health(WITHIN).await.unwrap();
        assert_eq!((health.status, health.service.as_deref()), (expected, Some("s")));
        assert_eq!((health.version, health.timestamp), (None, None));
        assert_eq!(server.seen()[0].target, "/health");
    }
    let server = Loopback::json(503, "<html>gateway</html>").await;
    let error = server.api().health(WITHIN).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ApiErrorKind::Unavailable, Some(503)));
}
