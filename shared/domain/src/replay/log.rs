//! Reading one webhook's delivery log.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::reading::{Next, Reading};
use super::rows::{Logged, group};
use super::saved::{Log, ROW, Saved};
use super::{Hear, Replayed, Rules};
use crate::adopt::{is_passing, keep_to};
use crate::entry::{Cause, Entry};
use crate::job::{JobKey, JobStatus};
use crate::limits::LIST_PAGE_MAX;
use crate::ports::{ApiErrorKind, DeliveryPage, PortError, WebhookId, Webhooks};
use crate::progress::{self, Progress};
use crate::reconcile::compare::{AT_ONCE, Applied, earlier, number, tell};
use crate::reconcile::plan::judge;
use crate::reconcile::{Manner, Step};
use crate::steps::Ports;
use crate::together::{Part, together};

/// Most calls for one page of a log.
const PAGE_TRIES_MAX: u32 = 3;
/// Most pages of one log in one run; the next one goes on.
const PAGES_RUN_MAX: u32 = 1_000;
/// Pages after which a reading saves its place.
const PAGES_SAVED: u32 = 10;

pub(super) struct Reader<'a, 'h> {
    pub(super) ports: Ports<'a>,
    pub(super) webhooks: &'a dyn Webhooks,
    pub(super) rules: &'a Rules,
    pub(super) manner: Manner,
    pub(super) report: &'a mut Replayed,
    pub(super) hear: &'a mut Hear<'h>,
}

/// How the reading of one log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Where there was nothing new any more.
    Whole,
    /// Before that; the other logs may fare better.
    Early,
    /// The time is over, or the account is paused.
    OutOfTime,
}

/// What reading a page gave.
enum Page {
    Rows(DeliveryPage),
    /// The webhook is gone, and its log with it.
    Gone,
    /// It cannot be had now.
    None,
}

/// Writes down how far the logs were read.
pub(super) async fn save(
    ports: Ports<'_>,
    manner: Manner,
    progress: &mut Progress<Saved>,
) -> Result<(), PortError> {
    if manner.is_dry {
        return Ok(());
    }
    progress::save(ports.ledger, ROW, progress, Saved::merged).await
}

impl Reader<'_, '_> {
    /// Reads a log as far as there is something new.
    pub(super) async fn read(
        &mut self,
        id: &WebhookId,
        progress: &mut Progress<Saved>,
    ) -> Result<Ended, PortError> {
        let ports = self.ports;
        if self.manner.is_held(ports).await? {
            return Ok(Ended::OutOfTime);
        }
        let now = ports.clock.now();
        let log = progress.at.logs.get(id).cloned().unwrap_or_default();
        let mut reading = log.next(self.rules.whole, now);
        self.report.webhooks = self.report.webhooks.saturating_add(1);
        let mut seen = BTreeSet::new();
        for read in 1..=PAGES_RUN_MAX {
            let page = match self.page(id, &reading).await? {
                Page::Rows(page) => page,
                Page::Gone => {
                    self.report.vanished = self.report.vanished.saturating_add(1);
                    return Ok(Ended::Whole);
                }
                Page::None => return self.stop(id, log, reading, progress, Ended::Early).await,
            };
            if !self.compare(&page, &log, &mut reading).await? {
                return self.stop(id, log, reading, progress, Ended::OutOfTime).await;
            }
            let before = seen.len();
            seen.extend(page.deliveries.iter().map(|row| hash(&row.id)));
            match reading.note(&page, seen.len() == before) {
                Next::End => return self.end(id, log, &reading, progress).await,
                Next::Page if read.is_multiple_of(PAGES_SAVED) => {
                    let reading = Some(reading.clone());
                    progress.at.logs.insert(id.clone(), Log { reading, ..log.clone() });
                    save(ports, self.manner, progress).await?;
                }
                Next::Page => {}
            }
        }
        self.stop(id, log, reading, progress, Ended::Early).await
    }

    /// Keeps the place of a reading that ends early.
    async fn stop(
        &mut self,
        id: &WebhookId,
        log: Log,
        reading: Reading,
        progress: &mut Progress<Saved>,
        ended: Ended,
    ) -> Result<Ended, PortError> {
        let reading = (reading.is_long || reading.page > 1).then_some(reading);
        progress.at.logs.insert(id.clone(), Log { reading, ..log });
        save(self.ports, self.manner, progress).await.map(|()| ended)
    }

    async fn end(
        &mut self,
        id: &WebhookId,
        mut log: Log,
        reading: &Reading,
        progress: &mut Progress<Saved>,
    ) -> Result<Ended, PortError> {
        let unsure = log.read(reading, self.rules.overlap, self.ports.clock.now());
        self.report.unsure = self.report.unsure.saturating_add(u32::from(unsure));
        progress.at.logs.insert(id.clone(), log);
        // The run saves what is left at its end.
        if reading.is_long {
            save(self.ports, self.manner, progress).await?;
        }
        Ok(Ended::Whole)
    }

    async fn page(&mut self, id: &WebhookId, reading: &Reading) -> Result<Page, PortError> {
        let ports = self.ports;
        let mut last = None;
        for _ in 0..PAGE_TRIES_MAX {
            let usual = ports.limits.call_timeout;
            let Some(within) = self.manner.look.within(ports.clock.now(), usual) else { break };
            let answer = self.webhooks.deliveries(id, reading.page, LIST_PAGE_MAX, within).await;
            let error = match answer {
                Ok(page) => return Ok(Page::Rows(page)),
                Err(error) if error.kind == ApiErrorKind::Missing => return Ok(Page::Gone),
                Err(error) => error,
            };
            let is_passing = is_passing(&error);
            keep_to(ports, &error).await?;
            last = Some(error);
            if !is_passing {
                break;
            }
        }
        self.report.trouble = last.or(self.report.trouble.take());
        Ok(Page::None)
    }

    /// Compares a page with the ledger and announces what it does not hold; `false` if the time
    /// was over before all of it was done.
    async fn compare(
        &mut self,
        page: &DeliveryPage,
        log: &Log,
        reading: &mut Reading,
    ) -> Result<bool, PortError> {
        let wanted = self.judge(page, reading).await?;
        for some in wanted.chunks(AT_ONCE) {
            let (now, usual) = (self.ports.clock.now(), self.ports.limits.call_timeout);
            if self.manner.look.within(now, usual).is_none() {
                return Ok(false);
            }
            let applied = if self.manner.is_dry {
                let planned = |logged: &Logged| Ok(Applied::planned(logged.row.is_some()));
                some.iter().map(planned).collect()
            } else {
                let ports = self.ports;
                let part = |logged: &'_ Logged| -> Part<'_, _> {
                    let (key, id) = (logged.key.clone(), logged.delivery_id.clone());
                    Box::pin(async move { tell(ports, &key, Cause::Replay, Some(&id)).await })
                };
                together(some.iter().map(part).collect()).await
            };
            for (logged, applied) in some.iter().zip(applied) {
                self.count(logged, applied?, log, reading);
            }
        }
        Ok(true)
    }

    /// The jobs of a page that are to be announced.
    async fn judge(
        &mut self,
        page: &DeliveryPage,
        reading: &mut Reading,
    ) -> Result<Vec<Logged>, PortError> {
        let now = self.ports.clock.now();
        let rows = group(&page.deliveries, self.rules.patience, now);
        reading.pending = earlier(reading.pending, rows.pending);
        reading.is_flawed |= page.unreadable > 0;
        let report = &mut *self.report;
        report.pages = report.pages.saturating_add(1);
        report.rows = report.rows.saturating_add(number(page.deliveries.len()));
        report.unreadable = report.unreadable.saturating_add(page.unreadable);
        report.nameless = report.nameless.saturating_add(rows.nameless);
        report.strange = report.strange.saturating_add(rows.strange);
        report.partial |= page.unreadable > 0;
        if rows.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = rows.jobs.keys().cloned().collect();
        let loaded = self.ports.ledger.load_many(&keys).await?;
        let there: BTreeMap<&JobKey, &Entry> =
            loaded.rows.iter().map(|row| (&row.key, row)).collect();
        let remembered_from = self.ports.limits.remembered_from(now);
        let mut wanted = Vec::new();
        for (key, mut logged) in rows.jobs {
            if loaded.unreadable.contains(&key) {
                self.faulty(reading);
                continue;
            }
            let row = there.get(&key).copied();
            let live = row.filter(|row| !row.is_expired(now));
            logged.row = live.map(|row| row.state.name());
            if logged.step != Step::Wait {
                // An event is sent when its job has ended, in whichever way.
                let ended = JobStatus::Completed;
                logged.step = judge(&ended, logged.created_at, row, remembered_from, now);
            }
            (self.hear)(&logged);
            match logged.step {
                Step::Announce => wanted.push(logged),
                Step::Wait => self.report.waiting = self.report.waiting.saturating_add(1),
                Step::Forgotten => self.report.forgotten = self.report.forgotten.saturating_add(1),
                Step::Expect | Step::Known => {}
            }
        }
        Ok(wanted)
    }

    fn count(&mut self, logged: &Logged, applied: Applied, log: &Log, reading: &mut Reading) {
        match applied {
            Applied::Faulty => self.faulty(reading),
            Applied::Meanwhile => {}
            Applied::New | Applied::Late => {
                let is_new = applied == Applied::New;
                let report = &mut *self.report;
                report.announced = report.announced.saturating_add(1);
                report.unknown = report.unknown.saturating_add(u32::from(is_new));
                report.taken = report.taken.saturating_add(u32::from(logged.is_delivered));
                report.oldest = earlier(report.oldest, logged.created_at);
                if log.should_be_known(logged.created_at) {
                    reading.missed = reading.missed.saturating_add(1);
                }
            }
        }
    }

    fn faulty(&mut self, reading: &mut Reading) {
        self.report.faulty = self.report.faulty.saturating_add(1);
        self.report.partial = true;
        reading.is_flawed = true;
    }
}

/// The same for the same row, in each process; one that collides only makes a row look seen, which
/// is compared all the same.
fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
