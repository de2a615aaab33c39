//! A hundred thousand jobs.

use serde_json::json;

use super::Stage;
use crate::Config;

#[test]
fn a_hundred_thousand_jobs_are_listed_filtered_and_booked() {
    let mut stage = Stage::new(Config { work_concurrency_limit: 200_000, ..Config::default() });
    for i in 0..100_000 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    stage.pass(3_600);
    let last = stage.read("/v1/extract/jobs?page=1000");
    assert_eq!(last["page_count"], 1_000);
    assert_eq!(last["jobs"][99]["url"], "https://a.example/0");
    let filtered = stage.read("/v1/extract/jobs?status=completed&page=1000");
    assert_eq!(filtered["jobs"], last["jobs"]);
    let books = stage.read("/sim/books?after=99000");
    assert_eq!((&books["total"], &books["next"]), (&json!(100_000), &json!(null)));
    assert_eq!(books["jobs"].as_array().unwrap().len(), 1_000);
    let statistics = stage.read("/v1/statistics");
    assert_eq!(statistics["extraction_count"], 100_000);
}

#[test]
fn a_crawl_of_ten_thousand_pages_is_read_whole() {
    let mut stage = Stage::new(Config { result_bytes: 100, ..Config::default() });
    let seed = json!({ "url": "https://a.example/?pages=10000", "limit": 10_000, "depth": 6 });
    let id = stage.accepted("/v1/crawl", &seed);
    stage.pass(36_000);
    let mut pages = std::collections::BTreeSet::new();
    for page in 1..=200 {
        let job = stage.read(&format!("/v1/crawl/{id}?page={page}&page_size=50"));
        for item in job["results"].as_array().unwrap() {
            assert!(item["depth"].as_u64().unwrap() <= 6);
            pages.insert(item["url"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(pages.len(), 10_000);
}
