//! Batches and crawls: results come page by page and are stored part by part.
//!
//! A run walks the pages once. Its progress lies in the row, so that a run that ended in the
//! middle is taken up where it stopped; its parts count only once a manifest names them.

use std::collections::BTreeSet;

use super::extract::dated;
use super::{Look, PutOff, Skip, Worked, put_off_with, settle, trouble, wait_for_end};
use crate::content::{
    FailedItem, ItemHead, MANIFEST_FORMAT, ManifestFacts, belongs_to, manifest, manifest_head,
    part_heads, part_lines,
};
use crate::entry::{Counters, DeadReason, Entry, StoredObject};
use crate::job::JobStatus;
use crate::limits::{RESULT_PAGE_MAX, RESULT_PAGES_MAX, RUNS_MAX};
use crate::place::{date_of, manifest_key, part_key};
use crate::ports::{ApiErrorKind, ErrorKind, Item, PageRequest, ParentPage, PortError, PutOutcome};
use crate::run::{Part, Run};
use crate::steps::Ports;
use crate::time::{Date, after};
use crate::update::{Changed, change};

/// Page sizes that are tried in turn; each divides the one before, so that a run can go on in
/// the middle with a smaller one.
const PAGE_SIZES: [u32; 4] = [RESULT_PAGE_MAX, 25, 5, 1];

pub(super) async fn work(ports: Ports<'_>, entry: Entry, look: Look) -> Result<Worked, PortError> {
    if let Some(dt) = entry.dt {
        // A worker may have stopped between the manifest and the row.
        if let Some(worked) = finish_from_manifest(ports, &entry, dt).await? {
            return Ok(worked);
        }
    }
    let page_size = entry.run.as_ref().map_or(RESULT_PAGE_MAX, |run| run.page_size);
    let next_page = entry.run.as_ref().map_or(1, |run| run.next_page);
    let page = PageRequest { page: next_page, page_size };
    let answer = match ports.jobs.parent(&entry.key, page, within(ports, look)).await {
        Ok(answer) => answer,
        Err(error) if error.kind == ApiErrorKind::TooLarge && page_size > 1 => {
            return with_smaller_pages(ports, entry, look).await;
        }
        Err(error) => return trouble::with(ports, entry, error, look).await,
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
            return wait_for_end(ports, entry, PutOff::Settling).await;
        }
    }
    let entry = match dated(ports, entry, answer.created_at).await? {
        Ok(entry) => entry,
        Err(worked) => return Ok(worked),
    };
    let dt = date_of(&entry, answer.created_at);
    let (entry, run) = match take_run(ports, entry, page_size).await? {
        Ok(held) => held,
        Err(worked) => return Ok(worked),
    };
    let walk = Walk { ports, look, dt, unsettled: settling };
    walk.through(entry, run, answer).await
}

fn within(ports: Ports<'_>, look: Look) -> std::time::Duration {
    look.within(ports.limits.page_timeout)
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
    match JobStatus::from_api(&head.status) {
        JobStatus::Failed => {
            settle::die(ports, entry, DeadReason::Failed, None, Some(object)).await
        }
        JobStatus::Cancelled => {
            settle::die(ports, entry, DeadReason::Cancelled, None, Some(object)).await
        }
        _ => settle::stored(ports, entry, object).await,
    }
}

/// Begins a run, or takes up one that nobody holds any more.
async fn take_run(
    ports: Ports<'_>,
    entry: Entry,
    page_size: u32,
) -> Result<Result<(Entry, Run), Worked>, PortError> {
    let now = ports.clock.now();
    let holder = ports.random.token();
    let held_until = after(now, ports.limits.run_claim);
    let run = match &entry.run {
        Some(run) if run.held_until > now => return Ok(Err(Worked::Skipped(Skip::Overtaken))),
        Some(run) => Run { holder, held_until, ..run.clone() },
        None => Run {
            id: ports.random.token().chars().take(12).collect(),
            number: 1,
            holder,
            held_until,
            page_size,
            next_page: 1,
            parts: Vec::new(),
        },
    };
    Ok(save(ports, entry, run).await?.ok_or(Worked::Skipped(Skip::Overtaken)))
}

/// Writes the run's progress, if the row is still as this worker left it.
async fn save(ports: Ports<'_>, entry: Entry, run: Run) -> Result<Option<(Entry, Run)>, PortError> {
    let seen = entry.seen();
    let changed = change(ports.ledger, Some(entry), ports.clock.now(), |row| {
        row.filter(|row| row.seen() == seen).map(|row| {
            let mut next = row.with_run(Some(run.clone()));
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

/// Puts the row off at once, with the next smaller page size for its run.
async fn with_smaller_pages(
    ports: Ports<'_>,
    entry: Entry,
    look: Look,
) -> Result<Worked, PortError> {
    let page_size = entry.run.as_ref().map_or(RESULT_PAGE_MAX, |run| run.page_size);
    let (entry, run) = match take_run(ports, entry, page_size).await? {
        Ok(held) => held,
        Err(worked) => return Ok(worked),
    };
    let Some(run) = smaller(&run) else {
        return settle::die(ports, entry, DeadReason::TooLarge, None, None).await;
    };
    let run = Run { held_until: ports.clock.now(), ..run };
    let Some((entry, _)) = save(ports, entry, run).await? else {
        return Ok(Worked::Skipped(Skip::Overtaken));
    };
    Box::pin(work(ports, entry, look)).await
}

/// The run with the next smaller page size; `None` when one item is too large already.
fn smaller(run: &Run) -> Option<Run> {
    let page_size = PAGE_SIZES.into_iter().find(|size| *size < run.page_size)?;
    let items = (run.next_page - 1) * run.page_size;
    Some(Run { page_size, next_page: items / page_size + 1, ..run.clone() })
}

/// One walk over the pages.
struct Walk<'a> {
    ports: Ports<'a>,
    look: Look,
    dt: Date,
    unsettled: bool,
}

/// What is known of the items so far: bounded by the job's own limit of 10,000 items.
#[derive(Default)]
struct Collected {
    keys: BTreeSet<String>,
    items: u64,
    failed: Vec<FailedItem>,
}

impl Collected {
    fn add(&mut self, heads: impl IntoIterator<Item = ItemHead>) {
        for head in heads {
            self.items += 1;
            if self.keys.insert(head.key)
                && let Some(failure) = head.failure
            {
                self.failed.push(failure);
            }
        }
    }

    /// Whether the items are unique and as many as the job's counters say.
    fn agrees_with(&self, answer: &ParentPage) -> bool {
        let unique = u64::try_from(self.keys.len()).unwrap_or(u64::MAX);
        let cancelled = answer.status == JobStatus::Cancelled;
        // A cancelled parent may leave out children that never ran.
        let complete = unique == answer.finished
            || (cancelled && answer.total.is_none_or(|total| unique <= total));
        unique == self.items && complete
    }

    /// Whether no further page is needed to be complete.
    fn has_all(&self, answer: &ParentPage) -> bool {
        self.items >= answer.finished && self.items > 0
    }
}

impl Walk<'_> {
    /// Walks from the page that was just read to the end, then writes the manifest.
    async fn through(
        &self,
        mut entry: Entry,
        mut run: Run,
        mut answer: ParentPage,
    ) -> Result<Worked, PortError> {
        let Some(mut collected) = self.collect_again(&run).await? else {
            return self.begin_anew(entry, run).await;
        };
        while run.next_page <= RESULT_PAGES_MAX {
            let items = answer.items.take().unwrap_or_default();
            if items.is_empty() {
                break;
            }
            let Some(stored) = self.store_part(&entry, &run, &items).await? else {
                return settle::die(self.ports, entry, DeadReason::CorruptObject, None, None).await;
            };
            collected.add(items.iter().map(ItemHead::of));
            drop(items);
            run.parts.push(stored);
            run.next_page += 1;
            run.held_until = after(self.ports.clock.now(), self.ports.limits.run_claim);
            let Some(saved) = save(self.ports, entry, run).await? else {
                return Ok(Worked::Skipped(Skip::Overtaken));
            };
            (entry, run) = saved;
            if collected.has_all(&answer) {
                break;
            }
            let page = PageRequest { page: run.next_page, page_size: run.page_size };
            let within = within(self.ports, self.look);
            answer = match self.ports.jobs.parent(&entry.key, page, within).await {
                Ok(answer) => answer,
                Err(error) => return self.interrupted(entry, run, error).await,
            };
        }
        if collected.agrees_with(&answer) {
            self.write_manifest(entry, &run, &answer, &collected.failed).await
        } else {
            self.begin_anew(entry, run).await
        }
    }

    /// Reads the heads of the items that earlier workers stored; `None` if a part is not there
    /// or not as the run says.
    async fn collect_again(&self, run: &Run) -> Result<Option<Collected>, PortError> {
        let mut collected = Collected::default();
        for part in &run.parts {
            let read = match self.ports.results.read(&part.key).await {
                Ok(read) => read,
                Err(error) if error.kind == ErrorKind::Corrupt => None,
                Err(error) => return Err(error),
            };
            let Some((_, content)) = read.filter(|(object, _)| object.sha256 == part.sha256) else {
                return Ok(None);
            };
            let Ok(heads) = part_heads(&content) else { return Ok(None) };
            collected.add(heads);
        }
        Ok(Some(collected))
    }

    /// Stores one page's items; `None` if another run's object lies under the name.
    async fn store_part(
        &self,
        entry: &Entry,
        run: &Run,
        items: &[Item],
    ) -> Result<Option<Part>, PortError> {
        let number = u32::try_from(run.parts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let key = part_key(entry.key.kind, &entry.key.job_id, self.dt, &run.id, number);
        let Ok(lines) = part_lines(&entry.key, items) else { return Ok(None) };
        let object = match self.ports.results.put_new(&key, &lines).await {
            Ok(PutOutcome::Now(object)) => object,
            // The same run stored this page, and its progress was not saved: the same items.
            Ok(PutOutcome::Already { object, content }) if content == lines => object,
            Ok(PutOutcome::Already { .. }) => return Ok(None),
            Err(error) if error.kind == ErrorKind::Corrupt => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Part {
            key: object.key,
            items: u64::try_from(items.len()).unwrap_or(u64::MAX),
            bytes: object.bytes,
            sha256: object.sha256,
        }))
    }

    /// A page could not be read: the run waits for its next worker.
    async fn interrupted(
        &self,
        entry: Entry,
        run: Run,
        error: crate::ports::ApiError,
    ) -> Result<Worked, PortError> {
        let too_large = error.kind == ApiErrorKind::TooLarge;
        let released = Run { held_until: self.ports.clock.now(), ..run };
        let Some((entry, run)) = save(self.ports, entry, released).await? else {
            return Ok(Worked::Skipped(Skip::Overtaken));
        };
        if too_large && run.page_size > 1 {
            return Box::pin(with_smaller_pages(self.ports, entry, self.look)).await;
        }
        trouble::with(self.ports, entry, error, self.look).await
    }

    /// The pages did not agree with the counters: another run, later, a few times.
    async fn begin_anew(&self, entry: Entry, run: Run) -> Result<Worked, PortError> {
        if run.number >= RUNS_MAX {
            let reason = DeadReason::Inconsistent;
            return settle::die(self.ports, entry, reason, None, None).await;
        }
        let next = Run {
            id: self.ports.random.token().chars().take(12).collect(),
            number: run.number + 1,
            next_page: 1,
            parts: Vec::new(),
            held_until: self.ports.clock.now(),
            ..run
        };
        let Some((entry, _)) = save(self.ports, entry, next).await? else {
            return Ok(Worked::Skipped(Skip::Overtaken));
        };
        let wait = super::jitter(self.ports, entry.counters.put_offs);
        let counters = Counters {
            put_offs: entry.counters.put_offs.saturating_add(1),
            sweeps: 0,
            ..entry.counters.clone()
        };
        put_off_with(self.ports, entry, wait, counters, PutOff::Inconsistent).await
    }

    /// The commit point: from here on the parts count.
    async fn write_manifest(
        &self,
        entry: Entry,
        run: &Run,
        answer: &ParentPage,
        failed: &[FailedItem],
    ) -> Result<Worked, PortError> {
        let facts = ManifestFacts {
            status: answer.status.as_str(),
            unsettled: self.unsettled,
            dt: self.dt,
            summary: &answer.summary,
            failed,
            stored_at: self.ports.clock.now(),
        };
        let key = manifest_key(entry.key.kind, &entry.key.job_id, self.dt);
        let Ok(content) = manifest(&entry, run, &facts) else {
            return self.begin_anew(entry, run.clone()).await;
        };
        match self.ports.results.put_new(&key, &content).await {
            Ok(PutOutcome::Now(mut object)) => {
                object.empty = run.parts.is_empty();
                finish(self.ports, entry, object, &content).await
            }
            Ok(PutOutcome::Already { object, content }) => {
                finish(self.ports, entry, object, &content).await
            }
            Err(error) if error.kind == ErrorKind::Corrupt => {
                settle::die(self.ports, entry, DeadReason::CorruptObject, None, None).await
            }
            Err(error) => Err(error),
        }
    }
}
