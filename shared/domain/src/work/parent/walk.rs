//! One walk over the pages of a run, from where it stands to the manifest.

use std::collections::BTreeSet;

use super::{Unread, finish, read_page, run_id, save_held};
use crate::content::{FailedItem, ItemHead, ManifestFacts, manifest, part_heads, part_lines};
use crate::entry::{Counters, DeadReason, Entry};
use crate::job::JobStatus;
use crate::limits::{RESULT_PAGES_MAX, RUNS_MAX};
use crate::place::{manifest_key, part_key};
use crate::ports::{ErrorKind, Item, ParentPage, PortError, PutOutcome};
use crate::run::{Part, Run, larger_page};
use crate::steps::Ports;
use crate::time::{Date, after};
use crate::work::{Look, OUT_OF_TIME, PutOff, Skip, Worked, put_off_with, settle, trouble};

/// Most parts of one run. A part takes up to 400 bytes of a row, and a row has 400 kB; 10,000
/// items in full pages are 200 parts.
const PARTS_MAX: usize = 900;

/// One walk over the pages.
pub(super) struct Walk<'a> {
    pub(super) ports: Ports<'a>,
    pub(super) look: Look,
    pub(super) dt: Date,
    pub(super) unsettled: bool,
}

/// What is known of the items so far: bounded by the job's own limit of 10,000 items.
#[derive(Default)]
struct Collected {
    keys: BTreeSet<String>,
    items: u64,
    failed: Vec<FailedItem>,
}

impl Collected {
    /// Adds a page's items.
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

    /// Whether a page brings an item that is not known yet.
    fn has_news_in(&self, items: &[Item]) -> bool {
        items.iter().any(|item| !self.keys.contains(&item.key))
    }
}

/// How many items a walk must have found, by the counters of the last page's answer.
struct Wanted {
    /// At least so many.
    least: u64,
    /// At most so many, and then no further page is needed; `None` when only an empty page
    /// tells the end.
    most: Option<u64>,
}

impl Wanted {
    /// Children that never ran may be there or not; of a cancelled parent also the ones that its
    /// counters call cancelled. Those that ran must be there, since reads may lag behind counters.
    fn by(answer: &ParentPage) -> Self {
        let all = answer.total.map(|total| total.max(answer.finished()));
        match answer.status {
            JobStatus::Cancelled => Self { least: answer.ran, most: all },
            // An answer may leave all counters out.
            _ if answer.finished() == 0 && answer.total.is_none() => Self { least: 0, most: None },
            _ => Self { least: answer.finished(), most: all.or(Some(answer.finished())) },
        }
    }

    /// Whether the items are unique and as many as the counters say.
    fn agrees_with(&self, collected: &Collected) -> bool {
        let unique = u64::try_from(collected.keys.len()).unwrap_or(u64::MAX);
        unique == collected.items
            && unique >= self.least
            && self.most.is_none_or(|most| unique <= most)
    }

    /// Whether no further page is needed.
    fn has_all(&self, collected: &Collected) -> bool {
        self.most.is_some_and(|most| collected.items >= most)
    }
}

impl Walk<'_> {
    /// Walks from the page that was just read to the end, then writes the manifest.
    pub(super) async fn through(
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
            // A page without news ends the walk and is no part: a server may repeat its last page
            // for ever.
            if !collected.has_news_in(&items) {
                break;
            }
            if run.parts.len() >= PARTS_MAX {
                return settle::die(self.ports, entry, DeadReason::TooLarge, None, None).await;
            }
            let Some((part, heads)) = self.store_part(&entry, &run, items).await? else {
                return self.begin_anew(entry, run).await;
            };
            collected.add(heads);
            run.parts.push(part);
            run.next_page += 1;
            if let Some(larger) = larger_page(run.next()) {
                run = run.at(larger);
            }
            run.held_until = after(self.ports.clock.now(), self.ports.limits.run_claim);
            let Some(saved) = save_held(self.ports, entry, run).await? else {
                return Ok(Worked::Skipped(Skip::Overtaken));
            };
            (entry, run) = saved;
            if Wanted::by(&answer).has_all(&collected) {
                break;
            }
            let read = read_page(self.ports, self.look, &entry.key, run.next()).await;
            let (next_answer, page) = match read {
                Ok(read) => read,
                Err(unread) => return self.interrupted(entry, run, unread).await,
            };
            answer = next_answer;
            run = run.at(page);
        }
        if Wanted::by(&answer).agrees_with(&collected) {
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

    /// Stores one page's items; `None` if the run cannot go on with them. Another object under
    /// the part's name is this run's own, of a page that read differently before its progress was
    /// saved: it never counts, as no manifest names it.
    async fn store_part(
        &self,
        entry: &Entry,
        run: &Run,
        items: Vec<Item>,
    ) -> Result<Option<(Part, Vec<ItemHead>)>, PortError> {
        let number = u32::try_from(run.parts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let key = part_key(entry.key.kind, &entry.key.job_id, self.dt, &run.id, number);
        let Ok(lines) = part_lines(&entry.key, &items) else { return Ok(None) };
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        // A page may be large; from here on its lines are all that is needed.
        drop(items);
        let Ok(heads) = part_heads(&lines) else { return Ok(None) };
        let object = match self.ports.results.put_new(&key, &lines).await {
            Ok(PutOutcome::Now(object)) => object,
            Ok(PutOutcome::Already { object, content }) if content == lines => object,
            Ok(PutOutcome::Already { .. }) => return Ok(None),
            Err(error) if error.kind == ErrorKind::Corrupt => return Ok(None),
            Err(error) => return Err(error),
        };
        let part =
            Part { key: object.key, items: count, bytes: object.bytes, sha256: object.sha256 };
        Ok(Some((part, heads)))
    }

    /// A page could not be read: the run waits for its next worker.
    async fn interrupted(
        &self,
        entry: Entry,
        run: Run,
        unread: Unread,
    ) -> Result<Worked, PortError> {
        let released = Run { held_until: self.ports.clock.now(), ..run };
        let Some((entry, _)) = save_held(self.ports, entry, released).await? else {
            return Ok(Worked::Skipped(Skip::Overtaken));
        };
        match unread {
            Unread::OutOfTime => Ok(OUT_OF_TIME),
            Unread::Trouble(error) => trouble::with(self.ports, entry, error, self.look).await,
        }
    }

    /// The pages did not agree with the counters: another run, later, a few times. The pause is
    /// the one of looks at a missing job, since here as there the platform's reads may lag.
    async fn begin_anew(&self, entry: Entry, run: Run) -> Result<Worked, PortError> {
        if run.number >= RUNS_MAX {
            let reason = DeadReason::Inconsistent;
            return settle::die(self.ports, entry, reason, None, None).await;
        }
        let next = Run {
            id: run_id(self.ports),
            number: run.number + 1,
            next_page: 1,
            parts: Vec::new(),
            held_until: self.ports.clock.now(),
            ..run
        };
        let Some((entry, _)) = save_held(self.ports, entry, next).await? else {
            return Ok(Worked::Skipped(Skip::Overtaken));
        };
        let wait = self.ports.limits.missing_pause;
        let counters = Counters { sweeps: 0, ..entry.counters.clone() };
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
            Ok(PutOutcome::Now(object)) => finish(self.ports, entry, object, &content).await,
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
