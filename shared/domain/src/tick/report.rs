//! What a tick did.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::Part;
use crate::poll::BulkPolled;
use crate::ports::PortError;
use crate::reconcile::Reconciled;
use crate::replay::Replayed;
use crate::retire::Retired;
use crate::subscriptions::Subscriptions;
use crate::sweep::Swept;
use crate::time::{Timestamp, between};

/// How a tick ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// With its last part.
    #[default]
    Whole,
    /// The time was over; the next tick goes on.
    OutOfTime,
    /// Another one is at work.
    Elsewhere,
    /// The account is paused: nothing can be asked.
    Paused,
}

impl Ran {
    /// The end in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::OutOfTime => "out_of_time",
            Self::Elsewhere => "elsewhere",
            Self::Paused => "paused",
        }
    }
}

/// What a part did, also where an error ended it.
#[derive(Debug, Default)]
pub struct Outcome<T> {
    /// What it did.
    pub did: T,
    /// What ended it.
    pub error: Option<PortError>,
}

/// What a tick did; of a part that had no turn nothing is told.
#[derive(Debug)]
pub struct TickReport {
    /// How it ended.
    pub ran: Ran,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// When the account's pause ends, if it is paused.
    pub paused_until: Option<Timestamp>,
    /// The part that was cut off by the end of the time.
    pub cut: Option<Part>,
    /// The recovery of lost answers.
    pub recovered: Option<Result<Swept, PortError>>,
    /// Bulk polling.
    pub polled: Option<Result<BulkPolled, PortError>>,
    /// The sweep.
    pub swept: Option<Result<Swept, PortError>>,
    /// Replay.
    pub replayed: Option<Outcome<Replayed>>,
    /// Reconcile.
    pub reconciled: Option<Outcome<Reconciled>>,
    /// What is taken away.
    pub retired: Option<Result<Retired, PortError>>,
    /// Why the claim could not be given back; it ends by itself.
    pub claim: Option<PortError>,
}

impl Default for TickReport {
    fn default() -> Self {
        let began = Timestamp::UNIX_EPOCH;
        Self {
            ran: Ran::Whole,
            began,
            ended: began,
            paused_until: None,
            cut: None,
            recovered: None,
            polled: None,
            swept: None,
            replayed: None,
            reconciled: None,
            retired: None,
            claim: None,
        }
    }
}

/// A report as one line: what a person and their programs want to know of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How it ended.
    pub ran: Ran,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Jobs that had finished without the ledger's knowing it, found by delivery logs and job
    /// lists: the gap.
    pub gap: u64,
    /// Those of them that the ledger did not know at all.
    pub gap_unknown: u64,
    /// How old the oldest of them was, in seconds; 0 without a gap.
    pub gap_age_s: u64,
    /// How long ago the least recently walked job list was walked to its end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_age_s: Option<u64>,
    /// How long ago the delivery logs were read to their end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_age_s: Option<u64>,
    /// Events that are not delivered to the receiver, and why; none that was not looked at.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subscriptions: BTreeMap<&'static str, &'static str>,
    /// What was counted, by part; zeros are left out.
    pub counted: BTreeMap<&'static str, u64>,
    /// Parts that ended early, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub troubles: BTreeMap<&'static str, String>,
}

impl TickReport {
    /// How long it took.
    pub fn took(&self) -> Duration {
        between(self.began, self.ended)
    }

    fn replay(&self) -> Option<&Replayed> {
        self.replayed.as_ref().map(|outcome| &outcome.did)
    }

    fn reconcile(&self) -> Option<&Reconciled> {
        self.reconciled.as_ref().map(|outcome| &outcome.did)
    }

    /// How long ago the least recently walked job list was walked to its end.
    pub fn reconcile_age(&self) -> Option<Duration> {
        Some(between(self.reconcile()?.walked_at?, self.ended))
    }

    /// How long ago the delivery logs were read to their end.
    pub fn replay_age(&self) -> Option<Duration> {
        Some(between(self.replay()?.read_at?, self.ended))
    }

    /// The report as one line.
    pub fn summary(&self) -> Summary {
        let found = (
            self.replay().map(|did| (did.announced, did.unknown, did.oldest)),
            self.reconcile().map(|did| (did.announced, did.unknown, did.oldest)),
        );
        let found: Vec<_> = found.0.into_iter().chain(found.1).collect();
        let oldest = found.iter().filter_map(|(_, _, oldest)| *oldest).min();
        let seconds = |age: Duration| age.as_secs();
        Summary {
            ran: self.ran,
            took_ms: u64::try_from(self.took().as_millis()).unwrap_or(u64::MAX),
            gap: found.iter().map(|(announced, ..)| u64::from(*announced)).sum(),
            gap_unknown: found.iter().map(|(_, unknown, _)| u64::from(*unknown)).sum(),
            gap_age_s: oldest.map_or(0, |oldest| between(oldest, self.ended).as_secs()),
            reconcile_age_s: self.reconcile_age().map(seconds),
            replay_age_s: self.replay_age().map(seconds),
            subscriptions: self.subscriptions(),
            counted: self.counted(),
            troubles: self.troubles(),
        }
    }

    fn subscriptions(&self) -> BTreeMap<&'static str, &'static str> {
        let checked = self.replay().and_then(|did| did.subscriptions.as_ref());
        let wrong = checked.into_iter().flat_map(Subscriptions::wrong);
        wrong.map(|(kind, standing)| (kind.as_str(), standing.as_str())).collect()
    }

    fn counted(&self) -> BTreeMap<&'static str, u64> {
        let mut counted = BTreeMap::new();
        let mut add = |name, count: u32| *counted.entry(name).or_default() += u64::from(count);
        for swept in [&self.recovered, &self.swept] {
            let Some(Ok(did)) = swept else { continue };
            add("tasks_swept", did.sent);
            add("given_up", did.dead);
            add("intents_adopted", did.adopted);
            add("intents_not_accepted", did.not_accepted);
            add("intents_ambiguous", did.ambiguous);
            add("rows_unreadable", did.unreadable);
        }
        if let Some(Ok(did)) = &self.polled {
            add("list_pages", did.pages);
            add("jobs_polled", did.announced);
        }
        if let Some(did) = self.replay() {
            add("log_pages", did.pages);
            add("log_rows", did.rows);
            add("deliveries_waiting", did.waiting);
            add("webhooks_vanished", did.vanished);
            add("rows_nameless", did.nameless);
            add("listed_unreadable", did.unreadable);
            add("rows_unreadable", did.faulty);
        }
        if let Some(did) = self.reconcile() {
            add("list_pages", did.pages);
            add("jobs_listed", did.listed);
            add("jobs_expected", did.expected);
            add("jobs_forgotten", did.forgotten);
            add("listed_unreadable", did.unreadable);
            add("rows_unreadable", did.faulty);
        }
        if let Some(Ok(did)) = &self.retired {
            add("webhooks_switched_off", did.switched_off);
            add("webhooks_deleted", did.deleted.saturating_add(did.orphans));
        }
        counted.retain(|_, count| *count > 0);
        counted
    }

    fn troubles(&self) -> BTreeMap<&'static str, String> {
        let mut troubles = BTreeMap::new();
        let error = |outcome: Option<&PortError>| outcome.map(ToString::to_string);
        let of = |swept: &Option<Result<Swept, PortError>>| {
            error(swept.as_ref().and_then(|swept| swept.as_ref().err()))
        };
        let polled = self.polled.as_ref().and_then(|polled| match polled {
            Ok(polled) => polled.trouble.as_ref().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        });
        let replayed = self.replayed.as_ref().and_then(|replayed| {
            let trouble = replayed.did.trouble.as_ref().map(ToString::to_string);
            error(replayed.error.as_ref()).or(trouble)
        });
        let reconciled = self.reconciled.as_ref().and_then(|reconciled| {
            let trouble = reconciled.did.trouble.as_ref().map(ToString::to_string);
            error(reconciled.error.as_ref()).or(trouble)
        });
        let retired = self.retired.as_ref().and_then(|retired| match retired {
            Ok(retired) => retired.troubles.first().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        });
        for (part, trouble) in [
            ("recovery", of(&self.recovered)),
            ("bulk_polling", polled),
            ("sweep", of(&self.swept)),
            ("replay", replayed),
            ("reconcile", reconciled),
            ("retirements", retired),
        ] {
            if let Some(trouble) = trouble {
                troubles.insert(part, trouble);
            }
        }
        troubles
    }
}
