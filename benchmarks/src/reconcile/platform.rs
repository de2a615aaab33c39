//! Job lists of any length, made as they are asked for: newest first, by date and page, as the
//! platform's are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use domain::time::{Timestamp, before, between, parse_lenient};
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Extract jobs, one after the other in equal steps.
#[derive(Debug, Clone)]
pub(crate) struct Jobs {
    /// How many there are.
    pub(crate) count: u64,
    /// When the last one was created.
    pub(crate) newest: Timestamp,
    /// Between two of them.
    pub(crate) step: Duration,
    /// The first of those that the ledger does not know; of them every tenth is open.
    pub(crate) is_new_from: u64,
}

impl Jobs {
    /// The n-th job's id.
    pub(crate) fn id(number: u64) -> String {
        // Neighbours in time are no neighbours in the ledger's index, as with the platform's ids.
        let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        format!("{scattered:08x}-0000-4000-8000-{number:012x}")
    }

    /// When the n-th job was created.
    pub(crate) fn created_at(&self, number: u64) -> Timestamp {
        let steps = u32::try_from(self.count - 1 - number).unwrap_or(u32::MAX);
        before(self.newest, self.step.saturating_mul(steps))
    }

    /// How many were created up to an instant.
    fn until(&self, at: Timestamp) -> u64 {
        if at >= self.newest {
            return self.count;
        }
        let steps = between(at, self.newest).as_nanos().div_ceil(self.step.as_nanos().max(1));
        self.count.saturating_sub(u64::try_from(steps).unwrap_or(u64::MAX))
    }

    fn item(&self, number: u64) -> Value {
        let is_open = number >= self.is_new_from && number.is_multiple_of(10);
        json!({
            "job_id": Self::id(number),
            "status": if is_open { "processing" } else { "completed" },
            "url": format!("https://shop.example.com/products/{number}"),
            "created_at": self.created_at(number),
            "execution_time": 1_200,
            "output": ["markdown"],
        })
    }
}

/// The lists over HTTP.
pub(crate) struct Lists {
    pub(crate) url: String,
    calls: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Lists {
    pub(crate) async fn start(jobs: Jobs) -> Result<Self> {
        let calls = Arc::<AtomicU64>::default();
        let state = (Arc::new(jobs), Arc::clone(&calls));
        let router = Router::new().route("/v1/{kind}/jobs", get(list)).with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { url, calls, serving })
    }

    /// List calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

type Shared = (Arc<Jobs>, Arc<AtomicU64>);

async fn list(State((jobs, calls)): State<Shared>, Path(kind): Path<String>, uri: Uri) -> Response {
    calls.fetch_add(1, Ordering::Relaxed);
    let Ok(asked) = Url::parse(&format!("http://lists{uri}")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let text = |name: &str| {
        let found = asked.query_pairs().find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned())
    };
    let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
    let (Some(page), Some(size)) = (number("page"), number("page_size")) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    let date = |name: &str| text(name).and_then(|text| parse_lenient(&text));
    let begin = date("start_date").map_or(0, |from| jobs.until(before(from, NANOSECOND)));
    let end = date("end_date").map_or(jobs.count, |to| jobs.until(to));
    let (begin, end) = if kind == "extract" { (begin, end.max(begin)) } else { (0, 0) };
    let skipped = page.saturating_sub(1).saturating_mul(size);
    let last = end.saturating_sub(skipped).max(begin);
    let first = last.saturating_sub(size).max(begin);
    let items: Vec<_> = (first..last).rev().map(|number| jobs.item(number)).collect();
    let pages = (end - begin).div_ceil(size.max(1));
    let answer = json!({
        "jobs": items, "page": page, "page_size": size, "page_count": pages, "is_capped": false,
    });
    ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

const NANOSECOND: Duration = Duration::from_nanos(1);
