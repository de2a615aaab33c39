//! A platform whose jobs have finished, so that their results are there when they are asked for.

use std::sync::Arc;

use serde_json::json;
use simulator::{Call, Config, Running};
use tokio::net::TcpListener;

/// The platform, with jobs that have finished.
pub(crate) struct Platform {
    pub(crate) running: Running,
    pub(crate) jobs: Vec<String>,
}

impl Platform {
    pub(crate) async fn with(jobs: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config {
            speed: 1_000_000.0,
            work_concurrency_limit: u32::try_from(jobs).unwrap() + 1,
            result_bytes: 2_048,
            ..Config::default()
        };
        let key = config.api_key.clone();
        let running = simulator::start(listener, config, Arc::new(simulator::SystemClock)).unwrap();
        let submit = |number| {
            let url = format!("https://example.com/{number}");
            let body = json!({ "url": url, "processing_mode": "async" }).to_string();
            let call = Call {
                method: "POST",
                path: "/v1/extract",
                query: "",
                api_key: Some(&key),
                body: body.as_bytes(),
            };
            let answer = running.with_platform(|platform, now| platform.call(&call, now));
            answer.body.unwrap()["job_id"].as_str().unwrap().to_owned()
        };
        let jobs = (0..jobs).map(submit).collect();
        Self { running, jobs }
    }
}
