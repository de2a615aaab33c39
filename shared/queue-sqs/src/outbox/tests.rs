use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use aws_client::Patience;
use domain::ports::Queue;
use domain::testing::ManualClock;

use super::*;
use crate::SqsQueue;
use crate::testing::{FakeSqs, SqsTrouble};
use crate::tests::{start, task};

type Sends<'a> = Vec<Pin<Box<dyn Future<Output = Result<(), PortError>> + Send + 'a>>>;

/// Sends this many tasks at the same time; their outcomes in order.
async fn send_together(queue: &SqsQueue, tasks: usize) -> Vec<Result<(), PortError>> {
    let sends = (0..tasks).map(|number| async move {
        queue.send(&task(&format!("j{number}")), Duration::ZERO).await
    });
    futures_util::future::join_all(sends).await
}

/// Looks at a future once, as an executor would.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Polls until the fake has seen this many requests, or everything is answered.
async fn poll_until_seen(sqs: &FakeSqs, sends: &mut Sends<'_>, requests: usize) {
    while sqs.seen().len() < requests {
        for send in sends.iter_mut() {
            let _ = poll_once(send).await;
        }
        tokio::task::yield_now().await;
    }
}

/// WK-19: a send that is alone goes out at once, and is there when the caller is answered.
#[tokio::test]
async fn a_lone_send_is_one_request() {
    let (sqs, queue, _) = start().await;
    for number in 1..=3 {
        queue.send(&task("a"), Duration::ZERO).await.unwrap();
        assert_eq!(sqs.bodies().len(), number);
    }
    assert_eq!(sqs.seen(), ["SendMessage"; 3]);
}

/// DQ-08, and the cost of a replay: many at a time share requests of ten.
#[tokio::test]
async fn sends_at_the_same_time_share_requests() {
    let (sqs, queue, _) = start().await;
    assert!(send_together(&queue, 25).await.iter().all(Result::is_ok));
    assert_eq!(sqs.seen(), ["SendMessageBatch(10)", "SendMessageBatch(10)", "SendMessageBatch(5)"]);
    let mut bodies = sqs.bodies();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 25);
}

/// What arrives during a request shares the next one; nobody waits for company.
#[tokio::test]
async fn sends_during_a_request_share_the_next_one() {
    let (sqs, queue, _) = start().await;
    sqs.plan([SqsTrouble::Wait]);
    let mut sends: Sends = vec![queue.send(task_a(), Duration::ZERO)];
    poll_until_seen(&sqs, &mut sends, 1).await;
    sends.extend((0..4).map(|_| queue.send(task_a(), Duration::from_secs(5))));
    for send in &mut sends {
        assert!(poll_once(send).await.is_pending());
    }
    sqs.go_on();
    for sent in futures_util::future::join_all(sends).await {
        sent.unwrap();
    }
    assert_eq!(sqs.seen(), ["SendMessage", "SendMessageBatch(4)"]);
    assert_eq!(queue.depth().await.unwrap().delayed, 4);
}

/// A task that lives as long as its test needs.
fn task_a() -> &'static domain::task::Task {
    static TASK: std::sync::OnceLock<domain::task::Task> = std::sync::OnceLock::new();
    TASK.get_or_init(|| task("a"))
}

/// DQ-09: of ten, the fifth fails; its caller alone is told so, and sends it again.
#[tokio::test]
async fn each_caller_is_told_of_its_own_message() {
    for (code, sender_fault, kind) in [
        ("InternalError", false, ErrorKind::Unavailable),
        ("RequestThrottled", false, ErrorKind::Throttled),
        ("ThrottlingException", true, ErrorKind::Throttled),
        ("InvalidMessageContents", true, ErrorKind::Invalid),
        ("AccessDenied", true, ErrorKind::Denied),
        ("KMS.AccessDeniedException", true, ErrorKind::Denied),
        ("KmsDisabled", false, ErrorKind::Denied),
    ] {
        let (sqs, queue, _) = start().await;
        sqs.plan([SqsTrouble::FailEntry { index: 4, code, sender_fault }]);
        let outcomes = send_together(&queue, 10).await;
        for (place, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(()) => assert_ne!(place, 4),
                Err(error) => {
                    assert_eq!((place, error.kind), (4, kind), "{code}");
                    assert!(format!("{error:?}").contains(code), "{error:?}");
                }
            }
        }
        assert_eq!(sqs.bodies().len(), 9);
        queue.send(&task("j4"), Duration::ZERO).await.unwrap();
        assert_eq!(sqs.bodies().len(), 10);
    }
}

/// A message that the answer forgets may have been sent: its caller is told to try again.
#[tokio::test]
async fn a_forgotten_message_is_not_taken_as_sent() {
    let (sqs, queue, _) = start().await;
    sqs.plan([SqsTrouble::ForgetEntry { index: 2 }]);
    let outcomes = send_together(&queue, 3).await;
    assert!(outcomes[0].is_ok() && outcomes[1].is_ok());
    assert_eq!(outcomes[2].as_ref().unwrap_err().kind, ErrorKind::Unavailable);
}

/// When the request fails, all who shared it are told alike.
#[tokio::test]
async fn a_failed_request_is_told_to_all_who_shared_it() {
    for (code, kind, asked) in
        [("AccessDenied", ErrorKind::Denied, 1), ("RequestThrottled", ErrorKind::Throttled, 3)]
    {
        let (sqs, queue, _) = start().await;
        sqs.plan(vec![SqsTrouble::Refuse { status: 400, code }; asked]);
        for outcome in send_together(&queue, 7).await {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind, kind);
            assert!(format!("{error:?}").contains(code), "{error:?}");
        }
        assert_eq!(sqs.seen(), vec!["SendMessageBatch(7)"; asked]);
        assert!(send_together(&queue, 7).await.iter().all(Result::is_ok));
    }
}

/// DQ-02: a message whose answer was lost is sent again: two messages, and the caller knows of one.
#[tokio::test]
async fn a_lost_answer_makes_two_messages() {
    let (sqs, queue, _) = start().await;
    sqs.plan([SqsTrouble::LoseAnswer]);
    queue.send(&task("a"), Duration::ZERO).await.unwrap();
    assert_eq!(sqs.bodies(), vec![task("a").encode(); 2]);
    // Where every answer is lost, the messages are there and the caller is told to try again.
    sqs.plan([SqsTrouble::LoseAnswer; 3]);
    let error = queue.send(&task("a"), Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(sqs.bodies().len(), 5);
}

/// WK-19: who stops waiting before the turn of its message takes it back: nothing is sent behind
/// the back of a caller who was answered, not even after a freeze.
#[tokio::test]
async fn nothing_is_sent_for_a_caller_who_left() {
    let left: Vec<_> = (0..5).map(|number| task(&format!("left-{number}"))).collect();
    let (sqs, queue, _) = start().await;
    sqs.plan([SqsTrouble::Wait]);
    let mut sends: Sends = vec![queue.send(task_a(), Duration::ZERO)];
    poll_until_seen(&sqs, &mut sends, 1).await;
    sends.extend(left.iter().map(|task| queue.send(task, Duration::ZERO)));
    for send in &mut sends {
        assert!(poll_once(send).await.is_pending());
    }
    drop(sends);
    sqs.go_on();
    queue.send(&task("b"), Duration::ZERO).await.unwrap();
    // The first one was under way when its caller left: that is the one that may be there.
    assert_eq!(sqs.bodies(), [task_a().encode(), task("b").encode()]);
    assert_eq!(sqs.seen(), ["SendMessage"; 2]);
}

/// A caller that is never polled again, or gone, holds up nobody.
#[tokio::test]
async fn a_caller_that_is_not_polled_holds_up_nobody() {
    let (sqs, queue, _) = start().await;
    let mut stuck: Sends = vec![queue.send(task_a(), Duration::ZERO)];
    assert!(poll_once(&mut stuck[0]).await.is_pending());
    queue.send(&task("b"), Duration::ZERO).await.unwrap();
    assert_eq!(sqs.seen(), ["SendMessageBatch(2)"]);
    drop(stuck);
}

/// Beyond the limit callers are told to slow down, at once, and nothing of theirs is kept.
#[tokio::test]
async fn the_callers_who_wait_are_bounded() {
    let (sqs, queue, _) = start().await;
    let outcomes = send_together(&queue, WAITING_MAX + 3).await;
    let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|error| error.kind == ErrorKind::Throttled));
    assert_eq!(sqs.bodies().len(), WAITING_MAX);
}

/// A runtime that ends in the middle of a request leaves a queue that works on the next one.
#[test]
fn a_queue_outlives_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut servers = tokio::runtime::Builder::new_multi_thread();
    let servers = servers.worker_threads(1).enable_all().build().unwrap();
    let clock = Arc::new(ManualClock::default());
    let sqs = servers.block_on(FakeSqs::start(clock, Patience::WORKER)).unwrap();
    let queue = SqsQueue::new(sqs.config(), sqs.queue_url()).unwrap();
    let first = runtime();
    sqs.plan([SqsTrouble::Hang]);
    let waiting = {
        let queue = queue.clone();
        first.spawn(async move { queue.send(task_a(), Duration::ZERO).await })
    };
    first.block_on(async {
        while sqs.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    drop(first);
    let second = runtime();
    assert!(second.block_on(waiting).unwrap_err().is_cancelled());
    second.block_on(queue.send(&task("b"), Duration::ZERO)).unwrap();
    assert_eq!(sqs.bodies(), [task("b").encode()]);
}
