use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, Entry};
use domain::envelope::EventType;
use domain::job::{JobKey, Kind};
use domain::ports::{Delivery, DeliveryStatus, Queue, TaskSource, WebhookId};
use domain::testing::{Call, MemoryWebhooks};
use domain::tick::TickReport;
use domain::time::{Timestamp, before};

use crate::crash::{Ended, World, key};
use crate::faulty::FaultPlan;

/// Between two ticks, as the scheduler is deployed.
pub const EVERY: Duration = Duration::from_mins(5);
/// Ticks after which nothing may have changed any more.
const TICKS_AT_REST: u32 = 3;
/// The status of a delivery that was taken.
pub(super) const ACCEPTED: u16 = 202;

/// Where a scene plays: a world in which the extract jobs' event is subscribed to.
pub(super) struct Stage<Q> {
    pub(super) world: World<Q>,
    pub(super) webhooks: Arc<MemoryWebhooks>,
    pub(super) webhook: WebhookId,
}

/// The extract job of a name.
pub(super) fn job(id: &str) -> JobKey {
    key(Kind::Extract, id)
}

/// What happened to a row, as "cause state" for each line of its history.
fn told(entry: &Entry) -> String {
    let lines = entry.history.iter();
    let lines = lines.map(|line| format!("{} {}", word(line.cause), line.to));
    lines.collect::<Vec<_>>().join(", ")
}

fn word(cause: Cause) -> String {
    format!("{cause:?}").to_lowercase()
}

impl<Q: Queue + TaskSource + 'static> Stage<Q> {
    /// An empty stage.
    pub(super) async fn set(make: &impl AsyncFn() -> World<Q>) -> Self {
        let world = make().await;
        let (webhooks, webhook) = world.subscribed().await;
        Self { world, webhooks, webhook }
    }

    /// A genuine delivery of a job's event comes; it is taken.
    pub(super) async fn deliver(&self, id: &str) {
        let status = self.world.deliver_well(&job(id), &*self.world.own_ledger()).await;
        assert_eq!(status, ACCEPTED, "{id}");
    }

    /// The log says of one attempt to deliver a job's event, an hour ago, how it was answered.
    pub(super) fn log(&self, id: &str, attempt: u32, status: DeliveryStatus, answered: u16) {
        let at = before(self.world.now(), Duration::from_hours(1));
        self.log_at(id, attempt, status, answered, at);
    }

    /// The same at another time.
    pub(super) fn log_at(
        &self,
        id: &str,
        attempt: u32,
        status: DeliveryStatus,
        answered: u16,
        at: Timestamp,
    ) {
        let row = Delivery {
            id: format!("d-{id}-{attempt}"),
            event_type: EventType::ExtractCompleted,
            job_id: Some(job(id).job_id),
            attempt_number: Some(attempt),
            status,
            http_status: Some(answered),
            delivered_at: None,
            created_at: Some(at),
        };
        assert!(self.webhooks.log(&self.webhook, row));
    }

    /// The scheduler runs once; then the workers do what there is to do, and five minutes pass.
    pub(super) async fn tick(&self) -> TickReport {
        let ended = self.world.tick(&self.webhooks, &FaultPlan::none()).await;
        let Ended::With(report) = ended else { panic!("nobody kills this one") };
        self.world.work_off().await;
        self.world.clock.advance(EVERY);
        report.unwrap()
    }

    /// The workers and so many ticks, and nobody else; then all is over: the rows begin so in the
    /// order of their jobs, and their histories tell this.
    pub(super) async fn comes_right(&self, ticks: u32, rows: &[(&str, &str)]) {
        let before = self.world.objects();
        self.world.work_off().await;
        for _ in 0..ticks {
            self.tick().await;
        }
        let end = self.world.end().await;
        end.check(&rows.iter().map(|(begins, _)| *begins).collect::<Vec<_>>());
        let mut entries = self.world.entries().await;
        entries.sort_unstable_by_key(|entry| entry.key.to_string());
        let histories: Vec<_> = entries.iter().map(told).collect();
        assert_eq!(histories, rows.iter().map(|(_, tells)| *tells).collect::<Vec<_>>());
        let objects = self.world.objects();
        for (key, bytes) in before {
            assert_eq!(objects.get(&key), Some(&bytes), "{key} changed");
        }
        self.is_at_rest(&entries).await;
    }

    /// Nothing is due, and further ticks neither write a row, nor ask for a job, nor pay.
    async fn is_at_rest(&self, entries: &[Entry]) {
        let (objects, made) = (self.world.objects(), self.world.made());
        let open = |entry: &&Entry| !entry.state.is_terminal() || entry.due_at.is_some();
        assert_eq!(entries.iter().find(open), None);
        assert!(self.world.intents().await.iter().all(|intent| !intent.state.is_open()));
        let calls = self.world.jobs.calls().len();
        for _ in 0..TICKS_AT_REST {
            self.tick().await;
        }
        let asked = self.world.jobs.calls().split_off(calls);
        assert!(asked.iter().all(|call| matches!(call, Call::List(..))), "{asked:?}");
        let mut later = self.world.entries().await;
        later.sort_unstable_by_key(|entry| entry.key.to_string());
        assert_eq!(later, entries);
        assert_eq!((self.world.objects(), self.world.made()), (objects, made));
        assert_eq!(self.world.tasks().await, 0);
    }

    /// How often the API was asked for a job.
    pub(super) fn looks(&self, id: &str) -> usize {
        let calls = self.world.jobs.calls().into_iter();
        calls.filter(|call| *call == Call::Extract(job(id).job_id)).count()
    }
}
