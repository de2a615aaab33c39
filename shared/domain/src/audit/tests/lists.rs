//! Job lists and delivery logs, held against the rows.

use super::*;

#[tokio::test]
async fn a_delivery_log_names_jobs_that_nobody_else_does() {
    let rig = Rig::new();
    rig.stored("job-1", 1).await;
    let new = NewWebhook {
        url: "https://r.example/".to_owned(),
        event_type: EventType::ExtractCompleted,
        description: None,
    };
    let within = Duration::from_secs(1);
    let webhook = rig.webhooks.create(&new, within).await.unwrap().webhook.id;
    for (row, (job, minute, status)) in [
        (Some("job-1"), 2, DeliveryStatus::Failed),
        (Some("job-1"), 3, DeliveryStatus::Success),
        (Some("job-9"), 4, DeliveryStatus::Abandoned),
        (None, 4, DeliveryStatus::Success),
        // Of another day.
        (Some("job-8"), 24 * 60, DeliveryStatus::Success),
    ]
    .into_iter()
    .enumerate()
    {
        let delivery = Delivery {
            id: row.to_string(),
            event_type: EventType::ExtractCompleted,
            job_id: job.map(|job| key(job).job_id),
            attempt_number: Some(1),
            status,
            http_status: None,
            delivered_at: None,
            created_at: Some(at(minute)),
        };
        assert!(rig.webhooks.log(&webhook, delivery));
    }
    let sheet = rig.audit().await;
    assert_eq!(sheet.deliveries, DeliverySheet { taken: 1, not_taken: 1, unreadable: 1 });
    assert_eq!(found(&sheet), [(Discrepancy::UnknownJob, 1)]);
    assert_eq!(sheet.findings[0].key, Some(key("job-9")));
    assert_eq!(sheet.findings[0].facts, "a delivery log names it; the ledger does not know it");
}

/// Of a job without a row nobody is owed anything while it is left to its webhook, unless its
/// delivery was taken.
#[tokio::test]
async fn a_young_job_is_left_to_its_webhook() {
    let rig = Rig::new();
    let now = rig.clock.now();
    let new = NewWebhook {
        url: "https://r.example/".to_owned(),
        event_type: EventType::ExtractCompleted,
        description: None,
    };
    let webhook = rig.webhooks.create(&new, Duration::from_secs(1)).await.unwrap().webhook.id;
    let log = |name: &str, ago: u64, status: DeliveryStatus| {
        let delivery = Delivery {
            id: format!("{name}-{}", status.as_str()),
            event_type: EventType::ExtractCompleted,
            job_id: Some(key(name).job_id),
            attempt_number: Some(1),
            status,
            http_status: None,
            delivered_at: None,
            created_at: Some(before(now, Duration::from_mins(ago))),
        };
        assert!(rig.webhooks.log(&webhook, delivery));
    };
    rig.list("young", 24 * 60 + 60 - 14, JobStatus::Completed);
    rig.list("old", 24 * 60 + 60 - 15, JobStatus::Completed);
    log("young-refused", 14, DeliveryStatus::Abandoned);
    log("old-refused", 15, DeliveryStatus::Abandoned);
    log("young-taken", 14, DeliveryStatus::Success);
    // Whatever else is known of it: a list, and an attempt that was refused, before and after.
    rig.list("young-listed", 24 * 60 + 60 - 14, JobStatus::Completed);
    log("young-listed", 14, DeliveryStatus::Success);
    log("later-taken", 14, DeliveryStatus::Failed);
    log("later-taken", 14, DeliveryStatus::Success);
    log("first-taken", 14, DeliveryStatus::Success);
    log("first-taken", 14, DeliveryStatus::Failed);
    let sheet = rig.audit_of(Period { from: start(), to: now }).await;
    let names: Vec<_> = sheet.findings.iter().filter_map(|finding| finding.key.clone()).collect();
    let wanted =
        ["first-taken", "later-taken", "old", "old-refused", "young-listed", "young-taken"];
    assert_eq!(names, wanted.map(key));
    assert_eq!(found(&sheet), [(Discrepancy::UnknownJob, 6)]);
    assert_eq!(sheet.kinds[&Kind::Extract].unknown, 3);
    // Where nothing is left to webhooks, each is missed.
    let sources = Sources { left: Duration::ZERO, ..rig.sources() };
    let sheet = audit(sources, Period { from: start(), to: now }).await.unwrap();
    assert_eq!(found(&sheet), [(Discrepancy::UnknownJob, 8)]);
}

/// A platform that is busy is asked again.
#[tokio::test]
async fn a_busy_platform_is_asked_with_patience() {
    let rig = Rig::new();
    rig.stored("job-1", 1).await;
    for kind in [ApiErrorKind::Throttled, ApiErrorKind::Unavailable] {
        rig.jobs.fail_list(ApiError::new(kind, "later"));
        rig.webhooks.fail(ApiError::new(kind, "later"));
    }
    let sheet = rig.audit().await;
    assert_eq!((sheet.balances(), sheet.unproved), (true, Vec::new()));
}

/// SC-05 and SC-06: pages are read to the end of the list, and again until nothing new is on them.
#[tokio::test]
async fn long_lists_are_walked_twice() {
    let rig = Rig::new();
    for number in 0..250 {
        rig.list(&format!("job-{number}"), number % 60, JobStatus::Processing);
    }
    let sheet = rig.audit().await;
    assert_eq!(sheet.kinds[&Kind::Extract].listed, 250);
    let lists = |kind| {
        let calls = rig.jobs.calls();
        let is_of = |call: &&crate::testing::Call| matches!(call, crate::testing::Call::List(of, _) if *of == kind);
        calls.iter().filter(is_of).count()
    };
    assert_eq!((lists(Kind::Extract), lists(Kind::Batch)), (8, 1));
}

/// Of a long list a part at a time is in memory; a job on the seam of two is one.
#[tokio::test]
async fn a_list_of_many_pages_is_read_in_parts() {
    let rig = Rig::new();
    for number in 0..10_050 {
        // Noon, where the period is cut, is the minute of some of them.
        rig.list(&format!("job-{number}"), number % (24 * 60), JobStatus::Processing);
    }
    rig.list("done", 12 * 60, JobStatus::Completed);
    let sheet = rig.audit().await;
    let extract = &sheet.kinds[&Kind::Extract];
    assert_eq!((extract.listed, extract.unknown), (10_051, 10_051));
    assert_eq!((extract.statuses["processing"], extract.statuses["completed"]), (10_050, 1));
    assert_eq!(found(&sheet), [(Discrepancy::UnknownJob, 1)]);
    let is_part = |call: &crate::testing::Call| match call {
        crate::testing::Call::List(Kind::Extract, query) => query.created_to == Some(at(12 * 60)),
        _ => false,
    };
    assert!(rig.jobs.calls().iter().any(is_part));
}

/// A log names jobs of other periods: they have a row, and are none of this one's.
#[tokio::test]
async fn a_logged_job_of_another_period_is_not_missed_in_its_lists() {
    let rig = Rig::new();
    let new = NewWebhook {
        url: "https://r.example/".to_owned(),
        event_type: EventType::ExtractCompleted,
        description: None,
    };
    let webhook = rig.webhooks.create(&new, Duration::from_secs(1)).await.unwrap().webhook.id;
    let before_it = before(start(), Duration::from_hours(1));
    let word = Announcement { cause: Cause::Delivery, delivery_id: None, token: "t".to_owned() };
    let row = Entry::announced(&key("job-1"), &word, before_it, &rig.limits);
    let state = State::Dead { reason: DeadReason::Failed, error: None, result: None };
    rig.write(row.settled(state, Cause::Work, at(1), &rig.limits)).await;
    let delivery = Delivery {
        id: "1".to_owned(),
        event_type: EventType::ExtractCompleted,
        job_id: Some(key("job-1").job_id),
        attempt_number: Some(1),
        status: DeliveryStatus::Success,
        http_status: None,
        delivered_at: None,
        created_at: Some(at(1)),
    };
    assert!(rig.webhooks.log(&webhook, delivery));
    let sheet = rig.audit().await;
    assert!(sheet.balances(), "{sheet:?}");
    assert_eq!((sheet.deliveries.taken, sheet.kinds[&Kind::Extract].unlisted), (1, 0));
}
