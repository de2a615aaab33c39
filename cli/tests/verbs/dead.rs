//! `gleaner dead`: what was given up, and what an operator makes of it.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use domain::entry::{Cause, DeadReason, Entry, Link, State};
use domain::job::{JobError, JobId, JobKey, Kind};
use domain::limits::Limits;
use domain::ports::{Clock as _, Entries as _, Expected};
use domain::request::{FetchOptions, JobRequest};
use domain::time::{Timestamp, before};
use embedded::{Settings, SqliteStore};
use serde_json::Value;
use simulator::{Config, Faults};
use system::SystemClock;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::bench::{Bench, Folder, Ran, ended, quick};

const HOUR: Duration = Duration::from_hours(1);
/// The file of the ledger in a folder's data folder.
const LEDGER: &str = "gleaner-data/ledger.db";

/// A folder whose ledger holds these dead jobs: kind, id, reason, and how long ago they died.
async fn holding(dead: &[(Kind, &str, DeadReason, Duration)]) -> Folder {
    let folder = Folder::new("http://127.0.0.1:9");
    let now = SystemClock.now();
    let rows: Vec<_> = dead
        .iter()
        .map(|(kind, id, reason, ago)| dead_row(*kind, id, *reason, before(now, *ago)))
        .collect();
    lay(&folder, &rows).await;
    folder
}

fn dead_row(kind: Kind, id: &str, reason: DeadReason, died_at: Timestamp) -> Entry {
    let (key, limits) = (JobKey::new(kind, JobId::parse(id).unwrap()), Limits::default());
    let link = Link {
        submission: "s".to_owned(),
        lineage: key.job_id.clone(),
        attempt: 0,
        base: 0,
        request: JobRequest::extract("https://example.com/a", FetchOptions::default()).ok(),
        reference: Some(format!("ref-{id}")),
    };
    let error = Some(JobError::new("TIMEOUT", "too slow", true));
    let row = Entry::expected(key, Some(link), Cause::Submit, died_at, &limits);
    row.settled(State::Dead { reason, error, result: None }, Cause::Work, died_at, &limits)
}

async fn lay(folder: &Folder, rows: &[Entry]) {
    std::fs::create_dir_all(folder.path().join("gleaner-data")).unwrap();
    let file = folder.path().join(LEDGER);
    let store = SqliteStore::open(&file, Arc::new(SystemClock), Settings::default()).unwrap();
    let now = SystemClock.now();
    let writing = rows.iter().map(|row| store.write(row, Expected::Absent(now)));
    for written in futures_util::future::join_all(writing).await {
        written.unwrap();
    }
}

async fn entry(folder: &Folder, id: &str) -> Value {
    let ran = folder.run(&["jobs", "show", id, "--json"]).await.expect(0);
    ran.of_type("job_details")[0]["entry"].clone()
}

/// What was done, as `id outcome`.
fn outcomes(ran: &Ran) -> Vec<String> {
    let rows = ran.of_type("decided").into_iter();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let name = |row: &Value| {
        if row["job_id"].is_null() { text(&row["name"]) } else { text(&row["job_id"]) }
    };
    rows.map(|row| format!("{} {}", name(&row), text(&row["outcome"]))).collect()
}

/// DQ-10, WK-08: by hand and bounded: one decision opens each job once and says who and why; a
/// repeated one finds it open; what is bad for good is given up again, and a second decision is
/// another generation.
#[tokio::test]
async fn a_dead_job_is_tried_again_once_for_each_decision() {
    let mut faults = Faults::none();
    faults.jobs.fail_final = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let urls = ["submit", "https://example.com/a", "https://example.com/b", "--json"];
    let ran = bench.run(&urls).await.expect(0);
    let poll = ["poll", "--base", "10ms", "--cap", "100ms"];
    bench.run(&poll).await.expect(2);
    let ids: Vec<_> = ran
        .of_type("submission")
        .iter()
        .map(|row| row["job_id"].as_str().unwrap().to_owned())
        .collect();
    let listed = bench.run(&["dead", "list", "--json"]).await.expect(0).of_type("dead_job");
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|row| row["reason"] == "failed" && row["url"].is_string()));
    for generation in 1..=2 {
        let redrive =
            ["dead", "redrive", &ids[0], "--json", "--by", "ann", "--why", "page is back"];
        let dry = bench.run(&[&redrive[..], &["--dry-run"]].concat()).await.expect(0);
        assert_eq!(outcomes(&dry), [format!("{} planned", ids[0])]);
        let ran = bench.run(&redrive).await.expect(0);
        assert_eq!(ran.of_type("decided")[0]["generation"], generation);
        assert_eq!(ran.of_type("summary")[0]["outcomes"], serde_json::json!({ "redriven": 1 }));
        let again = bench.run(&redrive).await.expect(0);
        assert_eq!(outcomes(&again), [format!("{} open", ids[0])]);
        let row = entry(&bench.folder, &ids[0]).await;
        assert_eq!(
            (&row["state"]["name"], &row["generation"]),
            (&"received".into(), &generation.into())
        );
        let last = row["history"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["cause"], &last["note"]),
            (&"operator".into(), &"ann: page is back".into())
        );
        bench.run(&poll).await.expect(2);
        assert_eq!(entry(&bench.folder, &ids[0]).await["state"]["reason"], "failed");
    }
    assert_eq!(entry(&bench.folder, &ids[1]).await["generation"], 0);
    let shown = bench.run(&["dead", "show", &ids[0]]).await.expect(0).out;
    assert!(shown.contains("dead -> received  operator (ann: page is back)"), "{shown}");
}

/// Filters choose by reason, kind, ref and age; nothing is chosen by saying nothing.
#[tokio::test]
async fn filters_choose() {
    let folder = holding(&[
        (Kind::Extract, "old", DeadReason::Gone, 5 * HOUR),
        (Kind::Extract, "new", DeadReason::Gone, HOUR),
        (Kind::Crawl, "site", DeadReason::TooLarge, HOUR),
    ])
    .await;
    let listed = async |args: &[&str]| -> Vec<String> {
        let ran = folder.run(&[&["dead", "list", "--json"], args].concat()).await.expect(0);
        let rows = ran.of_type("dead_job");
        rows.iter().map(|row| row["job_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&[]).await, ["old", "new", "site"]);
    assert_eq!(listed(&["--reason", "gone"]).await, ["old", "new"]);
    assert_eq!(listed(&["--reason", "gone", "--reason", "too_large"]).await.len(), 3);
    assert_eq!(listed(&["--kind", "crawl"]).await, ["site"]);
    assert_eq!(listed(&["--ref", "ref-new"]).await, ["new"]);
    assert_eq!(listed(&["--older", "2h"]).await, ["old"]);
    assert_eq!(listed(&["--newer", "2h", "--reason", "gone"]).await, ["new"]);
    assert_eq!(listed(&["--reason", "letter"]).await, Vec::<String>::new());
    let text = folder.run(&["dead", "list", "--limit", "1"]).await.expect(0);
    assert!(text.out.starts_with("extract\told\tgone\tref-old\t"), "{}", text.out);
    assert!(text.out.ends_with("\tTIMEOUT\thttps://example.com/a\n"), "{}", text.out);
    assert!(text.err.contains("there are more"), "{}", text.err);
    for (args, why) in [
        (&["redrive"][..], "nothing is chosen"),
        (&["redrive", "--limit", "5"], "nothing is chosen"),
        (&["redrive", "old", "--reason", "gone"], "ids go without filters"),
        (&["redrive", "old", "--all"], "`--all` goes without ids"),
        (&["discard", "--all", "--kind", "batch"], "`--all` goes without filters"),
        (&["discard", "-", "old"], "`-` goes without ids"),
        (&["list", "--reason", "tired"], "write one of failed, resubmits_exhausted"),
    ] {
        let ran = folder.run(&[&["dead"], args].concat()).await.expect(64);
        assert!(ran.err.contains(why), "{args:?}: {}", ran.err);
    }
    assert_eq!(listed(&[]).await.len(), 3, "nothing was changed");
    let ran = folder.run(&["dead", "redrive", "--older", "2h", "--json"]).await.expect(0);
    assert_eq!(outcomes(&ran), ["old redriven"]);
    assert_eq!(listed(&[]).await, ["new", "site"]);
}

/// Ids come from standard input, and each is answered for; exit codes say what was in the way.
#[tokio::test]
async fn ids_come_from_standard_input() {
    let folder = holding(&[
        (Kind::Extract, "a", DeadReason::Failed, HOUR),
        (Kind::Batch, "b", DeadReason::Inconsistent, HOUR),
    ])
    .await;
    let ids = b"# from a list\na\tfailed\nref:ref-b\nnobody\n";
    let ran = folder.run_with(&["dead", "redrive", "-", "--json"], ids).await.expect(4);
    assert_eq!(outcomes(&ran), ["a redriven", "b redriven", "nobody unknown"]);
    let summary = &ran.of_type("summary")[0];
    assert_eq!(summary["outcomes"], serde_json::json!({ "redriven": 2, "unknown": 1 }));
    assert_eq!((&summary["interrupted"], &summary["more"]), (&false.into(), &false.into()));
    let ran = folder.run_with(&["dead", "redrive", "-"], b"\n").await.expect(65);
    assert!(ran.err.contains("standard input cannot be used, nothing was done"), "{}", ran.err);
    let ran = folder.run(&["dead", "redrive", "letter:1", "--json"]).await.expect(4);
    assert_eq!(ran.of_type("decided")[0]["outcome"], "unknown");
}

/// What was discarded stays dead and out of the way, is counted as that, and may still be opened by
/// its id.
#[tokio::test]
async fn what_was_discarded_is_out_of_the_way() {
    let folder = holding(&[
        (Kind::Extract, "a", DeadReason::Gone, HOUR),
        (Kind::Extract, "b", DeadReason::Gone, HOUR),
    ])
    .await;
    let discard = ["dead", "discard", "a", "--why", "not needed", "--json"];
    assert_eq!(outcomes(&folder.run(&discard).await.expect(0)), ["a discarded"]);
    assert_eq!(outcomes(&folder.run(&discard).await.expect(0)), ["a already_discarded"]);
    let listed = folder.run(&["dead", "list", "--json"]).await.expect(0).of_type("dead_job");
    assert_eq!((listed.len(), &listed[0]["job_id"]), (1, &"b".into()));
    let listed = folder.run(&["dead", "list", "--reason", "discarded", "--json"]).await.expect(0);
    assert_eq!(listed.of_type("dead_job")[0]["died_of"], "gone");
    let shown = folder.run(&["dead", "show", "a"]).await.expect(0).out;
    assert!(shown.contains("dead: discarded, which was gone"), "{shown}");
    assert!(shown.contains("dead -> dead  operator (not needed)"), "{shown}");
    let counts = folder.run(&["jobs", "counts", "--json"]).await.expect(0);
    let counts = &counts.of_type("counts")[0]["dead_by_reason"];
    assert_eq!(*counts, serde_json::json!({ "discarded": 1, "gone": 1 }));
    let all = folder.run(&["dead", "redrive", "--all", "--json"]).await.expect(0);
    assert_eq!(outcomes(&all), ["b redriven"]);
    let named = folder.run(&["dead", "redrive", "a", "--json"]).await.expect(0);
    assert_eq!(outcomes(&named), ["a redriven"]);
}

/// WK-14: where a retry may have been paid already, somebody has to say so.
#[tokio::test]
async fn what_may_be_paid_twice_needs_to_be_said() {
    let folder = holding(&[
        (Kind::Extract, "lost", DeadReason::Ambiguous, HOUR),
        (Kind::Extract, "plain", DeadReason::Failed, HOUR),
    ])
    .await;
    for args in [&["--all", "--dry-run"][..], &["lost"]] {
        let ran = folder.run(&[&["dead", "redrive", "--json"], args].concat()).await.expect(64);
        assert!(outcomes(&ran).contains(&"lost needs_pay_again".to_owned()), "{ran:?}");
        assert!(ran.err.contains("may pay twice"), "{}", ran.err);
    }
    let ran = folder.run(&["jobs", "redrive", "lost"]).await.expect(64);
    assert!(ran.err.contains("nobody knows whether the last retry"), "{}", ran.err);
    assert_eq!(entry(&folder, "lost").await["generation"], 0);
    let ran = folder.run(&["dead", "redrive", "lost", "--pay-again", "--json"]).await.expect(0);
    assert_eq!(outcomes(&ran), ["lost redriven"]);
}

/// A command decides about a bounded number, in batches; the same command goes on.
#[tokio::test]
async fn a_command_is_bounded() {
    let now = SystemClock.now();
    let folder = Folder::new("http://127.0.0.1:9");
    let rows: Vec<_> = (0..1_203)
        .map(|number| {
            dead_row(Kind::Extract, &format!("j{number}"), DeadReason::Failed, before(now, HOUR))
        })
        .collect();
    lay(&folder, &rows).await;
    let redrive = ["dead", "redrive", "--reason", "failed", "--json"];
    for (count, more) in [(1_000, true), (203, false)] {
        let ran = folder.run(&redrive).await.expect(0);
        let summary = &ran.of_type("summary")[0];
        assert_eq!(summary["outcomes"], serde_json::json!({ "redriven": count }));
        assert_eq!((&summary["more"], ran.err.contains("there may be more")), (&more.into(), more));
    }
    let ran = folder.run(&[&redrive[..], &["--limit", "all"]].concat()).await.expect(0);
    assert_eq!(ran.of_type("decided").len(), 0);
}

/// Whoever interrupts a command keeps what was done, and is told what was not.
#[tokio::test]
async fn an_interrupted_command_tells_what_is_left() {
    let now = SystemClock.now();
    let folder = Folder::new("http://127.0.0.1:9");
    let ids: Vec<_> = (0..2_000).map(|number| format!("j{number}")).collect();
    let rows: Vec<_> = ids
        .iter()
        .map(|id| dead_row(Kind::Extract, id, DeadReason::Failed, before(now, HOUR)))
        .collect();
    lay(&folder, &rows).await;
    let mut command = folder.command(&["dead", "redrive", "-", "--limit", "all", "--json"]);
    let list = std::fs::File::open(folder.write("ids.txt", ids.join("\n"))).unwrap();
    let mut child = command.stdin(Stdio::from(list)).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = vec![lines.next_line().await.unwrap().unwrap()];
    // Nobody can write while the signal is on its way.
    let file = rusqlite::Connection::open(folder.path().join(LEDGER)).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let pid = child.id().unwrap().to_string();
    let kill = tokio::process::Command::new("kill").args(["-INT", &pid]).status().await.unwrap();
    assert!(kill.success());
    file.execute_batch("ROLLBACK").unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push(line);
    }
    let ran = ended(child).await;
    assert_eq!(ran.code, 75, "{}", ran.err);
    assert!(ran.err.contains("stopping; what was begun is finished first"), "{}", ran.err);
    let ran = Ran { out: told.join("\n"), ..ran };
    let summary = &ran.of_type("summary")[0];
    assert_eq!(summary["interrupted"], true);
    let outcomes = outcomes(&ran);
    assert_eq!(outcomes.len(), ids.len(), "each is answered for");
    let done = outcomes.iter().filter(|row| row.ends_with(" redriven")).count();
    let left = outcomes.iter().filter(|row| row.ends_with(" not_looked_at")).count();
    assert!(done > 0 && left > 0 && done + left == ids.len(), "{done} and {left}");
    let counts = folder.run(&["jobs", "counts", "--json"]).await.expect(0);
    let jobs = &counts.of_type("counts")[0]["jobs"];
    assert_eq!(*jobs, serde_json::json!({ "dead": left, "received": done }));
}

/// Its help is a released text.
#[tokio::test]
async fn help_is_a_released_text() {
    let folder = Folder::new("http://127.0.0.1:9");
    for (name, args) in [
        ("help_dead", &["dead", "--help"][..]),
        ("help_dead_list", &["dead", "list", "--help"]),
        ("help_dead_redrive", &["dead", "redrive", "--help"]),
    ] {
        insta::assert_snapshot!(name, folder.run(args).await.expect(0).out);
    }
}
