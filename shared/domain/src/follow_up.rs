//! Follow-ups: items of a completed batch or crawl that failed retryably, asked for once more in a
//! new batch of the same lineage.
//!
//! The row that says so is written in the same transaction as the parent's `stored`, so that
//! neither is there without the other. From then on it is worked like a failed job that is to be
//! submitted again.

use sha2::{Digest as _, Sha256};

use crate::content::FailedItem;
use crate::entry::{Entry, Link};
use crate::job::{JobId, JobKey, Kind, item_code_is_retryable};
use crate::limits::{BATCH_BYTES_MAX, BATCH_URLS_MAX, Limits};
use crate::request::{FetchOptions, JobRequest, batch_bytes};
use crate::time::{Timestamp, after};

/// What begins the id of a follow-up's row.
const PREFIX: &str = "follow-up-";
/// Hex digits of the parent's name in the id.
const DIGITS: usize = 32;

/// What becomes of a parent's failed items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: none of them may be tried again, or whose they are is not known.
    Nothing,
    /// Nothing: the lineage was tried as often as it may be.
    Capped {
        /// How many items would have been tried again.
        items: usize,
    },
    /// They are asked for once more.
    Ask {
        /// The row to be written.
        row: Box<Entry>,
        /// How many items it asks for.
        items: usize,
        /// How many more there are than one batch may hold.
        left: usize,
    },
}

/// The key of a parent's follow-up: always the same, so that there is one at most.
pub fn key_of(parent: &JobKey) -> JobKey {
    let name = format!("{}/{}", parent.kind, parent.job_id);
    let mut id = format!("{PREFIX}{}", hex::encode(Sha256::digest(name)));
    id.truncate(PREFIX.len() + DIGITS);
    // Letters, digits and hyphens: an id of any kind.
    let id = JobId::parse(&id).unwrap_or_else(|_| parent.job_id.clone());
    JobKey::new(Kind::Batch, id)
}

/// The link of a job that nobody is known to have submitted from here, and that is the first of a
/// lineage from now on.
pub fn own_link(key: &JobKey, request: Option<JobRequest>) -> Link {
    Link {
        submission: format!("unlinked-{key}").replace(' ', "-"),
        lineage: key.job_id.clone(),
        attempt: 0,
        base: 0,
        request,
        reference: None,
    }
}

/// Whether a job that no submission of ours is known for may be submitted again: the policy says so,
/// and it was created no longer ago than an unfinished job may become old.
pub fn may_adopt(created_at: Option<Timestamp>, now: Timestamp, limits: &Limits) -> bool {
    let is_fresh = created_at.is_some_and(|created_at| after(created_at, limits.max_age) > now);
    limits.policies.resubmit_unlinked && is_fresh
}

/// The addresses of the items that failed and may succeed when tried again.
pub fn retryable(failed: &[FailedItem]) -> Vec<&str> {
    let retryable = failed.iter().filter(|item| item_code_is_retryable(&item.code));
    retryable.map(|item| item.url.as_str()).collect()
}

/// Decides what becomes of the failed items of a parent that is about to be stored.
///
/// `options` are those that its items were fetched with; `None` where they are not known.
pub fn plan(
    parent: &Entry,
    failed: &[FailedItem],
    options: Option<&FetchOptions>,
    now: Timestamp,
    limits: &Limits,
) -> Plan {
    let urls = retryable(failed);
    let (Some(options), false) = (options, urls.is_empty()) else { return Plan::Nothing };
    let link = match &parent.link {
        Some(link) => link.clone(),
        None if may_adopt(parent.job_created_at, now, limits) => own_link(&parent.key, None),
        None => return Plan::Nothing,
    };
    if link.attempt.saturating_sub(link.base) >= limits.resubmits_max {
        return Plan::Capped { items: urls.len() };
    }
    let (mut asked, mut bytes) = (Vec::new(), 0);
    for url in &urls {
        let more = batch_bytes(url);
        let is_usable = JobRequest::extract(url, FetchOptions::default()).is_ok();
        if is_usable && asked.len() < BATCH_URLS_MAX && bytes + more <= BATCH_BYTES_MAX {
            bytes += more;
            asked.push(*url);
        }
    }
    let items = asked.len();
    let Ok(request) = JobRequest::batch(asked, options.clone()) else { return Plan::Nothing };
    let link = Link { request: Some(request), ..link };
    let row = Entry::follow_up(key_of(&parent.key), parent.key.clone(), link, now, limits);
    Plan::Ask { row: Box::new(row), items, left: urls.len() - items }
}

#[cfg(test)]
mod tests;
