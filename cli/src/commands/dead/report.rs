//! What is printed: one row for each of the dead, and a summary.

use std::collections::BTreeMap;
use std::fmt;

use domain::entry::{DeadReason, Entry};
use domain::job::{JobId, Kind};
use domain::ports::DeadLetter;
use domain::redrive::Left;
use domain::time::Timestamp;
use serde::Serialize;

use super::choice::dead_since;
use super::decide::Order;
use crate::commands::jobs::{reason, reference_of, result_key};
use crate::exit::Exit;

/// A dead job of the list.
#[derive(Debug, Serialize)]
pub(super) struct DeadJob<'a> {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: &'a JobId,
    reason: Option<&'static str>,
    /// Why it was dead before it was discarded.
    died_of: Option<DeadReason>,
    #[serde(rename = "ref")]
    reference: Option<&'a str>,
    url: Option<&'a str>,
    /// The platform's code, if it said something.
    code: Option<&'a str>,
    dead_since: Timestamp,
    generation: u32,
    result: Option<&'a str>,
}

impl<'a> DeadJob<'a> {
    pub(super) fn of(entry: &'a Entry, url: Option<&'a str>) -> Self {
        let code = match &entry.state {
            domain::entry::State::Dead { error: Some(error), .. } => Some(error.code.as_str()),
            _ => None,
        };
        Self {
            version: 1,
            r#type: "dead_job",
            kind: entry.key.kind,
            job_id: &entry.key.job_id,
            reason: reason(&entry.state),
            died_of: entry.died_of(),
            reference: reference_of(entry),
            url,
            code,
            dead_since: dead_since(entry),
            generation: entry.generation,
            result: result_key(&entry.state),
        }
    }
}

impl fmt::Display for DeadJob<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, job_id, dead_since, .. } = self;
        let text = |text: Option<&str>| text.unwrap_or("-").escape_debug().to_string();
        let [reason, reference, code, url] =
            [self.reason, self.reference, self.code, self.url].map(text);
        write!(out, "{kind}\t{job_id}\t{reason}\t{reference}\t{dead_since:.0}\t{code}\t{url}")
    }
}

/// A letter, of the list or by itself.
#[derive(Debug, Serialize)]
pub(super) struct Letter<'a> {
    version: u32,
    r#type: &'static str,
    #[serde(rename = "letter_id")]
    id: &'a str,
    /// Of the task that it is; null if it is none.
    kind: Option<Kind>,
    job_id: Option<&'a JobId>,
    sent_at: Option<Timestamp>,
    bytes: usize,
    /// The body's beginning, where the letter was asked for by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
}

impl<'a> Letter<'a> {
    pub(super) fn of(letter: &'a DeadLetter) -> Self {
        let key = letter.task.as_ref().map(|task| &task.key);
        Self {
            version: 1,
            r#type: "letter",
            id: &letter.id,
            kind: key.map(|key| key.kind),
            job_id: key.map(|key| &key.job_id),
            sent_at: letter.sent_at,
            bytes: letter.bytes,
            excerpt: None,
        }
    }

    pub(super) fn whole(letter: &'a DeadLetter) -> Self {
        Self { excerpt: Some(letter.excerpt.expose()), ..Self::of(letter) }
    }
}

impl fmt::Display for Letter<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, bytes, .. } = self;
        write!(out, "letter\t{}\t", id.escape_debug())?;
        match (self.kind, self.job_id) {
            (Some(kind), Some(job_id)) => write!(out, "{kind} {job_id}")?,
            _ => write!(out, "no task, {bytes} bytes")?,
        }
        match self.sent_at {
            Some(sent_at) => write!(out, "\t{sent_at:.0}")?,
            None => out.write_str("\t-")?,
        }
        match self.excerpt {
            Some(excerpt) => write!(out, "\t{}", excerpt.escape_debug()),
            None => Ok(()),
        }
    }
}

/// What became of one of the dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Opened; its task is sent, or will be by the sweep.
    Redriven,
    /// Dead as `discarded`.
    Discarded,
    /// A letter's task went back to the queue.
    SentBack,
    /// A letter is gone.
    Removed,
    /// It would have been done.
    Planned,
    /// It was open already.
    Open,
    /// It was discarded already.
    AlreadyDiscarded,
    /// It is stored, or replaced.
    NotDead,
    /// Somebody opened it meanwhile, and it died again.
    Moved,
    /// Another retry may be paid twice.
    NeedsPayAgain,
    /// The letter is no task, and would only come back.
    NoTask,
    /// Nobody knows it.
    Unknown,
    /// Several jobs have the name.
    Several,
    /// Its row or letter is in trouble.
    Failed,
    /// The command was stopped before.
    NotLookedAt,
}

impl Outcome {
    /// Why a row was left.
    pub(super) const fn of_left(left: Left) -> Self {
        match left {
            Left::Absent => Self::Unknown,
            Left::Open(_) => Self::Open,
            Left::Settled(_) => Self::NotDead,
            Left::Discarded => Self::AlreadyDiscarded,
            Left::Moved => Self::Moved,
            Left::MayPayAgain => Self::NeedsPayAgain,
        }
    }

    /// The name in tables and output.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Redriven => "redriven",
            Self::Discarded => "discarded",
            Self::SentBack => "sent_back",
            Self::Removed => "removed",
            Self::Planned => "planned",
            Self::Open => "open",
            Self::AlreadyDiscarded => "already_discarded",
            Self::NotDead => "not_dead",
            Self::Moved => "moved",
            Self::NeedsPayAgain => "needs_pay_again",
            Self::NoTask => "no_task",
            Self::Unknown => "unknown",
            Self::Several => "several",
            Self::Failed => "failed",
            Self::NotLookedAt => "not_looked_at",
        }
    }

    /// How the process ends for it; what was wished and holds already is well.
    const fn exit(self) -> Exit {
        match self {
            Self::Redriven
            | Self::Discarded
            | Self::SentBack
            | Self::Removed
            | Self::Planned
            | Self::Open
            | Self::AlreadyDiscarded => Exit::Ok,
            Self::NotDead | Self::NeedsPayAgain | Self::NoTask | Self::Several => Exit::Usage,
            Self::Unknown => Exit::NotFound,
            Self::Failed => Exit::Data,
            Self::Moved | Self::NotLookedAt => Exit::TryAgain,
        }
    }
}

/// Exit codes by what weighs most.
const BY_WEIGHT: [Exit; 4] = [Exit::TryAgain, Exit::Data, Exit::NotFound, Exit::Usage];

/// One row of a decision.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) version: u32,
    pub(super) r#type: &'static str,
    pub(super) order: Order,
    pub(super) kind: Option<Kind>,
    pub(super) job_id: Option<JobId>,
    pub(super) letter_id: Option<String>,
    /// As it was named, where it is not known.
    pub(super) name: Option<String>,
    pub(super) outcome: Outcome,
    /// What it died of.
    pub(super) reason: Option<DeadReason>,
    /// The generation that was opened.
    pub(super) generation: Option<u32>,
}

impl Row {
    pub(super) fn new(order: Order, outcome: Outcome) -> Self {
        Self {
            version: 1,
            r#type: "decided",
            order,
            kind: None,
            job_id: None,
            letter_id: None,
            name: None,
            outcome,
            reason: None,
            generation: None,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome.as_str();
        match (self.kind, &self.job_id, &self.letter_id) {
            (_, _, Some(letter)) => write!(out, "letter\t{}\t{outcome}", letter.escape_debug())?,
            (Some(kind), Some(job_id), None) => write!(out, "{kind}\t{job_id}\t{outcome}")?,
            _ => {
                let name = self.name.as_deref().unwrap_or("-").escape_debug();
                write!(out, "-\t{name}\t{outcome}")?;
            }
        }
        match (self.reason, self.generation) {
            (Some(reason), Some(generation)) => write!(out, "\t{reason}\tgeneration {generation}"),
            (Some(reason), None) => write!(out, "\t{reason}"),
            _ => Ok(()),
        }
    }
}

/// What a command did.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    version: u32,
    r#type: &'static str,
    order: Order,
    dry_run: bool,
    outcomes: BTreeMap<&'static str, u64>,
    /// Whether the command was stopped before its end.
    pub(super) interrupted: bool,
    /// Whether there may be more than the command was to decide about.
    pub(super) more: bool,
    #[serde(skip)]
    exits: Vec<Exit>,
}

impl Summary {
    pub(super) fn new(order: Order, dry_run: bool) -> Self {
        Self {
            version: 1,
            r#type: "summary",
            order,
            dry_run,
            outcomes: BTreeMap::new(),
            interrupted: false,
            more: false,
            exits: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, outcome: Outcome) {
        *self.outcomes.entry(outcome.as_str()).or_default() += 1;
        if !self.exits.contains(&outcome.exit()) {
            self.exits.push(outcome.exit());
        }
    }

    /// How many had this outcome.
    pub(super) fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(outcome.as_str()).copied().unwrap_or_default()
    }

    pub(super) fn exit(&self) -> Exit {
        if self.interrupted {
            return Exit::TryAgain;
        }
        BY_WEIGHT.into_iter().find(|exit| self.exits.contains(exit)).unwrap_or(Exit::Ok)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.outcomes.is_empty() {
            return out.write_str("nothing was chosen");
        }
        for (position, (outcome, count)) in self.outcomes.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(out, "{comma}{count} {}", outcome.replace('_', " "))?;
        }
        Ok(())
    }
}
