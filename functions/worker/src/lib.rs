//! The function that works tasks: it asks the platform how each job stands, stores its result, and
//! settles its entry.
//!
//! The records of one event are worked side by side, and the trouble of one, a panic included, is
//! its alone: the answer names those that SQS is to deliver again. A record that is no task is among
//! them, so that after a few deliveries SQS moves it to the dead-letter queue, where it can be seen.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use domain::job::Kind;
use domain::pause::Scope;
use domain::ports::PortError;
use domain::steps::Pipeline;
use domain::task::Task;
use domain::time::{Timestamp, after, before, between};
use domain::within::within;
use domain::work::{Look, PutOff, Worked, look, release_run};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use scraper_api::one_answer_at_a_time;
use telemetry::{Chain, Counter, Metrics, tell};

/// Tasks worked at once. Source: the most records in an event of a queue without a batching window
/// (AWS Lambda, event source mapping of Amazon SQS).
const TASKS_AT_ONCE: usize = 10;
/// Share of the time left that is kept for what follows the last call of the platform's API: the
/// result and the entry are written, and what is unfinished is sent on.
const RESERVE_PARTS: u32 = 5;
/// Time in which the answer itself reaches Lambda.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// What the function works with.
pub struct Worker {
    /// The adapters.
    pub pipeline: Pipeline,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// An event that is not one of a queue.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// A record has no id by which it could be named in the answer.
    #[error(
        "the worker expects records of its SQS queue, and one has no messageId: \
         see events/worker for what an event looks like"
    )]
    NoMessageId,
}

impl Worker {
    /// Works the tasks of one event, and names the messages that are to come again. No call of the
    /// API begins in the last fifth of the time until `deadline`, at which Lambda ends the process.
    ///
    /// # Errors
    /// When nothing can be said about single records: all of them come again.
    pub async fn work(
        &self,
        event: SqsEvent,
        deadline: Timestamp,
    ) -> Result<SqsBatchResponse, EventError> {
        let mut failed = Vec::new();
        // Equal tasks need one look.
        let mut tasks: BTreeMap<Task, Vec<String>> = BTreeMap::new();
        for record in event.records {
            let id =
                record.message_id.filter(|id| !id.is_empty()).ok_or(EventError::NoMessageId)?;
            match Task::decode(record.body.as_deref().unwrap_or_default()) {
                Ok(task) => tasks.entry(task).or_default().push(id),
                Err(error) => {
                    self.metrics.count(Counter::TasksFailed);
                    tracing::warn!(message.id = id, error = %Chain(&error), "a message that is no task");
                    failed.push(id);
                }
            }
        }
        let now = self.pipeline.clock.now();
        let left = between(now, deadline);
        let until = before(deadline, left / RESERVE_PARTS);
        let end = after(now, left.saturating_sub(ANSWER_TIME));
        if !tasks.is_empty() {
            self.read_pause(now, until).await;
        }
        let worked = stream::iter(tasks)
            .map(|(task, ids)| async move { (self.one(&task, until, end).await, ids) })
            .buffer_unordered(TASKS_AT_ONCE);
        let unfinished = worked.filter(|(is_done, _)| std::future::ready(!is_done));
        let unfinished: Vec<_> = unfinished.map(|(_, ids)| ids).collect().await;
        failed.extend(unfinished.into_iter().flatten());
        Ok(answer(failed))
    }

    /// Reads the account's pause once for all tasks, which would each ask for it at the same time.
    /// Where that fails they still do.
    async fn read_pause(&self, now: Timestamp, until: Timestamp) {
        let ports = self.pipeline.ports();
        let read = ports.pauses.active(ports.ledger, Scope::All, now);
        drop(within(ports.clock, between(now, until), read).await);
    }

    /// Works one task; `false` if its message is to come again.
    async fn one(&self, task: &Task, until: Timestamp, end: Timestamp) -> bool {
        let clock = &*self.pipeline.clock;
        let began = clock.now();
        let working = AssertUnwindSafe(self.look(task, until)).catch_unwind();
        match within(clock, between(began, end), working).await {
            Some(Ok(worked)) => {
                tell::task(&self.metrics, &task.key, &worked, between(began, clock.now()));
                worked.is_ok()
            }
            Some(Err(_)) => {
                tell::task_panicked(&self.metrics, &task.key);
                false
            }
            None => {
                self.metrics.count(Counter::TasksFailed);
                let key = &task.key;
                tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, "no time was left for the task");
                false
            }
        }
    }

    /// Looks at a job. What no time was left for goes on at once in another invocation, and as a
    /// message of its own: one that comes again because it failed nears the dead-letter queue.
    async fn look(&self, task: &Task, until: Timestamp) -> Result<Worked, PortError> {
        let ports = self.pipeline.ports();
        let looking = look(ports, task, Look::ScheduledUntil(until));
        let worked = Box::pin(one_answer_at_a_time(looking)).await?;
        if let Worked::PutOff { because: PutOff::OutOfTime, .. } = &worked {
            if task.key.kind != Kind::Extract {
                release_run(ports, &task.key).await?;
            }
            ports.queue.send(task, Duration::ZERO).await?;
        }
        Ok(worked)
    }
}

/// The answer that names these messages. Without any, the list must be there and empty.
fn answer(failed: Vec<String>) -> SqsBatchResponse {
    let mut answer = SqsBatchResponse::default();
    for id in failed {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id;
        answer.batch_item_failures.push(failure);
    }
    answer
}
