use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::job::{JobId, JobKey, Kind};
use crate::ports::{ErrorKind, TaskSource as _};
use crate::task::Task;
use crate::testing::{ManualClock, MemoryDeadLetters, MemoryQueue};
use crate::work::tests::faults::{Fault, run};

struct World {
    clock: Arc<ManualClock>,
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
    let dead = MemoryDeadLetters::new(clock.clone(), queue.clone());
    for body in [&task("a").encode(), "{\"token\":\"marker\"}", &task("b").encode()] {
        dead.put(body);
    }
    World { clock, queue, dead }
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

/// The queue with a fault at one of its calls.
struct Faulty<'a> {
    inner: &'a MemoryDeadLetters,
    at: usize,
    fault: Fault,
    calls: AtomicUsize,
}

impl Faulty<'_> {
    async fn at<T: Send>(
        &self,
        call: impl Future<Output = Result<T, PortError>> + Send,
    ) -> Result<T, PortError> {
        let lost = || PortError::new("dead_letters", "call", ErrorKind::Unavailable);
        if self.calls.fetch_add(1, Ordering::Relaxed) != self.at {
            return call.await;
        }
        match self.fault {
            Fault::FailBefore => Err(lost()),
            Fault::FailAfter => call.await.and_then(|_| Err(lost())),
            Fault::CrashBefore => std::future::pending().await,
            Fault::CrashAfter => {
                let _ = call.await;
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl DeadLetterQueue for Faulty<'_> {
    async fn take(&self, limit: u32, hold: Duration) -> Result<Vec<DeadLetter>, PortError> {
        self.at(self.inner.take(limit, hold)).await
    }
    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.at(self.inner.send_back(letter)).await
    }
    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.at(self.inner.remove(letter)).await
    }
    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        self.at(self.inner.put_back(letter)).await
    }
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

/// Every call fails, or never returns, before its effect and after it; then the hold ends, and the
/// operator repeats the command. No task is lost, none is sent more than twice, and what is no task
/// stays.
#[tokio::test]
async fn any_fault_is_made_good_by_repeating() {
    for at in 0..5 {
        for fault in Fault::ALL {
            let World { clock, queue, dead } = world();
            let faulty = Faulty { inner: &dead, at, fault, calls: AtomicUsize::new(0) };
            drop(run(redrive_all(&faulty)));
            clock.advance(LETTER_HOLD);
            redrive_all(&dead).await.unwrap();
            assert_eq!(dead.bodies().len(), 1, "{fault:?} at {at}");
            let mut sent: Vec<_> = queue.tasks();
            assert!(sent.len() <= 3, "{fault:?} at {at}: {sent:?}");
            sent.sort();
            sent.dedup();
            assert_eq!(sent, [task("a"), task("b")], "{fault:?} at {at}");
        }
    }
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
