//! Transitions: what an event makes of a row. Pure, and the only place where a row changes.

use std::time::Duration;

use super::{
    Announced, Announcement, Cause, Counters, DeadReason, Entry, Link, Seen, State, StateName,
    Transition,
};
use crate::job::JobKey;
use crate::limits::{HISTORY_MAX, Limits, REOPENS_MAX};
use crate::post::Post;
use crate::run::Run;
use crate::time::{Date, Timestamp, after};

impl Entry {
    /// A new row for a job that we submitted or saw open.
    pub fn expected(
        key: JobKey,
        link: Option<Link>,
        cause: Cause,
        now: Timestamp,
        limits: &Limits,
    ) -> Self {
        let mut entry = Self::blank(key, State::Expected, now);
        entry.link = link;
        entry.due_at = Some(after(now, limits.announce_grace));
        entry.history.push(Transition {
            at: now,
            from: None,
            to: StateName::Expected,
            cause,
            delivery_id: None,
            note: None,
        });
        entry
    }

    pub(super) fn blank(key: JobKey, state: State, now: Timestamp) -> Self {
        Self {
            key,
            state,
            generation: 0,
            version: 1,
            first_seen: now,
            job_created_at: None,
            dt: None,
            not_before: None,
            due_at: None,
            enqueued_at: None,
            expires_at: None,
            link: None,
            counters: Counters::default(),
            token: None,
            run: None,
            follow_up: None,
            discarded: None,
            history: Vec::new(),
        }
    }

    /// The row as it was read, for the condition of a write.
    pub const fn seen(&self) -> Seen {
        Seen { state: self.state.name(), generation: self.generation, version: self.version }
    }

    /// Whether the row counts as absent although it still exists.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now.as_second())
    }

    /// Decides what an announcement does to the row as it is.
    ///
    /// Absent and expired rows are written anew; `expected` becomes `received`; a row that was
    /// put off is pulled to now; one whose task may never have been sent gets another; a dead one
    /// that the platform was thought to have forgotten is opened again, a few times.
    pub fn announce(
        existing: Option<&Self>,
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Announced {
        let Some(entry) = existing.filter(|entry| !entry.is_expired(now)) else {
            return Announced::Write(Box::new(Self::announced(key, announcement, now, limits)));
        };
        if entry.token.as_deref() == Some(&announcement.token) {
            return Announced::SendAgain;
        }
        let mut next = match &entry.state {
            State::Expected => entry.moved(State::Received),
            State::Received if entry.wants_task(now, limits) => entry.moved(State::Received),
            State::Dead { reason, .. } if entry.is_reopened_by_word(*reason) => {
                let mut next = entry.moved(State::Received);
                next.generation += 1;
                next.counters =
                    Counters { reopens: entry.counters.reopens + 1, ..Counters::default() };
                next.expires_at = None;
                // A job that did not settle within its age gets a fresh age.
                next.first_seen = now;
                next
            }
            _ => return Announced::Known,
        };
        next.mark_enqueued(Some(announcement), now, limits);
        if entry.state.name() != StateName::Received {
            next.record(
                Some(entry.state.name()),
                announcement.cause,
                announcement.delivery_id.clone(),
                now,
            );
        }
        Announced::Write(Box::new(next))
    }

    /// Whether word that the job has finished says something that the row does not know: nobody has
    /// announced it yet, or it was thought gone or stuck, and not for the last time.
    pub fn is_moved_by_word(&self) -> bool {
        match &self.state {
            State::Expected => true,
            State::Dead { reason, .. } => self.is_reopened_by_word(*reason),
            _ => false,
        }
    }

    fn is_reopened_by_word(&self, reason: DeadReason) -> bool {
        reason.reopens() && self.counters.reopens < REOPENS_MAX
    }

    /// The row of a job that was announced and that nobody knew.
    pub fn announced(
        key: &JobKey,
        announcement: &Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> Self {
        let mut entry = Self::blank(key.clone(), State::Received, now);
        entry.mark_enqueued(Some(announcement), now, limits);
        entry.record(None, announcement.cause, announcement.delivery_id.clone(), now);
        entry
    }

    /// Whether an announced row lacks a task that a worker could take now: none was sent, as
    /// after it was put off, or the last one should have arrived long ago.
    fn wants_task(&self, now: Timestamp, limits: &Limits) -> bool {
        self.enqueued_at.is_none_or(|sent| after(sent, limits.enqueue_grace) <= now)
    }

    pub(super) fn mark_enqueued(
        &mut self,
        announcement: Option<&Announcement>,
        now: Timestamp,
        limits: &Limits,
    ) {
        self.enqueued_at = Some(now);
        self.not_before = Some(now);
        self.due_at = Some(after(now, limits.enqueue_grace));
        self.token = announcement.map(|announcement| announcement.token.clone());
    }

    /// The row after its task could not be sent: the next announcement sends one at once.
    #[must_use]
    pub fn unsent(&self) -> Self {
        let mut next = self.moved(self.state.clone());
        next.enqueued_at = None;
        next.token = None;
        next
    }

    /// The row with its submission and lineage; `None` if it has a link already.
    #[must_use]
    pub fn linked(&self, link: &Link) -> Option<Self> {
        if self.link.is_some() {
            return None;
        }
        let mut next = self.moved(self.state.clone());
        next.link = Some(link.clone());
        Some(next)
    }

    /// The row with the date that its result will carry; `None` if it has one already.
    #[must_use]
    pub fn dated(&self, dt: Date, job_created_at: Option<Timestamp>) -> Option<Self> {
        if self.dt.is_some() {
            return None;
        }
        let mut next = self.moved(self.state.clone());
        next.dt = Some(dt);
        next.job_created_at = job_created_at.or(self.job_created_at);
        Some(next)
    }

    /// The row put off until `not_before`; the sweep looks a grace later.
    #[must_use]
    pub fn put_off(&self, not_before: Timestamp, counters: Counters, limits: &Limits) -> Self {
        let mut next = self.moved(self.state.clone());
        next.not_before = Some(not_before);
        next.due_at = Some(after(not_before, limits.enqueue_grace));
        next.counters = counters;
        next.enqueued_at = None;
        next.token = None;
        next
    }

    /// The row after the sweep sent its task once more; the next sweep is spaced out.
    #[must_use]
    pub fn swept(&self, now: Timestamp, limits: &Limits) -> Self {
        let mut next = self.moved(self.state.clone());
        next.counters.sweeps = self.counters.sweeps.saturating_add(1);
        next.enqueued_at = Some(now);
        next.token = None;
        next.due_at = Some(after(now, sweep_spacing(next.counters.sweeps, limits)));
        next
    }

    /// The row with the progress of its run.
    #[must_use]
    pub fn with_run(&self, run: Option<Run>) -> Self {
        let mut next = self.moved(self.state.clone());
        next.run = run;
        next
    }

    /// The row before (or instead of) a paid POST.
    #[must_use]
    pub fn resubmitting(&self, post: Post, due_at: Timestamp, now: Timestamp) -> Self {
        let mut next = self.moved(State::Resubmitting { post });
        next.not_before = None;
        next.due_at = Some(due_at);
        next.token = None;
        if self.state.name() != StateName::Resubmitting {
            next.record(Some(self.state.name()), Cause::Work, None, now);
        }
        next
    }

    /// The row back from `resubmitting`, after the platform refused the POST for now.
    #[must_use]
    pub fn back_to_received(&self, not_before: Timestamp, now: Timestamp, limits: &Limits) -> Self {
        let put_offs = self.counters.put_offs.saturating_add(1);
        // The job was looked at, so that no sweep before counts any more.
        let counters = Counters { put_offs, sweeps: 0, ..self.counters.clone() };
        let mut next = self.put_off(not_before, counters, limits);
        next.state = State::Received;
        next.record(Some(self.state.name()), Cause::Work, None, now);
        next
    }

    /// The row in a terminal state.
    #[must_use]
    pub fn settled(&self, state: State, cause: Cause, now: Timestamp, limits: &Limits) -> Self {
        let mut next = self.moved(state);
        next.not_before = None;
        next.due_at = None;
        next.enqueued_at = None;
        next.token = None;
        next.run = None;
        next.expires_at = Some(after(now, limits.retention).as_second());
        next.record(Some(self.state.name()), cause, None, now);
        next
    }

    /// The same row, one version on, in another state.
    pub(super) fn moved(&self, state: State) -> Self {
        Self { state, version: self.version.saturating_add(1), ..self.clone() }
    }

    pub(super) fn record(
        &mut self,
        from: Option<StateName>,
        cause: Cause,
        delivery_id: Option<String>,
        now: Timestamp,
    ) {
        let to = self.state.name();
        self.push(Transition { at: now, from, to, cause, delivery_id, note: None });
    }

    /// Adds a line to the history, of which the oldest go.
    pub(super) fn push(&mut self, line: Transition) {
        if self.history.len() >= HISTORY_MAX {
            self.history.drain(..=self.history.len() - HISTORY_MAX);
        }
        self.history.push(line);
    }
}

/// Pause before the next sweep of an entry that was swept `sweeps` times: doubling, capped.
fn sweep_spacing(sweeps: u32, limits: &Limits) -> Duration {
    let doublings = sweeps.saturating_sub(1).min(20);
    limits.sweep_spacing.saturating_mul(1 << doublings).min(limits.sweep_spacing_cap)
}
