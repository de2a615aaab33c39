//! Webhooks of the simulated platform as a port, without sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

use std::sync::Arc;
use std::time::Duration;

use domain::envelope::EventType;
use domain::job::{JobStatus, Kind};
use domain::ports::{
    ApiErrorKind, Clock as _, DeliveryStatus, Jobs as _, NewWebhook, SubmitError, WebhookChange,
    WebhookId, Webhooks,
};
use domain::request::{FetchOptions, JobRequest};
use domain::testing::ManualClock;
use simulator::{AttemptOutcome, Config, Faults};
use testkit::platform::PlatformJobs;

const WITHIN: Duration = Duration::from_secs(30);

fn scene() -> (Arc<ManualClock>, PlatformJobs) {
    let clock = Arc::new(ManualClock::default());
    let platform = PlatformJobs::new(Config::default(), clock.clone()).unwrap();
    (clock, platform)
}

fn new() -> NewWebhook {
    NewWebhook {
        url: "https://example.org/webhook".to_owned(),
        event_type: EventType::ExtractCompleted,
        description: Some("gleaner".to_owned()),
    }
}

#[tokio::test]
async fn a_webhook_is_made_changed_and_deleted() {
    let (_clock, platform) = scene();
    let created = platform.create(&new(), WITHIN).await.unwrap();
    let webhook = created.webhook;
    assert_eq!(webhook.url, new().url);
    assert_eq!(platform.get(&webhook.id, WITHIN).await.unwrap(), webhook);
    let off = WebhookChange {
        is_active: Some(false),
        description: Some("paused".to_owned()),
        ..WebhookChange::default()
    };
    let changed = platform.update(&webhook.id, &off, WITHIN).await.unwrap();
    assert_eq!((changed.is_active, changed.description.as_deref()), (false, Some("paused")));
    assert_eq!((&changed.url, &changed.event_type), (&webhook.url, &webhook.event_type));
    let rotated = platform.rotate_secret(&webhook.id, WITHIN).await.unwrap();
    assert!(!rotated.same_text(&created.secret));
    let page = Webhooks::list(&platform, 1, 100, WITHIN).await.unwrap();
    assert_eq!((page.webhooks, page.unreadable), (vec![changed], 0));
    platform.delete(&webhook.id, WITHIN).await.unwrap();
    let gone = platform.delete(&webhook.id, WITHIN).await.unwrap_err();
    assert_eq!(gone.kind, ApiErrorKind::Missing);
    let nobody = WebhookId::parse("0b3e1f44-22f0-4a6b-9df3-8d4f6d2f7a11").unwrap();
    assert_eq!(platform.get(&nobody, WITHIN).await.unwrap_err().kind, ApiErrorKind::Missing);
}

#[tokio::test]
async fn an_eleventh_webhook_is_refused() {
    let (_clock, platform) = scene();
    for _ in 0..10 {
        platform.create(&new(), WITHIN).await.unwrap();
    }
    let error = platform.create(&new(), WITHIN).await.unwrap_err();
    assert!(matches!(error, SubmitError::Refused(error) if error.kind == ApiErrorKind::Refused));
    assert_eq!(Webhooks::list(&platform, 1, 4, WITHIN).await.unwrap().webhooks.len(), 4);
    assert_eq!(Webhooks::list(&platform, 3, 4, WITHIN).await.unwrap().webhooks.len(), 2);
}

#[tokio::test]
async fn the_log_tells_how_deliveries_went() {
    let (clock, platform) = scene();
    let webhook = platform.create(&new(), WITHIN).await.unwrap().webhook;
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let job = platform.submit(&request, WITHIN).await.unwrap();
    clock.advance(Duration::from_hours(1));
    let due = platform.due_deliveries();
    let [delivery] = due.as_slice() else { panic!("{} deliveries", due.len()) };
    platform.report(delivery, AttemptOutcome::Answered(401));
    let log = platform.deliveries(&webhook.id, 1, 100, WITHIN).await.unwrap();
    let refused = log.deliveries.iter().find(|row| row.http_status == Some(401)).unwrap();
    assert_eq!(refused.status, DeliveryStatus::Failed);
    assert_eq!(refused.job_id.as_ref(), Some(&job));
    assert_eq!(refused.event_type.kind(), Some(Kind::Extract));
    assert!(refused.created_at.is_some_and(|at| at <= clock.now()));
    assert_eq!(platform.extract(&job, WITHIN).await.unwrap().status, JobStatus::Completed);
}

/// A creation whose answer is lost has made its webhook.
#[tokio::test]
async fn a_lost_answer_leaves_a_webhook() {
    let (_clock, platform) = scene();
    let mut faults = Faults::none();
    faults.api.lost_webhook_answers = 1.0;
    platform.set_faults(faults);
    let answer = platform.create(&new(), WITHIN).await;
    assert!(matches!(answer, Err(SubmitError::Unanswered(_))));
    platform.set_faults(Faults::none());
    assert_eq!(Webhooks::list(&platform, 1, 100, WITHIN).await.unwrap().webhooks.len(), 1);
}
