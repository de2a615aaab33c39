//! The follow-up of a completed batch or crawl: written with its parent's end, then paid for.

use std::time::Duration;

use super::{FollowedUp, Look, Worked, resubmit, settle};
use crate::asked;
use crate::content::{ManifestFailures, manifest_failures};
use crate::entry::{Cause, DeadReason, Entry, State, StoredObject};
use crate::follow_up::{Plan, plan, retryable};
use crate::limits::WRITE_CONFLICTS_MAX;
use crate::ports::{ErrorKind, Expected, Met, PortError, RowWrite, WrittenBoth};
use crate::request::FetchOptions;
use crate::steps::Ports;
use crate::task::Task;

/// Settles a parent as stored; with it, where the policy says so, the row that asks for its failed
/// items once more. `content` is the manifest's.
pub(super) async fn stored(
    ports: Ports<'_>,
    entry: Entry,
    object: StoredObject,
    content: &[u8],
) -> Result<Worked, PortError> {
    // Without the policy nobody reads the manifest again.
    let is_policy = ports.limits.policies.resubmit_failed_items;
    let failures = is_policy.then(|| manifest_failures(content).ok()).flatten();
    let Some(failures) = failures.filter(|it| !retryable(&it.failed).is_empty()) else {
        return settle::stored(ports, entry, object).await;
    };
    let options = options_of(ports, &entry, &failures).await?;
    let (key, generation) = (entry.key.clone(), entry.generation);
    let state = State::Stored { result: object.clone() };
    let mut current = Some(Box::new(entry));
    for _ in 0..WRITE_CONFLICTS_MAX {
        // As for any result: the object is there, and that decides, unless the row is terminal.
        let is_open = |row: &Entry| !row.state.is_terminal() && row.generation == generation;
        let Some(row) = current.as_ref().filter(|row| is_open(row)) else {
            return Ok(settle::skipped(current.as_deref()));
        };
        let now = ports.clock.now();
        let planned = plan(row, &failures.failed, options.as_ref(), now, ports.limits);
        let (asking, items, left) = match planned {
            Plan::Ask { row, items, left } => (row, items, left),
            Plan::Nothing => return settle::stored(ports, *row.clone(), object).await,
            Plan::Capped { items } => {
                let worked = settle::stored(ports, *row.clone(), object).await?;
                return Ok(worked.followed_up(FollowedUp::Capped { items }));
            }
        };
        let next = row.settled(state.clone(), Cause::Work, now, ports.limits);
        let rows = [
            RowWrite { entry: &next, expected: Expected::As(row.seen()) },
            RowWrite { entry: &asking, expected: Expected::Absent(now) },
        ];
        let is_done = match ports.ledger.write_both(rows).await? {
            WrittenBoth::Done => true,
            WrittenBoth::Conflict([met, met_asking]) => {
                let is_ours =
                    |met: &Met, row: &Entry| matches!(met, Met::Other(Some(it)) if **it == *row);
                let is_done = is_ours(&met, &next) && is_ours(&met_asking, &asking);
                current = match met {
                    Met::Other(there) => there,
                    // Only the other row is in the way: it is there already, from an earlier life
                    // of this one.
                    Met::Expected => return settle::stored(ports, *row.clone(), object).await,
                };
                is_done
            }
        };
        if is_done {
            // Only speed rests on the task: the row is due.
            drop(ports.queue.send(&Task { key: asking.key }, Duration::ZERO).await);
            let worked = Worked::Stored { key: object.key, follow_up: None };
            return Ok(worked.followed_up(FollowedUp::Asked { items, left }));
        }
    }
    Err(PortError::new("ledger", "write_both", ErrorKind::Unavailable)
        .with_source(format!("the row {key} kept changing under this write")))
}

/// The options that the parent's items were fetched with: those of its submission, else those that
/// the platform shows.
async fn options_of(
    ports: Ports<'_>,
    entry: &Entry,
    failures: &ManifestFailures,
) -> Result<Option<FetchOptions>, PortError> {
    let intent = match &entry.link {
        Some(link) => ports.ledger.load_intent(&link.submission).await?,
        None => None,
    };
    let asked_for = intent.map(|intent| intent.request.options().clone());
    Ok(asked_for.or_else(|| asked::parent_options(&failures.job)))
}

/// Works the row of a follow-up: pays for its batch, once.
pub(super) async fn work(ports: Ports<'_>, entry: Entry, look: Look) -> Result<Worked, PortError> {
    match resubmit::next_of(&entry) {
        Some((request, next)) => resubmit::pay(ports, entry, &request, &next, look).await,
        None => settle::die(ports, entry, DeadReason::UnlinkedFailure, None, None).await,
    }
}
