//! `gleaner sweep`, `replay` and `reconcile`: what nobody told the ledger of, and what is overdue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::ports::Clock as _;
use domain::time::before;
use serde_json::Value;
use system::SystemClock;

use crate::bench::{Bench, Folder, Ran, list, quick};
use crate::scripted::{Reply, Scripted, error, job};

/// Runs of a verb after which the platform should long have come so far.
const RUNS_MAX: u32 = 400;

/// Another ledger of the same account submits so many jobs; they finish at once.
async fn foreign(bench: &Bench, count: usize) {
    let other = Folder::new(&bench.platform.base_url());
    let (urls, _) = list(count);
    let file = other.write("urls.txt", urls);
    other.run(&["submit", "--file", file.to_str().unwrap()]).await.expect(0);
    until_finished(bench, count).await;
}

async fn until_finished(bench: &Bench, count: usize) {
    let is_finished = |job: &Value| job["status"] == "completed";
    while bench.books().iter().filter(|job| is_finished(job)).count() < count {
        tokio::task::yield_now().await;
    }
}

/// What a verb printed for the whole, without what differs between runs.
#[track_caller]
fn summary(ran: &Ran, name: &str) -> Value {
    let found = ran.of_type(name);
    assert_eq!(found.len(), 1, "{ran:#?}");
    found[0].clone()
}

/// Runs a verb until it counts so many of something; what it printed then.
async fn until(bench: &Bench, args: &[&str], (name, field, count): (&str, &str, u32)) -> Ran {
    let mut runs = 0;
    loop {
        let ran = bench.run(args).await.expect(0);
        if summary(&ran, name)[field] == count {
            return ran;
        }
        runs += 1;
        assert!(runs < RUNS_MAX, "{args:?} never counts {count} {field}: {ran:#?}");
    }
}

async fn jobs(bench: &Bench) -> Value {
    bench.run(&["jobs", "counts", "--json"]).await.expect(0).json()[0]["jobs"].clone()
}

/// The plan is printed and nothing is changed; then it is carried out, once; then the results are
/// there.
#[tokio::test]
async fn reconcile_finds_what_no_webhook_told_of() {
    let bench = Bench::new(quick()).await;
    foreign(&bench, 7).await;
    let now = ["--set", "reconcile.threshold=1s"];
    let plan = [&["reconcile", "--dry-run", "--json"][..], &now].concat();
    // A job is left to its webhook for a while.
    let planned = until(&bench, &plan, ("reconciled", "announced", 7)).await;
    assert_eq!(planned.of_type("step").len(), 7, "{planned:#?}");
    let step = &planned.of_type("step")[0];
    assert_eq!(
        (&step["step"], &step["kind"], &step["state"]),
        (&"announce".into(), &"extract".into(), &Value::Null)
    );
    assert_eq!(summary(&planned, "reconciled")["dry_run"], true);
    assert_eq!(jobs(&bench).await, serde_json::json!({}));

    let done = [&["reconcile", "--json"][..], &now].concat();
    let ran = bench.run(&done).await.expect(0);
    let found = summary(&ran, "reconciled");
    assert_eq!((&found["announced"], &found["unknown"]), (&7.into(), &7.into()), "{ran:#?}");
    assert_eq!(jobs(&bench).await, serde_json::json!({ "received": 7 }));
    let again = bench.run(&done).await.expect(0);
    assert_eq!(summary(&again, "reconciled")["announced"], 0);
    bench.run(&["poll", "--max-wait", "1m"]).await.expect(0);
    assert_eq!(jobs(&bench).await, serde_json::json!({ "stored": 7 }));
    // Whoever asks for it has the old ones compared again, which the ledger knows.
    let back = [&done[..], &["--back", "1h"]].concat();
    let ran = bench.run(&back).await.expect(0);
    let found = summary(&ran, "reconciled");
    assert_eq!((&found["announced"], &found["listed"]), (&0.into(), &7.into()));
    // A person reads lines.
    let text = bench.run(&[&["reconcile"][..], &now].concat()).await.expect(0).out;
    assert!(text.contains("pages: 0 announced (0 unknown), 0 expected"), "{text}");
}

/// Deliveries to a receiver that is not there: the log tells of them, and the jobs are fetched.
#[tokio::test]
async fn replay_finds_what_was_delivered_in_vain() {
    let bench = Bench::new(quick()).await;
    let url = "http://127.0.0.1:9/webhook";
    let create = ["webhooks", "create", "--url", url, "--event", "extract"];
    bench.run(&create).await.expect(0);
    foreign(&bench, 5).await;
    let ours = ["--set", "public_url=http://127.0.0.1:9/webhook"];
    let plan = [&["replay", "--dry-run", "--json"][..], &ours].concat();
    let planned = until(&bench, &plan, ("replayed", "announced", 5)).await;
    let wrong = serde_json::json!(["batch: missing", "crawl: missing"]);
    assert_eq!(summary(&planned, "replayed")["subscriptions"], wrong, "{planned:#?}");
    assert!(planned.err.contains("batch_completed is not delivered here: it has no webhook"));
    assert!(planned.err.contains("hint: `gleaner webhooks ensure` puts that right"));
    assert_eq!(jobs(&bench).await, serde_json::json!({}));
    let done = [&["replay", "--json"][..], &ours].concat();
    let ran = bench.run(&done).await.expect(0);
    let found = summary(&ran, "replayed");
    assert_eq!((&found["announced"], &found["webhooks"]), (&5.into(), &1.into()));
    assert_eq!(summary(&bench.run(&done).await.expect(0), "replayed")["announced"], 0);
    bench.run(&["poll", "--max-wait", "1m"]).await.expect(0);
    assert_eq!(jobs(&bench).await, serde_json::json!({ "stored": 5 }));
    let whole = bench.run(&["replay", "--whole"]).await.expect(0).out;
    assert!(whole.contains("deliveries of 1 webhooks: 0 jobs announced"), "{whole}");
}

/// Rows whose time has come, and what a sweep makes of them.
#[tokio::test]
async fn sweep_sends_what_is_overdue() {
    let bench = Bench::new(quick()).await;
    let (urls, _) = list(4);
    let file = bench.folder.write("urls.txt", urls);
    bench.run(&["submit", "--file", file.to_str().unwrap()]).await.expect(0);
    until_finished(&bench, 4).await;
    let planned = until(&bench, &["sweep", "--dry-run", "--json"], ("swept", "sent", 4)).await;
    let steps = planned.of_type("step");
    assert!(steps.iter().all(|step| step["step"] == "send" && step["state"] == "expected"));
    let ran = bench.run(&["sweep", "--json"]).await.expect(0);
    assert_eq!(summary(&ran, "swept")["sent"], 4, "{ran:#?}");
    let again = bench.run(&["sweep"]).await.expect(0).out;
    assert_eq!(
        again,
        "0 tasks sent, 0 jobs given up, 0 submissions looked for (0 found, 0 not accepted, 0 \
         ambiguous)\n"
    );
}

/// SC-09: a job whose delivery we refused for good, and that was given up: five runs over the same
/// log look at it once, the log's entries are shown to whoever asks for all of them, and the job is
/// among the dead.
#[tokio::test]
async fn what_was_refused_for_good_is_listed_and_not_brought_back() {
    let logged = before(SystemClock.now(), Duration::from_hours(1));
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let platform = Scripted::start(move |_, line| {
        let items = |items: &str| Reply::Answer(200, "", format!(r#"{{"items":[{items}]}}"#));
        if line.contains("/deliveries?page=1&") {
            items(&format!(
                r#"{{"id":"d1","event_type":"extract_completed","job_id":"j1","attempt_number":5,
                    "status":"abandoned","http_status":400,"created_at":"{logged}"}}"#
            ))
        } else if line.contains("/webhooks?page=1&") {
            items(
                r#"{"id":"w1","url":"https://r.example/","is_active":true,
                    "event_type":"extract_completed","created_at":"2026-01-01T00:00:00Z"}"#,
            )
        } else if line.contains("/webhooks") {
            items("")
        } else {
            counted.fetch_add(1, Ordering::SeqCst);
            job("j1", "failed")
        }
    })
    .await;
    let folder = Folder::new(&platform.url);
    for round in 0..5 {
        let ran = folder.run(&["replay", "--json"]).await.expect(0);
        let announced = u32::from(round == 0);
        assert_eq!(summary(&ran, "replayed")["announced"], announced, "{round}: {ran:#?}");
        folder.run(&["poll", "j1", "--max-wait", "1m"]).await.expect(2);
        assert_eq!(looks.load(Ordering::SeqCst), 1);
    }
    let ran = folder.run(&["replay", "--whole", "--json"]).await.expect(0);
    let [shown] = &ran.of_type("step")[..] else { panic!("{ran:#?}") };
    let shown = ["job_id", "answered", "state", "step"].map(|name| &shown[name]);
    assert_eq!(serde_json::json!(shown), serde_json::json!(["j1", 400, "dead", "known"]));
    let dead = folder.run(&["dead", "list"]).await.expect(0).out;
    assert!(dead.contains("j1\tfailed"), "{dead}");
}

/// SC-07: an answer that is no list is a failed run, and never one that found nothing.
#[tokio::test]
async fn an_answer_without_its_list_is_a_failure() {
    let (jobs, items) = (r#"{"jobs":[],"page":1}"#, r#"{"items":[],"page":1}"#);
    let code = r#"{"code":"INTERNAL_ERROR","message":"m","retryable":true}"#;
    for (body, reconciles, replays) in
        [(jobs, 0, 65), (items, 65, 0), (r#"{"page":1,"page_count":0}"#, 65, 65), (code, 65, 65)]
    {
        let platform = Scripted::start(|_, _| Reply::Answer(200, "", body.to_owned())).await;
        let folder = Folder::new(&platform.url);
        for (verb, code) in [("reconcile", reconciles), ("replay", replays)] {
            let ran = folder.run(&[verb, "--json"]).await;
            assert_eq!(ran.code, code, "{verb} {body}: {ran:#?}");
            assert_eq!(ran.err.contains(" could not be read whole: "), code == 65, "{}", ran.err);
        }
    }
}

/// What the platform refuses is a failure.
#[tokio::test]
async fn a_refusal_is_told_by_the_exit_code() {
    for (status, code) in [(401, 77), (503, 69), (404, 4)] {
        let platform = Scripted::start(move |_, _| error(status, "", "CODE", false)).await;
        let folder = Folder::new(&platform.url);
        for verb in ["reconcile", "replay"] {
            let ran = folder.run(&[verb, "--json"]).await;
            assert_eq!(ran.code, code, "{verb} {status}: {ran:#?}");
            assert!(ran.err.contains(" could not be read whole: "), "{}", ran.err);
            assert_eq!(ran.err.contains("hint: check the API key"), status == 401, "{}", ran.err);
        }
    }
}

/// Where there is no ledger nothing is overdue, and none is made.
#[tokio::test]
async fn a_sweep_of_a_folder_without_a_ledger_is_a_mistake() {
    let folder = Folder::new("http://127.0.0.1:9");
    for args in [&["sweep"][..], &["sweep", "--dry-run"]] {
        let ran = folder.run(args).await;
        assert_eq!(ran.code, 4, "{ran:#?}");
        assert!(ran.err.contains("there is no ledger"), "{}", ran.err);
    }
}
