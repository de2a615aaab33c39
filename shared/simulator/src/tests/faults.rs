//! Faults of API answers and of job contents.

use serde_json::{Value, json};

use super::Stage;
use crate::{Faults, Transport};

fn submit(stage: &mut Stage, i: usize) -> crate::Answer {
    let url = format!("https://a.example/{i}");
    stage.post("/v1/extract", &json!({ "url": url, "processing_mode": "async" }))
}

#[test]
fn injected_errors_have_no_effect_and_a_retry_may_pass() {
    let mut stage = Stage::with_faults(|faults| faults.api.errors = 0.5);
    let mut accepted = 0;
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..200 {
        let mut tries = 0;
        loop {
            let answer = submit(&mut stage, i);
            tries += 1;
            if answer.status == 202 {
                accepted += 1;
                break;
            }
            seen.insert((answer.status, answer.retry_after.is_some()));
            assert!(tries < 30, "the same fault for ever");
        }
    }
    let kinds = [(429, false), (429, true), (500, false), (502, false), (503, false)];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), kinds);
    stage.post("/sim/faults", &json!("none"));
    assert_eq!(stage.books().len(), accepted);
}

#[test]
fn retry_after_comes_as_seconds_and_as_a_date() {
    let mut stage = Stage::with_faults(|faults| faults.api.errors = 1.0);
    let waits: Vec<String> = (0..60).filter_map(|i| submit(&mut stage, i).retry_after).collect();
    assert!(waits.iter().any(|wait| wait == "2"));
    assert!(waits.iter().any(|wait| wait == "Mon, 01 Jun 2026 00:00:02 GMT"));
}

#[test]
fn a_lost_answer_leaves_a_job_that_the_list_shows() {
    let mut stage = Stage::with_faults(|faults| faults.api.lost_answers = 1.0);
    let answer = submit(&mut stage, 1);
    assert_eq!(answer.transport, Transport::Lost);
    stage.pass(2);
    let book = &stage.books()[0];
    assert_eq!(book["answer_lost"], true);
    assert_eq!(stage.read("/v1/extract/jobs")["jobs"][0]["job_id"], book["job_id"]);
}

#[test]
fn a_hanging_submission_was_accepted_and_a_hanging_read_is_bounded() {
    let mut stage = Stage::with_faults(|faults| faults.api.hangs = 1.0);
    let answer = submit(&mut stage, 1);
    let Transport::Hang(longest) = answer.transport else { panic!("{answer:?}") };
    assert_eq!(longest.as_secs(), 60);
    assert!(matches!(stage.get("/v1/extract/jobs").transport, Transport::Hang(_)));
    assert_eq!(stage.books()[0]["answer_lost"], true);
}

#[test]
fn payment_can_be_required_of_extractions_and_crawls() {
    let mut stage = Stage::with_faults(|faults| faults.api.payment_required = 1.0);
    let refused = submit(&mut stage, 1);
    assert_eq!(refused.status, 402);
    assert_eq!(refused.body.unwrap()["code"], "PAYMENT_REQUIRED");
    let crawl = stage.post("/v1/crawl", &json!({ "url": "https://a.example/" }));
    assert_eq!((crawl.status, crawl.body), (402, None));
    assert_eq!(stage.get("/v1/extract/jobs").status, 200);
    assert_eq!(stage.books().len(), 0);
}

#[test]
fn bodies_can_be_slow_or_cut_for_reads_alone() {
    for (faults, transport) in [
        (json!({ "api": { "slow_bodies": 1 } }), Transport::Slow),
        (json!({ "api": { "cut_bodies": 1 } }), Transport::Cut),
    ] {
        let mut stage = Stage::calm();
        stage.post("/sim/faults", &faults);
        assert_eq!(stage.get("/v1/extract/jobs").transport, transport);
        assert_eq!(submit(&mut stage, 1).transport, Transport::Prompt);
        assert_eq!(stage.get("/sim/books").transport, Transport::Prompt);
    }
}

#[test]
fn webhook_changes_can_lose_their_answer_after_taking_effect() {
    let mut stage = Stage::with_faults(|faults| faults.api.lost_webhook_answers = 1.0);
    let body = json!({ "url": "http://127.0.0.1:9/hook", "event_type": "extract_completed" });
    assert_eq!(stage.post("/v1/webhooks", &body).transport, Transport::Lost);
    assert_eq!(stage.read("/v1/webhooks")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn fields_can_be_null_although_the_job_is_done() {
    for fails in [0, 1] {
        let mut stage = Stage::calm();
        stage.post("/sim/faults", &json!({ "jobs": { "null_fields": 1, "fail_final": fails } }));
        let target = format!("/v1/extract/{}", stage.extract("https://a.example/"));
        stage.pass(3_600);
        let job = stage.read(&target);
        assert_eq!(job["status"], if fails == 1 { "failed" } else { "completed" });
        for name in ["data", "metadata", "error"] {
            assert_eq!(job[name], Value::Null);
        }
    }
}

#[test]
fn a_job_can_vanish_from_reads_and_stay_in_lists() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.vanished = 1.0);
    let id = stage.extract("https://a.example/");
    stage.pass(3_600);
    assert_eq!(stage.get(&format!("/v1/extract/{id}")).status, 404);
    assert_eq!(stage.read("/v1/extract/jobs")["jobs"][0]["job_id"], id);
    assert_eq!(stage.books()[0]["vanished"], true);
}

#[test]
fn results_can_be_huge() {
    let mut stage = Stage::calm();
    let huge = json!({ "jobs": { "huge_results": 1, "huge_bytes": 1_000_000 } });
    stage.post("/sim/faults", &huge);
    let target = format!("/v1/extract/{}", stage.extract("https://a.example/"));
    stage.pass(3_600);
    let html = stage.read(&target)["data"]["html"].as_str().unwrap().len();
    assert!((1_000_000..1_000_200).contains(&html), "{html}");
}

#[test]
fn a_switch_spares_the_jobs_accepted_before() {
    let mut stage = Stage::calm();
    let before = stage.extract("https://a.example/1");
    let changed = stage.call("PATCH", "/sim/faults", b"{\"jobs\":{\"fail_final\":1}}");
    assert_eq!(changed.status, 200);
    assert_eq!(stage.read("/sim/faults")["jobs"]["fail_final"], 1.0);
    let after = stage.extract("https://a.example/2");
    stage.pass(3_600);
    assert_eq!(stage.read(&format!("/v1/extract/{before}"))["status"], "completed");
    assert_eq!(stage.read(&format!("/v1/extract/{after}"))["status"], "failed");
}

#[test]
fn a_partial_change_keeps_the_other_faults() {
    let mut stage = Stage::calm();
    stage.post("/sim/faults", &json!("harsh"));
    stage.call("PATCH", "/sim/faults", b"{\"deliveries\":{\"dropped\":1}}");
    let mut expected = Faults::harsh();
    expected.deliveries.dropped = 1.0;
    assert_eq!(stage.read("/sim/faults"), json!(expected));
    assert_eq!(*stage.platform.faults(), expected);
}

#[test]
fn gentle_is_a_quarter_of_harsh() {
    let (gentle, harsh) = (Faults::gentle(), Faults::harsh());
    let close = |a: f64, b: f64| (a * 4.0 - b).abs() < 1e-9;
    assert!(close(gentle.deliveries.dropped, harsh.deliveries.dropped));
    assert!(close(gentle.api.errors, harsh.api.errors));
    assert!(close(gentle.jobs.never_settle, harsh.jobs.never_settle));
    assert!(close(gentle.api.lost_answers, harsh.api.lost_answers));
    assert!([Faults::none(), gentle, harsh].iter().all(|faults| faults.check().is_ok()));
}
