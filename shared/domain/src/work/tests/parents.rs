use super::rig::{HOUR, MINUTE, Rig, batch, crawl, dead, items, link_of, standing, stored_object};
use crate::entry::{Cause, DeadReason, Entry};
use crate::job::{JobKey, JobStatus};
use crate::object::decode;
use crate::ports::{Item, PageRequest, ParentPage, RawJson};
use crate::testing::{Call, parent_answer};
use crate::time::after;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::{PutOff, Skip, Worked, work};

pub(super) const DT: jiff::civil::Date = jiff::civil::date(2026, 11, 29);

pub(super) fn whole(key: &JobKey, status: JobStatus, items: Vec<Item>) -> ParentPage {
    let mut answer = parent_answer(key, status, items);
    answer.created_at = Some("2026-11-29T10:00:00Z".parse().unwrap());
    answer
}

/// An announced batch that is completed with so many items.
pub(super) async fn completed(rig: &Rig, count: u32) -> JobKey {
    let key = batch("b");
    rig.announce(&key).await;
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..count))));
    key
}

pub(super) fn pages_asked(rig: &Rig) -> Vec<(u32, u32)> {
    let calls = rig.jobs.calls();
    let pages = calls.iter().filter_map(|call| match call {
        Call::Parent(_, PageRequest { page, page_size }) => Some((*page, *page_size)),
        _ => None,
    });
    pages.collect()
}

/// The lines of the parts that a manifest names, each part checked against its checksum.
pub(super) fn lines(rig: &Rig, manifest: &str) -> Vec<serde_json::Value> {
    let mut lines = Vec::new();
    for part in rig.json(manifest)["parts"].as_array().unwrap() {
        let key = part["key"].as_str().unwrap();
        let bytes = rig.results.bytes(key).expect("a named part is there");
        assert_eq!(crate::object::describe(key, &bytes).sha256, part["sha256"].as_str().unwrap());
        let content = String::from_utf8(decode(key, &bytes).unwrap()).unwrap();
        let here: Vec<_> =
            content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(here.len(), usize::try_from(part["items"].as_u64().unwrap()).unwrap());
        lines.extend(here);
    }
    lines
}

pub(super) fn item_keys(rig: &Rig, manifest: &str) -> Vec<String> {
    let lines = lines(rig, manifest);
    lines.iter().map(|line| line["item_key"].as_str().unwrap().to_owned()).collect()
}

pub(super) fn indices(count: u32) -> Vec<String> {
    (0..count).map(|index| index.to_string()).collect()
}

const MANIFEST: &str = "kind=batch/dt=2026-11-29/b/_manifest.json";

#[tokio::test]
async fn pages_of_fifty_are_stored_as_parts_and_then_named_by_a_manifest() {
    let rig = Rig::new();
    let key = completed(&rig, 120).await;
    assert_eq!(rig.work(&key).await, Worked::Stored { key: MANIFEST.into(), follow_up: None });
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (3, 50)]);
    assert_eq!(item_keys(&rig, MANIFEST), indices(120));
    let manifest = rig.json(MANIFEST);
    assert_eq!(manifest["items"], 120);
    assert_eq!(manifest["status"], "completed");
    assert_eq!(manifest["unsettled"], false);
    assert_eq!(manifest["job"]["total"], 120);
    let row = rig.entry(&key);
    assert_eq!((row.dt, row.run), (Some(DT), None));
    assert!(!stored_object(&rig.entry(&key)).empty);
}

/// A batch's items are told apart by `input_index`, a crawl's by `url`: the same address twice in
/// a batch is two items.
#[tokio::test]
async fn a_batch_may_hold_one_address_twice() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut twice = items(0..2);
    twice[1].url = twice[0].url.clone();
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, twice)));
    assert_eq!(rig.work(&key).await, Worked::Stored { key: MANIFEST.into(), follow_up: None });
    let key = crawl("c");
    rig.announce(&key).await;
    let mut pages = items(0..2);
    for page in &mut pages {
        page.key = page.url.clone();
    }
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, pages)));
    rig.work(&key).await;
    let manifest = "kind=crawl/dt=2026-11-29/c/_manifest.json";
    let keys = item_keys(&rig, manifest);
    assert_eq!(keys, ["https://example.com/0", "https://example.com/1"]);
}

/// Not before the children have settled, or the grace has passed; then it is marked.
#[tokio::test]
async fn settling_children_are_waited_for_and_no_longer_than_the_grace() {
    for (reserved, pending) in [(3, 0), (0, 2)] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let mut settling = whole(&key, JobStatus::Completed, items(0..4));
        (settling.tokens_reserved, settling.pending) = (reserved, pending);
        rig.jobs.answer_parent(&key, Ok(settling.clone()));
        let worked = rig.work(&key).await;
        assert!(matches!(worked, Worked::PutOff { because: PutOff::Settling, .. }), "{worked:?}");
        assert_eq!(rig.results.keys(), Vec::<String>::new());
        let begun = rig.now();
        rig.settle().await;
        assert!(rig.now() >= after(begun, rig.limits.settle_grace));
        assert!(rig.now() < after(begun, rig.limits.settle_grace + HOUR));
        assert!(stored_object(&rig.entry(&key)).unsettled);
        assert_eq!(rig.json(MANIFEST)["unsettled"], true);
        // Where the children settle in time, nothing is marked.
        let rig = Rig::new();
        rig.announce(&key).await;
        rig.jobs.answer_parent(&key, Ok(settling));
        rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..4))));
        rig.settle().await;
        assert!(!stored_object(&rig.entry(&key)).unsettled);
    }
}

/// Unsettled children that the pages hold already do not make the pages disagree.
#[tokio::test]
async fn an_unsettled_parent_is_stored_with_what_its_pages_hold() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut stuck = whole(&key, JobStatus::Completed, items(0..60));
    (stuck.ran, stuck.pending) = (40, 20);
    rig.jobs.answer_parent(&key, Ok(stuck));
    rig.settle().await;
    assert_eq!(item_keys(&rig, MANIFEST), indices(60));
}

/// A finished job that is settling is not given up for its age, however old its row is.
#[tokio::test]
async fn an_old_row_of_a_finished_job_is_not_given_up_while_it_settles() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    rig.clock.advance(rig.limits.max_age + HOUR);
    let mut settling = whole(&key, JobStatus::Completed, items(0..4));
    settling.tokens_reserved = 1;
    rig.jobs.answer_parent(&key, Ok(settling));
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..4))));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
}

/// WK-04: a run that ended in the middle is taken up by another worker; what was fetched is not
/// fetched again.
#[tokio::test]
async fn a_run_is_taken_up_where_it_stopped() {
    let rig = Rig::new();
    let key = completed(&rig, 230).await;
    let task = crate::task::Task { key: key.clone() };
    // The first worker dies when it asks for the fourth page.
    let calls = {
        let rig = Rig::new();
        completed(&rig, 230).await;
        let whole = Faulty::new(&rig, []);
        run(work(whole.ports(), &task)).unwrap().unwrap();
        whole.calls()
    };
    let fourth = calls.iter().enumerate().filter(|(_, call)| **call == "parent").nth(3).unwrap().0;
    let first = Faulty::new(&rig, [(fourth, Fault::CrashBefore)]);
    assert!(run(work(first.ports(), &task)).is_none());
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (3, 50)]);
    // While the dead worker holds the run, it is left alone.
    rig.jobs.clear_calls();
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::Overtaken));
    assert_eq!(pages_asked(&rig), []);
    rig.settle().await;
    assert_eq!(pages_asked(&rig), [(4, 50), (5, 50)]);
    assert_eq!(item_keys(&rig, MANIFEST), indices(230));
}

/// DQ-06: a worker that sleeps longer than its hold on a run lasts loses it a second after its end;
/// when it wakes it learns so by its token, asks for no further page and writes nothing.
#[tokio::test]
async fn a_worker_that_wakes_after_its_hold_changes_nothing() {
    let task = crate::task::Task { key: batch("b") };
    let calls = {
        let rig = Rig::new();
        completed(&rig, 120).await;
        let whole = Faulty::new(&rig, []);
        run(work(whole.ports(), &task)).unwrap().unwrap();
        whole.calls()
    };
    // After the second page its part is put, and then the progress is saved.
    let second = calls.iter().enumerate().filter(|(_, call)| **call == "parent").nth(1).unwrap().0;
    let rig = Rig::new();
    let key = completed(&rig, 120).await;
    let left = std::sync::Mutex::new(None);
    let meanwhile = || {
        rig.clock.advance(rig.limits.run_claim + std::time::Duration::from_secs(1));
        let stored = run(rig.work(&key)).unwrap();
        assert_eq!(stored, Worked::Stored { key: MANIFEST.into(), follow_up: None });
        rig.jobs.clear_calls();
        *left.lock().unwrap() = Some((rig.entry(&key), rig.objects()));
    };
    let sleeper = Faulty::with_visitor(&rig, second + 1, meanwhile);
    let woken = run(work(sleeper.ports(), &task)).unwrap().unwrap();
    assert_eq!(woken, Worked::Skipped(Skip::Overtaken));
    assert_eq!(pages_asked(&rig), []);
    assert_eq!(left.lock().unwrap().take().unwrap(), (rig.entry(&key), rig.objects()));
    assert_eq!(item_keys(&rig, MANIFEST), indices(120));
}

/// An announcement or a link that comes in the middle of a run does not end it.
#[tokio::test]
async fn a_webhook_in_the_middle_of_a_run_does_not_disturb_it() {
    let rig = Rig::new();
    let key = batch("b");
    let row = Entry::expected(key.clone(), None, Cause::Submit, rig.now(), &rig.limits);
    rig.ledger.place(&row);
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..120))));
    let busy = Interrupting { rig: &rig };
    let ports = crate::steps::Ports { results: &busy, ..rig.ports() };
    let worked = work(ports, &crate::task::Task { key: key.clone() }).await.unwrap();
    assert_eq!(worked, Worked::Stored { key: MANIFEST.into(), follow_up: None });
    assert_eq!(rig.entry(&key).link, Some(link_of(&key, "s-1")));
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (3, 50)]);
}

/// A result store during whose puts others write the row.
struct Interrupting<'a> {
    rig: &'a Rig,
}

#[async_trait::async_trait]
impl crate::ports::Results for Interrupting<'_> {
    async fn put_new(
        &self,
        key: &str,
        content: &[u8],
    ) -> Result<crate::ports::PutOutcome, crate::ports::PortError> {
        self.rig.announce(&batch("b")).await;
        let link = link_of(&batch("b"), "s-1");
        crate::adopt::claim(self.rig.ports(), &batch("b"), &link, Cause::Submit).await?;
        self.rig.results.put_new(key, content).await
    }

    async fn read(
        &self,
        key: &str,
    ) -> Result<Option<(crate::entry::StoredObject, Vec<u8>)>, crate::ports::PortError> {
        self.rig.results.read(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, crate::ports::PortError> {
        self.rig.results.list(prefix, after, limit).await
    }
}

/// A worker stopped between the manifest and the row: the row is settled from the manifest.
#[tokio::test]
async fn a_manifest_that_is_there_settles_the_row_without_asking_again() {
    for (status, count, stands) in [
        (JobStatus::Completed, 3, "stored"),
        (JobStatus::Completed, 0, "stored"),
        (JobStatus::Failed, 3, "dead failed"),
        (JobStatus::Cancelled, 3, "dead cancelled"),
    ] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        rig.jobs.answer_parent(&key, Ok(whole(&key, status, items(0..count))));
        rig.work(&key).await;
        let settled = rig.entry(&key);
        let objects = rig.objects();
        let mut unsettled = settled.redriven(None, rig.now(), &rig.limits).unwrap_or_else(|| {
            let mut row = Entry::expected(key.clone(), None, Cause::Work, rig.now(), &rig.limits);
            row.dt = settled.dt;
            row
        });
        unsettled.version += 1;
        rig.ledger.place(&unsettled);
        rig.jobs.clear_calls();
        rig.clock.advance(MINUTE);
        rig.work(&key).await;
        assert_eq!(rig.stands(&key), stands);
        assert_eq!(stored_object(&rig.entry(&key)), stored_object(&settled));
        assert_eq!((rig.objects(), pages_asked(&rig)), (objects, vec![]));
    }
}

#[tokio::test]
async fn a_manifest_of_another_job_is_never_overwritten() {
    let rig = Rig::new();
    let key = completed(&rig, 3).await;
    rig.results.place(MANIFEST, br#"{"format":"gleaner-manifest/1"}"#.to_vec());
    assert_eq!(rig.work(&key).await, dead(DeadReason::CorruptObject));
    assert_eq!(rig.results.bytes(MANIFEST).unwrap(), br#"{"format":"gleaner-manifest/1"}"#);
}

/// Failed and cancelled parents keep what there was.
#[tokio::test]
async fn a_parent_that_did_not_complete_is_dead_with_its_manifest() {
    for (status, total, stands) in [
        (JobStatus::Failed, 70, "dead failed"),
        (JobStatus::Cancelled, 70, "dead cancelled"),
        // Children that never ran are missing from a cancelled parent's pages.
        (JobStatus::Cancelled, 90, "dead cancelled"),
    ] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let mut answer = whole(&key, status, items(0..70));
        (answer.total, answer.cancelled) = (Some(total), total - 70);
        rig.jobs.answer_parent(&key, Ok(answer));
        rig.settle().await;
        assert_eq!(rig.stands(&key), stands);
        assert_eq!(stored_object(&rig.entry(&key)).key, MANIFEST);
        assert_eq!(item_keys(&rig, MANIFEST), indices(70));
    }
}

/// Children that never ran may be listed, and their counters may be left out or lower.
#[tokio::test]
async fn items_beyond_the_finished_ones_are_stored_as_well() {
    for (status, finished, stands) in [
        (JobStatus::Failed, 3, "dead failed"),
        (JobStatus::Completed, 3, "stored"),
        (JobStatus::Completed, 0, "stored"),
    ] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let mut answer = whole(&key, status, items(0..5));
        (answer.total, answer.ran) = (Some(5), finished);
        rig.jobs.answer_parent(&key, Ok(answer));
        rig.work(&key).await;
        assert_eq!(rig.stands(&key), stands);
        assert_eq!(item_keys(&rig, MANIFEST), indices(5));
    }
}

/// `results: null` and no items are one and the same, when the counters say zero.
#[tokio::test]
async fn a_parent_without_items_is_stored_and_flagged_as_empty() {
    for items in [None, Some(Vec::new())] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let mut answer = whole(&key, JobStatus::Completed, Vec::new());
        answer.items = items;
        rig.jobs.answer_parent(&key, Ok(answer));
        assert_eq!(rig.work(&key).await, Worked::Stored { key: MANIFEST.into(), follow_up: None });
        assert!(stored_object(&rig.entry(&key)).empty);
        assert_eq!(rig.results.keys(), [MANIFEST]);
    }
}

/// An answer may leave all counters out: then the walk to an empty page decides.
#[tokio::test]
async fn a_parent_without_counters_is_walked_to_an_empty_page() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut answer = whole(&key, JobStatus::Completed, items(0..100));
    (answer.total, answer.ran) = (None, 0);
    rig.jobs.answer_parent(&key, Ok(answer));
    rig.work(&key).await;
    assert_eq!(item_keys(&rig, MANIFEST), indices(100));
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (3, 50)]);
}

/// The manifest lists failed items the same way whether one worker walked all pages or two.
#[tokio::test]
async fn the_manifest_names_failed_items_also_when_the_run_was_taken_up_again() {
    let mut some_failed = items(0..120);
    for (index, raw) in [
        (
            7,
            r#"{"url":"https://e.com/7","status":"failed","error_code":"TIMEOUT","error_message":"m"}"#,
        ),
        (
            8,
            r#"{"url":"https://e.com/8","status":"failed","error_code":null,"error_message":null}"#,
        ),
        (60, r#"{"url":5,"status":"failed","error_code":{"a":1},"error_message":[]}"#),
        (110, r#"{"url":"https://e.com/110","status":"completed","error_code":"NETWORK_ERROR"}"#),
    ] {
        some_failed[index].raw = RawJson(raw.into());
    }
    let mut manifests = Vec::new();
    for crash in [None, Some(2)] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, some_failed.clone())));
        if let Some(page) = crash {
            let lost = super::rig::error(crate::ports::ApiErrorKind::Unavailable, Some(502));
            rig.jobs.answer_page(&key, page, Err(lost));
            rig.work(&key).await;
            rig.jobs.clear_answers(&key);
            let again = whole(&key, JobStatus::Completed, some_failed.clone());
            rig.jobs.answer_parent(&key, Ok(again));
        }
        rig.settle().await;
        assert_eq!(standing(&rig.entry(&key)), "stored");
        manifests.push(rig.json(MANIFEST)["failed"].clone());
    }
    assert_eq!(manifests[0], manifests[1]);
    let expected = serde_json::json!([
        { "key": "7", "url": "https://e.com/7", "code": "TIMEOUT", "message": "m" },
        { "key": "8", "url": "https://e.com/8", "code": "", "message": "" },
        { "key": "60", "url": "", "code": "", "message": "" },
        { "key": "110", "url": "https://e.com/110", "code": "NETWORK_ERROR", "message": "" },
    ]);
    assert_eq!(manifests[0], expected);
}
