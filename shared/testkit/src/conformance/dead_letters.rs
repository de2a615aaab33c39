//! [`domain::ports::DeadLetterQueue`].

use std::time::Duration;

use domain::ports::{DeadLetter, ErrorKind};
use domain::task::Task;

use super::DeadLettersSubject;
use super::samples::key;

const HOLD: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);
/// A message that is no task.
const STRANGE: &str = "{\"not\":\"ours\"}";

fn task(id: &str) -> Task {
    Task { key: key(id) }
}

async fn take(subject: &DeadLettersSubject, limit: u32) -> Vec<DeadLetter> {
    let taken = subject.letters.take(limit, HOLD).await.unwrap();
    assert!(taken.len() <= usize::try_from(limit).unwrap());
    taken
}

/// Where there is nothing, nothing is taken.
pub async fn an_empty_one_gives_nothing(subject: &DeadLettersSubject) {
    assert!(take(subject, 10).await.is_empty());
}

/// A letter says what it is; what is no task is a letter as well.
pub async fn letters_are_taken_as_they_lie(subject: &DeadLettersSubject) {
    (subject.put)(&task("a").encode());
    (subject.put)(STRANGE);
    let mut letters = take(subject, 10).await;
    letters.sort_by_key(|letter| letter.task.is_none());
    let tasks: Vec<_> = letters.iter().map(|letter| letter.task.clone()).collect();
    assert_eq!(tasks, [Some(task("a")), None]);
    assert_eq!((letters[1].bytes, letters[1].excerpt.expose()), (STRANGE.len(), STRANGE));
    assert_ne!(letters[0].id, letters[1].id);
    assert!(!format!("{letters:?}").contains("ours"), "a stranger's words are not shown");
}

/// A letter that was taken is hidden until its hold ends, and keeps its id.
pub async fn a_taken_letter_is_hidden_until_its_hold_ends(subject: &DeadLettersSubject) {
    (subject.put)(STRANGE);
    let first = take(subject, 10).await;
    assert_eq!(first.len(), 1);
    subject.clock.advance(HOLD.saturating_sub(SECOND));
    assert!(take(subject, 10).await.is_empty());
    subject.clock.advance(SECOND);
    let second = take(subject, 10).await;
    assert_eq!(second[0].id, first[0].id);
    assert_ne!(second[0].receipt, first[0].receipt);
}

/// No more letters are taken than were asked for, and the others stay visible.
pub async fn no_more_letters_are_taken_than_asked_for(subject: &DeadLettersSubject) {
    for number in 0..25 {
        (subject.put)(&task(&format!("j{number}")).encode());
    }
    assert!(take(subject, 0).await.is_empty());
    let mut ids: Vec<_> = take(subject, 12).await.into_iter().map(|letter| letter.id).collect();
    assert_eq!(ids.len(), 12);
    for _ in 0..3 {
        ids.extend(take(subject, 12).await.into_iter().map(|letter| letter.id));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 25);
}

/// A letter that was put back is visible at once.
pub async fn a_letter_that_was_put_back_is_visible(subject: &DeadLettersSubject) {
    (subject.put)(STRANGE);
    for _ in 0..3 {
        let taken = take(subject, 10).await;
        assert_eq!(taken.len(), 1);
        subject.letters.put_back(&taken[0]).await.unwrap();
    }
}

/// A letter that was removed is gone, however often it is.
pub async fn a_removed_letter_is_gone(subject: &DeadLettersSubject) {
    (subject.put)(STRANGE);
    let taken = take(subject, 10).await;
    for _ in 0..2 {
        subject.letters.remove(&taken[0]).await.unwrap();
    }
    subject.letters.put_back(&taken[0]).await.unwrap();
    subject.clock.advance(HOLD);
    assert!(take(subject, 10).await.is_empty());
    assert!(subject.queue.receive(10, HOLD).await.unwrap().is_empty());
}

/// DQ-10: a task goes back to the workers, and its letter is gone.
pub async fn a_task_goes_back(subject: &DeadLettersSubject) {
    (subject.put)(&task("a").encode());
    let taken = take(subject, 10).await;
    subject.letters.send_back(&taken[0]).await.unwrap();
    let held = subject.queue.receive(10, HOLD).await.unwrap();
    assert_eq!(held.iter().map(|held| &held.task).collect::<Vec<_>>(), [&task("a")]);
    subject.clock.advance(HOLD);
    assert!(take(subject, 10).await.is_empty());
}

/// WK-08: what no worker could take does not go round.
pub async fn what_is_no_task_does_not_go_back(subject: &DeadLettersSubject) {
    (subject.put)(STRANGE);
    let taken = take(subject, 10).await;
    let error = subject.letters.send_back(&taken[0]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    subject.clock.advance(HOLD);
    assert_eq!(take(subject, 10).await.len(), 1);
}

/// Who comes too late takes a letter from nobody who holds it now.
pub async fn an_old_receipt_is_harmless(subject: &DeadLettersSubject) {
    (subject.put)(STRANGE);
    let old = take(subject, 10).await;
    subject.clock.advance(HOLD);
    let held = take(subject, 10).await;
    subject.letters.put_back(&old[0]).await.unwrap();
    subject.letters.remove(&old[0]).await.unwrap();
    for receipt in ["", "x", "1"] {
        let foreign = DeadLetter { receipt: receipt.to_owned(), ..held[0].clone() };
        subject.letters.remove(&foreign).await.unwrap();
        subject.letters.put_back(&foreign).await.unwrap();
    }
    assert!(take(subject, 10).await.is_empty(), "it is still held");
    subject.clock.advance(HOLD);
    assert_eq!(take(subject, 10).await.len(), 1);
}
