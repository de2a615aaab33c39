//! Adoption: finding the job of a POST whose answer was lost, before anybody pays again.

use std::collections::BTreeSet;

use crate::entry::{Cause, Entry, Link};
use crate::job::{JobId, JobKey, Kind};
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX, RESULT_PAGE_MAX};
use crate::ports::{ApiErrorKind, ListQuery, Listed, PageRequest, PortError};
use crate::post::Post;
use crate::request::{JobRequest, normalised_url};
use crate::steps::Ports;
use crate::update::{Changed, change};

/// What the job list says about a POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This job was made by it, and is now linked.
    Job(JobId),
    /// The list was read whole and holds no such job: the POST was not accepted.
    Nothing,
    /// The list could not be read whole, or a candidate could not be judged yet.
    Undecided,
}

/// Whose a job is after an attempt to link it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// It belongs to the link that was offered.
    Ours,
    /// It belonged to another one before.
    Theirs,
}

/// Links a job's row, making the row if need be; the link is what claims the job.
///
/// # Errors
/// Those of the ledger.
pub async fn claim(
    ports: Ports<'_>,
    key: &JobKey,
    link: &Link,
    cause: Cause,
) -> Result<Claimed, PortError> {
    let now = ports.clock.now();
    let read = ports.ledger.load(key).await?;
    let changed = change(ports.ledger, read, now, |row| match row {
        Some(row) if !row.is_expired(now) => row.linked(link),
        _ => Some(Entry::expected(key.clone(), Some(link.clone()), cause, now, ports.limits)),
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Claimed::Ours,
        Changed::Left(row) => {
            let same = |held: &Link| {
                held.submission == link.submission
                    && held.attempt == link.attempt
                    && held.lineage == link.lineage
            };
            if row.and_then(|row| row.link).is_some_and(|held| same(&held)) {
                Claimed::Ours
            } else {
                Claimed::Theirs
            }
        }
    })
}

/// Looks for the job of a POST in the platform's list and links the first one that fits and is
/// nobody's yet.
///
/// # Errors
/// Those of the ledger; trouble with the list is [`Found::Undecided`].
pub async fn find_lost(
    ports: Ports<'_>,
    request: &JobRequest,
    post: &Post,
    link_for: impl Fn(&JobId) -> Link,
) -> Result<Found, PortError> {
    let Some(candidates) = candidates(ports, request, post).await else {
        return Ok(Found::Undecided);
    };
    let mut undecided = false;
    for listed in candidates {
        let key = JobKey::new(request.kind(), listed.job_id.clone());
        match fits(ports, request, &key).await {
            Fit::No => continue,
            Fit::Unknown => {
                undecided = true;
                continue;
            }
            Fit::Yes => {}
        }
        if claim(ports, &key, &link_for(&listed.job_id), Cause::Adopt).await? == Claimed::Ours {
            return Ok(Found::Job(listed.job_id));
        }
    }
    Ok(if undecided { Found::Undecided } else { Found::Nothing })
}

/// Reads the list of the POST's window whole; `None` if that was not possible.
async fn candidates(ports: Ports<'_>, request: &JobRequest, post: &Post) -> Option<Vec<Listed>> {
    let (from, to) = post.window(ports.limits);
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for page in 1..=LIST_PAGES_MAX {
        let query = ListQuery {
            page,
            page_size: LIST_PAGE_MAX,
            created_from: Some(from),
            created_to: Some(to),
        };
        let within = ports.limits.call_timeout;
        let list = ports.jobs.list(request.kind(), &query, within).await.ok()?;
        if list.unreadable > 0 {
            return None;
        }
        let before = seen.len();
        for listed in list.jobs {
            if seen.insert(listed.job_id.clone()) && matches(request, &listed) {
                candidates.push(listed);
            }
        }
        // An empty page ends the list; a page without news ends a list that repeats itself.
        if seen.len() == before {
            return Some(candidates);
        }
    }
    None
}

/// Whether a listed job can be the one that was asked for, as far as the list tells.
fn matches(request: &JobRequest, listed: &Listed) -> bool {
    let options = request.options();
    let formats_fit = listed.formats.as_ref().is_none_or(|formats| {
        options.formats.is_empty()
            || formats.iter().collect::<BTreeSet<_>>() == options.formats.iter().collect()
    });
    let render_fits = listed.render_js.is_none_or(|render_js| render_js == options.render_js);
    let subject_fits = match request {
        JobRequest::Batch { urls, .. } => listed
            .accepted_urls
            .is_none_or(|accepted| usize::try_from(accepted).is_ok_and(|n| n == urls.len())),
        JobRequest::Extract { url, .. } | JobRequest::Crawl { url, .. } => listed
            .url
            .as_deref()
            .is_some_and(|listed| normalised_url(listed) == normalised_url(url)),
    };
    formats_fit && render_fits && subject_fits
}

enum Fit {
    Yes,
    No,
    Unknown,
}

/// Whether a candidate is the one: for a batch its URLs decide, which only the job itself tells.
async fn fits(ports: Ports<'_>, request: &JobRequest, key: &JobKey) -> Fit {
    let JobRequest::Batch { urls, .. } = request else { return Fit::Yes };
    debug_assert_eq!(key.kind, Kind::Batch, "only batches are compared by their URLs");
    let page = PageRequest { page: 1, page_size: RESULT_PAGE_MAX };
    let answer = match ports.jobs.parent(key, page, ports.limits.page_timeout).await {
        Ok(answer) => answer,
        Err(error) if error.kind == ApiErrorKind::Missing => return Fit::No,
        Err(_) => return Fit::Unknown,
    };
    let wanted: BTreeSet<_> = urls.iter().filter_map(|url| normalised_url(url)).collect();
    let items = answer.items.unwrap_or_default();
    let all_wanted =
        items.iter().all(|item| normalised_url(&item.url).is_some_and(|url| wanted.contains(&url)));
    match (items.is_empty(), all_wanted, answer.status.is_terminal()) {
        (false, true, _) => Fit::Yes,
        (false, false, _) | (true, _, true) => Fit::No,
        (true, _, false) => Fit::Unknown,
    }
}
