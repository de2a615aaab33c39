//! The platform without its network: one account, its jobs, webhooks and books.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::content::Corpus;
use crate::counters::Counters;
use crate::deliveries::{Attempt, AttemptId, PendingAttempt};
use crate::dice::{Dice, Key};
use crate::fate::Rules;
use crate::faults::Faults;
use crate::job::{Job, Kind, Progress, Work};
use crate::moment::Moment;
use crate::statistics::Statistics;
use crate::webhooks::Webhook;

/// Most GETs whose times a job's book lists; later ones are counted.
const GETS_LISTED_MAX: usize = 64;

/// A simulated platform with one account.
///
/// All methods take the moment of the call; earlier moments than the latest seen count as the
/// latest. The same seed and the same calls at the same moments give the same books.
#[derive(Debug)]
pub struct Platform {
    pub(crate) config: Config,
    pub(crate) corpus: Corpus,
    pub(crate) dice: Dice,
    pub(crate) rules: Arc<Rules>,
    pub(crate) now: Moment,
    pub(crate) jobs: Vec<Job>,
    pub(crate) by_id: BTreeMap<Box<str>, u32>,
    pub(crate) by_kind: BTreeMap<Kind, Vec<u32>>,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) pending: BTreeMap<AttemptId, PendingAttempt>,
    pub(crate) outbox: Vec<Attempt>,
    pub(crate) attempts_made: u64,
    pub(crate) slots_in_use: u32,
    pub(crate) counters: Counters,
    pub(crate) statistics: Statistics,
    submissions: BTreeMap<Key, u32>,
    requests: BTreeMap<Key, u32>,
    agenda: BTreeMap<(Moment, u64), Todo>,
    agenda_entries: u64,
}

/// Something that happens by itself at a certain moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Todo {
    /// The job reaches a terminal status.
    End(u32),
    /// Nothing of the job changes any more.
    Settle(u32),
    /// The job's slot is taken back.
    ExpireLease(u32),
    /// The attempt is due.
    Send(AttemptId),
}

impl Platform {
    /// Makes a platform; `corpus` holds what the configured folder contains.
    pub fn new(config: Config, corpus: Corpus) -> Self {
        let dice = Dice::new(config.seed);
        Self {
            rules: Arc::new(rules(&config, dice)),
            config,
            corpus,
            dice,
            now: Moment::default(),
            jobs: Vec::new(),
            by_id: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            webhooks: Vec::new(),
            pending: BTreeMap::new(),
            outbox: Vec::new(),
            attempts_made: 0,
            slots_in_use: 0,
            counters: Counters::default(),
            statistics: Statistics::default(),
            submissions: BTreeMap::new(),
            requests: BTreeMap::new(),
            agenda: BTreeMap::new(),
            agenda_entries: 0,
        }
    }

    /// Returns the faults in force.
    pub fn faults(&self) -> &Faults {
        &self.config.faults
    }

    /// Switches the faults; jobs accepted before keep their fate.
    pub fn set_faults(&mut self, faults: Faults) {
        self.config.faults = faults;
        self.rules = Arc::new(rules(&self.config, self.dice));
    }

    /// Moves the platform to `now` and takes the webhook attempts that have become due: whoever
    /// takes them sends them, as nobody else will.
    #[must_use = "attempts that are not sent stay pending for ever"]
    pub fn advance(&mut self, now: Moment) -> Vec<Attempt> {
        self.roll(now);
        std::mem::take(&mut self.outbox)
    }

    /// Returns when something will next happen by itself.
    pub fn next_due(&self) -> Option<Moment> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets everything happen that is due by `now`; attempts that become due are left to whoever
    /// [advances](Self::advance) next.
    pub fn roll(&mut self, now: Moment) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), todo) = entry.remove_entry();
            self.now = self.now.max(at);
            match todo {
                Todo::End(job) => self.end(job),
                Todo::Settle(job) => self.settle(job),
                Todo::ExpireLease(job) => self.release_slot(job),
                Todo::Send(attempt) => {
                    let due = self.due_attempt(attempt);
                    self.outbox.extend(due);
                }
            }
        }
        self.now = self.now.max(now);
    }

    pub(crate) fn schedule(&mut self, at: Moment, todo: Todo) {
        if at < Moment::NEVER {
            self.agenda.insert((at, self.agenda_entries), todo);
            self.agenda_entries += 1;
        }
    }

    pub(crate) fn job(&self, ordinal: u32) -> Option<&Job> {
        self.jobs.get(usize::try_from(ordinal).ok()?)
    }

    pub(crate) fn job_mut(&mut self, ordinal: u32) -> Option<&mut Job> {
        self.jobs.get_mut(usize::try_from(ordinal).ok()?)
    }

    /// Finds a job of a kind by its id, in either case.
    pub(crate) fn find(&self, kind: Kind, id: &str) -> Option<&Job> {
        let ordinal = self.by_id.get(id.to_ascii_lowercase().as_str())?;
        self.job(*ordinal).filter(|job| job.kind() == kind)
    }

    /// Numbers a request among its equals, so that a repeated one draws new faults.
    pub(crate) fn request_key(&mut self, request: Key) -> Key {
        let count = self.requests.entry(request).or_default();
        *count += 1;
        request.child(u64::from(*count))
    }

    /// Numbers a submission among its equals, so that a repeated one draws a new fate.
    pub(crate) fn submission_key(&mut self, submission: Key) -> Key {
        let count = self.submissions.entry(submission).or_default();
        *count += 1;
        submission.child(u64::from(*count))
    }

    /// Cancels a batch or crawl; `None` if its status is terminal already.
    pub(crate) fn cancel(&mut self, ordinal: u32) -> Option<u32> {
        let now = self.now;
        let job = self.job_mut(ordinal)?;
        if job.status(now).is_terminal() {
            return None;
        }
        let (key, rules) = (job.key, Arc::clone(&job.rules));
        if let Work::Batch { children, .. } | Work::Crawl { children, .. } = &mut job.work {
            children.cancel(key, &rules, now);
        }
        job.cancelled_at = Some(now);
        let settles = job.settled_at();
        let in_flight = job.tally(now).pending;
        self.schedule(now, Todo::End(ordinal));
        self.schedule(settles, Todo::Settle(ordinal));
        Some(in_flight)
    }

    /// Notes that a job was read.
    pub(crate) fn note_get(&mut self, ordinal: u32) {
        let now = self.now;
        let Some(job) = self.job_mut(ordinal) else { return };
        if job.gets.len() < GETS_LISTED_MAX {
            job.gets.push(now);
        } else {
            job.gets_unlisted += 1;
        }
    }

    fn end(&mut self, ordinal: u32) {
        let now = self.now;
        let Some(job) = self.job_mut(ordinal) else { return };
        // A cancellation moves the end forward; the entry for the old end comes later.
        if job.progress >= Progress::Ended || now < job.ends_at() {
            return;
        }
        job.progress = Progress::Ended;
        self.release_slot(ordinal);
        self.announce(ordinal);
    }

    fn settle(&mut self, ordinal: u32) {
        let now = self.now;
        let Some(job) = self.job_mut(ordinal) else { return };
        if job.progress >= Progress::Settled || now < job.settled_at() {
            return;
        }
        job.progress = Progress::Settled;
        let tally = job.tally(now);
        job.final_tally = Some(tally);
        let took = job.ends_at().since(job.created_at);
        self.statistics.add(now, tally.completed, tally.failed, took);
    }

    fn release_slot(&mut self, ordinal: u32) {
        let Some(job) = self.job_mut(ordinal) else { return };
        if std::mem::take(&mut job.holds_slot) {
            self.slots_in_use = self.slots_in_use.saturating_sub(1);
        }
    }

    /// Returns how long an accepted job is missing from the lists.
    pub(crate) fn list_lag(&self) -> Duration {
        self.config.scaled(self.config.list_lag_secs)
    }
}

fn rules(config: &Config, dice: Dice) -> Rules {
    Rules {
        dice,
        faults: config.faults.jobs.clone(),
        median: config.scaled(config.job_median_secs),
        sigma: config.job_sigma,
        settle: config.scaled(config.settle_secs),
        result_bytes: config.result_bytes,
    }
}
