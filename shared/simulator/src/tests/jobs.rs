//! The course of jobs: statuses, parts, cancellations, slots.

use serde_json::{Value, json};

use super::Stage;
use crate::{Config, Faults};

/// Longer than any job of the default settings.
const LONG: u64 = 3_600;

#[test]
fn an_extraction_goes_from_queued_over_processing_to_completed() {
    let mut stage = Stage::calm();
    let id = stage.extract("https://a.example/x");
    let target = format!("/v1/extract/{id}");
    let mut seen = Vec::new();
    for _ in 0..LONG {
        if seen.last().is_some_and(|status| status == "completed") {
            break;
        }
        let job = stage.read(&target);
        let status = job["status"].as_str().unwrap().to_owned();
        assert_eq!(job["completed_at"].is_null(), status != "completed");
        assert_eq!(job["data"].is_null(), status != "completed");
        assert_eq!(job["tokens_charged"].is_null(), status != "completed");
        if seen.last() != Some(&status) {
            seen.push(status);
        }
        stage.pass(1);
    }
    assert_eq!(seen, ["queued", "processing", "completed"]);
}

#[test]
fn reads_can_lag_behind_acceptance() {
    let mut stage = Stage::new(Config { read_lag_secs: 3.0, ..Config::default() });
    let target = format!("/v1/batch/{}", stage.batch(1));
    stage.pass(2);
    assert_eq!(stage.get(&target).status, 404);
    stage.pass(1);
    assert_eq!(stage.get(&target).status, 200);
}

#[test]
fn ids_are_found_in_either_case_but_only_under_their_kind() {
    let mut stage = Stage::calm();
    let id = stage.batch(1);
    assert_eq!(stage.get(&format!("/v1/batch/{}", id.to_uppercase())).status, 200);
    assert_eq!(stage.get(&format!("/v1/crawl/{id}")).status, 404);
    assert_eq!(stage.get(&format!("/v1/extract/{id}")).status, 404);
}

#[test]
fn a_batch_drops_invalid_urls_and_keeps_the_places_of_the_others() {
    let mut stage = Stage::calm();
    let body = json!({ "urls": ["https://a.example/0", "nope", "https://a.example/2"] });
    let answer = stage.post("/v1/batch", &body).body.unwrap();
    assert_eq!(answer["accepted_urls"], 2);
    assert_eq!(answer["invalid_urls"], json!(["nope"]));
    stage.pass(LONG);
    let job = stage.read(answer["status_url"].as_str().unwrap());
    let places: Vec<&Value> =
        job["results"].as_array().unwrap().iter().map(|item| &item["input_index"]).collect();
    assert_eq!(places, [0, 2]);
    assert_eq!(job["batch_config"]["formats"], json!(["markdown"]));
    assert_eq!(job["total_urls"], 2);
}

#[test]
fn batch_results_appear_as_they_finish_and_tokens_are_released_after_settling() {
    let mut stage = Stage::new(Config { result_bytes: 10, ..Config::default() });
    let id = stage.batch(45);
    let target = format!("/v1/batch/{id}?page_size=50");
    let mut saw_partial = false;
    let mut saw_settling = false;
    for _ in 0..LONG {
        let job = stage.read(&target);
        let count = |name: &str| job[name].as_u64().unwrap();
        assert_eq!(count("completed_urls") + count("pending_urls"), 45);
        let results = u64::try_from(job["results"].as_array().unwrap().len()).unwrap();
        assert_eq!(results, count("completed_urls"));
        let reserved = job["token_summary"]["tokens_reserved"].as_u64().unwrap();
        assert!(reserved >= count("pending_urls"));
        saw_partial |= results > 0 && results < 45;
        saw_settling |= job["status"] == "completed" && reserved > 0;
        if reserved == 0 {
            break;
        }
        stage.pass(1);
    }
    assert!(saw_partial && saw_settling);
    let job = stage.read(&target);
    assert_eq!(job["status"], "completed");
    assert_eq!(job["token_summary"], json!({ "tokens_charged_total": 45, "tokens_reserved": 0 }));
}

#[test]
fn batch_pages_hold_every_item_once() {
    let mut stage = Stage::calm();
    let id = stage.batch(123);
    stage.pass(LONG);
    for size in [1, 10, 50] {
        let mut places = Vec::new();
        for page in 1.. {
            let job = stage.read(&format!("/v1/batch/{id}?page={page}&page_size={size}"));
            let results = job["results"].as_array().unwrap();
            if results.is_empty() {
                break;
            }
            places.extend(results.iter().map(|item| item["input_index"].as_u64().unwrap()));
        }
        assert_eq!(places, (0..123).collect::<Vec<u64>>());
    }
    assert_eq!(stage.read(&format!("/v1/batch/{id}"))["results"].as_array().unwrap().len(), 10);
    assert_eq!(stage.get(&format!("/v1/batch/{id}?page_size=51")).status, 422);
}

#[test]
fn a_crawl_finds_the_asked_number_of_unique_pages_within_its_depth_and_limit() {
    for (pages, depth, limit, expected) in
        [(33, 3, 100, 33), (33, 1, 100, 1), (500, 10, 70, 70), (40, 2, 50, 40)]
    {
        let mut stage = Stage::calm();
        let url = format!("https://a.example/site/?pages={pages}");
        let body = json!({ "url": url, "depth": depth, "limit": limit });
        let answer = stage.post("/v1/crawl", &body).body.unwrap();
        assert_eq!(answer["estimated_pages"], limit);
        stage.pass(LONG);
        let mut items = Vec::new();
        for page in 1..=2 {
            let id = answer["job_id"].as_str().unwrap();
            let job = stage.read(&format!("/v1/crawl/{id}?page_size=50&page={page}"));
            assert_eq!(job["total_pages"], expected);
            items.extend(job["results"].as_array().unwrap().clone());
        }
        assert_eq!(u64::try_from(items.len()).unwrap(), expected);
        let mut urls: Vec<&str> = items.iter().map(|item| item["url"].as_str().unwrap()).collect();
        assert_eq!(urls[0], url);
        for item in &items {
            assert!(item["depth"].as_u64().unwrap() <= depth, "{item}");
            let parent = &item["parent_url"];
            if item["depth"] == 1 {
                assert!(parent.is_null());
            } else {
                let parent = items.iter().find(|other| other["url"] == *parent).unwrap();
                assert!(parent["links"].as_array().unwrap().contains(&item["url"]));
                assert_eq!(parent["depth"].as_u64().unwrap() + 1, item["depth"].as_u64().unwrap());
            }
        }
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(u64::try_from(urls.len()).unwrap(), expected);
    }
}

#[test]
fn a_cancelled_parent_is_cancelled_at_once_while_its_children_drain() {
    let crawl = json!({ "url": "https://a.example/?pages=300", "limit": 400, "depth": 3 });
    for kind in ["batch", "crawl"] {
        let mut stage = Stage::calm();
        let id = match kind {
            "batch" => stage.batch(300),
            _ => stage.accepted("/v1/crawl", &crawl),
        };
        stage.pass(25);
        let target = format!("/v1/{kind}/{id}");
        let noun = if kind == "batch" { "urls" } else { "pages" };
        let cancelled = stage.call("DELETE", &target, b"");
        assert_eq!(cancelled.status, 202);
        let cancelled = cancelled.body.unwrap();
        assert_eq!(cancelled["status"], "cancelled");
        assert!(cancelled[format!("in_flight_{noun}")].as_u64().unwrap() > 0);
        let before = stage.read(&target);
        assert_eq!(before["status"], "cancelled");
        assert!(before["token_summary"]["tokens_reserved"].as_u64().unwrap() > 0);
        assert_eq!(stage.call("DELETE", &target, b"").status, 409);
        stage.pass(LONG);
        let after = stage.read(&target);
        assert_eq!(after["token_summary"]["tokens_reserved"], 0);
        assert_eq!(after["completed_at"], before["completed_at"]);
        let count = |job: &Value, word: &str| job[format!("{word}_{noun}")].as_u64().unwrap();
        assert!(count(&after, "completed") > count(&before, "completed"));
        assert!(count(&after, "cancelled") > 0);
        let sum = ["completed", "failed", "cancelled"].map(|word| count(&after, word));
        assert_eq!(sum.iter().sum::<u64>(), count(&after, "total"));
        assert_eq!(stage.call("DELETE", &target, b"").status, 409);
    }
}

#[test]
fn a_finished_parent_cannot_be_cancelled() {
    let mut stage = Stage::calm();
    let id = stage.batch(3);
    stage.pass(LONG);
    let answer = stage.call("DELETE", &format!("/v1/batch/{id}"), b"");
    assert_eq!((answer.status, answer.body), (409, None));
}

#[test]
fn slots_are_taken_by_open_jobs_and_given_back() {
    let mut stage = Stage::new(Config { work_concurrency_limit: 2, ..Config::default() });
    let in_use =
        |stage: &mut Stage| stage.read("/v1/usage/concurrency")["work_concurrency_in_use"].clone();
    stage.extract("https://a.example/1");
    let batch = stage.batch(5);
    assert_eq!(in_use(&mut stage), 2);
    for (target, body) in [
        ("/v1/extract", json!({ "url": "https://a.example/2", "processing_mode": "async" })),
        ("/v1/batch", json!({ "urls": ["https://a.example/2"] })),
        ("/v1/crawl", json!({ "url": "https://a.example/2" })),
    ] {
        let refused = stage.post(target, &body);
        assert_eq!(refused.status, 429);
        assert_eq!(refused.body.unwrap()["code"], "WORK_CONCURRENCY_LIMITED");
    }
    assert_eq!(stage.call("DELETE", &format!("/v1/batch/{batch}"), b"").status, 202);
    assert_eq!(in_use(&mut stage), 1);
    stage.extract("https://a.example/2");
    stage.pass(LONG);
    assert_eq!(in_use(&mut stage), 0);
    assert_eq!(stage.read("/sim/counters")["counters"]["refused"]["work_concurrency"], 3);
}

#[test]
fn a_job_that_never_settles_gives_its_slot_back_after_the_lease() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.never_settle = 1.0);
    let id = stage.extract("https://a.example/1");
    stage.pass(599);
    assert_eq!(stage.read("/v1/usage/concurrency")["work_concurrency_in_use"], 1);
    stage.pass(2);
    assert_eq!(stage.read("/v1/usage/concurrency")["work_concurrency_in_use"], 0);
    stage.pass(1_000_000);
    assert_eq!(stage.read(&format!("/v1/extract/{id}"))["status"], "processing");
    let parent = stage.batch(5);
    stage.pass(LONG);
    let target = format!("/v1/batch/{parent}");
    let job = stage.read(&target);
    assert_eq!((&job["status"], &job["pending_urls"]), (&json!("processing"), &json!(1)));
    assert_eq!(stage.call("DELETE", &target, b"").status, 202);
    stage.pass(LONG);
    let job = stage.read(&target);
    assert_eq!((&job["status"], &job["pending_urls"]), (&json!("cancelled"), &json!(0)));
    assert_eq!(job["token_summary"]["tokens_reserved"], 0);
}

#[test]
fn fates_come_at_their_rates_and_a_resubmitted_url_draws_again() {
    let mut config = Config { work_concurrency_limit: 10_000, ..Config::default() };
    config.faults.jobs = Faults::harsh().jobs;
    let mut stage = Stage::new(config);
    for i in 0..2_000 {
        stage.extract(&format!("https://a.example/{i}"));
    }
    stage.pass(LONG);
    let books = stage.read("/sim/books?limit=1000");
    let more = stage.read("/sim/books?limit=1000&after=1000");
    assert_eq!((&books["next"], &more["next"]), (&json!(1000), &Value::Null));
    let jobs: Vec<&Value> =
        [&books, &more].into_iter().flat_map(|b| b["jobs"].as_array().unwrap()).collect();
    let count = |is: &dyn Fn(&Value) -> bool| jobs.iter().filter(|job| is(job)).count();
    let retryable = count(&|job| job["status"] == "failed" && job["retryable"] == true);
    let last = count(&|job| job["status"] == "failed" && job["retryable"] == false);
    let cancelled =
        count(&|job| job["status"] == "cancelled" && job["failure_code"] == "CANCELLED");
    let never = count(&|job| job["status"] == "processing");
    assert!((160..240).contains(&retryable), "{retryable}");
    assert!((40..80).contains(&last), "{last}");
    assert!((25..60).contains(&cancelled), "{cancelled}");
    assert!((10..35).contains(&never), "{never}");
    let failed: Vec<String> = jobs
        .iter()
        .filter(|job| job["retryable"] == true)
        .map(|job| job["urls"][0].as_str().unwrap().to_owned())
        .collect();
    let again: Vec<String> = failed.iter().map(|url| stage.extract(url)).collect();
    stage.pass(LONG);
    let completed = again
        .iter()
        .filter(|id| stage.read(&format!("/v1/extract/{id}"))["status"] == "completed")
        .count();
    assert!(completed * 10 > again.len() * 7, "{completed} of {}", again.len());
}

#[test]
fn failed_and_cancelled_extractions_explain_themselves() {
    for (retryable, last, cancelled) in [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)] {
        let mut stage = Stage::with_faults(|faults| {
            faults.jobs.fail_retryable = retryable;
            faults.jobs.fail_final = last;
            faults.jobs.cancelled = cancelled;
        });
        let id = stage.extract("https://a.example/1");
        stage.pass(LONG);
        let job = stage.read(&format!("/v1/extract/{id}"));
        assert_eq!(job["status"], if cancelled > 0.0 { "cancelled" } else { "failed" });
        assert_eq!(job["error"]["retryable"], retryable > 0.0);
        assert_eq!(job["tokens_charged"], 0);
        assert!(job["data"].is_null());
    }
}

#[test]
fn the_platform_may_cancel_a_parent_by_itself() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.cancelled = 1.0);
    for parent in 0..5 {
        let urls: Vec<String> =
            (0..40).map(|i| format!("https://a.example/{parent}/{i}")).collect();
        stage.accepted("/v1/batch", &json!({ "urls": urls }));
    }
    stage.pass(LONG);
    for book in stage.books() {
        assert_eq!(book["status"], "cancelled");
        let items = &book["items"];
        let sum = ["completed", "failed", "cancelled"].map(|word| items[word].as_u64().unwrap());
        assert_eq!((sum.iter().sum::<u64>(), &items["reserved"]), (40, &json!(0)));
    }
}

#[test]
fn a_crawl_whose_seed_fails_fails_with_one_page() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.fail_final = 1.0);
    let id = stage.accepted("/v1/crawl", &json!({ "url": "https://a.example/?pages=9" }));
    stage.pass(LONG);
    let job = stage.read(&format!("/v1/crawl/{id}"));
    assert_eq!(job["status"], "failed");
    assert_eq!((&job["total_pages"], &job["failed_pages"]), (&json!(1), &json!(1)));
    assert!(job["results"][0]["error_code"].is_string());
}

#[test]
fn failed_children_are_in_the_results_and_in_the_books() {
    let mut stage = Stage::with_faults(|faults| faults.jobs.fail_retryable = 0.3);
    let id = stage.batch(50);
    stage.pass(LONG);
    let job = stage.read(&format!("/v1/batch/{id}?page_size=50"));
    assert_eq!(job["status"], "completed");
    let results = job["results"].as_array().unwrap();
    let failed: Vec<&Value> = results.iter().filter(|item| item["status"] == "failed").collect();
    assert!((5..30).contains(&failed.len()));
    assert!(failed.iter().all(|item| item["error_code"].is_string() && item["data"].is_null()));
    let book = &stage.read("/sim/books?detail=parts")["jobs"][0];
    let listed: Vec<&Value> =
        book["failed_items"].as_array().unwrap().iter().map(|item| &item["index"]).collect();
    let expected: Vec<&Value> = failed.iter().map(|item| &item["input_index"]).collect();
    assert_eq!(listed, expected);
    assert_eq!(book["items"]["failed"], failed.len());
    assert_eq!(book["charged_tokens"], job["completed_urls"]);
    assert_eq!(book["parts"].as_array().unwrap().len(), 50);
}
