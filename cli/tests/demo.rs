//! The demo balances, and its judge is no flatterer: each of six planted bugs makes it fail.

#[path = "demo/bugs.rs"]
mod bugs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use gleaner::demo::{DemoOptions, Report, Tamper, Untampered, Weather, run};

fn options(dir: &Path, jobs: u32, weather: Weather) -> DemoOptions {
    DemoOptions {
        jobs,
        seed: 7,
        speed: 40.0,
        weather,
        corpus: None,
        dir: dir.to_owned(),
        program: PathBuf::from(env!("CARGO_BIN_EXE_gleaner")),
        live: false,
        patience: Duration::from_mins(2),
        kills: 0,
        rotate: false,
        audit: false,
    }
}

#[expect(clippy::unwrap_used, reason = "a demo that does not start fails its test")]
async fn demo(jobs: u32, weather: Weather, patience_secs: u64, tamper: &dyn Tamper) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(patience_secs);
    let options = DemoOptions { patience, ..options(dir.path(), jobs, weather) };
    run(&options, tamper).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_where_nothing_goes_wrong() {
    let report = demo(100, Weather::None, 120, &Untampered).await;
    assert!(report.balanced, "{report}");
    assert_eq!(report.judge.stored, report.platform_jobs, "{report}");
    assert!(report.calls_per_job <= 1.05, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_in_harsh_weather() {
    let report = demo(80, Weather::Harsh, 200, &Untampered).await;
    assert!(report.balanced, "{report}");
    assert!(report.judge.answers_lost > 0, "the weather was not harsh\n{report}");
}

/// The serving process is killed three times, once while the secrets are being replaced.
#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_when_the_server_is_killed_and_secrets_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let options = DemoOptions {
        speed: 100.0,
        kills: 3,
        rotate: true,
        audit: true,
        ..options(dir.path(), 200, Weather::Gentle)
    };
    let report = run(&options, &Untampered).await.unwrap();
    assert!(report.balanced, "{report}");
    assert_eq!((report.kills, report.panicked), (3, false), "{report}");
    let rotation = report.rotation.as_ref().unwrap();
    assert_eq!((rotation.webhooks, rotation.of), (3, 3), "{report}");
    let audit = report.audit.as_ref().unwrap();
    assert!(audit.clean && audit.listed == report.platform_jobs, "{report}");
    assert!(report.healing.jobs > 0 && report.ways["webhook"] > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_without_dedupe_is_found_out() {
    let report = demo(80, Weather::Harsh, 200, &bugs::NoDedupe).await;
    assert!(!report.balanced && report.judge.lost > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn paying_again_without_looking_is_found_out() {
    let report = demo(80, Weather::Harsh, 200, &bugs::NoAdoption).await;
    assert!(!report.balanced && report.judge.paid_twice > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_nobody_sends_again_is_found_out() {
    let report = demo(40, Weather::None, 12, &bugs::NoSecondSend).await;
    assert!(!report.balanced && report.open > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_and_is_called_endless_is_found_out() {
    let report = demo(80, Weather::Harsh, 200, &bugs::NoEnd).await;
    assert!(!report.balanced && report.judge.lost > 0, "{report}");
    assert!(report.judge.findings.iter().all(|f| f.contains("given up as never_settled")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unconditional_put_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let bug = bugs::UnconditionalPut(dir.path().to_owned());
    let report = run(&options(dir.path(), 40, Weather::None), &bug).await.unwrap();
    assert!(!report.balanced && report.judge.stored_twice > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_the_commit_is_found_out() {
    let report = demo(100, Weather::None, 60, &bugs::AnswerBeforeCommit).await;
    assert!(!report.balanced && report.judge.lost > 0, "{report}");
}
