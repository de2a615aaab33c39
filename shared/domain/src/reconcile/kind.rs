//! The walk over one kind's list.

use super::saved::{After, Saved, Walk, row_name};
use super::window::{Next, Pages, Window};
use super::{Hear, Manner, Reconciled, Rules};
use crate::adopt::{is_passing, keep_to};
use crate::job::Kind;
use crate::limits::{LIST_PAGE_MAX, LIST_PAGES_MAX};
use crate::ports::{ListPage, ListQuery, PortError};
use crate::progress::{self, Progress};
use crate::steps::Ports;
use crate::time::{Timestamp, before};

/// Most calls for one page of a list.
const PAGE_TRIES_MAX: u32 = 3;
/// Most windows that are halved in one run; the next one goes on.
const HALVES_MAX: u32 = 256;
/// Pages after which a walk saves its place: a process that is killed loses no more.
const PAGES_SAVED: u32 = 10;

/// The comparison of one kind's list with the ledger.
pub(super) struct Comparison<'a, 'h> {
    pub(super) ports: Ports<'a>,
    pub(super) rules: &'a Rules,
    pub(super) manner: Manner,
    pub(super) kind: Kind,
    pub(super) report: &'a mut Reconciled,
    pub(super) hear: &'a mut Hear<'h>,
}

/// How a walk over one window ended.
enum Ended {
    /// At the list's end.
    Done,
    /// There too, and the window is to be walked once more.
    Again(Walk),
    /// The window is too long.
    Halves(Window, Window),
    /// Early, and its place is saved.
    Early,
}

impl Comparison<'_, '_> {
    /// Walks the list, if its time has come; when it was last walked to its end.
    pub(super) async fn run(&mut self) -> Result<Option<Timestamp>, PortError> {
        let name = row_name(self.kind);
        let mut progress = progress::load::<Saved>(self.ports.ledger, &name).await?;
        let now = self.ports.clock.now();
        let mut left = self.walks(&progress.at, now);
        let (mut halved, pages_before) = (0, self.report.pages);
        while let Some(walk) = left.pop() {
            let read = self.report.pages.saturating_sub(pages_before);
            if halved >= HALVES_MAX || read >= LIST_PAGES_MAX {
                self.report.partial = true;
                break;
            }
            match self.walk(walk, &mut progress).await? {
                Ended::Done => {}
                Ended::Again(walk) => left.push(walk),
                Ended::Halves(older, newer) => {
                    halved += 1;
                    let is_last = left.is_empty();
                    left.push(Walk::over(newer, is_last));
                    left.push(Walk::over(older, false));
                }
                Ended::Early => break,
            }
        }
        Ok(progress.at.walked_at)
    }

    /// What is to be walked, the last first; nothing before the time of the next walk.
    fn walks(&self, saved: &Saved, now: Timestamp) -> Vec<Walk> {
        let remembered = self.ports.limits.remembered_from(now);
        let begin = before(now, self.rules.history).max(remembered);
        let reached = saved.watermark.filter(|_| !self.rules.anew);
        let from = reached.map_or(begin, |watermark| watermark.max(remembered));
        let to = before(now, self.rules.threshold);
        let rest = |from| {
            let window = Window { from, to };
            (from <= to).then(|| Walk::over(window, true))
        };
        match &saved.walk {
            _ if !saved.is_due(self.rules.every, now) => Vec::new(),
            Some(walk) if !self.manner.is_dry && !self.rules.anew => {
                let rest = rest(walk.window.to).filter(|_| !walk.is_last);
                rest.into_iter().chain([walk.clone()]).collect()
            }
            _ => rest(from).into_iter().collect(),
        }
    }

    /// Walks the list over one window.
    async fn walk(
        &mut self,
        mut walk: Walk,
        progress: &mut Progress<Saved>,
    ) -> Result<Ended, PortError> {
        let mut pages = Pages::new(walk.window);
        loop {
            let compared = match self.page(&walk).await? {
                None => None,
                Some(list) => {
                    let candidate = progress.at.candidate;
                    self.compare(&list, &mut walk, candidate).await?.then_some(list)
                }
            };
            let Some(list) = compared else {
                self.report.partial = true;
                // Nothing is gained by going on where nothing was done.
                let has_begun = walk.page > 1 || walk.earlier > 0;
                progress.at.tried_at = Some(self.ports.clock.now());
                progress.at.walk = has_begun.then_some(walk);
                self.save(progress).await?;
                return Ok(Ended::Early);
            };
            walk.is_long |= walk.page > 1 && !list.is_empty();
            let next = pages.note(walk.page, &list);
            match next {
                Next::Page => {
                    walk.page = walk.page.saturating_add(1);
                    if walk.page.is_multiple_of(PAGES_SAVED) {
                        progress.at.walk = Some(walk.clone());
                        self.save(progress).await?;
                    }
                }
                Next::Halves => {
                    progress.at.walk = None;
                    let Some((older, newer)) = walk.window.halves() else { return Ok(Ended::Done) };
                    return Ok(Ended::Halves(older, newer));
                }
                Next::End { doubtful } => {
                    walk.is_flawed |= doubtful;
                    return self.end(&walk, progress).await;
                }
            }
        }
    }

    async fn end(
        &mut self,
        walk: &Walk,
        progress: &mut Progress<Saved>,
    ) -> Result<Ended, PortError> {
        let now = self.ports.clock.now();
        let outcome = progress.at.walked(walk, self.rules.overlap, now);
        if self.manner.is_dry {
            return Ok(Ended::Done);
        }
        self.save(progress).await?;
        Ok(match outcome {
            After::Again(walk) => Ended::Again(walk),
            After::Done { unsure } => {
                self.report.unsure = self.report.unsure.saturating_add(u32::from(unsure));
                Ended::Done
            }
        })
    }

    async fn save(&self, progress: &mut Progress<Saved>) -> Result<(), PortError> {
        if self.manner.is_dry {
            return Ok(());
        }
        let name = row_name(self.kind);
        progress::save(self.ports.ledger, &name, progress, Saved::merged).await
    }

    /// Reads a page; `None`, and reported, if it cannot be had. One that came to grief on its way
    /// is asked for again at once, since a long list would hardly ever be read whole otherwise.
    async fn page(&mut self, walk: &Walk) -> Result<Option<ListPage>, PortError> {
        let ports = self.ports;
        let query = ListQuery {
            page: walk.page,
            page_size: LIST_PAGE_MAX,
            created_from: Some(walk.window.from),
            created_to: Some(walk.window.to),
        };
        let mut trouble = None;
        for _ in 0..PAGE_TRIES_MAX {
            let usual = ports.limits.call_timeout;
            let Some(within) = self.manner.look.within(ports.clock.now(), usual) else { break };
            let error = match ports.jobs.list(self.kind, &query, within).await {
                Ok(list) => return Ok(Some(list)),
                Err(error) => error,
            };
            let is_passing = is_passing(&error);
            keep_to(ports, &error).await?;
            trouble = Some(error);
            if !is_passing {
                break;
            }
        }
        self.report.trouble = trouble.or(self.report.trouble.take());
        Ok(None)
    }
}
