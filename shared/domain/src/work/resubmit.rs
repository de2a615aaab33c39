//! Resubmitting a failed extract job: a paid POST, made once per decision.
//!
//! The row goes to `resubmitting` before the POST, with a token that only this call holds and a
//! time after which the POST may not be begun. Whoever finds the row later looks for the job in
//! the platform's list before anybody pays again.

use super::{Look, OUT_OF_TIME, PutOff, Skip, Worked, jitter, put_off_for, settle};
use crate::adopt::{Claimed, Found, claim, find_lost};
use crate::content::{EXTRACT_FORMAT, belongs_to, has_data};
use crate::entry::{Cause, DeadReason, Entry, Link, State, StateName, Transition};
use crate::job::{JobError, JobId, JobKey, Kind};
use crate::pause::Scope;
use crate::place::extract_key;
use crate::ports::{ApiError, ErrorKind, PortError, SubmitError};
use crate::post::Post;
use crate::probe;
use crate::request::JobRequest;
use crate::spend;
use crate::steps::Ports;
use crate::submit::{Refusal, judge_refusal};
use crate::time::{Date, Timestamp, after, between, utc_date};
use crate::update::{Changed, change};

/// Decides to pay, writes that down, and pays.
pub(super) async fn begin(
    ports: Ports<'_>,
    entry: Entry,
    next: Link,
    error: JobError,
    dt: Date,
    look: Look,
) -> Result<Worked, PortError> {
    let Some(request) = next.request.clone() else {
        return settle::die(ports, entry, DeadReason::UnlinkedFailure, Some(error), None).await;
    };
    if !has_time(ports, look) {
        return Ok(OUT_OF_TIME);
    }
    // The job may have been called completed once; what is stored is not paid for again.
    match ports.results.read(&extract_key(&entry.key.job_id, dt)).await {
        Ok(None) => {}
        Ok(Some((mut object, content))) if belongs_to(&content, EXTRACT_FORMAT, &entry.key) => {
            object.empty = !has_data(&content);
            return settle::stored(ports, entry, object).await;
        }
        Err(other) if other.kind != ErrorKind::Corrupt => return Err(other),
        Ok(Some(_)) | Err(_) => {
            let reason = DeadReason::CorruptObject;
            return settle::die(ports, entry, reason, Some(error), None).await;
        }
    }
    pay(ports, entry, &request, &next, look).await
}

/// The request that a row's next POST makes, and the link of the job that it makes; `None` if what
/// to ask for is not known.
pub(super) fn next_of(entry: &Entry) -> Option<(JobRequest, Link)> {
    let link = entry.link.as_ref()?;
    let request = link.request.clone()?;
    // A batch is never resubmitted whole.
    let again = (request.kind() == Kind::Extract).then(|| request.clone());
    let attempt = link.attempt.saturating_add(1);
    Some((request, Link { attempt, request: again, ..link.clone() }))
}

/// Pays for a row's next POST, unless a pause or the day's spend is in the way.
pub(super) async fn pay(
    ports: Ports<'_>,
    entry: Entry,
    request: &JobRequest,
    next: &Link,
    look: Look,
) -> Result<Worked, PortError> {
    if !has_time(ports, look) {
        return Ok(OUT_OF_TIME);
    }
    if let Some(worked) = held_back(ports, &entry, Scope::Paying, look).await? {
        return Ok(worked);
    }
    if !has_time(ports, look) {
        // A probe took what was left of it.
        return Ok(OUT_OF_TIME);
    }
    let now = ports.clock.now();
    if !is_reserved(&entry, now) && !spend::reserve(ports, request.tokens_max()).await? {
        let wait = ports.limits.backoff_cap;
        return put_off_for(ports, entry, wait, PutOff::Spent).await;
    }
    let post = Post::first(ports.random.token(), now, ports.limits);
    post_again(ports, entry, request, post, next, look).await
}

/// Whether the row's last POST was begun today and refused: its reservation is still there.
fn is_reserved(entry: &Entry, now: Timestamp) -> bool {
    let mut latest = entry.history.iter().rev();
    let is_refused = |line: &Transition| {
        line.from == Some(StateName::Resubmitting) && line.to == StateName::Received
    };
    let is_of_today = |line: &Transition| {
        line.to == StateName::Resubmitting && utc_date(line.at) == utc_date(now)
    };
    latest.next().is_some_and(is_refused) && latest.next().is_some_and(is_of_today)
}

/// Whether whoever waits has time for a POST. One that is cut short costs a search in the job
/// list, so none is begun that could be.
fn has_time(ports: Ports<'_>, look: Look) -> bool {
    let usual = ports.limits.post_timeout;
    look.within(ports.clock.now(), usual).is_some_and(|within| within >= usual)
}

/// Puts the row off while there is a pause.
async fn held_back(
    ports: Ports<'_>,
    entry: &Entry,
    scope: Scope,
    look: Look,
) -> Result<Option<Worked>, PortError> {
    let Some(pause) = probe::held(ports, scope, look).await? else { return Ok(None) };
    let now = ports.clock.now();
    let wait = between(now, pause.until).saturating_add(jitter(ports, 0));
    put_off_for(ports, entry.clone(), wait, PutOff::Paused(pause.why)).await.map(Some)
}

/// Writes the POST into the row, makes it, and acts on the answer.
async fn post_again(
    ports: Ports<'_>,
    entry: Entry,
    request: &JobRequest,
    post: Post,
    next: &Link,
    look: Look,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let seen = entry.seen();
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| row.seen() == seen)
            .map(|row| row.resubmitting(post.clone(), post.recover_from(ports.limits), now))
    })
    .await?;
    let entry = match changed {
        Changed::Written(entry) => *entry,
        Changed::Left(row) => return Ok(settle::skipped(row.as_deref())),
    };
    if ports.clock.now() >= post.begin_before {
        return Ok(Worked::Skipped(Skip::NotYet));
    }
    match ports.jobs.submit(request, ports.limits.post_timeout).await {
        Ok(job_id) => {
            let key = JobKey::new(request.kind(), job_id.clone());
            let claimed = claim(ports, &key, next, Cause::Submit).await?;
            probe::paid(ports).await;
            match claimed {
                Claimed::Ours => supersede(ports, entry, &post, job_id).await,
                // The platform named a job that is somebody else's: recovery will tell.
                Claimed::Theirs => Ok(recovering(ports, &post)),
            }
        }
        Err(SubmitError::Unanswered(_)) => Ok(recovering(ports, &post)),
        Err(SubmitError::Refused(error)) => refused(ports, entry, &post, error, look).await,
    }
}

fn recovering(ports: Ports<'_>, post: &Post) -> Worked {
    let wait = between(ports.clock.now(), post.recover_from(ports.limits));
    Worked::PutOff { wait, because: PutOff::Recovering }
}

/// Settles the old row in favour of the job that replaces it.
async fn supersede(
    ports: Ports<'_>,
    entry: Entry,
    post: &Post,
    by: JobId,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    let state = State::Superseded { by: by.clone() };
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| holds(row, post))
            .map(|row| row.settled(state.clone(), Cause::Work, now, ports.limits))
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Worked::Superseded { by },
        Changed::Left(row) => settle::skipped(row.as_deref()),
    })
}

fn holds(row: &Entry, post: &Post) -> bool {
    matches!(&row.state, State::Resubmitting { post: held } if held.token == post.token)
}

/// The platform did not take the job, so nothing was paid: later again, or never.
async fn refused(
    ports: Ports<'_>,
    entry: Entry,
    post: &Post,
    error: ApiError,
    look: Look,
) -> Result<Worked, PortError> {
    if judge_refusal(ports, &error, look).await? == Refusal::Final {
        let said = Some(error.as_job_error());
        return settle::die(ports, entry, DeadReason::ResubmitRefused, said, None).await;
    }
    let now = ports.clock.now();
    let wait = jitter(ports, entry.counters.put_offs).max(error.retry_after.unwrap_or_default());
    let wait = wait.min(ports.limits.retry_after_clamp);
    let key = entry.key.clone();
    let changed = change(ports.ledger, Some(entry), now, |row| {
        row.filter(|row| holds(row, post))
            .map(|row| row.back_to_received(after(now, wait), now, ports.limits))
    })
    .await?;
    if let Changed::Left(row) = changed {
        return Ok(settle::skipped(row.as_deref()));
    }
    if wait <= crate::limits::QUEUE_DELAY_MAX {
        ports.queue.send(&crate::task::Task { key }, wait).await?;
    }
    Ok(Worked::PutOff { wait, because: PutOff::Trouble(error) })
}

/// Finds out what became of a POST whose answer nobody has.
pub(super) async fn recover(
    ports: Ports<'_>,
    entry: Entry,
    post: Post,
    look: Look,
) -> Result<Worked, PortError> {
    let now = ports.clock.now();
    if now < post.recover_from(ports.limits) {
        return Ok(Worked::Skipped(Skip::NotYet));
    }
    let Some((request, next)) = next_of(&entry) else {
        return settle::die(ports, entry, DeadReason::UnlinkedFailure, None, None).await;
    };
    if let Some(worked) = held_back(ports, &entry, Scope::All, look).await? {
        return Ok(worked);
    }
    match find_lost(ports, &request, &post, look, |_| next.clone()).await? {
        Found::Job(job_id) => supersede(ports, entry, &post, job_id).await,
        Found::Nothing if post.number >= ports.limits.posts_max => {
            settle::die(ports, entry, DeadReason::ResubmitRefused, None, None).await
        }
        Found::Nothing if !has_time(ports, look) => Ok(OUT_OF_TIME),
        Found::Nothing => {
            if let Some(worked) = held_back(ports, &entry, Scope::Paying, look).await? {
                return Ok(worked);
            }
            // The reservation of a POST that was not accepted holds for its own day only.
            let is_reserved = utc_date(post.intended_at) == utc_date(now);
            if !is_reserved && !spend::reserve(ports, request.tokens_max()).await? {
                let wait = ports.limits.backoff_cap;
                return put_off_for(ports, entry, wait, PutOff::Spent).await;
            }
            let again = post.next(ports.random.token(), ports.clock.now(), ports.limits);
            post_again(ports, entry, &request, again, &next, look).await
        }
        Found::Undecided if post.is_ambiguous(now, ports.limits) => {
            settle::die(ports, entry, DeadReason::Ambiguous, None, None).await
        }
        Found::Undecided => {
            let wait = jitter(ports, entry.counters.put_offs);
            let counters = crate::entry::Counters {
                put_offs: entry.counters.put_offs.saturating_add(1),
                sweeps: 0,
                ..entry.counters.clone()
            };
            let entry = Entry { state: State::Resubmitting { post: post.searched() }, ..entry };
            super::put_off_with(ports, entry, wait, counters, PutOff::Recovering).await
        }
    }
}
