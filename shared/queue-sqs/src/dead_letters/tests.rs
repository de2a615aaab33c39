use std::sync::Arc;

use domain::letters::{LETTER_HOLD, put_back, take};
use domain::ports::{Clock as _, TaskSource as _};
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeSqs, RECEIVES_MAX, SqsTrouble};
use crate::tests::{start, task};

const SECOND: Duration = Duration::from_secs(1);

async fn opened() -> (FakeSqs, SqsQueue, SqsDeadLetters, Arc<ManualClock>) {
    let (sqs, queue, clock) = start().await;
    let dead = SqsDeadLetters::new(sqs.config(), sqs.dead_letter_queue_url(), &queue).unwrap();
    (sqs, queue, dead, clock)
}

/// WK-08: a message that no worker can take ends here with its id and its age, is looked at without
/// being used up, and does not go round; a task goes back once and ends here again.
#[tokio::test]
async fn what_failed_too_often_is_looked_at_and_sent_back_once() {
    let (sqs, queue, dead, clock) = opened().await;
    let began = clock.now();
    sqs.put_body("no task");
    queue.send(&task("a"), Duration::ZERO).await.unwrap();
    for _ in 0..=RECEIVES_MAX {
        queue.receive(10, SECOND).await.unwrap();
        clock.advance(SECOND);
    }
    assert_eq!((sqs.bodies().len(), sqs.dead_letters().len()), (0, 2));
    for _ in 0..3 {
        let letters = take(&dead, 10).await.unwrap();
        let tasks: Vec<_> = letters.iter().map(|letter| letter.task.clone()).collect();
        assert_eq!(tasks, [None, Some(task("a"))]);
        assert!(letters.iter().all(|letter| letter.sent_at == Some(began)));
        assert_eq!((letters[0].bytes, letters[0].excerpt.expose()), (7, "no task"));
        assert_eq!(take(&dead, 10).await.unwrap(), [], "they are held");
        assert_eq!(put_back(&dead, &letters).await, 0);
    }
    let letters = take(&dead, 10).await.unwrap();
    let refused = dead.send_back(&letters[0]).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    dead.send_back(&letters[1]).await.unwrap();
    assert_eq!(sqs.bodies(), [task("a").encode()]);
    assert_eq!(sqs.dead_letters(), ["no task"]);
    for _ in 0..=RECEIVES_MAX {
        queue.receive(10, SECOND).await.unwrap();
        clock.advance(SECOND);
    }
    assert_eq!(sqs.dead_letters(), ["no task".to_owned(), task("a").encode()]);
}

/// More letters than one answer holds, and no more than were asked for.
#[tokio::test]
async fn many_letters_are_taken_in_several_requests() {
    let (sqs, _, dead, _) = opened().await;
    for number in 0..25 {
        sqs.put_dead_letter(&task(&format!("j{number}")).encode());
    }
    assert_eq!(take(&dead, 12).await.unwrap().len(), 12);
    assert_eq!(sqs.seen(), ["ReceiveMessage"; 2]);
    assert_eq!(take(&dead, 100).await.unwrap().len(), 13);
}

/// The task is sent before the letter goes: whatever is lost between, the task is in one of the
/// queues, and repeating makes it good.
#[tokio::test]
async fn a_task_is_always_in_one_of_the_queues() {
    use SqsTrouble::{LoseAnswer, Pass, Refuse};

    let down = Refuse { status: 403, code: "AccessDenied" };
    for trouble in [[down, Pass], [Pass, down], [Pass, LoseAnswer], [LoseAnswer, down]] {
        let (sqs, _, dead, clock) = opened().await;
        sqs.put_dead_letter(&task("a").encode());
        let letters = take(&dead, 10).await.unwrap();
        sqs.plan(trouble);
        drop(dead.send_back(&letters[0]).await);
        assert!(!sqs.bodies().is_empty() || !sqs.dead_letters().is_empty(), "{trouble:?}");
        // What SQS did, and what its client repeated, is over before the operator repeats it.
        sqs.plan([]);
        clock.advance(LETTER_HOLD);
        for letter in take(&dead, 10).await.unwrap() {
            dead.send_back(&letter).await.unwrap();
        }
        assert_eq!(sqs.dead_letters(), Vec::<String>::new(), "{trouble:?}");
        let sent = sqs.bodies();
        assert!((1..=3).contains(&sent.len()), "{trouble:?}: {sent:?}");
        assert!(sent.iter().all(|body| *body == task("a").encode()));
    }
}

/// What SQS answers decides what the operator should do.
#[tokio::test]
async fn trouble_is_told() {
    let (sqs, _, dead, _) = opened().await;
    sqs.plan([SqsTrouble::Refuse { status: 403, code: "AccessDenied" }]);
    assert_eq!(take(&dead, 10).await.unwrap_err().kind, ErrorKind::Denied);
    let fifo = SqsDeadLetters::new(sqs.config(), "https://a/b.fifo", &dead.queue);
    assert!(matches!(fifo, Err(UrlError::Fifo(_))));
}
