//! One page of a list against the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::Comparison;
use super::plan::{Found, Step};
use super::saved::{Candidate, Walk};
use crate::announce::{AnnounceOutcome, announce};
use crate::entry::{Cause, Entry};
use crate::job::{JobId, JobKey};
use crate::ports::{ErrorKind, ListPage, Listed, PortError};
use crate::steps::Ports;
use crate::time::Timestamp;
use crate::together::{Part, together};
use crate::update::{Changed, change};

/// Jobs that are announced at once.
pub(crate) const AT_ONCE: usize = 16;

/// What became of a job that was to be announced or expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    /// The ledger did not know it.
    New,
    /// The ledger knew it, and not that it had finished.
    Late,
    /// Somebody else has done it meanwhile.
    Meanwhile,
    /// Its row cannot be read or written.
    Faulty,
}

impl Applied {
    /// What would become of a job.
    pub(crate) const fn planned(is_known: bool) -> Self {
        if is_known { Self::Late } else { Self::New }
    }
}

impl Comparison<'_, '_> {
    /// Compares a page with the ledger and does what is to be done; `false` if the time was over
    /// before all of it was done.
    pub(super) async fn compare(
        &mut self,
        list: &ListPage,
        walk: &mut Walk,
        candidate: Option<Candidate>,
    ) -> Result<bool, PortError> {
        self.note(list, walk);
        let wanted = self.judge(list, walk).await?;
        for some in wanted.chunks(AT_ONCE) {
            let (now, usual) = (self.ports.clock.now(), self.ports.limits.call_timeout);
            if self.manner.look.within(now, usual).is_none() {
                return Ok(false);
            }
            let applied = if self.manner.is_dry {
                some.iter().map(|found| Ok(Applied::planned(found.row.is_some()))).collect()
            } else {
                let ports = self.ports;
                let part = |found| -> Part<'_, _> { Box::pin(apply(ports, found)) };
                together(some.iter().map(part).collect()).await
            };
            for (found, applied) in some.iter().zip(applied) {
                self.count(found, applied?, walk, candidate);
            }
        }
        Ok(true)
    }

    fn note(&mut self, list: &ListPage, walk: &mut Walk) {
        let report = &mut *self.report;
        report.pages = report.pages.saturating_add(1);
        report.listed = report.listed.saturating_add(number(list.jobs.len()));
        report.unreadable = report.unreadable.saturating_add(list.unreadable);
        report.capped = report.capped.saturating_add(u32::from(list.is_capped));
        let undated = list.jobs.iter().filter(|listed| listed.created_at.is_none()).count();
        report.undated = report.undated.saturating_add(number(undated));
        if list.unreadable > 0 {
            walk.is_flawed = true;
            report.partial = true;
        }
        let dates = list.jobs.iter().filter_map(|listed| listed.created_at);
        let newest = dates.filter(|at| walk.window.holds(*at)).max();
        walk.newest = walk.newest.max(newest);
    }

    /// What is to be announced or expected.
    async fn judge(&mut self, list: &ListPage, walk: &mut Walk) -> Result<Vec<Found>, PortError> {
        let jobs: BTreeMap<&JobId, &Listed> =
            list.jobs.iter().map(|listed| (&listed.job_id, listed)).collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let key = |job_id: &&JobId| JobKey::new(self.kind, (*job_id).clone());
        let keys: Vec<_> = jobs.keys().map(key).collect();
        let loaded = self.ports.ledger.load_many(&keys).await?;
        let rows: BTreeMap<&JobId, &Entry> =
            loaded.rows.iter().map(|row| (&row.key.job_id, row)).collect();
        let unreadable: BTreeSet<_> = loaded.unreadable.iter().map(|key| &key.job_id).collect();
        let now = self.ports.clock.now();
        let remembered_from = self.ports.limits.remembered_from(now);
        let mut wanted = Vec::new();
        for (job_id, listed) in jobs {
            if unreadable.contains(job_id) {
                self.faulty(walk);
                continue;
            }
            let row = rows.get(job_id).copied();
            let key = JobKey::new(self.kind, job_id.clone());
            let found = Found::of(key, listed, row, remembered_from, now);
            (self.hear)(&found);
            match found.step {
                Step::Announce | Step::Expect => wanted.push(found),
                Step::Known | Step::Wait => {}
                Step::Forgotten => self.report.forgotten = self.report.forgotten.saturating_add(1),
            }
        }
        Ok(wanted)
    }

    fn count(
        &mut self,
        found: &Found,
        applied: Applied,
        walk: &mut Walk,
        candidate: Option<Candidate>,
    ) {
        let report = &mut *self.report;
        let is_new = applied == Applied::New;
        if is_new && walk.should_be_known(found.created_at, candidate) {
            walk.missed = walk.missed.saturating_add(1);
        }
        match (applied, found.step) {
            (Applied::Faulty, _) => self.faulty(walk),
            (Applied::Meanwhile, _) => {}
            (Applied::New | Applied::Late, Step::Announce) => {
                report.announced = report.announced.saturating_add(1);
                report.unknown = report.unknown.saturating_add(u32::from(is_new));
                report.oldest = earlier(report.oldest, found.created_at);
            }
            (Applied::New | Applied::Late, _) => {
                report.expected = report.expected.saturating_add(1);
            }
        }
    }

    fn faulty(&mut self, walk: &mut Walk) {
        self.report.faulty = self.report.faulty.saturating_add(1);
        self.report.partial = true;
        walk.is_flawed = true;
    }
}

/// The earlier of two instants, of which either may be unknown.
pub(crate) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Announces a job, or expects it.
async fn apply(ports: Ports<'_>, found: &Found) -> Result<Applied, PortError> {
    match found.step {
        Step::Announce => tell(ports, &found.key, Cause::Reconcile, None).await,
        _ => unless_faulty(expect(ports, found).await),
    }
}

/// Announces a job that has finished.
pub(crate) async fn tell(
    ports: Ports<'_>,
    key: &JobKey,
    cause: Cause,
    delivery_id: Option<&str>,
) -> Result<Applied, PortError> {
    let announced = announce(ports.announcing(), key, cause, delivery_id).await;
    unless_faulty(announced.map(|announced| match announced {
        AnnounceOutcome::New => Applied::New,
        AnnounceOutcome::Sent(_) => Applied::Late,
        AnnounceOutcome::Known(_) => Applied::Meanwhile,
    }))
}

/// Trouble with a job's own row is that job's alone.
fn unless_faulty(applied: Result<Applied, PortError>) -> Result<Applied, PortError> {
    match applied {
        Err(error) if matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Invalid) => {
            Ok(Applied::Faulty)
        }
        applied => applied,
    }
}

/// Makes sure that the ledger owes an open job, so that the sweep looks at it in time.
async fn expect(ports: Ports<'_>, found: &Found) -> Result<Applied, PortError> {
    let now = ports.clock.now();
    let read = ports.ledger.load(&found.key).await?;
    let changed = change(ports.ledger, read, now, |row| match row {
        Some(row) if !row.is_expired(now) => None,
        _ => {
            let key = found.key.clone();
            let row = Entry::expected(key, None, Cause::Reconcile, now, ports.limits);
            Some(Entry { job_created_at: found.created_at, ..row })
        }
    })
    .await?;
    Ok(match changed {
        Changed::Written(_) => Applied::New,
        Changed::Left(_) => Applied::Meanwhile,
    })
}
