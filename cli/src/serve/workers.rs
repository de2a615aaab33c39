//! The worker pool: takes tasks, works each on its own, acknowledges what is done.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::job::Kind;
use domain::ports::{HeldTask, PortError};
use domain::work::{PutOff, Skip, Worked, release_run, work};
use futures_util::FutureExt as _;
use scraper_api::one_answer_at_a_time;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Chain, Server, stopped};

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
    server.tally.add("tasks_taken_up", server.source.release_held().await?);
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
    let working = one_answer_at_a_time(work(server.pipeline.ports(), &held.task));
    let worked = AssertUnwindSafe(working).catch_unwind().await;
    let worked = match worked {
        Ok(Ok(worked)) => worked,
        Ok(Err(error)) => {
            server.tally.count("work_errors");
            let error = Chain(&error);
            tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, %error, "task failed");
            return;
        }
        Err(_) => {
            server.tally.count("work_panics");
            tracing::error!(job.id = %key.job_id, job.kind = %key.kind, "task panicked");
            return;
        }
    };
    note(server, held, &worked);
    if let Err(error) = server.source.acknowledge(held).await {
        let error = Chain(&error);
        tracing::warn!(job.id = %key.job_id, %error, "task could not be acknowledged");
    }
}

fn note(server: &Server, held: &HeldTask, worked: &Worked) {
    let key = &held.task.key;
    let name = match worked {
        Worked::Stored { key: object } => {
            tracing::info!(job.id = %key.job_id, job.kind = %key.kind, object, "stored");
            "work_stored"
        }
        Worked::Superseded { by } => {
            tracing::info!(job.id = %key.job_id, by = %by, "resubmitted");
            "work_superseded"
        }
        Worked::Dead(reason) => {
            tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, %reason, "given up");
            "work_dead"
        }
        Worked::PutOff { wait, because } => {
            let wait_secs = wait.as_secs_f64();
            let because = reason(because);
            tracing::debug!(job.id = %key.job_id, wait_secs, because, "put off");
            "work_put_off"
        }
        Worked::Skipped(Skip::Absent) => {
            tracing::warn!(job.id = %key.job_id, job.kind = %key.kind, "task for an unknown job");
            "work_unknown"
        }
        Worked::Skipped(_) => "work_skipped",
    };
    server.tally.count(name);
}

/// Why a task was put off, for a log.
fn reason(because: &PutOff) -> String {
    match because {
        PutOff::Unfinished(_) => "the job has not finished".to_owned(),
        PutOff::Settling => "its items are still settling".to_owned(),
        PutOff::Trouble(error) => error.to_string(),
        PutOff::Paused(why) => format!("the API is left alone: {why}"),
        PutOff::Unlinked => "whose job it is is not known yet".to_owned(),
        PutOff::Recovering => "whether a retry was accepted is being found out".to_owned(),
        PutOff::Inconsistent => "its result pages do not agree".to_owned(),
        PutOff::Spent => "the day's spend is used up".to_owned(),
        PutOff::OutOfTime => "no time was left for another call".to_owned(),
    }
}

#[cfg(test)]
mod tests;
