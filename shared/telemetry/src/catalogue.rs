//! The catalogue: every metric there is. What each exporter makes of a name is in [`crate::emf`] and
//! [`crate::prometheus`].

use domain::entry::{DeadReason, StateName};
use settings::Role;
use settings::Role::{Receiver, Rotator, Scheduler, Worker};

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, in the words of the field.
    pub name: &'static str,
    /// What its numbers are.
    pub unit: Unit,
    /// What it says, for a person.
    pub meaning: &'static str,
    /// The functions that count it; the embedded server counts all.
    pub functions: &'static [Role],
    /// What tells its series apart on AWS.
    pub dimensions: Dimensions,
    /// Whether zero is told as well.
    pub zero: Zero,
}

/// What the numbers of a metric are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Seconds.
    Seconds,
    /// A number without a unit.
    None,
}

/// What tells the series of a metric apart on AWS. Each series is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimensions {
    /// The stack: what several functions count is one series.
    Stack,
    /// The stack and the function's role.
    StackAndRole,
}

/// Whether zero is told as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// An alarm looks at it: each invocation of its functions tells it, and so does each tick of the
    /// scheduler, so that a quiet day is not a silent one.
    Told,
    /// It is left out.
    Left,
}

impl Metric {
    const fn of(unit: Unit, functions: &'static [Role]) -> Self {
        let (name, meaning) = ("", "");
        let (dimensions, zero) = (Dimensions::Stack, Zero::Left);
        Self { name, unit, meaning, functions, dimensions, zero }
    }

    const fn with_zero(self) -> Self {
        Self { zero: Zero::Told, ..self }
    }

    const fn per_role(self) -> Self {
        Self { dimensions: Dimensions::StackAndRole, ..self }
    }

    /// Whether a function's documents hold it.
    pub fn is_told_by(&self, role: Role) -> bool {
        self.functions.contains(&role) || (self.zero == Zero::Told && role == Scheduler)
    }
}

/// A number of things that some functions count.
const fn count(functions: &'static [Role]) -> Metric {
    Metric::of(Unit::Count, functions)
}

macro_rules! catalogue {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident = $name:literal, $meaning:literal, $rest:expr;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind {
            $(#[doc = $meaning] $variant,)*
        }

        impl $kind {
            /// All of them, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// What the catalogue says.
            pub const fn metric(self) -> &'static Metric {
                match self {
                    $(Self::$variant => {
                        const METRIC: Metric = Metric { name: $name, meaning: $meaning, ..$rest };
                        &METRIC
                    })*
                }
            }
        }
    };
}

catalogue! {
    /// What is only ever added to.
    Counter {
        DeliveriesAccepted = "deliveries_accepted",
            "Deliveries that made a job owed, or sent its task again.",
            count(&[Receiver]).with_zero();
        DeliveriesRepeated = "deliveries_repeated",
            "Genuine deliveries about a job for which nothing was to be done.",
            count(&[Receiver]).with_zero();
        DeliveriesIgnored = "deliveries_ignored",
            "Genuine deliveries of an event type that is not owed.",
            count(&[Receiver]);
        DeliveriesRejected = "deliveries_rejected",
            "Deliveries without a genuine signature, answered 401.",
            count(&[Receiver]).with_zero();
        DeliveriesUnusable = "deliveries_unusable",
            "Genuine deliveries without a usable job id, answered 400.",
            count(&[Receiver]).with_zero();
        DeliveriesUnavailable = "deliveries_unavailable",
            "Deliveries answered 503: no usable secret, or trouble of the ledger or the queue.",
            count(&[Receiver]).with_zero();
        DeliveriesUnread = "deliveries_unread",
            "Deliveries whose body was not read: too large, too slow, or of an unknown coding.",
            count(&[Receiver]);
        JobsStored = "jobs_stored", "Jobs whose result was stored.", count(&[Worker]).with_zero();
        JobsSuperseded = "jobs_superseded", "Failed jobs that were submitted again.", count(&[Worker]);
        ItemsAskedAgain = "items_asked_again",
            "Failed items of batches and crawls that are asked for once more.",
            count(&[Worker]);
        RetriesCapped = "retries_capped",
            "Batches and crawls whose failed items were left, since the lineage's attempts are used up.",
            count(&[Worker]);
        RetriesUnspent = "retries_unspent",
            "Looks at a job whose retry waits, since the day's spend is used up.",
            count(&[Worker]);
        JobsDead = "jobs_dead",
            "Jobs that were given up, by a worker or by the sweep.",
            count(&[Worker, Scheduler]).with_zero();
        JobsPutOff = "jobs_put_off", "Looks at a job after which it was put off.", count(&[Worker]);
        TasksSkipped = "tasks_skipped", "Tasks for which nothing was to be done.", count(&[Worker]);
        TasksUnknown = "tasks_unknown",
            "Tasks for a job that the ledger does not know.",
            count(&[Worker]);
        TasksFailed = "tasks_failed",
            "Tasks that ended in trouble of the ledger, the queue or the results, and come again.",
            count(&[Worker]).with_zero();
        TasksPanicked = "tasks_panicked",
            "Tasks whose work panicked, and that come again.",
            count(&[Worker]).with_zero();
        TasksTakenUp = "tasks_taken_up",
            "Tasks that the server before this one held when it ended.",
            count(&[]);
        TasksSwept = "tasks_swept",
            "Tasks that the sweep sent, for entries that were overdue.",
            count(&[Scheduler]).with_zero();
        ListPages = "list_pages", "Pages of job lists that were read.", count(&[Scheduler]);
        JobsListed = "jobs_listed",
            "Entries of job lists that were compared with the ledger; none for long is suspicious.",
            count(&[Scheduler]).with_zero();
        JobsAnnounced = "jobs_announced",
            "Jobs that a job list called finished before any webhook did.",
            count(&[Scheduler]).with_zero();
        JobsMissed = "jobs_missed",
            "Finished jobs that nobody had announced, found in delivery logs and job lists: the gap.",
            count(&[Scheduler]).with_zero();
        JobsExpected = "jobs_expected",
            "Open jobs that the ledger did not know, found in job lists.",
            count(&[Scheduler]);
        LogPages = "log_pages", "Pages of delivery logs that were read.", count(&[Scheduler]);
        ListTroubles = "list_troubles",
            "Job lists and delivery logs that could not be read whole.",
            count(&[Scheduler]).with_zero();
        ListedUnreadable = "listed_unreadable",
            "Entries of job lists and delivery logs that cannot be read.",
            count(&[Scheduler]);
        IntentsAdopted = "intents_adopted",
            "Submissions whose answer was lost and whose job was found.",
            count(&[Scheduler]);
        IntentsNotAccepted = "intents_not_accepted",
            "Submissions whose answer was lost and that were proved not accepted.",
            count(&[Scheduler]);
        IntentsAmbiguous = "intents_ambiguous",
            "Submissions of which nobody could find out whether they were accepted.",
            count(&[Scheduler]).with_zero();
        RowsUnreadable = "rows_unreadable",
            "Rows that the sweep could not read or write, once in each sweep.",
            count(&[Scheduler]).with_zero();
        RowsExpired = "rows_expired", "Rows removed because their time had passed.", count(&[]);
        RotationSteps = "rotation_steps",
            "Steps of rotations of signing secrets that were taken.",
            count(&[Rotator]);
        RotationTroubles = "rotation_troubles",
            "Steps of rotations that were refused, or did not come to their end.",
            count(&[Rotator]);
        WebhooksRetired = "webhooks_retired",
            "Webhooks that a rotation replaced, and that were deleted after a last look at their log.",
            count(&[Scheduler]);
        TickTroubles = "tick_troubles",
            "Parts of a tick that ended early.",
            count(&[Scheduler]).with_zero();
        Ticks = "ticks",
            "Ticks that came to their end: the heartbeat of the scheduler.",
            count(&[Scheduler]).with_zero();
        Starts = "starts",
            "Processes that were started.",
            count(&[Receiver, Worker, Scheduler, Rotator]).per_role();
    }
}

catalogue! {
    /// What is measured now and then; nothing is told before the first time.
    Gauge {
        OverdueAge = "overdue_age",
            "How long the entry that is most overdue has been so; 0 if none is.",
            Metric::of(Unit::Seconds, &[Scheduler]);
        Paused = "paused",
            "1 while the account is left alone, for want of tokens, of a valid key or of time; else 0.",
            Metric::of(Unit::None, &[Scheduler]);
        ReconcileAge = "reconcile_age",
            "How long ago the least recently compared job list was compared to its end.",
            Metric::of(Unit::Seconds, &[Scheduler]);
        ReplayAge = "replay_age",
            "How long ago the delivery logs were read to the end of what was new.",
            Metric::of(Unit::Seconds, &[Scheduler]);
        SubscriptionsWrong = "subscriptions_wrong",
            "Events of the three that no active webhook delivers to the receiver.",
            Metric::of(Unit::Count, &[Scheduler]);
        QueueDepth = "queue_depth",
            "Tasks that wait for a worker; 100,000 stands for any more.",
            Metric::of(Unit::Count, &[]);
        QueueAge = "queue_age",
            "How long the oldest task that nobody works has waited; 0 if there is none.",
            Metric::of(Unit::Seconds, &[]);
    }
}

catalogue! {
    /// Gauges by a label, for Prometheus alone.
    Family {
        Entries = "entries", "Entries of the ledger by state.", count(&[]);
        EntriesDead = "entries_dead", "Entries that were given up, by reason.", count(&[]);
    }
}

catalogue! {
    /// How long something took.
    Timing {
        Delivery = "delivery_duration",
            "From a delivery's last byte to its answer.",
            Metric::of(Unit::Seconds, &[Receiver]);
        Task = "task_duration",
            "From taking a task to the end of its work.",
            Metric::of(Unit::Seconds, &[Worker]);
        Tick = "tick_duration",
            "From the beginning of a tick to its end.",
            Metric::of(Unit::Seconds, &[Scheduler]);
    }
}

impl Family {
    /// Name of the label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Entries => "state",
            Self::EntriesDead => "reason",
        }
    }

    /// All values of the label.
    pub fn values(self) -> Vec<&'static str> {
        match self {
            Self::Entries => StateName::ALL.map(StateName::as_str).to_vec(),
            Self::EntriesDead => DeadReason::ALL.map(DeadReason::as_str).to_vec(),
        }
    }

    /// The name under which the ledger counts a value.
    pub(crate) fn counted_as(self, value: &str) -> String {
        match self {
            Self::Entries => value.to_owned(),
            Self::EntriesDead => format!("dead:{value}"),
        }
    }
}

/// All metrics, with the kind of each.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    let counters = Counter::ALL.iter().map(|counter| ("counter", counter.metric()));
    let gauges = Gauge::ALL.iter().map(|gauge| ("gauge", gauge.metric()));
    let families = Family::ALL.iter().map(|family| ("gauge", family.metric()));
    let timings = Timing::ALL.iter().map(|timing| ("duration", timing.metric()));
    counters.chain(gauges).chain(families).chain(timings)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_of_small_letters() {
        let names: Vec<_> = all().map(|(_, metric)| metric.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in names {
            let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(is_plain && !name.starts_with('_') && !name.ends_with('_'), "{name}");
            // The exporters add these.
            assert!(!name.starts_with("gleaner") && !name.ends_with("_total"), "{name}");
        }
    }

    #[test]
    fn what_an_alarm_looks_at_is_told_by_each_tick() {
        for (_, metric) in all().filter(|(_, metric)| metric.zero == Zero::Told) {
            assert!(metric.is_told_by(Scheduler), "{}", metric.name);
            // One series, which both the function and the tick tell.
            assert_eq!(metric.dimensions, Dimensions::Stack, "{}", metric.name);
        }
    }
}
