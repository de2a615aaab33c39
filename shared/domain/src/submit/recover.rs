//! Recovery: finding out what became of POSTs whose answers were lost. Nobody pays here.
//!
//! One walk over the job list answers for all POSTs of its time: whoever searches for one searches
//! for all that are due, so that many lost answers cost an account that throttles no more calls
//! than one does.

use std::time::Duration;

use super::{Deferral, Submitted, Submitter, close, contended, jitter, moved};
use crate::adopt::{Found, Sought, Window, find_among, read_list};
use crate::intent::{Intent, IntentState};
use crate::job::JobId;
use crate::pause::Scope;
use crate::ports::{ErrorKind, IntentExpected, IntentWritten, Listed, PortError};
use crate::post::Post;
use crate::probe;
use crate::steps::Ports;
use crate::time::{Timestamp, after, between};
use crate::work::Look;

/// Most intents that one walk over the list answers for.
const TOGETHER_MAX: u32 = 100;

/// Finds out what became of an open intent's POST, and of those that are due as well and whose
/// jobs would be listed beside. Never pays: a POST that is proved not accepted leaves its intent
/// deferred.
///
/// # Errors
/// Those of the ledger.
pub async fn recover(ports: Ports<'_>, intent: Intent) -> Result<Submitted, PortError> {
    let outcomes = recover_together(ports, intent, TOGETHER_MAX).await?;
    Ok(outcomes.into_iter().next().unwrap_or_else(|| contended(ports)))
}

/// As [`recover`], for at most so many intents; what became of each, the given one first.
///
/// # Errors
/// As [`recover`].
pub(crate) async fn recover_together(
    ports: Ports<'_>,
    intent: Intent,
    at_most: u32,
) -> Result<Vec<Submitted>, PortError> {
    let Some(post) = intent.state.open_post() else { return Ok(vec![contended(ports)]) };
    let now = ports.clock.now();
    // Another one's search counts as well: nobody looks again before its time.
    let look_at = post.recover_from(ports.limits).max(intent.due_at.unwrap_or(now));
    if now < look_at {
        return Ok(vec![Submitted::Unanswered { look_at }]);
    }
    if let Some(pause) = probe::held(ports, Scope::All, Look::Scheduled).await? {
        let look_at = after(pause.until, jitter(ports, 0));
        return Ok(vec![Submitted::Unanswered { look_at }]);
    }
    let (mut window, at_most) = (Window::of(post, ports.limits), at_most.min(TOGETHER_MAX));
    let Some(first) = take(ports, &intent).await? else { return Ok(vec![contended(ports)]) };
    let mut taken = vec![first];
    for other in neighbours(ports, &intent, &mut window, at_most.saturating_sub(1)).await? {
        taken.extend(take(ports, &other).await?);
    }
    let sought = Sought::new(taken.iter().map(|intent| &intent.request));
    let kind = intent.request.kind();
    let listed = read_list(ports, kind, window, &sought, Look::Scheduled).await?;
    let searches = taken.iter().filter_map(|intent| intent.state.open_post()).map(|p| p.searches);
    let wait = jitter(ports, searches.max().unwrap_or_default()).max(ports.limits.backoff_base);
    let again_at = after(ports.clock.now(), wait);
    let mut outcomes = Vec::new();
    let mut own_error = None;
    for (number, intent) in taken.into_iter().enumerate() {
        let found = match &listed {
            Some(listed) => find(ports, &intent, listed).await,
            None => Ok(Found::Undecided),
        };
        let outcome = match found {
            Ok(found) => conclude(ports, intent, found, again_at).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) if number == 0 => own_error = Some(error),
            // A neighbour whose rows are at fault has its own turn, and tells then.
            Err(error) if matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Invalid) => {}
            Err(error) => return Err(error),
        }
    }
    own_error.map_or(Ok(outcomes), Err)
}

/// Takes an intent for a search, so that those who come meanwhile need not search as well; `None`
/// when others have moved it. A search that takes longer, or ends with its process, is made again.
async fn take(ports: Ports<'_>, intent: &Intent) -> Result<Option<Intent>, PortError> {
    let taken = intent.put_off(after(ports.clock.now(), ports.limits.backoff_base * 2));
    let expected = IntentExpected::Version(intent.version);
    Ok(match ports.ledger.write_intent(&taken, expected).await? {
        IntentWritten::Done => Some(taken),
        IntentWritten::Conflict(row) if row.as_deref() == Some(&taken) => Some(taken),
        IntentWritten::Conflict(_) => None,
    })
}

/// Further intents of the same kind that are due and whose jobs would be listed in the window or
/// beside it; the window is widened to hold theirs, to twice its length at most.
async fn neighbours(
    ports: Ports<'_>,
    intent: &Intent,
    window: &mut Window,
    at_most: u32,
) -> Result<Vec<Intent>, PortError> {
    if at_most == 0 {
        return Ok(Vec::new());
    }
    let now = ports.clock.now();
    let own = *window;
    let page = ports.ledger.list_due_intents(now, None, TOGETHER_MAX).await?;
    let mut found = Vec::new();
    for other in page.items {
        let Some(post) = other.state.open_post() else { continue };
        let theirs = Window::of(post, ports.limits);
        let is_other = other.id != intent.id && other.request.kind() == intent.request.kind();
        let is_due = other.due_at.is_none_or(|due_at| due_at <= now)
            && post.recover_from(ports.limits) <= now;
        let wider = window.with(theirs);
        let is_near = between(wider.from, wider.to) <= between(own.from, own.to) * 2;
        let is_free = u32::try_from(found.len()).is_ok_and(|found| found < at_most);
        if is_other && is_due && is_near && is_free {
            *window = wider;
            found.push(other);
        }
    }
    Ok(found)
}

async fn find(ports: Ports<'_>, intent: &Intent, listed: &[Listed]) -> Result<Found, PortError> {
    let Some(post) = intent.state.open_post() else { return Ok(Found::Undecided) };
    let link_for = |job_id: &JobId| intent.link(job_id);
    find_among(ports, &intent.request, post, listed, Look::Scheduled, link_for).await
}

/// Writes down what a search found; `again_at` is when the next one is due if it decided nothing.
async fn conclude(
    ports: Ports<'_>,
    intent: Intent,
    found: Found,
    again_at: Timestamp,
) -> Result<Submitted, PortError> {
    let IntentState::Open { post } = intent.state.clone() else { return Ok(contended(ports)) };
    match found {
        Found::Job(job_id) => {
            let state = IntentState::Accepted { job_id: job_id.clone() };
            close(ports, &intent, state).await?;
            Ok(Submitted::Accepted { job_id, by: Submitter::Earlier })
        }
        Found::Nothing => {
            // Only the winner may say so: a loser's knowledge is older.
            let state = IntentState::Deferred { post };
            match moved(ports, &intent, state).await? {
                Some(_) => {
                    Ok(Submitted::Deferred { wait: Duration::ZERO, because: Deferral::Contended })
                }
                None => Ok(contended(ports)),
            }
        }
        Found::Undecided if post.is_ambiguous(ports.clock.now(), ports.limits) => {
            close(ports, &intent, IntentState::Ambiguous).await?;
            Ok(Submitted::Ambiguous)
        }
        Found::Undecided => put_off(ports, &intent, post, again_at).await,
    }
}

async fn put_off(
    ports: Ports<'_>,
    intent: &Intent,
    post: Post,
    again_at: Timestamp,
) -> Result<Submitted, PortError> {
    let state = IntentState::Open { post: post.searched() };
    let next = Intent { state, ..intent.put_off(again_at) };
    let expected = IntentExpected::Version(intent.version);
    ports.ledger.write_intent(&next, expected).await?;
    Ok(Submitted::Unanswered { look_at: again_at })
}
