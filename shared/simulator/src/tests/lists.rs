//! Job lists: paging, filters, lag and lies.

use std::time::Duration;

use serde_json::{Value, json};

use super::Stage;
use crate::Config;

fn ids(list: &Value) -> Vec<String> {
    let jobs = list["jobs"].as_array().unwrap();
    jobs.iter().map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pages_hold_every_job_once_newest_first() {
    let mut stage = Stage::calm();
    let mut submitted: Vec<String> = Vec::new();
    for i in 0..250 {
        submitted.push(stage.extract(&format!("https://a.example/{i}")));
        stage.now = stage.now.plus(Duration::from_millis(10));
    }
    stage.pass(3_600);
    submitted.reverse();
    for size in [7, 100] {
        let mut listed = Vec::new();
        let mut page = 1;
        loop {
            let target = format!("/v1/extract/jobs?page={page}&page_size={size}");
            let list = stage.read(&target);
            assert_eq!(list["page_count"], 250_u64.div_ceil(size));
            assert_eq!(list["is_capped"], false);
            let found = ids(&list);
            if found.is_empty() {
                break;
            }
            listed.extend(found);
            page += 1;
        }
        assert_eq!(listed, submitted);
    }
}

#[test]
fn a_new_job_is_listed_after_the_lag_and_readable_before() {
    let mut stage = Stage::new(Config { list_lag_secs: 5.0, ..Config::default() });
    let id = stage.extract("https://a.example/");
    stage.pass(4);
    assert_eq!(ids(&stage.read("/v1/extract/jobs")).len(), 0);
    assert_eq!(stage.get(&format!("/v1/extract/{id}")).status, 200);
    stage.pass(1);
    assert_eq!(ids(&stage.read("/v1/extract/jobs")), [id]);
}

#[test]
fn filters_narrow_the_list_and_its_page_count() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.fail_final = 0.5);
    let mut ids_by_second = Vec::new();
    for i in 0..40 {
        ids_by_second.push(stage.extract(&format!("https://a.example/{}/{i}", i % 4)));
        stage.pass(1);
    }
    stage.pass(3_600);
    let count = |stage: &mut Stage, query: &str| {
        let list = stage.read(&format!("/v1/extract/jobs?{query}"));
        (ids(&list).len(), list["page_count"].as_u64().unwrap())
    };
    assert_eq!(count(&mut stage, "url=example/3/"), (10, 1));
    assert_eq!(count(&mut stage, "output=html"), (40, 1));
    assert_eq!(count(&mut stage, "output=markdown"), (0, 0));
    assert_eq!(count(&mut stage, &format!("job_id={}", ids_by_second[3])), (1, 1));
    let (failed, _) = count(&mut stage, "status=failed");
    let (completed, _) = count(&mut stage, "status=completed");
    assert_eq!(failed + completed, 40);
    assert!(failed > 5 && completed > 5);
    // Both ends belong to the range; jobs were created at 0, 1, 2 ... seconds.
    let range = "start_date=2026-06-01T00:00:03Z&end_date=2026-06-01T00:00:05.000000%2B0000";
    let list = stage.read(&format!("/v1/extract/jobs?{range}"));
    assert_eq!(ids(&list), ids_by_second[3..=5].iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(count(&mut stage, "start_date=2026-06-02"), (0, 0));
    assert_eq!(count(&mut stage, "start_date=2026-06-02&end_date=2026-06-01"), (0, 0));
}

#[test]
fn kinds_have_lists_of_their_own() {
    let mut stage = Stage::calm();
    let batch = stage.batch(7);
    let crawl = stage.accepted("/v1/crawl", &json!({ "url": "https://a.example/?pages=3" }));
    stage.pass(3_600);
    let batches = stage.read("/v1/batch/jobs");
    assert_eq!(ids(&batches), [batch]);
    let item = &batches["jobs"][0];
    assert_eq!((&item["accepted_urls"], &item["completed_urls"]), (&json!(7), &json!(7)));
    assert!(item["config"]["proxy"]["type"].is_string());
    assert!(batches.get("is_capped").is_none());
    let crawls = stage.read("/v1/crawl/jobs?url=a.example");
    assert_eq!(ids(&crawls), [crawl]);
    assert_eq!(crawls["jobs"][0]["total_pages"], 3);
    assert_eq!(ids(&stage.read("/v1/extract/jobs")).len(), 0);
}

#[test]
fn lists_lie_when_told_to() {
    let mut stage = Stage::calm();
    for i in 0..60 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    stage.pass(3_600);
    let target = "/v1/extract/jobs?page_size=10&page=2";
    let honest = stage.read(target);
    stage.post("/sim/faults", &json!({ "lists": { "capped": 1 } }));
    let capped = stage.read(target);
    assert_eq!((&capped["is_capped"], &capped["page_count"]), (&json!(true), &json!(3)));
    assert_eq!(ids(&capped), ids(&honest));
    stage.post("/sim/faults", &json!({ "lists": { "lying_page_count": 1 } }));
    for _ in 0..20 {
        let lying = stage.read(target);
        assert!([0, 3, 25].contains(&lying["page_count"].as_u64().unwrap()));
        assert_eq!(ids(&lying), ids(&honest));
    }
    stage.post("/sim/faults", &json!({ "lists": { "shifting_pages": 1 } }));
    let shifted: Vec<Vec<String>> = (0..20).map(|_| ids(&stage.read(target))).collect();
    assert!(shifted.iter().all(|page| *page != ids(&honest)));
    assert!(shifted.iter().any(|page| *page != shifted[0]));
}

#[test]
fn statistics_count_settled_extractions_by_day() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.fail_final = 0.5);
    for i in 0..20 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    stage.batch(20);
    stage.pass(3_600);
    let statistics = stage.read("/v1/statistics");
    assert_eq!(statistics["extraction_count"], 40);
    let day = &statistics["requests"][0];
    assert_eq!(day["date"], "2026-06-01T00:00:00.000Z");
    let succeeded = day["success_request_count"].as_u64().unwrap();
    assert_eq!(succeeded + day["failed_request_count"].as_u64().unwrap(), 40);
    assert_eq!(statistics["period_tokens_used"], succeeded);
    let rate = statistics["success_rate"].as_f64().unwrap();
    assert!((0.2..0.8).contains(&rate));
    let backwards = stage.read("/v1/statistics?start_date=2026-06-01&end_date=2026-05-01");
    assert_eq!(backwards["requests"], json!([]));
    let later = stage.read("/v1/statistics?start_date=2026-06-02&end_date=2026-06-03");
    assert_eq!(later["extraction_count"], 0);
    assert_eq!(later["previous_period_extraction_count"], 40);
}
