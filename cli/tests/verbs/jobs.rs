//! `gleaner jobs`: the ledger, looked at, and the operator's redrive.

use serde_json::Value;
use simulator::{Config, Faults};

use crate::bench::{Bench, Ran, list, quick};

fn ids_in(ran: &Ran, name: &str) -> Vec<String> {
    ran.of_type(name).iter().map(|row| row["job_id"].as_str().unwrap().to_owned()).collect()
}

/// Two jobs that failed for good.
async fn two_dead() -> (Bench, Vec<String>) {
    let mut faults = Faults::none();
    faults.jobs.fail_final = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    let urls = ["submit", "https://example.com/a", "https://example.com/b", "--json"];
    let ran = bench.run(&urls).await.expect(0);
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(2);
    (bench, ids_in(&ran, "submission"))
}

async fn entry(bench: &Bench, id: &str) -> Value {
    let ran = bench.run(&["jobs", "show", id, "--json"]).await.expect(0);
    ran.of_type("job_details")[0]["entry"].clone()
}

/// DQ-10: one audited command works exactly one dead job again; everything else is left alone.
#[tokio::test]
async fn a_redrive_works_exactly_one_job_again() {
    let (bench, ids) = two_dead().await;
    let (one, other) = (&ids[0], &ids[1]);
    let before = entry(&bench, other).await;
    let gets = |bench: &Bench, id: &str| {
        let books = bench.books();
        books.iter().find(|job| job["job_id"] == id).unwrap()["gets"].as_array().unwrap().len()
    };
    let (one_gets, other_gets) = (gets(&bench, one), gets(&bench, other));
    // Ordinary work skips what is settled.
    bench.run(&["poll"]).await.expect(0);
    assert_eq!(gets(&bench, one), one_gets);
    let ran = bench.run(&["jobs", "redrive", one, "--json"]).await.expect(0);
    assert_eq!(ran.of_type("redriven")[0]["generation"], 1);
    let row = entry(&bench, one).await;
    assert_eq!(row["state"]["name"], "received");
    let last = row["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["from"], &last["cause"]), (&"dead".into(), &"operator".into()));
    let ran = bench.run(&["poll", "--json"]).await.expect(2);
    assert_eq!(ids_in(&ran, "poll"), std::slice::from_ref(one));
    assert_eq!(gets(&bench, one), one_gets + 1);
    assert_eq!(gets(&bench, other), other_gets);
    assert_eq!(entry(&bench, other).await, before);
}

/// DQ-10: what is not dead is not redriven.
#[tokio::test]
async fn what_is_stored_is_not_redriven() {
    let bench = Bench::new(quick()).await;
    let ran = bench.run(&["submit", "https://example.com/a", "--json"]).await.expect(0);
    let id = &ids_in(&ran, "submission")[0];
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
    let before = entry(&bench, id).await;
    let ran = bench.run(&["jobs", "redrive", id]).await.expect(64);
    assert!(ran.err.contains("is stored, and only a dead one"), "{}", ran.err);
    assert_eq!(entry(&bench, id).await, before);
}

#[tokio::test]
async fn lists_are_filtered_and_bounded() {
    let (bench, ids) = two_dead().await;
    bench.run(&["submit", "--batch", "https://example.com/c", "--ref", "mine"]).await.expect(0);
    let rows = |ran: Ran| ran.expect(0).of_type("job");
    let all = rows(bench.run(&["jobs", "--json"]).await);
    assert_eq!(all.len(), 3);
    let dead = rows(bench.run(&["jobs", "--state", "dead", "--json"]).await);
    assert_eq!(dead.len(), 2);
    assert!(dead.iter().all(|row| row["reason"] == "failed"));
    let batch = rows(bench.run(&["jobs", "--kind", "batch", "--json"]).await);
    assert_eq!((batch.len(), &batch[0]["ref"]), (1, &"mine".into()));
    let bounded = bench.run(&["jobs", "--limit", "1", "--json"]).await;
    assert!(bounded.err.contains("there are more"), "{}", bounded.err);
    assert_eq!(rows(bounded).len(), 1);
    let counts = bench.run(&["jobs", "counts", "--json"]).await.expect(0);
    let counts = &counts.of_type("counts")[0];
    // Dead by reason stands apart, so that the states add up.
    assert_eq!(counts["jobs"], serde_json::json!({ "dead": 2, "expected": 1 }));
    assert_eq!(counts["dead_by_reason"], serde_json::json!({ "failed": 2 }));
    assert_eq!(counts["submissions"]["accepted"], 3);
    let shown = bench.run(&["jobs", "show", &ids[0]]).await.expect(0).out;
    for part in ["state        dead: failed", "attempt 0", "(none) -> expected  submit"] {
        assert!(shown.contains(part), "{shown}");
    }
}

/// Whoever looks for a page finds it by its URL or ref.
#[tokio::test]
async fn urls_and_refs_are_shown_and_found() {
    let bench = Bench::new(quick()).await;
    let text = "https://example.com/a\tmy-1\nhttps://example.com/b\tmy 2/b\n";
    bench.folder.write("urls.txt", text);
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    bench.run(&["submit", "--crawl", "https://example.com/c", "--ref", "site"]).await.expect(0);
    let rows = bench.run(&["jobs", "--json"]).await.expect(0).of_type("job");
    let mut shown: Vec<_> = rows
        .iter()
        .map(|row| (row["ref"].as_str().unwrap(), row["url"].as_str().unwrap()))
        .collect();
    shown.sort_unstable();
    let wanted = [
        ("my 2/b", "https://example.com/b"),
        ("my-1", "https://example.com/a"),
        ("site", "https://example.com/c"),
    ];
    assert_eq!(shown, wanted);
    for (reference, url) in wanted {
        let shown = bench.run(&["jobs", "show", reference]).await.expect(0).out;
        assert!(shown.contains(url) && shown.contains(reference), "{shown}");
        let prefixed = format!("ref:{reference}");
        let ran = bench.run(&["jobs", "show", &prefixed, "--json"]).await.expect(0);
        assert_eq!(ran.of_type("job_details")[0]["url"], url);
        let listed = bench.run(&["jobs", "--ref", reference, "--json"]).await.expect(0);
        assert_eq!(listed.of_type("job").len(), 1);
    }
    let short = ["--base", "10ms", "--cap", "100ms"];
    let refs = ["poll", "my-1", "ref:my 2/b", "site"];
    bench.run(&[refs.as_slice(), &short].concat()).await.expect(0);
    let listed = bench.run(&["results", "list"]).await.expect(0).out;
    for (reference, url) in wanted {
        assert!(listed.contains(&format!("\t{reference}\t{url}\n")), "{listed}");
        bench.run(&["results", "show", reference]).await.expect(0);
        bench.run(&["results", "path", reference]).await.expect(0);
    }
    // A ref that nobody has is never asked for at the platform.
    for args in [["jobs", "show", "ref:nobody"], ["poll", "ref:nobody", "--json"]] {
        let ran = bench.run(&args).await.expect(4);
        assert!(ran.err.contains("no job with the id or ref `nobody`"), "{}", ran.err);
    }
}

/// A ref of several jobs names them all, and one that was passed on means the last.
#[tokio::test]
async fn a_ref_of_several_jobs_is_told() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", "https://example.com/a\tx\nhttps://example.com/b\tx\n");
    let ran = bench.run(&["submit", "--file", "urls.txt", "--json"]).await.expect(0);
    for verb in [["jobs", "show", "x"], ["results", "show", "x"], ["poll", "x", "--json"]] {
        if verb[0] == "results" {
            bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(0);
        }
        let told = bench.run(&verb).await.expect(64);
        assert!(ids_in(&ran, "submission").iter().all(|id| told.err.contains(id)), "{}", told.err);
    }
    let mut faults = Faults::none();
    faults.jobs.fail_retryable = 1.0;
    let bench = Bench::new(Config { faults, ..quick() }).await;
    bench.run(&["submit", "https://example.com/a", "--ref", "mine"]).await.expect(0);
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms"]).await.expect(2);
    let last = bench.run(&["jobs", "show", "mine", "--json"]).await.expect(0);
    let link = last.of_type("job_details")[0]["entry"]["link"].clone();
    assert_eq!(link["attempt"], 3);
}

/// A machine gets all rows unless it asks for fewer; a person a screenful, or all.
#[tokio::test]
async fn machines_get_all_rows() {
    let bench = Bench::new(quick()).await;
    bench.folder.write("urls.txt", list(120).0);
    bench.run(&["submit", "--file", "urls.txt"]).await.expect(0);
    bench.run(&["poll", "--base", "10ms", "--cap", "100ms", "--max-wait", "1m"]).await.expect(0);
    for verb in [["jobs"].as_slice(), &["results", "list"]] {
        for (args, lines) in [
            (["--json"].as_slice(), 120),
            (&["--limit", "all"], 120),
            (&[], 100),
            (&["--json", "--limit", "7"], 7),
        ] {
            let ran = bench.run(&[verb, args].concat()).await.expect(0);
            assert_eq!(ran.out.lines().count(), lines, "{verb:?} {args:?}");
            assert_eq!(ran.err.contains("there are more"), lines < 120, "{verb:?} {args:?}");
        }
    }
}
