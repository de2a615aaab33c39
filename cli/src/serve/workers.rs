//! The worker pool: takes tasks, works each on its own, acknowledges what is done.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::job::Kind;
use domain::ports::{HeldTask, PortError};
use domain::time::between;
use domain::work::{release_run, work};
use futures_util::FutureExt as _;
use scraper_api::one_answer_at_a_time;
use telemetry::{Chain, Counter, tell};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Server, stopped};

/// Longest sleep of an idle pool: tasks that another process sent are noticed after it.
const IDLE_MAX: Duration = Duration::from_millis(500);
/// Most tasks taken at once.
const TAKE_MAX: u32 = 64;

pub(super) async fn run(server: Arc<Server>, mut stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(usize::try_from(server.settings.workers).unwrap_or(1)));
    let mut running = JoinSet::new();
    if let Err(error) = take_up(&server).await {
        tracing::warn!(error = %Chain(&error), "what the last server left is taken up later");
    }
    while !*stop.borrow() {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            () = take(&server, &permits, &mut running) => {}
        }
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

/// Ends the holds of the server before this one, which is no more: first those on runs over result
/// pages, then those on tasks, so that a crash in between leaves both to the next server.
async fn take_up(server: &Server) -> Result<(), PortError> {
    let held = server.source.held_tasks().await?;
    for task in held.iter().filter(|task| task.key.kind != Kind::Extract) {
        release_run(server.pipeline.ports(), &task.key).await?;
    }
    server.metrics.add(Counter::TasksTakenUp, server.source.release_held().await?);
    Ok(())
}

/// Takes as many tasks as there are free workers, or waits for either.
async fn take(server: &Arc<Server>, permits: &Arc<Semaphore>, running: &mut JoinSet<()>) {
    // A closed semaphore does not happen: nobody closes it.
    let Ok(first) = Arc::clone(permits).acquire_owned().await else { return };
    let free = u32::try_from(permits.available_permits()).unwrap_or(u32::MAX).saturating_add(1);
    let held = match server.source.receive(free.min(TAKE_MAX), server.settings.hold).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "no tasks could be taken");
            server.pipeline.clock.sleep(IDLE_MAX).await;
            return;
        }
    };
    if held.is_empty() {
        drop(first);
        server.source.wait(IDLE_MAX).await;
        return;
    }
    let mut first = Some(first);
    for task in held {
        let permit = match first.take() {
            Some(permit) => permit,
            None => match Arc::clone(permits).acquire_owned().await {
                Ok(permit) => permit,
                Err(_) => return,
            },
        };
        let server = Arc::clone(server);
        running.spawn(async move {
            Box::pin(one(&server, &task)).await;
            drop(permit);
        });
    }
}

/// Works one task. Its trouble, a panic included, is its alone: the task comes again after its
/// hold.
async fn one(server: &Server, held: &HeldTask) {
    let key = &held.task.key;
    let begun = server.pipeline.clock.now();
    let working = one_answer_at_a_time(work(server.pipeline.ports(), &held.task));
    let Ok(worked) = AssertUnwindSafe(working).catch_unwind().await else {
        tell::task_panicked(&server.metrics, key);
        return;
    };
    let took = between(begun, server.pipeline.clock.now());
    tell::task(&server.metrics, key, &worked, took);
    if worked.is_err() {
        return;
    }
    if let Err(error) = server.source.acknowledge(held).await {
        let error = Chain(&error);
        tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, %error, "task could not be acknowledged");
    }
}

#[cfg(test)]
mod tests;
