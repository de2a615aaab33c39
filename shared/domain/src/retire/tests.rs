use std::sync::Arc;

use super::*;
use crate::envelope::EventType;
use crate::job::{JobId, Kind};
use crate::limits::Limits;
use crate::ports::{Clock as _, ControlRow, NewWebhook, SlotId, VersionId, Webhook};
use crate::testing::{EventClock, MemoryLedger, MemoryQueue, MemoryWebhooks, SeededRandom};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_mins(1);

struct Rig {
    clock: Arc<EventClock>,
    webhooks: MemoryWebhooks,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    random: SeededRandom,
    limits: Limits,
}

fn id(text: &str) -> WebhookId {
    WebhookId::parse(text).unwrap()
}

fn slot() -> SlotId {
    SlotId::parse("extract").unwrap()
}

fn new(description: Option<String>) -> NewWebhook {
    let url = "https://example.org/".to_owned();
    NewWebhook { url, event_type: EventType::ExtractCompleted, description }
}

fn delivery(job: &str, status: DeliveryStatus) -> Delivery {
    Delivery {
        id: format!("delivery-{job}"),
        event_type: EventType::ExtractCompleted,
        job_id: Some(JobId::parse(job).unwrap()),
        attempt_number: Some(1),
        status,
        http_status: None,
        delivered_at: None,
        created_at: None,
    }
}

impl Rig {
    /// A webhook, its successor, and the retirement of the first.
    fn new() -> Self {
        let clock = Arc::new(EventClock::default());
        let rig = Self {
            webhooks: MemoryWebhooks::new(clock.clone()),
            ledger: MemoryLedger::new(),
            queue: MemoryQueue::new(clock.clone()),
            random: SeededRandom::new(1),
            limits: Limits::default(),
            clock,
        };
        rig.make(None);
        rig.make(None);
        let now = rig.clock.now();
        let row = Retirement::prepared(&slot(), id("webhook-1"), id("webhook-2"), now);
        rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
        rig
    }

    fn make(&self, description: Option<String>) -> Webhook {
        let created = self.clock.run(self.webhooks.create(&new(description), SECOND));
        created.unwrap().unwrap().webhook
    }

    fn ports(&self) -> RetirePorts<'_> {
        RetirePorts {
            announcing: AnnouncePorts {
                entries: &self.ledger,
                queue: &self.queue,
                clock: &*self.clock,
                random: &self.random,
                limits: &self.limits,
            },
            webhooks: &self.webhooks,
            control: &self.ledger,
        }
    }

    fn work(&self) -> Retired {
        self.clock.run(work_off(self.ports(), LONG)).unwrap().unwrap()
    }

    fn confirm(&self, current: &str) -> Vec<Retirement> {
        let now = self.clock.now();
        let (slot, current) = (slot(), id(current));
        let confirmed = rows::confirm(&self.ledger, &slot, &current, now);
        self.clock.run(confirmed).unwrap().unwrap()
    }

    fn rows(&self) -> Vec<Retirement> {
        self.clock.run(rows::list(&self.ledger)).unwrap().unwrap()
    }

    fn pass(&self, duration: Duration) {
        self.clock.run(self.clock.sleep(duration)).unwrap();
    }

    fn ids(&self) -> Vec<String> {
        let webhooks = self.webhooks.webhooks();
        webhooks.iter().map(|webhook| webhook.id.as_str().to_owned()).collect()
    }

    fn change(&self, webhook: &str, change: &WebhookChange) {
        let webhook = id(webhook);
        let changed = self.webhooks.update(&webhook, change, SECOND);
        self.clock.run(changed).unwrap().unwrap();
    }

    fn is_active(&self, webhook: &str) -> bool {
        let found = self.webhooks.webhooks().into_iter().find(|it| it.id.as_str() == webhook);
        found.unwrap().is_active
    }

    fn entries(&self) -> Vec<String> {
        let rows = self.ledger.entries();
        rows.iter().map(|entry| entry.key.job_id.as_str().to_owned()).collect()
    }
}

/// The whole life: prepared, switched off, drained, read a last time, deleted. What the log tells of
/// without a success is announced, once.
#[test]
fn a_replaced_webhook_is_taken_away_and_its_log_is_read() {
    let rig = Rig::new();
    for (job, status) in [
        ("lost", DeliveryStatus::Abandoned),
        ("late", DeliveryStatus::Failed),
        ("waiting", DeliveryStatus::Pending),
        ("odd", DeliveryStatus::Unknown("new-word".to_owned())),
        ("told", DeliveryStatus::Failed),
        ("told", DeliveryStatus::Success),
    ] {
        assert!(rig.webhooks.log(&id("webhook-1"), delivery(job, status)));
    }
    let nameless = Delivery { job_id: None, ..delivery("x", DeliveryStatus::Failed) };
    assert!(rig.webhooks.log(&id("webhook-1"), nameless));
    let unknown = EventType::Unknown("ping".to_owned());
    let ping = Delivery { event_type: unknown, ..delivery("y", DeliveryStatus::Failed) };
    assert!(rig.webhooks.log(&id("webhook-1"), ping));
    let long_ago = before(rig.clock.now(), rig.limits.retention);
    let old = Delivery { created_at: Some(long_ago), ..delivery("old", DeliveryStatus::Failed) };
    assert!(rig.webhooks.log(&id("webhook-1"), old));

    let retired = rig.work();
    assert_eq!((retired.prepared, retired.switched_off), (1, 0));
    assert!(rig.is_active("webhook-1"), "its successor is not in force yet");

    assert_eq!(rig.confirm("webhook-2").len(), 1);
    assert_eq!(rig.work().switched_off, 1);
    assert!(!rig.is_active("webhook-1"));
    let retired = rig.work();
    assert_eq!((retired.deleted, rig.ids().len()), (0, 2), "it drains");

    rig.pass(DRAIN);
    let retired = rig.work();
    assert_eq!((retired.announced, retired.deleted), (4, 1));
    assert_eq!(rig.ids(), ["webhook-2"]);
    assert_eq!(rig.entries(), ["late", "lost", "odd", "waiting"]);
    assert!(rig.rows().is_empty());
    assert!(rig.work().blocked.is_empty());
}

/// The old webhook stays as it is while the new one is not what it should be.
#[test]
fn nothing_is_taken_away_while_the_successor_is_not_in_force() {
    let change = |url: Option<&str>, is_active| WebhookChange {
        url: url.map(str::to_owned),
        is_active,
        ..WebhookChange::default()
    };
    for (wrong, right) in [
        (change(None, Some(false)), change(None, Some(true))),
        (change(Some("https://elsewhere.org/"), None), change(Some("https://example.org/"), None)),
    ] {
        let rig = Rig::new();
        rig.confirm("webhook-2");
        rig.change("webhook-2", &wrong);
        let retired = rig.work();
        assert_eq!((retired.switched_off, retired.blocked.len()), (0, 1));
        assert!(rig.work().blocked.is_empty(), "it is looked at again after a pause");
        rig.pass(BLOCKED_PAUSE);
        rig.change("webhook-2", &right);
        assert_eq!(rig.work().switched_off, 1);
    }
    let rig = Rig::new();
    rig.confirm("webhook-2");
    rig.clock.run(rig.webhooks.delete(&id("webhook-2"), SECOND)).unwrap().unwrap();
    let retired = rig.work();
    assert!(retired.blocked[0].1.contains("does not exist"), "{retired:?}");
    assert!(rig.is_active("webhook-1"));
}

/// What somebody deleted by hand needs nothing more.
#[test]
fn a_webhook_that_is_gone_is_retired() {
    let rig = Rig::new();
    rig.confirm("webhook-2");
    rig.clock.run(rig.webhooks.delete(&id("webhook-1"), SECOND)).unwrap().unwrap();
    rig.work();
    assert!(rig.rows().is_empty());

    let rig = Rig::new();
    rig.confirm("webhook-2");
    rig.work();
    rig.clock.run(rig.webhooks.delete(&id("webhook-1"), SECOND)).unwrap().unwrap();
    rig.pass(DRAIN);
    assert!(rig.work().troubles.is_empty());
    assert!(rig.rows().is_empty());
}

/// A rotation that was given up leaves nothing behind: the next one's retirement takes its place.
#[test]
fn only_the_successor_that_is_in_force_counts() {
    let rig = Rig::new();
    assert!(rig.confirm("webhook-3").is_empty());
    assert!(rig.rows().is_empty());
    let foreign = SlotId::parse("batch").unwrap();
    let row = Retirement::prepared(&foreign, id("webhook-8"), id("webhook-9"), rig.clock.now());
    rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
    assert!(rig.confirm("webhook-9").is_empty());
    assert_eq!(rig.rows(), [row]);
}

/// Orphans of the rotation go with the webhook that they were to replace, once nobody can be about
/// to keep their secrets; nobody else's do.
#[test]
fn orphans_go_with_the_webhook_that_they_were_to_replace() {
    let rig = Rig::new();
    let version = VersionId::parse(&"v".repeat(32)).unwrap();
    let mark = |of: &str| Mark::new(&version, &id(of), rig.clock.now()).describe(None);
    rig.pass(Duration::from_mins(1));
    rig.make(Some(mark("webhook-1")));
    rig.make(Some(mark("webhook-2")));
    rig.make(Some("somebody's".to_owned()));
    rig.confirm("webhook-2");
    rig.work();
    rig.pass(DRAIN);
    let retired = rig.work();
    assert_eq!((retired.orphans, retired.deleted), (0, 0));
    rig.pass(PROTECTED);
    let retired = rig.work();
    assert_eq!((retired.orphans, retired.deleted), (1, 1));
    assert_eq!(rig.ids(), ["webhook-2", "webhook-4", "webhook-5"]);
}

/// A chain: the successor was switched off by somebody and then replaced itself, before the first
/// webhook had left.
#[test]
fn a_webhook_whose_successor_was_replaced_leaves_for_the_one_in_force() {
    let rig = Rig::new();
    rig.confirm("webhook-2");
    let off = WebhookChange { is_active: Some(false), ..WebhookChange::default() };
    rig.change("webhook-2", &off);
    assert_eq!(rig.work().blocked.len(), 1);
    rig.make(None);
    let now = rig.clock.now();
    let row = Retirement::prepared(&slot(), id("webhook-2"), id("webhook-3"), now);
    rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
    rig.confirm("webhook-3");
    assert_eq!(rig.work().blocked.len(), 0);
    assert!(!rig.is_active("webhook-1"));
    rig.pass(DRAIN);
    rig.work();
    assert_eq!(rig.ids(), ["webhook-3"]);
    assert_eq!(rig.rows(), []);
}

/// The successor was made to replace the first webhook, and leaves by itself: not as an orphan, whose
/// log nobody would read.
#[test]
fn a_successor_that_leaves_in_its_turn_is_no_orphan() {
    let rig = Rig::new();
    let version = VersionId::parse(&"v".repeat(32)).unwrap();
    let mark = Mark::new(&version, &id("webhook-1"), rig.clock.now());
    let description =
        WebhookChange { description: Some(mark.describe(None)), ..WebhookChange::default() };
    rig.change("webhook-2", &description);
    rig.confirm("webhook-2");
    rig.make(None);
    let row = Retirement::prepared(&slot(), id("webhook-2"), id("webhook-3"), rig.clock.now());
    rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
    rig.confirm("webhook-3");
    rig.pass(PROTECTED);
    let retired = rig.work();
    assert_eq!((retired.switched_off, retired.orphans), (2, 0));
    assert!(rig.webhooks.log(&id("webhook-2"), delivery("missed", DeliveryStatus::Failed)));
    rig.pass(DRAIN);
    let retired = rig.work();
    assert_eq!((retired.deleted, retired.orphans, retired.announced), (2, 0, 1));
}

/// A long log is read on where the time ended.
#[test]
fn a_long_log_is_read_in_several_passes() {
    let rig = Rig::new();
    for number in 0..250 {
        let failed = delivery(&format!("j-{number:03}"), DeliveryStatus::Failed);
        assert!(rig.webhooks.log(&id("webhook-1"), failed));
    }
    rig.confirm("webhook-2");
    rig.work();
    rig.pass(DRAIN);
    let row = rig.rows().remove(0);
    let mut retired = Retired::default();
    let until = rig.clock.now();
    rig.clock.run(bury(rig.ports(), &row, until, &mut retired)).unwrap().unwrap();
    assert!(retired.is_out_of_time);
    assert_eq!(rig.rows()[0].page, 1);
    rig.clock
        .run(rows::replace(&rig.ledger, &row, &Retirement { page: 2, ..row.clone() }))
        .unwrap()
        .unwrap();
    let retired = rig.work();
    assert_eq!((retired.announced, retired.deleted), (150, 1));
}

/// Trouble of one retirement leaves the others alone, and the next pass goes on.
#[test]
fn trouble_of_one_is_not_trouble_of_all() {
    let rig = Rig::new();
    rig.make(None);
    rig.make(None);
    let row = Retirement::prepared(&slot(), id("webhook-3"), id("webhook-4"), rig.clock.now());
    rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
    rig.confirm("webhook-2");
    let row = Retirement { phase: Phase::Leaving, ..row };
    rig.clock.run(rows::put(&rig.ledger, &row)).unwrap().unwrap();
    rig.webhooks.fail(ApiError::new(ApiErrorKind::Denied, "planned"));
    let retired = rig.work();
    assert_eq!((retired.troubles.len(), retired.switched_off), (1, 1));
    assert_eq!(rig.work().switched_off, 1);
}

/// Two passes at once do no more than one.
#[test]
fn two_passes_at_once_are_harmless() {
    let rig = Rig::new();
    assert!(rig.webhooks.log(&id("webhook-1"), delivery("lost", DeliveryStatus::Failed)));
    rig.confirm("webhook-2");
    let both = || {
        let both = async { tokio::join!(work_off(rig.ports(), LONG), work_off(rig.ports(), LONG)) };
        let (one, other) = rig.clock.run(both).unwrap();
        (one.unwrap(), other.unwrap())
    };
    both();
    rig.pass(DRAIN);
    let (one, other) = both();
    assert_eq!(one.announced + other.announced, 1);
    assert_eq!(rig.ids(), ["webhook-2"]);
    assert!(rig.rows().is_empty());
    assert_eq!(rig.entries(), ["lost"]);
    assert_eq!(rig.ledger.entries()[0].key.kind, Kind::Extract);
}

/// A row that another version wrote, or that is damaged, is told and left alone.
#[test]
fn a_row_that_does_not_decode_is_an_error() {
    for value in ["{", r#"{"version":2,"retirements":[]}"#] {
        let rig = Rig::new();
        let row = ControlRow { name: rows::ROW.to_owned(), version: 2, value: value.to_owned() };
        assert!(rig.clock.run(rig.ledger.write_control(&row)).unwrap().unwrap());
        let error = rig.clock.run(work_off(rig.ports(), LONG)).unwrap().unwrap_err();
        assert_eq!(error.kind, crate::ports::ErrorKind::Corrupt);
    }
}

/// The stored form, which later versions must read.
#[test]
fn the_stored_form_is_stable() {
    let rig = Rig::new();
    let row = rig.clock.run(rig.ledger.load_control(rows::ROW)).unwrap().unwrap().unwrap();
    assert_eq!(
        row.value,
        "{\"version\":1,\"retirements\":[{\"slot\":\"extract\",\"webhook_id\":\"webhook-1\",\
         \"successor\":\"webhook-2\",\"phase\":\"prepared\",\"due_at\":\"2026-11-30T12:00:00Z\",\
         \"since\":\"2026-11-30T12:00:00Z\",\"page\":1}]}"
    );
}
