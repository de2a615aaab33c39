//! What one page of a delivery log says of its jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::entry::StateName;
use crate::job::JobKey;
use crate::ports::{Delivery, DeliveryStatus};
use crate::reconcile::Step;
use crate::time::{Timestamp, after};

/// A job that a delivery log speaks of, and what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The job.
    pub key: JobKey,
    /// The newest of its rows.
    pub created_at: Option<Timestamp>,
    /// Id of that row, as evidence.
    pub delivery_id: String,
    /// Whether any of its deliveries was taken.
    pub is_delivered: bool,
    /// What we answered last, if we did.
    pub answered: Option<u16>,
    /// How the ledger's row stands; `None` if the ledger does not know the job.
    pub row: Option<StateName>,
    /// What is to be done.
    pub step: Step,
}

/// The rows of a page by job.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) jobs: BTreeMap<JobKey, Logged>,
    /// Rows that name no job.
    pub(super) nameless: u32,
    /// Rows of event types that are not owed.
    pub(super) strange: u32,
    /// The oldest row that is left alone because it is being delivered.
    pub(super) pending: Option<Timestamp>,
}

/// Groups the rows of a page by event type and job. A job whose rows here are all young and on
/// their way waits; whatever else is said of a job, the ledger decides.
pub(super) fn group(deliveries: &[Delivery], patience: Duration, now: Timestamp) -> Rows {
    let mut rows = Rows::default();
    for delivery in deliveries {
        let Some(kind) = delivery.event_type.kind() else {
            rows.strange = rows.strange.saturating_add(1);
            continue;
        };
        let Some(job_id) = &delivery.job_id else {
            rows.nameless = rows.nameless.saturating_add(1);
            continue;
        };
        let key = JobKey::new(kind, job_id.clone());
        let is_young = delivery.created_at.is_some_and(|at| after(at, patience) > now);
        let waits = delivery.status == DeliveryStatus::Pending && is_young;
        let logged = rows.jobs.entry(key.clone()).or_insert_with(|| Logged {
            key,
            created_at: None,
            delivery_id: delivery.id.clone(),
            is_delivered: false,
            answered: None,
            row: None,
            step: Step::Wait,
        });
        if !waits {
            logged.step = Step::Known;
        }
        logged.is_delivered |= delivery.status == DeliveryStatus::Success;
        if logged.created_at.is_none() || delivery.created_at > logged.created_at {
            logged.created_at = delivery.created_at;
            logged.delivery_id.clone_from(&delivery.id);
            logged.answered = delivery.http_status;
        }
    }
    let waiting = rows.jobs.values().filter(|logged| logged.step == Step::Wait);
    rows.pending = waiting.filter_map(|logged| logged.created_at).min();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::EventType;
    use crate::job::Kind;
    use crate::time::before;
    use crate::work::tests::rig::{MINUTE, extract, id};

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn row(job: &str, status: DeliveryStatus, age: Duration, answered: Option<u16>) -> Delivery {
        Delivery {
            id: format!("{job}-{}", age.as_secs()),
            event_type: EventType::completed(Kind::Extract),
            job_id: Some(id(job)),
            attempt_number: None,
            status,
            http_status: answered,
            delivered_at: None,
            created_at: Some(before(now(), age)),
        }
    }

    /// SC-08, S05: a later attempt succeeded, in whichever order the log shows them; the newest
    /// one is the one that is told of.
    #[test]
    fn a_job_is_delivered_if_any_of_its_attempts_was_taken() {
        let failed = row("a", DeliveryStatus::Failed, 9 * MINUTE, Some(500));
        let taken = row("a", DeliveryStatus::Success, MINUTE, Some(200));
        for order in [[&failed, &taken], [&taken, &failed]] {
            let rows = group(&order.map(Clone::clone), 10 * MINUTE, now());
            let logged = &rows.jobs[&extract("a")];
            assert!(logged.is_delivered);
            assert_eq!((logged.answered, logged.delivery_id.as_str()), (Some(200), "a-60"));
            assert_ne!(logged.step, Step::Wait);
        }
    }

    /// A row on its way is left alone while it is young, and its time is kept.
    #[test]
    fn rows_on_their_way_wait_while_they_are_young() {
        let young = row("a", DeliveryStatus::Pending, 9 * MINUTE, None);
        let old = row("b", DeliveryStatus::Pending, 10 * MINUTE, None);
        let retried = row("c", DeliveryStatus::Failed, 2 * MINUTE, Some(401));
        let again = row("c", DeliveryStatus::Pending, MINUTE, None);
        let undated =
            Delivery { created_at: None, ..row("d", DeliveryStatus::Pending, MINUTE, None) };
        let rows = group(&[young.clone(), old, retried, again, undated], 10 * MINUTE, now());
        let waiting: Vec<_> =
            rows.jobs.values().filter(|logged| logged.step == Step::Wait).collect();
        assert_eq!(waiting.len(), 1);
        assert_eq!((&waiting[0].key, rows.pending), (&extract("a"), young.created_at));
    }

    /// Rows without a job, and of events that are not owed, are counted and left.
    #[test]
    fn rows_of_no_job_are_counted() {
        let nameless = Delivery { job_id: None, ..row("a", DeliveryStatus::Failed, MINUTE, None) };
        let event_type = EventType::Unknown("map_completed".to_owned());
        let strange = Delivery { event_type, ..row("a", DeliveryStatus::Failed, MINUTE, None) };
        let status = DeliveryStatus::Unknown("exploded".to_owned());
        let unknown = row("b", status, MINUTE, None);
        let rows = group(&[nameless, strange, unknown], 10 * MINUTE, now());
        assert_eq!((rows.nameless, rows.strange, rows.jobs.len()), (1, 1, 1));
        assert_ne!(rows.jobs[&extract("b")].step, Step::Wait);
    }
}
