//! A webhook may be faster than our own answer to the POST that made its job.
//!
//! What is stored is never written again, so the row waits for its link, which carries the
//! user's own id and the lineage, as long as a POST may still bring one.

use std::time::Duration;

use super::{PutOff, Worked, jitter, put_off_once_more};
use crate::entry::Entry;
use crate::limits::Limits;
use crate::ports::PortError;
use crate::steps::Ports;
use crate::time::{Timestamp, after, between};

/// How long a row may wait: until a lost answer can be looked for, and once more the margin of the
/// job lists, in which the sweep comes by and looks.
const fn longest_wait(limits: &Limits) -> Duration {
    limits.recovery().saturating_add(limits.adoption_margin)
}

/// Whether a POST whose answer is not known yet may have made the row's job, which has no link.
///
/// A POST that was intended after the job was created has not: an account that is always
/// submitting does not keep other people's jobs waiting.
pub(super) async fn may_be_ours(
    ports: Ports<'_>,
    entry: &Entry,
    created_at: Option<Timestamp>,
) -> Result<bool, PortError> {
    if entry.link.is_some() {
        return Ok(false);
    }
    let created_at = created_at.or(entry.job_created_at).unwrap_or(entry.first_seen);
    let until = after(created_at, ports.limits.clock_slack());
    ports.ledger.has_unresolved_post(entry.key.kind, until).await
}

/// Puts a row off before its result is stored while a POST of ours may have made its job; `None`
/// when nothing is to be waited for.
pub(super) async fn put_off(
    ports: Ports<'_>,
    entry: &Entry,
    created_at: Option<Timestamp>,
) -> Result<Option<Worked>, PortError> {
    let now = ports.clock.now();
    let until = after(entry.first_seen, longest_wait(ports.limits));
    if until <= now || !may_be_ours(ports, entry, created_at).await? {
        // If the link was written since the row was read, the next conditional write tells.
        return Ok(None);
    }
    let wait = jitter(ports, entry.counters.put_offs).min(between(now, until));
    put_off_once_more(ports, entry.clone(), wait, PutOff::Unlinked).await.map(Some)
}
