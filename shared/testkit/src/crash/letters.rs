//! An operator sends what lies in the dead-letter queue back to work.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::job::Kind;
use domain::letters::{LETTER_HOLD, put_back, take};
use domain::ports::{DeadLetterQueue, PortError};
use domain::task::Task;

use super::process::Process;
use super::world::key;
use super::{Faults, faults};
use crate::conformance::DeadLettersSubject;
use crate::faulty::{FaultPlan, FaultyDeadLetters};

/// Letters and tasks that are looked at at once.
const MANY: u32 = 10;
/// What no worker can read.
const NO_TASK: &str = "{\"token\":\"marker\"}";

/// WK-08: the command ends at any call, and is repeated when the hold of the letters has ended. No
/// task is lost, none is sent more often than the command was given, and what is no task stays.
pub async fn a_redrive_of_all(make: &impl AsyncFn() -> DeadLettersSubject, faults: Faults) {
    let tasks = ["a", "b"].map(|id| Task { key: key(Kind::Extract, id) });
    let end_with = async |plan: &Arc<FaultPlan>, processes: usize| {
        let subject = make().await;
        for body in [&tasks[0].encode(), NO_TASK, &tasks[1].encode()] {
            (subject.put)(body);
        }
        for _ in 0..processes {
            let process = Process::new(plan, &subject.clock);
            let queue = FaultyDeadLetters::new(subject.letters.clone(), process.surroundings());
            drop(process.run_to_the_kill(Box::pin(redrive_all(&queue))).await);
            subject.clock.advance(LETTER_HOLD);
        }
        redrive_all(&*subject.letters).await.unwrap();
        let sent = subject.queue.receive(MANY, LETTER_HOLD).await.unwrap();
        let sent: Vec<Task> = sent.into_iter().map(|held| held.task).collect();
        assert!(sent.len() <= tasks.len() + plan.happened().len(), "{sent:?}");
        let left = take(&*subject.letters, MANY).await.unwrap();
        (
            sent.into_iter().collect::<BTreeSet<_>>(),
            left.len(),
            left.iter().all(|it| it.task.is_none()),
        )
    };
    let is_right = |end: &(BTreeSet<Task>, usize, bool)| {
        assert_eq!(end, &(tasks.iter().cloned().collect(), 1, true));
    };
    faults::survives(faults, end_with, is_right).await;
}

/// What the command does.
async fn redrive_all(queue: &dyn DeadLetterQueue) -> Result<(), PortError> {
    let letters = take(queue, MANY).await?;
    let (tasks, others): (Vec<_>, Vec<_>) = letters.into_iter().partition(|it| it.task.is_some());
    for letter in &tasks {
        // One that cannot be sent back stays where it is, and is taken the next time.
        drop(queue.send_back(letter).await);
    }
    put_back(queue, &others).await;
    Ok(())
}
