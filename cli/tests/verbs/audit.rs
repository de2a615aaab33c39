//! `gleaner audit`: the books of a period, balanced.

use serde_json::Value;
use simulator::Config;

use crate::bench::{Bench, Folder, Ran, quick};

/// The lists' lag is shorter than what passes between submission and audit here.
const AUDIT: [&str; 4] = ["audit", "--json", "--set", "limits.adoption_margin=1s"];

/// As [`AUDIT`], for a person.
const AUDIT_TEXT: [&str; 3] = ["audit", "--set", "limits.adoption_margin=1s"];

/// Where nothing is left to webhooks, the ledger has to know a job after a second.
const STRICT: [&str; 4] = ["--set", "webhooks=off", "--set", "reconcile.every=1s"];

/// Audits until a second has passed: each takes some milliseconds.
const AUDITS_MAX: u32 = 1_000;

fn sheet(ran: &Ran) -> Value {
    ran.of_type("audit")[0].clone()
}

fn discrepancies(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = ran.of_type("discrepancy");
    rows.iter().map(|row| (text(&row["discrepancy"]), text(&row["job_id"]))).collect()
}

/// Two jobs that were stored.
async fn two_stored() -> (Bench, Vec<String>) {
    let bench = Bench::new(quick()).await;
    let urls = ["submit", "https://example.com/a", "https://example.com/b", "--json"];
    let ran = bench.run(&urls).await.expect(0);
    let ids = ran.of_type("submission");
    let ids = ids.iter().map(|row| row["job_id"].as_str().unwrap().to_owned()).collect();
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    (bench, ids)
}

/// Audits until all jobs are old enough for the lists to hold them for sure.
async fn audited(bench: &Bench, jobs: u64) -> Ran {
    let mut ran = bench.run(&AUDIT).await;
    for _ in 0..AUDITS_MAX {
        if sheet(&ran)["jobs"]["extract"]["listed"] == jobs {
            break;
        }
        ran = bench.run(&AUDIT).await;
    }
    ran
}

#[tokio::test]
async fn books_of_finished_work_balance() {
    let (bench, _) = two_stored().await;
    let ran = audited(&bench, 2).await.expect(0);
    let told = sheet(&ran);
    assert_eq!((&told["balances"], &told["verdict"]), (&true.into(), &"balances".into()));
    let extract = &told["jobs"]["extract"];
    assert_eq!(
        (&extract["platform"]["completed"], &extract["ledger"]["stored"]),
        (&2.into(), &2.into())
    );
    assert_eq!((&told["objects"]["named"], &told["objects"]["whole"]), (&2.into(), &2.into()));
    assert_eq!(told["submissions"]["accepted"], 2);
    let counted = &told["statistics"];
    assert_eq!((&counted["succeeded"], &counted["finished"]), (&2.into(), &2.into()));
    assert_eq!(counted["verdict"], "agrees");
    let text = bench.run(&AUDIT_TEXT).await.expect(0).out;
    assert!(text.contains("enough for the 2 extract jobs that completed\n"), "{text}");
    assert!(text.ends_with("the books balance\n"), "{text}");
}

#[tokio::test]
async fn a_lost_result_and_a_job_that_nobody_knows_fail_the_audit() {
    let (bench, ids) = two_stored().await;
    let path = bench.run(&["results", "path", &ids[0]]).await.expect(0).out;
    std::fs::remove_file(path.trim_end()).unwrap();
    // Somebody else's ledger submits a job of the same account.
    let other = Folder::new(&bench.platform.base_url());
    let ran = other.run(&["submit", "https://example.com/c", "--json"]).await.expect(0);
    let stranger = ran.of_type("submission")[0]["job_id"].as_str().unwrap().to_owned();
    other.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    // The stranger's job is left to its webhook for now.
    let ran = audited(&bench, 3).await.expect(1);
    assert_eq!(discrepancies(&ran), [("object_missing".to_owned(), ids[0].clone())]);
    assert_eq!(sheet(&ran)["jobs"]["extract"]["unknown"], 1);
    let ran = bench.run(&[&AUDIT[..], &STRICT].concat()).await.expect(1);
    assert_eq!(sheet(&ran)["balances"], false);
    let mut found = discrepancies(&ran);
    found.sort();
    let wanted = [("object_missing", &ids[0]), ("unknown_job", &stranger)];
    assert_eq!(found, wanted.map(|(name, id)| (name.to_owned(), id.clone())));
    let text = bench.run(&[&AUDIT_TEXT[..], &STRICT].concat()).await.expect(1).out;
    assert!(text.contains("the books do not balance"), "{text}");
    assert!(text.contains("`gleaner reconcile` announces it"), "{text}");
}

#[tokio::test]
async fn what_is_left_out_is_not_looked_at() {
    let (bench, ids) = two_stored().await;
    let path = bench.run(&["results", "path", &ids[0]]).await.expect(0).out;
    std::fs::remove_file(path.trim_end()).unwrap();
    audited(&bench, 2).await.expect(1);
    let ran = bench.run(&["audit", "--json", "--no-objects", "--no-deliveries"]).await.expect(0);
    assert_eq!(sheet(&ran)["objects"]["named"], 0);
}

/// What could not be looked at is not called balanced.
#[tokio::test]
async fn a_platform_that_is_away_proves_nothing() {
    let (bench, _) = two_stored().await;
    let ran =
        bench.run(&["audit", "--json", "--set", "api_url=http://127.0.0.1:9"]).await.expect(69);
    let told = sheet(&ran);
    assert_eq!((&told["balances"], &told["verdict"]), (&false.into(), &"troubled".into()));
    assert_eq!(told["statistics"]["verdict"], "not_judged");
    assert_eq!(told["statistics"]["succeeded"], Value::Null);
    let troubles = told["unproved"].as_array().unwrap();
    assert!(troubles.iter().any(|part| part["because"] == "trouble"), "{told}");
}

#[tokio::test]
async fn periods_are_checked() {
    let bench = Bench::new(Config { ..quick() }).await;
    bench.run(&["submit", "https://example.com/a"]).await.expect(0);
    let ran = bench.run(&["audit", "--from", "2026-11-30", "--to", "2026-11-29"]).await.expect(64);
    assert!(ran.err.contains("the period ends before it begins"), "{}", ran.err);
}

/// A period of which nothing can be proved yet, or any more, is not called balanced.
#[tokio::test]
async fn where_nothing_can_be_proved_the_audit_says_so() {
    let (bench, _) = two_stored().await;
    for (period, because) in [
        (["--from", "2020-01-01", "--to", "2020-02-01"], "forgotten"),
        (["--from", "1s", "--set", "limits.adoption_margin=2m"], "too_fresh"),
    ] {
        let ran = bench.run(&[&["audit", "--json"][..], &period].concat()).await.expect(5);
        let told = sheet(&ran);
        assert_eq!(
            (&told["balances"], &told["verdict"]),
            (&false.into(), &"nothing_proved".into())
        );
        assert_eq!(told["unproved"][0]["because"], because);
        assert_eq!((&told["proved"], &told["statistics"]), (&Value::Null, &Value::Null));
        let text = bench.run(&[&["audit"][..], &period].concat()).await.expect(5).out;
        assert!(text.ends_with("nothing could be proved: nothing was compared\n"), "{text}");
    }
}
