use std::time::Duration;

use aws_client::Patience;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{ErrorKind, HeldTask, Queue, TaskSource};
use domain::task::Task;
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeSqs, SqsTrouble};

/// A queue over a fake of its own.
pub(crate) async fn start() -> (FakeSqs, SqsQueue, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let sqs = FakeSqs::start(clock.clone(), Patience::WORKER).await.unwrap();
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    (sqs, queue, clock)
}

pub(crate) fn task(id: &str) -> Task {
    Task { key: JobKey::new(Kind::Extract, JobId::parse(id).unwrap()) }
}

/// WK-20: a FIFO queue is refused at the start, and so is what is no queue at all.
#[tokio::test]
async fn only_a_standard_queue_is_used() {
    let (sqs, _, _) = start().await;
    let open = |url: &str| SqsQueue::new(sqs.config(), url).err();
    let fifo = "https://sqs.eu-central-1.amazonaws.com/123456789012/tasks.fifo";
    assert_eq!(open(fifo), Some(UrlError::Fifo(fifo.to_owned())));
    for url in
        ["", "tasks", "arn:aws:sqs:eu-central-1:1:tasks", "https://", "http://a/", "http://a/b c"]
    {
        assert_eq!(open(url), Some(UrlError::Shape(url.to_owned())));
    }
    for url in ["http://127.0.0.1:4566/000000000000/tasks", sqs.queue_url()] {
        assert_eq!(open(url), None);
    }
    assert!(sqs.seen().is_empty());
}

#[tokio::test]
async fn the_depth_is_told_by_what_hides_the_messages() {
    let (sqs, queue, clock) = start().await;
    assert_eq!(queue.depth().await.unwrap(), QueueDepth::default());
    for delay in [0, 0, 0, 60, 60] {
        queue.send(&task("a"), Duration::from_secs(delay)).await.unwrap();
    }
    queue.receive(1, Duration::from_secs(30)).await.unwrap();
    let depth = queue.depth().await.unwrap();
    assert_eq!(depth, QueueDepth { visible: 2, held: 1, delayed: 2 });
    clock.advance(Duration::from_mins(1));
    assert_eq!(queue.depth().await.unwrap(), QueueDepth { visible: 5, held: 0, delayed: 0 });
    sqs.plan([SqsTrouble::Refuse { status: 403, code: "AccessDenied" }]);
    assert_eq!(queue.depth().await.unwrap_err().kind, ErrorKind::Denied);
}

/// DQ-04: what SQS answers decides what the caller should do, whatever the call; a queue that is
/// not there is an operator's to mend.
#[tokio::test]
async fn trouble_is_told_for_what_it_is() {
    for (trouble, kind, asked) in [
        (SqsTrouble::Refuse { status: 400, code: "RequestThrottled" }, ErrorKind::Throttled, 3),
        (SqsTrouble::Refuse { status: 400, code: "ThrottlingException" }, ErrorKind::Throttled, 3),
        (SqsTrouble::Refuse { status: 500, code: "InternalFailure" }, ErrorKind::Unavailable, 3),
        (SqsTrouble::Refuse { status: 503, code: "ServiceUnavailable" }, ErrorKind::Unavailable, 3),
        (SqsTrouble::Reset, ErrorKind::Unavailable, 3),
        (SqsTrouble::Refuse { status: 403, code: "AccessDenied" }, ErrorKind::Denied, 1),
        (SqsTrouble::Refuse { status: 400, code: "QueueDoesNotExist" }, ErrorKind::Denied, 1),
        (SqsTrouble::Refuse { status: 400, code: "KmsAccessDenied" }, ErrorKind::Denied, 1),
        (SqsTrouble::Refuse { status: 400, code: "InvalidSecurity" }, ErrorKind::Denied, 1),
        (SqsTrouble::Refuse { status: 400, code: "UnsupportedOperation" }, ErrorKind::Invalid, 1),
    ] {
        for call in ["send", "receive", "acknowledge"] {
            let (sqs, queue, _) = start().await;
            sqs.plan(vec![trouble; 3]);
            let held = HeldTask { task: task("a"), receipt: "receipt".to_owned() };
            let error = match call {
                "send" => queue.send(&task("a"), Duration::ZERO).await,
                "receive" => queue.receive(1, Duration::ZERO).await.map(drop),
                _ => queue.acknowledge(&held).await,
            };
            let error = error.unwrap_err();
            assert_eq!((error.kind, error.operation), (kind, call), "{trouble:?}");
            assert_eq!(sqs.seen().len(), asked, "{trouble:?} {call}");
            assert!(sqs.bodies().is_empty());
        }
    }
}

/// DQ-04: an answer that never comes is not waited for longer than the configuration says.
#[tokio::test]
async fn a_call_that_hangs_ends_in_time() {
    let clock = Arc::new(ManualClock::default());
    let patience = Patience {
        attempt: Duration::from_millis(200),
        operation: Duration::from_millis(500),
        ..Patience::RECEIVER
    };
    let sqs = FakeSqs::start(clock, patience).await.unwrap();
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    sqs.plan([SqsTrouble::Hang; 20]);
    let error = queue.send(&task("a"), Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let error = queue.receive(1, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(sqs.seen().len() <= 6 && sqs.bodies().is_empty());
}

/// OB-01: neither keys nor a signature nor the message is in an error.
#[tokio::test]
async fn errors_show_neither_keys_nor_messages() {
    for trouble in [
        SqsTrouble::Refuse { status: 403, code: "AccessDenied" },
        SqsTrouble::Reset,
        SqsTrouble::FailEntry { index: 0, code: "InvalidMessageContents", sender_fault: true },
    ] {
        let (sqs, queue, _) = start().await;
        sqs.plan(vec![trouble; 3]);
        let marked = task("marker-job");
        let (one, other) =
            tokio::join!(queue.send(&marked, Duration::ZERO), queue.send(&marked, Duration::ZERO),);
        let shown = format!("{:?} {:?}", one.unwrap_err(), other.err());
        for secret in ["marker", "AKIDFAKE", "Signature"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
    }
}
