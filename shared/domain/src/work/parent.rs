//! Batches and crawls: results come page by page and are stored part by part.
//!
//! A run walks the pages once. Its progress lies in the row, so that a run that ended in the
//! middle is taken up where it stopped; its parts count only once a manifest names them.

mod walk;

use self::walk::Walk;
use super::extract::dated;
use super::{
    Look, OUT_OF_TIME, PutOff, Skip, Worked, follow_up, settle, trouble, unlinked, wait_for_end,
    wait_longer,
};
use crate::content::{MANIFEST_FORMAT, belongs_to, manifest_head};
use crate::entry::{DeadReason, Entry, StoredObject};
use crate::job::{JobKey, JobStatus};
use crate::limits::RESULT_PAGE_MAX;
use crate::place::{date_of, manifest_key};
use crate::ports::{ApiError, ApiErrorKind, ErrorKind, PageRequest, ParentPage, PortError};
use crate::run::{Run, smaller_page};
use crate::steps::Ports;
use crate::time::{Date, Timestamp, after};
use crate::update::{Changed, change};

pub(super) async fn work(ports: Ports<'_>, entry: Entry, look: Look) -> Result<Worked, PortError> {
    if let Some(dt) = entry.dt {
        // A worker may have stopped between the manifest and the row.
        if let Some(worked) = finish_from_manifest(ports, &entry, dt).await? {
            return Ok(worked);
        }
    }
    if is_held(&entry, ports.clock.now()) {
        return Ok(Worked::Skipped(Skip::Overtaken));
    }
    let first = PageRequest { page: 1, page_size: RESULT_PAGE_MAX };
    let next = entry.run.as_ref().map_or(first, Run::next);
    let (answer, next) = match read_page(ports, look, &entry.key, next).await {
        Ok(read) => read,
        Err(Unread::OutOfTime) => return Ok(OUT_OF_TIME),
        Err(Unread::Trouble(error)) => return trouble::with(ports, entry, error, look).await,
    };
    ports.looks.note(false);
    if !answer.status.is_terminal() {
        let status = answer.status.clone();
        return wait_for_end(ports, entry, PutOff::Unfinished(status)).await;
    }
    let settling = answer.tokens_reserved > 0 || answer.pending > 0;
    let now = ports.clock.now();
    if settling {
        let since = entry.counters.settling_since.unwrap_or(now);
        if after(since, ports.limits.settle_grace) > now {
            let mut entry = entry;
            entry.counters.settling_since = Some(since);
            // The job has finished, so its age is no reason to give it up.
            return wait_longer(ports, entry, PutOff::Settling).await;
        }
    }
    if let Some(worked) = unlinked::put_off(ports, &entry, answer.created_at).await? {
        return Ok(worked);
    }
    let entry = match dated(ports, entry, answer.created_at).await? {
        Ok(entry) => entry,
        Err(worked) => return Ok(worked),
    };
    let dt = date_of(&entry, answer.created_at);
    let Some((entry, run)) = take_run(ports, entry, next).await? else {
        return Ok(Worked::Skipped(Skip::Overtaken));
    };
    let walk = Walk { ports, look, dt, unsettled: settling };
    walk.through(entry, run, answer).await
}

fn is_held(entry: &Entry, now: Timestamp) -> bool {
    entry.run.as_ref().is_some_and(|run| run.held_until > now)
}

/// Ends the hold of a worker that is known to be no more, so that the next one goes on at once.
///
/// Should it be alive all the same, it stops when it next saves its progress: no part is stored
/// twice, and a page or two is read again.
///
/// # Errors
/// Those of the ledger.
pub async fn release_run(ports: Ports<'_>, key: &JobKey) -> Result<(), PortError> {
    let Some(entry) = ports.ledger.load(key).await? else { return Ok(()) };
    let now = ports.clock.now();
    change(ports.ledger, Some(entry), now, |row| {
        let row = row.filter(|row| is_held(row, now))?;
        let released = row.run.clone().map(|run| Run { held_until: now, ..run });
        Some(row.with_run(released))
    })
    .await?;
    Ok(())
}

/// Why a page was not read.
enum Unread {
    /// Whoever waits has no time left.
    OutOfTime,
    /// The API did not give it.
    Trouble(ApiError),
}

/// Reads a page, or as much of it as is not too large; says which page it was.
async fn read_page(
    ports: Ports<'_>,
    look: Look,
    key: &JobKey,
    mut page: PageRequest,
) -> Result<(ParentPage, PageRequest), Unread> {
    loop {
        let within = look.within(ports.clock.now(), ports.limits.page_timeout);
        let within = within.ok_or(Unread::OutOfTime)?;
        match ports.jobs.parent(key, page, within).await {
            Ok(answer) => return Ok((answer, page)),
            Err(error) if error.kind == ApiErrorKind::TooLarge => {
                page = smaller_page(page).ok_or(Unread::Trouble(error))?;
            }
            Err(error) => return Err(Unread::Trouble(error)),
        }
    }
}

/// Settles the row from a manifest that lies there already.
async fn finish_from_manifest(
    ports: Ports<'_>,
    entry: &Entry,
    dt: Date,
) -> Result<Option<Worked>, PortError> {
    let key = manifest_key(entry.key.kind, &entry.key.job_id, dt);
    match ports.results.read(&key).await {
        Ok(None) => Ok(None),
        Ok(Some((object, content))) => {
            finish(ports, entry.clone(), object, &content).await.map(Some)
        }
        Err(error) if error.kind == ErrorKind::Corrupt => {
            settle::die(ports, entry.clone(), DeadReason::CorruptObject, None, None).await.map(Some)
        }
        Err(error) => Err(error),
    }
}

/// Settles the row by what the manifest says.
async fn finish(
    ports: Ports<'_>,
    entry: Entry,
    mut object: StoredObject,
    content: &[u8],
) -> Result<Worked, PortError> {
    let head =
        manifest_head(content).ok().filter(|_| belongs_to(content, MANIFEST_FORMAT, &entry.key));
    let Some(head) = head else {
        return settle::die(ports, entry, DeadReason::CorruptObject, None, None).await;
    };
    object.unsettled = head.unsettled;
    object.empty = head.items == 0;
    match JobStatus::from_api(&head.status) {
        JobStatus::Failed => {
            settle::die(ports, entry, DeadReason::Failed, None, Some(object)).await
        }
        JobStatus::Cancelled => {
            settle::die(ports, entry, DeadReason::Cancelled, None, Some(object)).await
        }
        _ => follow_up::stored(ports, entry, object, content).await,
    }
}

/// Begins a run, or takes up one that nobody holds any more; `None` when others were faster.
async fn take_run(
    ports: Ports<'_>,
    entry: Entry,
    next: PageRequest,
) -> Result<Option<(Entry, Run)>, PortError> {
    let now = ports.clock.now();
    if is_held(&entry, now) {
        return Ok(None);
    }
    let seen = entry.seen();
    let run = entry.run.clone().unwrap_or_else(|| Run {
        id: run_id(ports),
        number: 1,
        holder: String::new(),
        held_until: now,
        page_size: next.page_size,
        next_page: next.page,
        parts: Vec::new(),
    });
    let holder = ports.random.token();
    let held_until = after(now, ports.limits.run_claim);
    let run = Run { holder, held_until, ..run.at(next) };
    save(ports, entry, run, |row| row.seen() == seen).await
}

/// A new name for a run and its parts: 48 random bits, unique within one job.
fn run_id(ports: Ports<'_>) -> String {
    ports.random.token().chars().take(12).collect()
}

/// Writes the progress of a run that this worker holds. What others write about the row
/// meanwhile, such as an announcement, does not end the run; losing the hold on it does.
async fn save_held(
    ports: Ports<'_>,
    entry: Entry,
    run: Run,
) -> Result<Option<(Entry, Run)>, PortError> {
    // A terminal row has no run, so this is also about a row that is still open.
    let holder = run.holder.clone();
    let is_ours = |row: &Entry| row.run.as_ref().is_some_and(|run| run.holder == holder);
    save(ports, entry, run, is_ours).await
}

async fn save(
    ports: Ports<'_>,
    entry: Entry,
    run: Run,
    may_write: impl Fn(&Entry) -> bool + Sync,
) -> Result<Option<(Entry, Run)>, PortError> {
    let changed = change(ports.ledger, Some(entry), ports.clock.now(), |row| {
        row.filter(|row| may_write(row)).map(|row| {
            let mut next = row.with_run(Some(run.clone()));
            // A run that gets on is not poison, however often it is cut short.
            if row.run.as_ref().is_some_and(|before| before.parts.len() < run.parts.len()) {
                next.counters.sweeps = 0;
            }
            // The sweep looks when the holder should have been done with the page.
            next.due_at = Some(run.held_until);
            next
        })
    })
    .await?;
    Ok(match changed {
        Changed::Written(entry) => Some((*entry, run)),
        Changed::Left(_) => None,
    })
}
