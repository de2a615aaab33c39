use super::*;
use crate::testing::{RECEIVES_MAX, SqsTrouble};
use crate::tests::{start, task};

const HOLD: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

async fn received(queue: &SqsQueue) -> Vec<HeldTask> {
    queue.receive(10, HOLD).await.unwrap()
}

/// A part of a second is a whole one, so that no task is early.
#[tokio::test]
async fn delays_are_rounded_up() {
    for (delay, seconds) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(1_001), 2),
        (Duration::from_millis(899_500), 900),
        (QUEUE_DELAY_MAX, 900),
    ] {
        let (_sqs, queue, clock) = start().await;
        queue.send(&task("a"), delay).await.unwrap();
        if seconds > 0 {
            clock.advance(Duration::from_millis(seconds * 1_000 - 1));
            assert!(received(&queue).await.is_empty(), "{delay:?}");
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(received(&queue).await.len(), 1, "{delay:?}");
    }
}

/// A hold is rounded up, and ends after twelve hours however long it was to be.
#[tokio::test]
async fn holds_are_rounded_up_and_bounded() {
    for (hold, seconds) in
        [(Duration::from_millis(1), 1), (HOLD_MAX, 43_200), (Duration::MAX, 43_200)]
    {
        let (_sqs, queue, clock) = start().await;
        queue.send(&task("a"), Duration::ZERO).await.unwrap();
        assert_eq!(queue.receive(1, hold).await.unwrap().len(), 1);
        clock.advance(Duration::from_millis(seconds * 1_000 - 1));
        assert!(received(&queue).await.is_empty(), "{hold:?}");
        clock.advance(Duration::from_millis(1));
        assert_eq!(received(&queue).await.len(), 1, "{hold:?}");
    }
}

/// DQ-08: every task is a message that SQS takes: short, and of characters that it allows.
#[tokio::test]
async fn every_task_is_a_message_that_sqs_takes() {
    let (sqs, queue, _) = start().await;
    let printable: String = (b'!'..=b'~').map(char::from).filter(|c| *c != '/').collect();
    for id in ["a", &printable, &"\"".repeat(128), &"\\".repeat(128)] {
        let task = task(id);
        queue.send(&task, Duration::ZERO).await.unwrap();
        assert_eq!(received(&queue).await[0].task, task);
    }
    assert!(sqs.bodies().iter().all(|body| body.len() < 512));
}

/// SQS gives ten at a time: more are asked for until there are no more, or no more are wanted.
#[tokio::test]
async fn more_than_ten_are_taken_in_several_requests() {
    let (sqs, queue, _) = start().await;
    for number in 0..30 {
        sqs.put_body(&task(&format!("j{number}")).encode());
    }
    assert_eq!(queue.receive(25, HOLD).await.unwrap().len(), 25);
    assert_eq!(sqs.seen().len(), 3);
    assert_eq!(queue.receive(u32::MAX, HOLD).await.unwrap().len(), 5);
    assert_eq!(sqs.seen().len(), 4);
    assert!(queue.receive(0, HOLD).await.unwrap().is_empty());
    assert_eq!(sqs.seen().len(), 4);
}

/// Trouble after the first request loses nothing of what that one gave.
#[tokio::test]
async fn what_is_held_already_is_returned() {
    let (sqs, queue, clock) = start().await;
    for number in 0..20 {
        sqs.put_body(&task(&format!("j{number:02}")).encode());
    }
    let denied = SqsTrouble::Refuse { status: 403, code: "AccessDenied" };
    sqs.plan([SqsTrouble::Pass, denied, denied]);
    assert_eq!(queue.receive(20, HOLD).await.unwrap().len(), 10);
    assert_eq!(queue.receive(20, HOLD).await.unwrap_err().kind, ErrorKind::Denied);
    // An answer that is lost hides the messages until the hold ends, and no longer.
    sqs.plan([SqsTrouble::LoseAnswer]);
    assert!(received(&queue).await.is_empty());
    clock.advance(HOLD);
    assert_eq!(queue.receive(20, HOLD).await.unwrap().len(), 20);
}

/// A message that is no task is neither returned nor deleted; SQS moves it to the
/// dead-letter queue, where somebody sees it.
#[tokio::test]
async fn a_message_that_is_no_task_ends_in_the_dead_letter_queue() {
    let (sqs, queue, clock) = start().await;
    let foreign = r#"{"v":2,"job_id":"a","kind":"extract"}"#;
    sqs.put_body(foreign);
    for _ in 0..RECEIVES_MAX {
        assert!(received(&queue).await.is_empty());
        assert_eq!(sqs.bodies(), [foreign]);
        clock.advance(HOLD);
    }
    assert!(received(&queue).await.is_empty());
    assert_eq!((sqs.bodies().len(), sqs.dead_letters()), (0, vec![foreign.to_owned()]));
}

/// SQS may deliver a message twice: each receipt is its own, and either one ends it.
#[tokio::test]
async fn a_message_that_is_delivered_twice_is_two_receipts() {
    let (sqs, queue, clock) = start().await;
    queue.send(&task("a"), Duration::ZERO).await.unwrap();
    sqs.plan([SqsTrouble::DeliverTwice]);
    let (first, second) = (received(&queue).await, received(&queue).await);
    assert_eq!(first[0].task, second[0].task);
    assert_ne!(first[0].receipt, second[0].receipt);
    queue.acknowledge(&first[0]).await.unwrap();
    queue.acknowledge(&second[0]).await.unwrap();
    clock.advance(HOLD);
    assert!(received(&queue).await.is_empty());
}

/// An acknowledgement whose answer was lost is made again, and changes nothing more.
#[tokio::test]
async fn a_lost_acknowledgement_is_repeated() {
    let (sqs, queue, _) = start().await;
    queue.send(&task("a"), Duration::ZERO).await.unwrap();
    let held = received(&queue).await;
    sqs.plan([SqsTrouble::LoseAnswer]);
    queue.acknowledge(&held[0]).await.unwrap();
    assert!(sqs.bodies().is_empty());
    assert_eq!(sqs.seen(), ["SendMessage", "ReceiveMessage", "DeleteMessage", "DeleteMessage"]);
}

/// The three ways in which SQS says that a receipt holds nothing are no trouble.
#[tokio::test]
async fn a_stale_receipt_holds_nothing() {
    let (sqs, queue, _) = start().await;
    for code in STALE_RECEIPT {
        sqs.plan([SqsTrouble::Refuse { status: 400, code }]);
        let held = HeldTask { task: task("a"), receipt: "stale".to_owned() };
        queue.acknowledge(&held).await.unwrap();
    }
    assert_eq!(sqs.seen().len(), 3);
}

/// A test of the fake's own way in, by which functions get their messages.
#[tokio::test]
async fn a_function_gets_what_was_sent() {
    let (sqs, queue, clock) = start().await;
    queue.send(&task("a"), SECOND).await.unwrap();
    assert!(sqs.take(10, HOLD).is_empty());
    clock.advance(SECOND);
    let first = sqs.take(10, HOLD);
    assert_eq!((first[0].body.as_str(), first[0].receives), (task("a").encode().as_str(), 1));
    clock.advance(HOLD);
    let second = sqs.take(10, HOLD);
    assert_eq!((second[0].id.as_str(), second[0].receives), (first[0].id.as_str(), 2));
    sqs.delete(&first[0].receipt);
    assert_eq!(sqs.bodies().len(), 1);
    sqs.delete(&second[0].receipt);
    assert!(sqs.bodies().is_empty());
}
