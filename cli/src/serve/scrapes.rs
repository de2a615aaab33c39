//! `GET /metrics` for Prometheus, on an address of its own: the receiver's is reached by strangers,
//! whom it concerns neither how much is fetched nor how far behind this server is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::ports::PortError;
use domain::time::{Timestamp, between};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use telemetry::prometheus::{self, exposition};
use telemetry::{Gauge, measure};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

use super::Server;
use super::connections::{Answered, Bounds, not_allowed, serve, with_status};

/// Where metrics are read.
const PATH: &str = "/metrics";
/// Scrapers served at once, and their patience with their own requests.
const BOUNDS: Bounds = Bounds { connections: 8, head_timeout: Duration::from_secs(10) };
/// Longest time for measuring; what has no value by then is left out. Prometheus waits 10 s.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(5);

struct Scraped {
    server: Arc<Server>,
    started: Timestamp,
    /// One scrape at a time measures, however many ask.
    turn: Mutex<()>,
}

pub(super) async fn run(server: Arc<Server>, listener: TcpListener, stop: watch::Receiver<bool>) {
    let clock = Arc::clone(&server.pipeline.clock);
    let scraped = Arc::new(Scraped { server, started: clock.now(), turn: Mutex::default() });
    let answer = move |request| answer(Arc::clone(&scraped), request);
    serve(listener, BOUNDS, &*clock, stop, answer).await;
}

async fn answer(scraped: Arc<Scraped>, request: Request<Incoming>) -> Answered {
    match (request.uri().path(), request.method()) {
        (PATH, &Method::GET) => scrape(&scraped).await,
        (PATH, _) => not_allowed("GET"),
        _ => with_status(StatusCode::NOT_FOUND),
    }
}

async fn scrape(scraped: &Scraped) -> Answered {
    let _turn = scraped.turn.lock().await;
    let metrics = &scraped.server.metrics;
    metrics.forget_measured();
    if tokio::time::timeout(MEASURE_TIMEOUT, measure_all(&scraped.server)).await.is_err() {
        tracing::warn!("metrics could not be measured in time");
    }
    let text = exposition(metrics, scraped.started);
    let mut response = Response::new(Full::new(Bytes::from(text)));
    let content_type = HeaderValue::from_static(prometheus::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Measures what is read from ledger and queue, none of which grows with the ledger.
async fn measure_all(server: &Server) {
    let ports = server.pipeline.ports();
    measure(&server.metrics, ports).await;
    if let Ok(counts) = ports.ledger.count_entries().await {
        server.metrics.set_entries(&counts);
    }
    if let Ok(Some(depth)) = server.source.count_waiting().await {
        server.metrics.set(Gauge::QueueDepth, depth);
    }
    if let Ok(age) = queue_age(server).await {
        server.metrics.set(Gauge::QueueAge, age.as_secs());
    }
}

/// How long the oldest visible task has waited.
async fn queue_age(server: &Server) -> Result<Duration, PortError> {
    let first = server.source.first_visible_at().await?;
    let now = server.pipeline.clock.now();
    Ok(first.map_or(Duration::ZERO, |at| between(at, now)))
}
