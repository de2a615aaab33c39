use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::job::{JobId, JobKey, Kind};
use crate::ports::TaskSource as _;
use crate::task::Task;
use crate::testing::{ManualClock, MemoryDeadLetters, MemoryQueue};

struct World {
    queue: Arc<MemoryQueue>,
    dead: MemoryDeadLetters,
}

fn task(id: &str) -> Task {
    Task { key: JobKey::new(Kind::Extract, JobId::parse(id).unwrap()) }
}

/// A dead-letter queue that holds two tasks with what is none between them.
fn world() -> World {
    let clock = Arc::new(ManualClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone()));
    let dead = MemoryDeadLetters::new(clock, queue.clone());
    for body in [&task("a").encode(), "{\"token\":\"marker\"}", &task("b").encode()] {
        dead.put(body);
    }
    World { queue, dead }
}

fn ids(letters: &[DeadLetter]) -> Vec<&str> {
    letters.iter().map(|letter| letter.id.as_str()).collect()
}

#[tokio::test]
async fn letters_are_taken_once_and_put_back() {
    let World { dead, .. } = world();
    let letters = take(&dead, 2).await.unwrap();
    assert_eq!(ids(&letters), ["letter-1", "letter-2"]);
    assert_eq!(ids(&take(&dead, 9).await.unwrap()), ["letter-3"], "the others are held");
    assert_eq!(put_back(&dead, &letters).await, 0);
    let again = take(&dead, 9).await.unwrap();
    assert_eq!(ids(&again), ["letter-1", "letter-2"]);
    assert_eq!((again[0].task.as_ref(), again[1].task.as_ref()), (Some(&task("a")), None));
    assert!(!format!("{again:?}").contains("marker"), "what may be a secret is not shown");
}

/// A queue that gives everything again and again, as one does whose holds are too short.
struct Endless(MemoryDeadLetters, AtomicUsize);

#[async_trait]
impl DeadLetterQueue for Endless {
    async fn take(&self, limit: u32, _hold: Duration) -> Result<Vec<DeadLetter>, PortError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.take(limit, Duration::ZERO).await
    }
    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.0.send_back(letter).await
    }
    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.0.remove(letter).await
    }
    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.0.put_back(letter).await
    }
}

/// WK-08: letters that come again are not gone through for ever.
#[tokio::test]
async fn letters_that_come_again_end_the_taking() {
    let endless = Endless(world().dead, AtomicUsize::new(0));
    assert_eq!(take(&endless, 1_000).await.unwrap().len(), 3);
    assert_eq!(endless.1.load(Ordering::Relaxed), 2);
}

/// What an operator's redrive of all letters does.
async fn redrive_all(queue: &dyn DeadLetterQueue) -> Result<(), PortError> {
    let letters = take(queue, 10).await?;
    let (tasks, others): (Vec<_>, Vec<_>) = letters.into_iter().partition(|it| it.task.is_some());
    for letter in &tasks {
        // One that cannot be sent back stays where it is, and is taken the next time.
        drop(queue.send_back(letter).await);
    }
    put_back(queue, &others).await;
    Ok(())
}

/// Two operators at once share the letters: each is sent back by one of them.
#[tokio::test]
async fn of_two_operators_each_letter_has_one() {
    let World { queue, dead, .. } = world();
    let (one, other) = tokio::join!(redrive_all(&dead), redrive_all(&dead));
    one.and(other).unwrap();
    let held = queue.receive(10, LETTER_HOLD).await.unwrap();
    assert_eq!((held.len(), dead.bodies().len()), (2, 1));
}
