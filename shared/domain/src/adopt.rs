//! Adoption: finding the job of a POST whose answer was lost, before anybody pays again.

use std::collections::BTreeSet;

use crate::entry::{Cause, Entry, Link};
use crate::job::{JobId, JobKey, Kind};
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX, Limits, RESULT_PAGE_MAX};
use crate::pause::Scope;
use crate::ports::{ApiError, ApiErrorKind, ListPage, ListQuery, Listed, PageRequest, PortError};
use crate::post::Post;
use crate::request::{JobRequest, normalised_url};
use crate::steps::Ports;
use crate::time::{Timestamp, after, between};
use crate::update::{Changed, change};
use crate::work::Look;

/// Most result pages read to compare a batch's URLs: 1,000 URLs at 50 a page, and an empty page.
const BATCH_PAGES_MAX: u32 = 21;
/// Most calls for one page of a list.
const PAGE_TRIES_MAX: u32 = 3;

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
            if row.and_then(|row| row.link).is_some_and(|held| is_same(&held, link)) {
                Claimed::Ours
            } else {
                Claimed::Theirs
            }
        }
    })
}

/// Whether two links name the same POST's job; a redrive may have moved the base of one.
fn is_same(held: &Link, link: &Link) -> bool {
    held.submission == link.submission
        && held.attempt == link.attempt
        && held.lineage == link.lineage
}

/// Looks for the job of a POST in the platform's list and links the first one that fits and is
/// nobody's yet. One of which that cannot be said is owed all the same, without a link.
///
/// # Errors
/// Those of the ledger; trouble with the list is [`Found::Undecided`].
pub async fn find_lost(
    ports: Ports<'_>,
    request: &JobRequest,
    post: &Post,
    look: Look,
    link_for: impl Fn(&JobId) -> Link,
) -> Result<Found, PortError> {
    let window = Window::of(post, ports.limits);
    let sought = Sought::new([request]);
    let Some(listed) = read_list(ports, request.kind(), window, &sought, look).await? else {
        return Ok(Found::Undecided);
    };
    find_among(ports, request, post, &listed, look, link_for).await
}

/// As [`find_lost`], in a list that was read whole over the POST's window at least, and not before
/// the list could prove that the POST was not accepted.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn find_among(
    ports: Ports<'_>,
    request: &JobRequest,
    post: &Post,
    listed: &[Listed],
    look: Look,
    link_for: impl Fn(&JobId) -> Link,
) -> Result<Found, PortError> {
    let window = Window::of(post, ports.limits);
    let mut candidates: Vec<_> = listed
        .iter()
        .filter(|listed| listed.created_at.is_none_or(|at| window.holds(at)))
        .filter(|listed| matches(request, listed))
        .collect();
    // Windows of several POSTs overlap: each takes the job that was made nearest to it, lest one
    // takes what only another could have, and leaves what nobody else can take.
    candidates.sort_by_key(|listed| {
        let created_at = listed.created_at.unwrap_or(Timestamp::MAX);
        between(post.intended_at, created_at).max(between(created_at, post.intended_at))
    });
    // One that was linked before its answer was lost goes before one that is nobody's yet, else
    // the decision would take two.
    for listed in &candidates {
        let key = JobKey::new(request.kind(), listed.job_id.clone());
        let held = held_link(ports, &key).await?;
        if held.is_some_and(|held| is_same(&held, &link_for(&listed.job_id))) {
            return Ok(Found::Job(key.job_id));
        }
    }
    let mut undecided = false;
    for listed in candidates {
        let key = JobKey::new(request.kind(), listed.job_id.clone());
        let link = link_for(&listed.job_id);
        let fit = match held_link(ports, &key).await? {
            Some(held) if is_same(&held, &link) => return Ok(Found::Job(key.job_id)),
            // A job that has an owner keeps nobody waiting.
            Some(_) => Fit::No,
            None => fits(ports, request, listed, look).await?,
        };
        match fit {
            Fit::No => {}
            Fit::Unknown => {
                // Whoever made it: the platform lists it for our account, so that it is owed.
                expect(ports, &key).await?;
                undecided = true;
            }
            Fit::Yes => {
                if claim(ports, &key, &link, Cause::Adopt).await? == Claimed::Ours {
                    return Ok(Found::Job(key.job_id));
                }
            }
        }
    }
    Ok(if undecided { Found::Undecided } else { Found::Nothing })
}

/// Makes sure that the ledger owes a job that nobody has claimed yet.
async fn expect(ports: Ports<'_>, key: &JobKey) -> Result<(), PortError> {
    let now = ports.clock.now();
    let read = ports.ledger.load(key).await?;
    change(ports.ledger, read, now, |row| match row {
        Some(row) if !row.is_expired(now) => None,
        _ => Some(Entry::expected(key.clone(), None, Cause::Adopt, now, ports.limits)),
    })
    .await?;
    Ok(())
}

/// The link of a job's row, if it has one.
async fn held_link(ports: Ports<'_>, key: &JobKey) -> Result<Option<Link>, PortError> {
    let now = ports.clock.now();
    let row = ports.ledger.load(key).await?.filter(|row| !row.is_expired(now));
    Ok(row.and_then(|row| row.link))
}

/// A span of `created_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Window {
    /// The window in which a POST's job would lie.
    pub(crate) fn of(post: &Post, limits: &Limits) -> Self {
        let (from, to) = post.window(limits);
        Self { from, to }
    }

    /// The shortest window that holds both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    fn holds(self, at: Timestamp) -> bool {
        self.from <= at && at <= self.to
    }
}

/// What is looked for in a list: what else it holds need not be kept.
#[derive(Debug)]
pub(crate) struct Sought {
    /// In normal form; `None` when the addresses decide nothing, as for batches.
    urls: Option<BTreeSet<Option<String>>>,
}

impl Sought {
    pub(crate) fn new<'a>(requests: impl IntoIterator<Item = &'a JobRequest>) -> Self {
        let urls = requests.into_iter().map(|request| request.url().map(normalised_url));
        Self { urls: urls.collect() }
    }

    fn may_hold(&self, listed: &Listed) -> bool {
        match (&self.urls, &listed.url) {
            (Some(urls), Some(url)) => urls.contains(&normalised_url(url)),
            _ => true,
        }
    }
}

/// Reads a kind's list over a window whole, and keeps what may be sought; `None` if that was not
/// possible. Nobody calls the API before the time that it names.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn read_list(
    ports: Ports<'_>,
    kind: Kind,
    window: Window,
    sought: &Sought,
    look: Look,
) -> Result<Option<Vec<Listed>>, PortError> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for page in 1..=LIST_PAGES_MAX {
        let query = ListQuery {
            page,
            page_size: LIST_PAGE_MAX,
            created_from: Some(window.from),
            created_to: Some(window.to),
        };
        let Some(list) = read_page(ports, kind, &query, look).await? else { return Ok(None) };
        let known = seen.len();
        let listed_here = list.jobs.len();
        for listed in list.jobs {
            if seen.insert(listed.job_id.clone()) && sought.may_hold(&listed) {
                kept.push(listed);
            }
        }
        if seen.len() > known {
            continue;
        }
        // An empty page ends the list, and so does a short one that was seen before. A full page
        // that repeats itself may hide what comes after it.
        let is_full = u32::try_from(listed_here).is_ok_and(|jobs| jobs >= LIST_PAGE_MAX);
        return Ok((!is_full).then_some(kept));
    }
    Ok(None)
}

/// Reads one page; one that came to grief on its way is asked for again at once, since a long list
/// would hardly ever be read whole otherwise.
async fn read_page(
    ports: Ports<'_>,
    kind: Kind,
    query: &ListQuery,
    look: Look,
) -> Result<Option<ListPage>, PortError> {
    for _ in 0..PAGE_TRIES_MAX {
        let Some(within) = look.within(ports.clock.now(), ports.limits.call_timeout) else {
            return Ok(None);
        };
        match ports.jobs.list(kind, query, within).await {
            Ok(list) if list.unreadable == 0 => return Ok(Some(list)),
            Ok(_) => return Ok(None),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                keep_to(ports, &error).await?;
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// Whether the platform answered, badly, and said nothing of waiting.
pub(crate) fn is_passing(error: &ApiError) -> bool {
    let is_broken = matches!(error.kind, ApiErrorKind::Unavailable | ApiErrorKind::Unreadable);
    is_broken && error.status.is_some() && error.retry_after.is_none()
}

/// Pauses the account as long as the platform asked for.
pub(crate) async fn keep_to(ports: Ports<'_>, error: &ApiError) -> Result<(), PortError> {
    let Some(wait) = error.retry_after else { return Ok(()) };
    let until = after(ports.clock.now(), wait.min(ports.limits.retry_after_clamp));
    ports.pauses.extend(ports.ledger, Scope::All, until, error.kind.as_str()).await
}

/// Whether a listed job can be the one that was asked for, as far as the list tells.
fn matches(request: &JobRequest, listed: &Listed) -> bool {
    let options = request.options();
    // An empty list says no more than none at all: a job that failed gave no format.
    let formats_fit = listed.formats.as_ref().is_none_or(|formats| {
        options.formats.is_empty()
            || formats.is_empty()
            || formats.iter().collect::<BTreeSet<_>>() == options.formats.iter().collect()
    });
    let render_fits = listed.render_js.is_none_or(|render_js| render_js == options.render_js);
    let subject_fits = match request {
        JobRequest::Batch { urls, .. } => listed
            .accepted_urls
            .is_none_or(|accepted| usize::try_from(accepted).is_ok_and(|n| n <= urls.len())),
        JobRequest::Extract { url, .. } | JobRequest::Crawl { url, .. } => {
            listed.url.as_deref().is_none_or(|listed| normalised_url(listed) == normalised_url(url))
        }
    };
    formats_fit && render_fits && subject_fits
}

enum Fit {
    Yes,
    No,
    Unknown,
}

/// Whether a candidate is the one: for a batch its URLs decide, which only the job itself tells.
/// What cannot be compared may be the one, so that nobody pays again.
async fn fits(
    ports: Ports<'_>,
    request: &JobRequest,
    listed: &Listed,
    look: Look,
) -> Result<Fit, PortError> {
    let JobRequest::Batch { urls, .. } = request else {
        return Ok(if listed.url.is_some() { Fit::Yes } else { Fit::Unknown });
    };
    let key = JobKey::new(Kind::Batch, listed.job_id.clone());
    let wanted: BTreeSet<_> = urls.iter().filter_map(|url| normalised_url(url)).collect();
    let mut present = BTreeSet::new();
    let mut is_terminal = false;
    for page in 1..=BATCH_PAGES_MAX {
        let Some(within) = look.within(ports.clock.now(), ports.limits.page_timeout) else {
            return Ok(Fit::Unknown);
        };
        let page = PageRequest { page, page_size: RESULT_PAGE_MAX };
        let answer = match ports.jobs.parent(&key, page, within).await {
            Ok(answer) => answer,
            // Also where it is missing: it is listed, and reads may lag.
            Err(error) => {
                keep_to(ports, &error).await?;
                return Ok(Fit::Unknown);
            }
        };
        is_terminal = answer.status.is_terminal();
        let known = present.len();
        for item in answer.items.unwrap_or_default() {
            match normalised_url(&item.url).filter(|url| wanted.contains(url)) {
                Some(url) => present.insert(url),
                None => return Ok(Fit::No),
            };
        }
        if present.len() == known {
            break;
        }
    }
    Ok(judge_batch(listed, urls.len(), &wanted, &present, is_terminal))
}

/// Judges a batch all of whose known items are wanted ones.
fn judge_batch(
    listed: &Listed,
    asked: usize,
    wanted: &BTreeSet<String>,
    present: &BTreeSet<String>,
    is_terminal: bool,
) -> Fit {
    let accepted = listed.accepted_urls.and_then(|accepted| usize::try_from(accepted).ok());
    if accepted.is_some_and(|accepted| accepted < asked) {
        // Either the platform left out what it found invalid, or it is a smaller batch.
        return Fit::Unknown;
    }
    match (present == wanted, is_terminal, present.is_empty()) {
        (true, _, _) | (false, true, false) => Fit::Yes,
        // Also where it ended without items: it may have been cancelled before any ran, and the
        // items of one that finished a moment ago may not be visible yet.
        (false, true, true) | (false, false, _) => Fit::Unknown,
    }
}

#[cfg(test)]
mod tests;
