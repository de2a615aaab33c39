//! `gleaner poll`: waiting that ends, with a code that says how.

use std::sync::Arc;

use domain::ports::{Entries as _, EntryFilter, Expected, Inspection as _, Written};
use domain::testing::ManualClock;
use embedded::SqliteStore;
use serde_json::Value;
use simulator::{Config, Faults};
use tokio::io::{AsyncBufReadExt as _, BufReader};
#[cfg(unix)]
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::bench::{Bench, Folder, Ran, list, quick};
use crate::scripted::{Reply, Scripted, error, job};

/// Polls one extract job of a scripted platform, with short pauses.
async fn poll(
    script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    max_wait: &str,
) -> (Ran, usize) {
    let platform = Scripted::start(script).await;
    let folder = Folder::new(&platform.url);
    let args = ["poll", "j1", "--json", "--base", "1ms", "--cap", "1ms", "--max-wait", max_wait];
    let ran = folder.run(&args).await;
    (ran, platform.calls())
}

fn row(ran: &Ran) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = ran.of_type("poll");
    assert_eq!(rows.len(), 1, "{ran:?}");
    (text(&rows[0]["job_id"]), text(&rows[0]["outcome"]), text(&rows[0]["status"]))
}

#[track_caller]
fn assert_row(ran: &Ran, outcome: &str, status: &str) {
    assert_eq!(row(ran), ("j1".to_owned(), outcome.to_owned(), status.to_owned()), "{ran:?}");
}

/// CL-01: throttling without end ends at the deadline, and is no busy loop.
#[tokio::test]
async fn throttling_without_end_ends_at_the_deadline() {
    for headers in ["retry-after: 0\r\n", "retry-after: 1\r\n"] {
        let (ran, calls) = poll(move |_, _| error(429, headers, "RATE_LIMITED", true), "1s").await;
        assert_eq!(ran.code, 3, "{ran:?}");
        assert_eq!(row(&ran).1, "timeout");
        assert!((1..=12).contains(&calls), "{calls} calls in a second");
    }
}

/// CL-02: neither a hanging call nor a long pause outlasts the deadline. The hang would last until
/// the client gives up, the pause half an hour.
#[tokio::test]
async fn nothing_outlasts_the_deadline() {
    let (ran, _) = poll(|_, _| Reply::Hang, "2s").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let platform = Scripted::start(|_, _| job("j1", "processing")).await;
    let folder = Folder::new(&platform.url);
    let args = ["poll", "j1", "--json", "--base", "30m", "--cap", "30m", "--max-wait", "3s"];
    let ran = folder.run(&args).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_row(&ran, "timeout", "processing");
}

/// CL-03: the code says how it ended, and id and last status are always printed.
#[tokio::test]
async fn the_code_says_how_it_ended() {
    for (status, code, outcome, shown) in [
        ("completed", 0, "stored", "stored"),
        ("failed", 2, "dead", "failed"),
        ("cancelled", 2, "dead", "cancelled"),
    ] {
        let (ran, _) = poll(move |_, _| job("j1", status), "1m").await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert_row(&ran, outcome, shown);
    }
    let (ran, _) = poll(|_, _| error(401, "", "UNAUTHORIZED", false), "10s").await;
    assert_eq!(ran.code, 77, "{ran:?}");
    assert_row(&ran, "refused", "denied");
    let (ran, _) = poll(|_, _| error(404, "", "JOB_NOT_FOUND", false), "10s").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_row(&ran, "unknown_id", "missing");
    let (ran, _) = poll(|_, _| error(404, "", "JOB_NOT_FOUND", false), "1ms").await;
    assert!([3, 4].contains(&ran.code), "{ran:?}");
}

/// CL-04: cancelled is final; what this version does not know is reported after a few looks.
#[tokio::test]
async fn unknown_statuses_are_reported_soon() {
    for status in ["expired", "COMPLETED"] {
        let (ran, calls) = poll(move |_, _| job("j1", status), "1m").await;
        assert_eq!(ran.code, 65, "{ran:?}");
        assert_row(&ran, "unknown_status", status);
        // One call asks whether the job is there.
        assert_eq!(calls, 4);
    }
    let missing = |_: usize, _: &str| Reply::Answer(200, "", r#"{"job_id":"j1"}"#.to_owned());
    let (ran, calls) = poll(missing, "1m").await;
    assert_eq!(ran.code, 65, "{ran:?}");
    assert!(calls <= 20, "{calls}");
}

/// CL-06: a quota ends the wait at once with a code of its own, a rate limit is waited for.
#[tokio::test]
async fn quota_and_rate_limit_are_told_apart() {
    let (ran, calls) = poll(|_, _| error(429, "", "QUOTA_EXCEEDED", false), "1m").await;
    assert_eq!((ran.code, calls), (75, 1), "{ran:?}");
    assert_row(&ran, "refused", "throttled");
    let (ran, calls) = poll(|_, _| error(402, "", "PAYMENT_REQUIRED", false), "1m").await;
    assert_eq!((ran.code, calls), (79, 1), "{ran:?}");
    let limited = |call: usize, _: &str| match call {
        0 => error(429, "retry-after: 1\r\n", "RATE_LIMITED", true),
        _ => job("j1", "completed"),
    };
    let (ran, calls) = poll(limited, "1m").await;
    // One call asks whether the job is there.
    assert_eq!((ran.code, calls), (0, 3), "{ran:?}");
}

/// CL-07: a bad gateway, a reset and a 503 are survived, and too many in a row are reported.
#[tokio::test]
async fn hiccups_do_not_end_the_wait() {
    let hiccups = |call: usize, _: &str| match call {
        0 => error(502, "", "BAD_GATEWAY", true),
        // Twice, because a read is tried again on a fresh connection.
        1 | 2 => Reply::Reset,
        3 => error(503, "", "SERVICE_UNAVAILABLE", true),
        4 => job("j1", "processing"),
        _ => job("j1", "completed"),
    };
    let (ran, calls) = poll(hiccups, "1m").await;
    assert_eq!((ran.code, calls), (0, 6), "{ran:?}");
    let (ran, calls) = poll(|_, _| error(502, "", "BAD_GATEWAY", true), "1m").await;
    assert_eq!((ran.code, calls), (69, 20), "{ran:?}");
}

/// CL-07: a name that does not resolve and a port that nobody listens on are hiccups as well.
#[tokio::test]
async fn no_connection_is_a_hiccup() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for url in [closed.as_str(), "http://gleaner.invalid"] {
        let folder = Folder::new(url);
        let args = ["poll", "j1", "--json", "--base", "1ms", "--cap", "1ms", "--max-wait", "1s"];
        let ran = folder.run(&args).await;
        assert_eq!(ran.code, 3, "{url}: {ran:?}");
        assert_row(&ran, "timeout", "unavailable");
    }
}

/// Of several jobs each has its row, and the worst code counts.
#[tokio::test]
async fn several_jobs_have_a_row_each() {
    let script = |_: usize, line: &str| match line.split('/').nth(3) {
        Some(id) if id.starts_with("good") => job("good", "completed"),
        Some(id) if id.starts_with("bad") => job("bad", "failed"),
        _ => job("slow", "processing"),
    };
    let platform = Scripted::start(script).await;
    let folder = Folder::new(&platform.url);
    // The pause outlasts the deadline, so that no call is cut off by it.
    let short = ["--max-wait", "3s", "--base", "30m", "--cap", "30m"];
    let args = [["poll", "good", "bad", "slow", "good"].as_slice(), &short].concat();
    let ran = folder.run(&args).await.expect(2);
    let mut rows: Vec<_> = ran.out.lines().collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            "bad\textract\tdead\tfailed\tPERMANENT_BLOCK: blocked",
            "good\textract\tstored\tstored",
            "slow\textract\ttimeout\tprocessing",
        ]
    );
}

/// A job that fails retryably is resubmitted, and its successor waited for.
#[tokio::test]
async fn successors_are_waited_for() {
    let mut faults = Faults::none();
    faults.jobs.fail_retryable = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let ran = bench.run(&["submit", "https://example.com/a", "--json"]).await.expect(0);
    let id = ran.of_type("submission")[0]["job_id"].as_str().unwrap().to_owned();
    let short = ["--base", "10ms", "--cap", "100ms"];
    let ran = bench.run(&[["poll", &id, "--json"].as_slice(), &short].concat()).await.expect(2);
    let rows = ran.of_type("poll");
    let outcomes: Vec<_> = rows.iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["superseded", "superseded", "superseded", "dead"]);
    assert_eq!(rows[3]["status"], "resubmits_exhausted");
    for pair in rows.windows(2) {
        assert_eq!(pair[0]["superseded_by"], pair[1]["job_id"]);
    }
    assert_eq!(bench.books().len(), 4);
}

/// Without ids everything open is worked, whatever its kind.
#[tokio::test]
async fn everything_open_is_worked_in_rounds() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(40).0);
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    bench.run(&["submit", "--file", "urls.txt", "--batch"]).await.expect(0);
    bench.run(&["submit", "--crawl", "--limit", "5", "https://example.com/"]).await.expect(0);
    let args = ["poll", "--json", "--base", "10ms", "--cap", "200ms", "--max-wait", "1m"];
    let ran = bench.run(&args).await.expect(0);
    assert_eq!(ran.of_type("poll").len(), 42);
    let summary = &ran.of_type("summary")[0];
    assert_eq!((&summary["stored"], &summary["open"]), (&42.into(), &0.into()));
    let ran = bench.run(&args).await.expect(0);
    assert_eq!(ran.of_type("summary")[0]["stored"], 0);
}

/// Polling works beside a running server, and the two store each result once.
#[tokio::test]
async fn polling_works_beside_a_server() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(60).0);
    let mut server = bench.folder.command(&["serve", "--without-webhooks"]).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("the server has started");
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    let args = ["poll", "--base", "10ms", "--cap", "100ms", "--max-wait", "1m"];
    bench.run(&args).await.expect(0);
    let stored = bench.run(&["jobs", "--state", "stored", "--json"]).await.expect(0);
    assert_eq!(stored.of_type("job").len(), 60);
    let listed = bench.run(&["results", "list", "--json"]).await.expect(0);
    assert_eq!(listed.of_type("result").len(), 60);
    assert!(server.try_wait().unwrap().is_none(), "the server is still running");
    server.kill().await.unwrap();
}

/// Two processes that work the same jobs store each result once.
#[tokio::test]
async fn two_at_once_store_each_result_once() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(60).0);
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    let args = ["poll", "--json", "--base", "10ms", "--cap", "100ms", "--max-wait", "1m"];
    let (one, other) = tokio::join!(bench.run(&args), bench.run(&args));
    let stored = |ran: Ran| ran.expect(0).of_type("summary")[0]["stored"].as_u64().unwrap();
    assert!(stored(one) + stored(other) >= 60);
    let listed = bench.run(&["results", "list", "--limit", "1000", "--json"]).await.expect(0);
    assert_eq!(listed.of_type("result").len(), 60);
    let stored = bench.run(&["jobs", "--state", "stored", "--json"]).await.expect(0);
    assert_eq!(stored.of_type("job").len(), 60);
}

/// Rounds end at the deadline too, and name what is still open; `--once` is content with a round.
#[tokio::test]
async fn rounds_end_at_the_deadline() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    let ran = bench.run(&["poll", "--json", "--max-wait", "1s"]).await.expect(3);
    assert_eq!(ran.of_type("poll")[0]["outcome"], "timeout");
    assert_eq!(ran.of_type("summary")[0]["open"], 1);
    let ran = bench.run(&["poll", "--json", "--once"]).await.expect(0);
    let summary = &ran.of_type("summary")[0];
    assert_eq!((&summary["rounds"], &summary["open"]), (&1.into(), &1.into()));
}

/// CL-01: throttled job lists end at the deadline too, and are no busy loop.
#[tokio::test]
async fn throttled_rounds_end_at_the_deadline() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    for headers in ["retry-after: 0\r\n", "retry-after: 1\r\n"] {
        let limit = move |_: usize, _: &str| error(429, headers, "RATE_LIMITED", true);
        let platform = Scripted::start(limit).await;
        let short = ["--base", "1ms", "--cap", "1ms", "--max-wait", "2s"];
        let args = [["poll", "--api-url", &platform.url].as_slice(), &short].concat();
        bench.run(&args).await.expect(3);
        let calls = platform.calls();
        assert!((1..=48).contains(&calls), "{calls} calls in two seconds");
    }
}

/// CL-07: bad gateways, lost and late answers, cut bodies: nothing is lost or paid twice.
#[tokio::test]
async fn bad_weather_loses_nothing() {
    let mut faults = Faults::none();
    faults.api = Faults::harsh().api;
    faults.api.payment_required = 0.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let (text, urls) = list(40);
    bench.folder.write("urls.txt", text);
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    assert_eq!(bench.urls(), urls);
    let args = ["poll", "--json", "--base", "10ms", "--cap", "500ms", "--max-wait", "1m"];
    let ran = bench.run(&args).await.expect(0);
    assert_eq!(ran.of_type("summary")[0]["open"], 0);
    let stored = bench.run(&["jobs", "--state", "stored", "--json"]).await.expect(0);
    assert_eq!(stored.of_type("job").len(), 40);
    assert_eq!(bench.urls(), urls);
}

/// CL-02: a platform that hangs does not keep the rounds beyond their deadline.
#[tokio::test]
async fn hanging_lists_do_not_outlast_the_deadline() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    let hanging = Scripted::start(|_, _| Reply::Hang).await;
    let args = ["poll", "--json", "--max-wait", "1s", "--api-url", &hanging.url];
    let ran = bench.run(&args).await.expect(3);
    assert_eq!(ran.of_type("summary")[0]["open"], 1);
}

/// CL-03, CL-06: rounds tell key and quota apart from a deadline.
#[tokio::test]
async fn rounds_end_when_the_account_is_in_the_way() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    for (status, code, retryable, exit) in
        [(401, "UNAUTHORIZED", false, 77), (429, "QUOTA_EXCEEDED", false, 75)]
    {
        let platform = Scripted::start(move |_, _| error(status, "", code, retryable)).await;
        let args = ["poll", "--json", "--max-wait", "1m", "--api-url", &platform.url];
        let ran = bench.run(&args).await.expect(exit);
        assert_eq!(ran.of_type("summary")[0]["open"], 1);
    }
}

/// Rounds that a refused key ends before any look count against no job, however often they run.
#[tokio::test]
async fn rounds_give_up_nothing_that_nobody_could_look_at() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    {
        let file = bench.folder.path().join("gleaner-data/ledger.db");
        let clock = Arc::new(ManualClock::default());
        let store = SqliteStore::open(&file, clock, embedded::Settings::default()).unwrap();
        let row =
            store.list_entries(&EntryFilter::default(), None, 1).await.unwrap().items.remove(0);
        let mut due = row.clone();
        due.version += 1;
        due.due_at = Some(row.first_seen);
        due.counters.sweeps = 1_000;
        let written = store.write(&due, Expected::As(row.seen())).await.unwrap();
        assert_eq!(written, Written::Done);
    }
    let platform = Scripted::start(|_, _| error(401, "", "UNAUTHORIZED", false)).await;
    let args = ["poll", "--once", "--json", "--api-url", &platform.url];
    let ran = bench.run(&args).await.expect(77);
    let summary = &ran.of_type("summary")[0];
    assert_eq!((&summary["open"], &summary["dead"]), (&1.into(), &0.into()));
}

/// A slip of the pen is told, and nothing waits for it ever after.
#[tokio::test]
async fn an_id_that_nobody_knows_is_not_remembered() {
    let bench = Bench::new(quick()).await;
    let short = ["--base", "1ms", "--cap", "1ms", "--json"];
    for kind in ["extract", "batch"] {
        let typo = "0b6e1f4a-9a3e-4f5c-8d2b-7c1a6e5d4f30";
        let args = [["poll", typo, "--kind", kind].as_slice(), &short].concat();
        let ran = bench.run(&args).await.expect(4);
        assert_eq!(ran.of_type("poll")[0]["outcome"], "unknown_id");
    }
    assert_eq!(bench.run(&["jobs", "--json"]).await.expect(0).out, "");
    let ran = bench.run(&["poll", "--json"]).await.expect(0);
    assert_eq!(ran.of_type("summary")[0]["open"], 0);
    // A job that another tool submitted is the platform's, and becomes the ledger's.
    let made = bench.run(&["submit", "https://example.com/a", "--json", "--data-dir", "other"]);
    let id = made.await.expect(0).of_type("submission")[0]["job_id"].as_str().unwrap().to_owned();
    bench.run(&["poll", &id, "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    assert_eq!(bench.run(&["jobs", "--json"]).await.expect(0).of_type("job").len(), 1);
}

/// What the platform said last is shown, although the deadline cuts the call after it.
#[tokio::test]
async fn the_platforms_last_word_is_shown() {
    let script = |call: usize, _: &str| match call {
        0 | 1 => job("j1", "processing"),
        _ => Reply::Hang,
    };
    // Less than the longest call.
    let (ran, calls) = poll(script, "1500ms").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_row(&ran, "timeout", "processing");
    assert!(calls >= 3, "{calls}");
}

/// Runs the binary against a platform that says `processing`, ends it after the first call, and
/// gives what it left behind.
#[cfg(unix)]
async fn interrupted(folder: &Folder, args: &[&str], mut called: UnboundedReceiver<()>) -> Ran {
    let child = folder.command(args).spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    called.recv().await.unwrap();
    let kill = tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
    assert!(kill.success());
    crate::bench::ended(child).await.expect(75)
}

/// An interrupt ends the wait with what was learned, and the same command goes on.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_ends_the_wait_with_its_last_word() {
    let (calls, called) = unbounded_channel();
    let platform = Scripted::start(move |_, _| {
        let _ = calls.send(());
        job("j1", "processing")
    })
    .await;
    let folder = Folder::new(&platform.url);
    let args = ["poll", "j1", "--json", "--base", "30m", "--cap", "30m", "--max-wait", "1h"];
    let ran = interrupted(&folder, &args, called).await;
    let (_, outcome, status) = row(&ran);
    assert_eq!(outcome, "interrupted", "{ran:?}");
    assert!(["processing", "not_looked_at"].contains(&status.as_str()), "{ran:?}");
    assert!(ran.err.contains("run `gleaner poll` again"), "{ran:?}");
}

/// Rounds end with their summary too.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_ends_the_rounds_with_their_summary() {
    let bench = Bench::new(Config { speed: 0.01, ..Config::default() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    for reply in [error(503, "", "SERVICE_UNAVAILABLE", true), Reply::Hang] {
        let (calls, called) = unbounded_channel();
        let platform = Scripted::start(move |_, _| {
            let _ = calls.send(());
            reply.clone()
        })
        .await;
        let long = ["--base", "30m", "--cap", "30m", "--max-wait", "1h"];
        let args = [["poll", "--json", "--api-url", &platform.url].as_slice(), &long].concat();
        let ran = interrupted(&bench.folder, &args, called).await;
        assert_eq!(ran.of_type("poll")[0]["outcome"], "interrupted", "{ran:?}");
        assert_eq!(ran.of_type("summary")[0]["open"], 1, "{ran:?}");
        assert!(ran.err.contains("run `gleaner poll` again"), "{ran:?}");
    }
}
