use super::parents::{completed, indices, item_keys, pages_asked, whole};
use super::rig::{HOUR, Rig, batch, dead, error, items, stored_object};
use crate::entry::DeadReason;
use crate::job::JobStatus;
use crate::limits::RUNS_MAX;
use crate::ports::{ApiErrorKind, ParentPage, RawJson, Results};
use crate::task::Task;
use crate::testing::ScriptedJobs;
use crate::work::tests::faults::{Fault, Faulty, run};
use crate::work::{PutOff, Worked, work};

const MANIFEST: &str = "kind=batch/dt=2026-11-29/b/_manifest.json";

/// Items of which one is so large that it fits on a page alone only.
fn with_a_large_one(count: u32, at: usize, bytes: usize) -> Vec<crate::ports::Item> {
    let mut all = items(0..count);
    let large = format!(r#"{{"input_index":{at},"pad":"{}"}}"#, "x".repeat(bytes));
    all[at].raw = RawJson(large.into());
    all
}

fn limited(rig: &Rig, bytes: usize) -> &ScriptedJobs {
    rig.jobs.limit_page_bytes(bytes);
    &rig.jobs
}

/// A page over the cap is asked for in smaller pieces, and the pages grow again behind it.
#[tokio::test]
async fn a_page_that_is_too_large_is_read_in_pieces() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let all = with_a_large_one(200, 61, 20_000);
    limited(&rig, 20_100).answer_parent(&key, Ok(whole(&key, JobStatus::Completed, all)));
    assert_eq!(rig.work(&key).await, Worked::Stored { key: MANIFEST.into(), follow_up: None });
    assert_eq!(item_keys(&rig, MANIFEST), indices(200));
    let asked = pages_asked(&rig);
    assert_eq!(asked[..5], [(1, 50), (2, 50), (3, 25), (11, 5), (12, 5)]);
    assert!(asked.contains(&(62, 1)), "the large one alone");
    assert_eq!(asked.last(), Some(&(4, 50)), "the pages have grown again");
    assert!(asked.len() < 30, "{asked:?}");
}

/// One item over the cap: dead(too large), and the reason is the platform's answer.
#[tokio::test]
async fn one_item_that_is_too_large_ends_the_job() {
    for at in [0, 61] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let all = with_a_large_one(100, at, 20_000);
        limited(&rig, 10_000).answer_parent(&key, Ok(whole(&key, JobStatus::Completed, all)));
        assert_eq!(rig.work(&key).await, dead(DeadReason::TooLarge));
        assert!(pages_asked(&rig).len() < 30);
        assert_eq!(rig.results.bytes(MANIFEST), None);
    }
}

/// A row holds a bounded number of parts; a job that needs more is too large, not stuck.
#[tokio::test]
async fn a_job_of_very_many_very_large_items_is_too_large_for_its_row() {
    let rig = Rig::new();
    let key = completed(&rig, 9_000).await;
    rig.jobs.answer_page(&key, 2, Err(error(ApiErrorKind::Unavailable, None)));
    rig.work(&key).await;
    let mut row = rig.entry(&key);
    let run = row.run.as_mut().unwrap();
    run.parts = vec![run.parts[0].clone(); 900];
    (run.page_size, run.next_page) = (1, 901);
    row.not_before = None;
    rig.ledger.place(&row);
    assert!(serde_json::to_string(&row).unwrap().len() < 400_000);
    assert_eq!(rig.work(&key).await, dead(DeadReason::TooLarge));
}

/// The largest crawl, in full pages, fits its row.
#[tokio::test]
async fn ten_thousand_items_are_two_hundred_parts() {
    let rig = Rig::new();
    let key = completed(&rig, 10_000).await;
    assert_eq!(rig.work(&key).await, Worked::Stored { key: MANIFEST.into(), follow_up: None });
    assert_eq!(rig.results.keys().len(), 201);
    assert_eq!(item_keys(&rig, MANIFEST), indices(10_000));
}

/// SC-05, SC-06: pages that repeat, shift or disagree with the counters: another run, spaced
/// out, a few times; what was not complete never gets a manifest.
#[tokio::test]
async fn pages_that_never_agree_end_as_inconsistent() {
    let duplicate = {
        let mut all = items(0..60);
        all[55].key = "3".into();
        all
    };
    let missing = items(0..59);
    let more = items(0..61);
    for all in [duplicate, missing, more] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let mut answer = whole(&key, JobStatus::Completed, all);
        (answer.total, answer.ran) = (Some(60), 60);
        rig.jobs.answer_parent(&key, Ok(answer));
        let begun = rig.now();
        let worked = rig.work(&key).await;
        assert!(matches!(worked, Worked::PutOff { because: PutOff::Inconsistent, .. }));
        rig.settle().await;
        assert_eq!(rig.stands(&key), "dead inconsistent");
        assert_eq!(rig.results.bytes(MANIFEST), None);
        let asked = pages_asked(&rig).len();
        assert!(asked <= 3 * usize::try_from(RUNS_MAX).unwrap(), "{asked} pages");
        let lasted = crate::time::between(begun, rig.now());
        assert!(lasted >= 4 * rig.limits.missing_pause && lasted < HOUR, "{lasted:?}");
    }
}

/// SC-05: a page boundary that moves during the first run only: the second run is whole.
#[tokio::test]
async fn pages_that_shifted_once_are_read_again() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    // The second page begins one item too late the first time.
    let mut shifted = whole(&key, JobStatus::Completed, items(51..100));
    (shifted.total, shifted.ran) = (Some(100), 100);
    rig.jobs.answer_page(&key, 2, Ok(shifted));
    let mut second = whole(&key, JobStatus::Completed, items(50..100));
    (second.total, second.ran) = (Some(100), 100);
    rig.jobs.answer_page(&key, 2, Ok(second));
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..100))));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
    assert_eq!(item_keys(&rig, MANIFEST), indices(100));
}

/// SC-06: a server that ignores the page number and repeats the first page for ever.
#[tokio::test]
async fn a_page_that_repeats_for_ever_is_read_twice_a_run() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut first = whole(&key, JobStatus::Completed, items(0..50));
    (first.total, first.ran) = (Some(9_000), 9_000);
    for page in 1..=300 {
        rig.jobs.answer_page(&key, page, Ok(first.clone()));
    }
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead inconsistent");
    assert_eq!(pages_asked(&rig).len(), 2 * usize::try_from(RUNS_MAX).unwrap());
}

/// SC-06: where the counters do not tell the end, a server that repeats its last page for ever
/// has told it.
#[tokio::test]
async fn a_last_page_that_repeats_is_no_part() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut cancelled = whole(&key, JobStatus::Cancelled, items(50..60));
    // Forty children never ran, and are not listed.
    (cancelled.total, cancelled.ran) = (Some(100), 60);
    for page in 2..=4 {
        rig.jobs.answer_page(&key, page, Ok(cancelled.clone()));
    }
    cancelled.items = Some(items(0..50));
    rig.jobs.answer_page(&key, 1, Ok(cancelled));
    assert_eq!(rig.work(&key).await, dead(DeadReason::Cancelled));
    assert_eq!(item_keys(&rig, MANIFEST), indices(60));
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (3, 50)]);
}

/// A run whose workers are cut short again and again is no poison as long as it gets on; one
/// whose workers die before they have stored anything is.
#[tokio::test]
async fn a_part_that_was_stored_counts_as_progress() {
    let calls = {
        let rig = Rig::new();
        let task = Task { key: completed(&rig, 120).await };
        let dry = Faulty::new(&rig, []);
        run(work(dry.ports(), &task)).unwrap().unwrap();
        dry.calls()
    };
    let nth = |name: &str, n: usize| {
        calls.iter().enumerate().filter(|(_, call)| **call == name).nth(n).unwrap().0
    };
    for (at, sweeps) in [(nth("put_new", 0), 11), (nth("parent", 1), 0)] {
        let rig = Rig::new();
        let task = Task { key: completed(&rig, 120).await };
        let mut row = rig.entry(&task.key);
        row.counters.sweeps = 11;
        rig.ledger.place(&row);
        let cut_short = Faulty::new(&rig, [(at, Fault::CrashBefore)]);
        assert!(run(work(cut_short.ports(), &task)).is_none());
        assert_eq!(rig.entry(&task.key).counters.sweeps, sweeps);
    }
}

/// `results: null` although the counters speak of items.
#[tokio::test]
async fn null_results_of_a_job_with_items_are_inconsistent() {
    let rig = Rig::new();
    let key = batch("b");
    rig.announce(&key).await;
    let mut answer = whole(&key, JobStatus::Completed, items(0..3));
    answer.items = None;
    rig.jobs.answer_parent(&key, Ok(answer));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "dead inconsistent");
}

/// Children that ran were paid for, also those of a cancelled parent: pages that lag behind its
/// counters are no manifest, at first or half-way.
#[tokio::test]
async fn pages_of_a_cancelled_parent_that_lag_are_read_again() {
    for visible in [0, 59] {
        let rig = Rig::new();
        let key = batch("b");
        rig.announce(&key).await;
        let cancelled = |count| {
            let mut answer = whole(&key, JobStatus::Cancelled, items(0..count));
            (answer.total, answer.ran, answer.cancelled) = (Some(100), 60, 40);
            answer
        };
        rig.jobs.answer_page(&key, 1, Ok(cancelled(visible.min(50))));
        if visible > 0 {
            let second = ParentPage { items: Some(items(50..visible)), ..cancelled(0) };
            rig.jobs.answer_page(&key, 2, Ok(second));
            rig.jobs.answer_page(&key, 3, Ok(cancelled(0)));
        }
        let worked = rig.work(&key).await;
        assert!(matches!(worked, Worked::PutOff { because: PutOff::Inconsistent, .. }));
        assert_eq!(rig.results.bytes(MANIFEST), None);
        rig.jobs.clear_answers(&key);
        rig.jobs.answer_parent(&key, Ok(cancelled(60)));
        rig.settle().await;
        assert_eq!(rig.stands(&key), "dead cancelled");
        assert_eq!(item_keys(&rig, MANIFEST), indices(60));
        assert!(!stored_object(&rig.entry(&key)).empty);
    }
}

/// Trouble in the middle: the run is released, and goes on after the pause.
#[tokio::test]
async fn trouble_in_the_middle_of_a_run_keeps_what_was_read() {
    let rig = Rig::new();
    let key = completed(&rig, 120).await;
    rig.jobs.answer_page(&key, 2, Err(error(ApiErrorKind::Unavailable, Some(502))));
    let third = whole(&key, JobStatus::Completed, items(50..100));
    let third = ParentPage { total: Some(120), ran: 120, ..third };
    rig.jobs.answer_page(&key, 2, Ok(third));
    let worked = rig.work(&key).await;
    assert!(matches!(worked, Worked::PutOff { because: PutOff::Trouble(_), .. }), "{worked:?}");
    rig.settle().await;
    assert_eq!(pages_asked(&rig), [(1, 50), (2, 50), (2, 50), (3, 50)]);
    assert_eq!(item_keys(&rig, MANIFEST), indices(120));
}

/// A page that reads differently the second time, after a crash between its part and the row:
/// the old part is left behind, and a new run is whole.
#[tokio::test]
async fn a_part_that_reads_differently_after_a_crash_begins_a_new_run() {
    let task = Task { key: batch("b") };
    let put = {
        let rig = Rig::new();
        completed(&rig, 60).await;
        let dry = Faulty::new(&rig, []);
        run(work(dry.ports(), &task)).unwrap().unwrap();
        dry.calls().iter().position(|call| *call == "put_new").unwrap()
    };
    let rig = Rig::new();
    let key = completed(&rig, 60).await;
    let crashing = Faulty::new(&rig, [(put, Fault::CrashAfter)]);
    assert!(run(work(crashing.ports(), &task)).is_none());
    let orphans = rig.objects();
    assert_eq!(orphans.len(), 1);
    let mut changed = items(0..60);
    changed[0].raw = RawJson(r#"{"input_index":0,"settled":true}"#.into());
    rig.jobs.clear_answers(&key);
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, changed)));
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
    assert_eq!(item_keys(&rig, MANIFEST), indices(60));
    let orphan = orphans.keys().next().unwrap();
    assert_eq!(rig.results.bytes(orphan).as_ref(), orphans.get(orphan));
    assert!(!rig.json(MANIFEST)["parts"].to_string().contains(orphan));
}

/// A part that was damaged or replaced where it lies is not named by a manifest.
#[tokio::test]
async fn a_damaged_part_begins_a_new_run() {
    a_part_changed_by(|rig, part| assert!(rig.results.corrupt(part))).await;
    a_part_changed_by(|rig, part| {
        let mut others = items(0..50);
        others[0].raw = RawJson(r#"{"input_index":0,"other":true}"#.into());
        let lines = crate::content::part_lines(&batch("b"), &others).unwrap();
        rig.results.place(part, crate::object::encode(part, &lines).unwrap());
    })
    .await;
}

async fn a_part_changed_by(change: impl Fn(&Rig, &str)) {
    let rig = Rig::new();
    let key = completed(&rig, 120).await;
    rig.jobs.answer_page(&key, 3, Err(error(ApiErrorKind::Unavailable, None)));
    let last = whole(&key, JobStatus::Completed, items(100..120));
    let last = ParentPage { total: Some(120), ran: 120, ..last };
    rig.jobs.answer_page(&key, 3, Ok(last));
    rig.work(&key).await;
    let part = rig.results.keys()[0].clone();
    change(&rig, &part);
    rig.settle().await;
    assert_eq!(rig.stands(&key), "stored");
    assert!(!rig.json(MANIFEST)["parts"].to_string().contains(&part));
    assert_eq!(item_keys(&rig, MANIFEST), indices(120));
    let object = stored_object(&rig.entry(&key));
    assert_eq!(rig.results.read(MANIFEST).await.unwrap().unwrap().0.sha256, object.sha256);
}
