use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use domain::limits::Limits;
use domain::ports::Clock;
use domain::testing::{
    Call, ManualClock, MemoryLedger, MemoryQueue, MemoryResults, ScriptedJobs, SeededRandom,
};
use domain::time::after;

use super::*;

fn error(kind: ApiErrorKind) -> ApiError {
    ApiError {
        kind,
        status: None,
        code: None,
        message: String::new(),
        retryable: None,
        retry_after: None,
        correlation_id: None,
    }
}

fn key() -> KeyPlace {
    KeyPlace { place: "GLEANER_API_KEY".to_owned(), how: "set it and start again" }
}

#[test]
fn each_trouble_says_what_to_do() {
    let told = |kind| advice(&error(kind), &key());
    let denied = told(ApiErrorKind::Denied).unwrap();
    assert!(denied.contains("(GLEANER_API_KEY)") && denied.ends_with("start again"), "{denied}");
    assert!(told(ApiErrorKind::PaymentRequired).unwrap().contains("tokens"));
    assert!(told(ApiErrorKind::Unavailable).unwrap().contains("api_url"));
    assert_eq!(told(ApiErrorKind::Throttled), None);
}

/// At the start, then only while there is trouble, and at most once a minute.
#[tokio::test]
async fn the_platform_is_asked_while_there_is_trouble() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let jobs = Arc::new(ScriptedJobs::new(Arc::clone(&clock)));
    let pipeline = Pipeline {
        ledger: Arc::new(MemoryLedger::new()),
        queue: Arc::new(MemoryQueue::new(Arc::clone(&clock))),
        jobs: Arc::clone(&jobs) as _,
        results: Arc::new(MemoryResults::new()),
        clock: Arc::clone(&clock),
        random: Arc::new(SeededRandom::new(1)),
        limits: Limits::default(),
        pauses: Arc::default(),
        looks: Arc::default(),
    };
    let key = key();
    let mut watch = pin!(watch(&pipeline, &key));
    // The clock moves on by one pause with each poll.
    let mut asked_in = |pauses: u32| {
        jobs.clear_calls();
        for _ in 0..pauses {
            let polled = watch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        jobs.calls().iter().filter(|call| matches!(call, Call::Probe)).count()
    };
    jobs.answer_probe(Err(error(ApiErrorKind::Denied)));
    jobs.answer_probe(Ok(()));
    assert_eq!(asked_in(1), 1, "at the start");
    assert_eq!(asked_in(5), 0);
    assert_eq!(asked_in(1), 1, "a minute later, since it was refused");
    assert_eq!(asked_in(20), 0, "all is well");
    for (why, asked) in [("throttled", 0), ("denied", 2)] {
        let until = after(clock.now(), Duration::from_mins(2));
        let ports = pipeline.ports();
        ports.pauses.extend(ports.ledger, Scope::All, until, why).await.unwrap();
        assert_eq!(asked_in(13), asked, "{why}");
    }
}
