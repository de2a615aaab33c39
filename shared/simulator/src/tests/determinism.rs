//! The same seed and the same calls at the same moments give the same books.

use serde_json::json;

use super::{Stage, accept};
use crate::{Config, Detail, Faults};

/// Drives a platform with all faults of the harsh preset; returns its books and counters.
fn run(seed: u64) -> (String, String) {
    let mut stage = Stage::new(Config { seed, faults: Faults::harsh(), ..Config::default() });
    for event_type in ["extract_completed", "batch_completed"] {
        let body = json!({ "url": "http://127.0.0.1:9/hook", "event_type": event_type });
        while stage.post("/v1/webhooks", &body).status != 201 {}
    }
    for i in 0..60 {
        let url = format!("https://a.example/{i}");
        stage.post("/v1/extract", &json!({ "url": url, "processing_mode": "async" }));
        stage.deliver(3, accept);
        stage.get("/v1/extract/jobs");
    }
    stage.post("/v1/batch", &json!({ "urls": ["https://a.example/1", "https://a.example/2"] }));
    stage.deliver(2_000, accept);
    let counters = stage.read("/sim/counters").to_string();
    (stage.platform.books(Detail::Parts).to_string(), counters)
}

#[test]
fn books_are_byte_identical_for_the_same_seed() {
    let first = run(7);
    assert!(first.0.len() > 10_000);
    assert_eq!(first, run(7));
    assert_ne!(first.0, run(8).0);
}

#[test]
fn a_jobs_fate_does_not_depend_on_what_happens_around_it() {
    let fate = |others: u32| {
        let mut stage = Stage::new(Config { faults: Faults::harsh(), ..Config::default() });
        stage.platform.set_faults(Faults { api: Faults::none().api, ..Faults::harsh() });
        for i in 0..others {
            stage.extract(&format!("https://other.example/{i}"));
        }
        let fates: Vec<_> = (0..50)
            .map(|i| stage.extract(&format!("https://a.example/{i}")))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| {
                stage.pass(100);
                let job = stage.read(&format!("/v1/extract/{id}"));
                (id, job["status"].clone(), job["error"]["code"].clone())
            })
            .collect();
        fates
    };
    assert_eq!(fate(0), fate(10));
}
