//! The port by itself: each way of an answer, each class of a status.

use std::sync::Arc;
use std::time::Duration;

use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::ports::{ApiErrorKind, Clock as _, Jobs as _, ListQuery, PageRequest, SubmitError};
use domain::request::{FetchOptions, JobRequest};
use domain::testing::ManualClock;
use domain::time::{after, between};
use simulator::{ApiFaults, AttemptOutcome, Config, Faults, JobFaults};

use crate::platform::PlatformJobs;

const WITHIN: Duration = Duration::from_secs(30);

struct Stage {
    clock: Arc<ManualClock>,
    jobs: PlatformJobs,
}

impl Stage {
    fn new(faults: Faults) -> Self {
        Self::of(Config { faults, ..Config::default() })
    }

    fn of(config: Config) -> Self {
        let clock = Arc::new(ManualClock::default());
        let jobs = PlatformJobs::new(config, clock.clone()).unwrap();
        Self { clock, jobs }
    }

    fn api(faults: ApiFaults) -> Self {
        Self::new(Faults { api: faults, ..Faults::none() })
    }

    async fn list(&self, kind: Kind) -> Vec<domain::ports::Listed> {
        self.jobs.set_faults(Faults::none());
        self.clock.advance(Duration::from_secs(10));
        let query = ListQuery {
            page: 1,
            page_size: 100,
            created_from: None,
            created_to: Some(self.clock.now()),
        };
        self.jobs.list(kind, &query, WITHIN).await.unwrap().jobs
    }
}

fn page() -> JobRequest {
    JobRequest::extract("https://page.example/", FetchOptions::default()).unwrap()
}

#[test]
fn jobs_of_each_kind_are_submitted_read_and_listed() {
    crate::run(async {
        let stage = Stage::new(Faults::none());
        let options = FetchOptions {
            proxy_country: Some("DE".to_owned()),
            render_js: true,
            ..FetchOptions::default()
        };
        let urls = ["https://a.example/", "https://b.example/"];
        let batch = JobRequest::batch(urls, options.clone()).unwrap();
        let seed = "https://site.example/?pages=3";
        let crawl = JobRequest::crawl(seed, options, 2, 10).unwrap();
        let ids = [
            stage.jobs.submit(&page(), WITHIN).await.unwrap(),
            stage.jobs.submit(&batch, WITHIN).await.unwrap(),
            stage.jobs.submit(&crawl, WITHIN).await.unwrap(),
        ];
        let open = stage.jobs.extract(&ids[0], WITHIN).await.unwrap();
        assert_eq!((open.status, open.has_data), (JobStatus::Queued, false));
        assert_eq!(open.created_at, Some(stage.clock.now()));

        stage.clock.advance(Duration::from_hours(1));
        let done = stage.jobs.extract(&ids[0], WITHIN).await.unwrap();
        assert_eq!((done.status, done.has_data, done.error), (JobStatus::Completed, true, None));
        for (kind, id, keys) in [
            (Kind::Batch, &ids[1], vec!["0", "1"]),
            (
                Kind::Crawl,
                &ids[2],
                vec![seed, "https://site.example/page-1", "https://site.example/page-2"],
            ),
        ] {
            let key = JobKey::new(kind, id.clone());
            let first = PageRequest { page: 1, page_size: 50 };
            let parent = stage.jobs.parent(&key, first, WITHIN).await.unwrap();
            let items = parent.items.unwrap();
            assert_eq!(items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), keys);
            let count = u64::try_from(keys.len()).unwrap();
            assert_eq!((parent.total, parent.ran, parent.pending), (Some(count), count, 0));
            assert_eq!((parent.status, parent.tokens_reserved), (JobStatus::Completed, 0));
            assert!(!parent.summary.0.contains("results"));
            let second = PageRequest { page: 2, page_size: 50 };
            let beyond = stage.jobs.parent(&key, second, WITHIN).await.unwrap();
            assert_eq!(beyond.items, Some(Vec::new()));
        }
        for (kind, id) in Kind::ALL.into_iter().zip(&ids) {
            let listed = stage.list(kind).await;
            assert_eq!(listed.len(), 1);
            assert_eq!((&listed[0].job_id, &listed[0].status), (id, &JobStatus::Completed));
            assert_eq!(listed[0].accepted_urls, (kind == Kind::Batch).then_some(2));
            assert_eq!(listed[0].render_js, (kind != Kind::Extract).then_some(true));
            assert!(listed[0].formats.is_some());
        }
        stage.jobs.probe(WITHIN).await.unwrap();
    });
}

#[test]
fn a_lost_answer_had_its_effect() {
    crate::run(async {
        let stage = Stage::api(ApiFaults { lost_answers: 1.0, ..ApiFaults::default() });
        let lost = stage.jobs.submit(&page(), WITHIN).await.unwrap_err();
        let SubmitError::Unanswered(error) = lost else { panic!("{lost:?}") };
        assert_eq!((error.kind, error.status), (ApiErrorKind::Unavailable, None));
        assert_eq!(stage.clock.sleeps(), []);
        assert_eq!(stage.list(Kind::Extract).await.len(), 1);
    });
}

#[test]
fn a_hang_lasts_as_long_as_its_caller_waits() {
    crate::run(async {
        let stage = Stage::api(ApiFaults { hangs: 1.0, ..ApiFaults::default() });
        let before = stage.clock.now();
        let hung = stage.jobs.submit(&page(), WITHIN).await.unwrap_err();
        assert!(matches!(hung, SubmitError::Unanswered(_)));
        assert_eq!(between(before, stage.clock.now()), WITHIN);
        let hung = stage.jobs.probe(2 * WITHIN).await.unwrap_err();
        assert_eq!(hung.kind, ApiErrorKind::Unavailable);
        // The platform itself closes the connection after 60 s.
        assert_eq!(between(before, stage.clock.now()), 3 * WITHIN);
        stage.jobs.probe(3 * WITHIN).await.unwrap_err();
        assert_eq!(between(before, stage.clock.now()), 5 * WITHIN);
        assert_eq!(stage.list(Kind::Extract).await.len(), 1);
    });
}

#[test]
fn a_slow_body_arrives_and_a_cut_one_does_not() {
    crate::run(async {
        let stage = Stage::api(ApiFaults { slow_bodies: 1.0, ..ApiFaults::default() });
        stage.jobs.probe(WITHIN).await.unwrap();
        let late = stage.jobs.probe(Duration::from_millis(500)).await.unwrap_err();
        assert_eq!((late.kind, late.status), (ApiErrorKind::Unavailable, Some(200)));
        assert_eq!(stage.clock.sleeps(), [960, 500].map(Duration::from_millis));

        let stage = Stage::api(ApiFaults { cut_bodies: 1.0, ..ApiFaults::default() });
        let cut = stage.jobs.probe(WITHIN).await.unwrap_err();
        assert_eq!((cut.kind, cut.status), (ApiErrorKind::Unavailable, Some(200)));
    });
}

#[test]
fn statuses_mean_what_they_mean_to_the_client() {
    crate::run(async {
        let stage = Stage::api(ApiFaults { payment_required: 1.0, ..ApiFaults::default() });
        let refused = stage.jobs.submit(&page(), WITHIN).await.unwrap_err();
        let SubmitError::Refused(error) = refused else { panic!("{refused:?}") };
        assert_eq!((error.kind, error.status), (ApiErrorKind::PaymentRequired, Some(402)));
        assert_eq!(error.code.as_deref(), Some("PAYMENT_REQUIRED"));
        assert_eq!(error.retryable, Some(false));
        assert!(error.correlation_id.is_some());

        let missing = JobId::parse("00000000-0000-4000-8000-000000000000").unwrap();
        let stage = Stage::new(Faults::none());
        let error = stage.jobs.extract(&missing, WITHIN).await.unwrap_err();
        assert_eq!((error.kind, error.status), (ApiErrorKind::Missing, Some(404)));
        let key = JobKey::new(Kind::Extract, missing);
        let first = PageRequest { page: 1, page_size: 50 };
        let error = stage.jobs.parent(&key, first, WITHIN).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Refused);
    });
}

/// 429 and 503 say that nothing was done; 500 and 502 do not say.
#[test]
fn errors_of_a_paid_post_say_whether_it_may_have_been_taken() {
    crate::run(async {
        let stage = Stage::api(ApiFaults { errors: 1.0, ..ApiFaults::default() });
        let mut statuses = std::collections::BTreeSet::new();
        let mut waits = std::collections::BTreeSet::new();
        for _ in 0..60 {
            let error = match stage.jobs.submit(&page(), WITHIN).await.unwrap_err() {
                SubmitError::Refused(error) => {
                    assert!(matches!(error.status, Some(429 | 503)), "{error}");
                    error
                }
                SubmitError::Unanswered(error) => {
                    assert!(matches!(error.status, Some(500 | 502)), "{error}");
                    error
                }
            };
            if error.kind == ApiErrorKind::Throttled {
                waits.insert(error.retry_after);
            }
            statuses.insert(error.status);
        }
        assert_eq!(statuses.len(), 4);
        // None, in seconds, and as a date: both of the latter mean two seconds.
        assert_eq!(waits, [None, Some(Duration::from_secs(2))].into());
        assert_eq!(stage.list(Kind::Extract).await, []);
    });
}

#[test]
fn deliveries_are_due_by_the_clock_and_repeated_until_accepted() {
    crate::run(async {
        let stage = Stage::new(Faults::none());
        let secrets = stage.jobs.subscribe("https://gleaner.example/hook").unwrap();
        assert_eq!(secrets.len(), 3);
        let job_id = stage.jobs.submit(&page(), WITHIN).await.unwrap();
        assert_eq!(stage.jobs.due_deliveries(), []);
        stage.clock.advance(Duration::from_hours(1));
        let due = stage.jobs.due_deliveries();
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].url, "https://gleaner.example/hook");
        assert!(String::from_utf8_lossy(&due[0].body).contains(job_id.as_str()));
        assert!(due[0].headers.iter().any(|(name, _)| name == "X-Webhook-Signature"));
        stage.jobs.report(&due[0], AttemptOutcome::Answered(503));
        assert_eq!(stage.jobs.next_due(), Some(after(stage.clock.now(), WITHIN)));
        stage.clock.advance(WITHIN);
        let again = stage.jobs.due_deliveries();
        assert_eq!(again.len(), 1);
        assert_ne!(again[0].id, due[0].id);
        stage.jobs.report(&again[0], AttemptOutcome::Answered(202));
        assert_eq!(stage.jobs.next_due(), None);
        assert_eq!(stage.jobs.books()["jobs"][0]["deliveries"]["accepted"], 1);
    });
}

#[test]
fn a_failed_job_tells_why() {
    crate::run(async {
        let jobs = JobFaults { fail_retryable: 1.0, ..JobFaults::default() };
        let stage = Stage::new(Faults { jobs, ..Faults::none() });
        let job_id = stage.jobs.submit(&page(), WITHIN).await.unwrap();
        stage.clock.advance(Duration::from_hours(1));
        let failed = stage.jobs.extract(&job_id, WITHIN).await.unwrap();
        assert_eq!((failed.status, failed.has_data), (JobStatus::Failed, false));
        assert!(failed.error.unwrap().retryable);
    });
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let config = Config { speed: 0.0, ..Config::default() };
    assert!(PlatformJobs::new(config, Arc::new(ManualClock::default())).is_err());
}
