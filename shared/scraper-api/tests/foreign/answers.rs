//! Answers of the platform, or of whoever stands in its place: read or refused, within bounds, and
//! the key is in no error.
//!
//! An input is a line with the call, the status and a `Retry-After`, and then the body.

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::envelope::EventType;
use domain::job::{JobError, JobId, JobKey, JobStatus, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Item, Jobs, ListQuery, NewWebhook, PageRequest, RawJson, SubmitError,
    WebhookChange, WebhookId, Webhooks,
};
use domain::request::{FetchOptions, JobRequest};
use domain::testing::ManualClock;
use scraper_api::{ApiKey, Config, ScraperApi, StatisticsWindow, Usage as _};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

/// The key that no error may show.
const KEY: &str = "marker-key-5f2c";
/// Ample for an answer from this very process.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest `Retry-After` that is believed by default.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

pub(crate) fn check(input: &[u8]) {
    static RIG: OnceLock<Mutex<Rig>> = OnceLock::new();
    let rig = RIG.get_or_init(|| Mutex::new(Rig::new()));
    let rig = rig.lock().unwrap_or_else(PoisonError::into_inner);
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, body) = input.split_at(at);
    let body = body.get(1..).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let mut words = head.splitn(3, ' ');
    let call = words.next().unwrap_or_default();
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(200);
    let status = if (200..=599).contains(&status) { status } else { 200 };
    rig.answer_with(status, words.next().unwrap_or_default(), body);
    rig.call(call, body);
}

/// A client, and a server in a thread of its own that answers everything alike.
struct Rig {
    runtime: Runtime,
    api: ScraperApi,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Rig {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&answer);
        // It ends with the process, like the client that is kept for it.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        let config = Config::new(&base_url, ApiKey::parse(KEY).unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let api = ScraperApi::new(config, Arc::new(ManualClock::default())).unwrap();
        Self { runtime, api, answer }
    }

    fn answer_with(&self, status: u16, retry_after: &str, body: &[u8]) {
        let retry_after: String =
            retry_after.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clear();
        write!(
            answer,
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nRetry-After: {retry_after}\r\n\r\n",
            body.len()
        )
        .unwrap();
        // These carry no body, whatever their head says.
        if ![204, 304].contains(&status) {
            answer.extend_from_slice(body);
        }
    }

    fn call(&self, call: &str, body: &[u8]) {
        match call {
            "batch" => self.parent(Kind::Batch, body),
            "crawl" => self.parent(Kind::Crawl, body),
            "jobs" => self.jobs(body),
            "submit" => self.submit(),
            "now" => self.extract_now(body),
            "webhooks" => self.webhooks(),
            "rotate" => self.rotate(),
            "account" => self.account(),
            _ => self.extract(body),
        }
    }

    fn extract(&self, body: &[u8]) {
        match self.runtime.block_on(self.api.extract(&id(), WITHIN)) {
            Ok(job) => {
                check_whole(&job.raw, body);
                check_says(body, "job_id");
                check_status(&job.status);
                job.error.iter().for_each(check_job_error);
            }
            Err(error) => check_error(&error),
        }
    }

    fn parent(&self, kind: Kind, body: &[u8]) {
        let key = JobKey::new(kind, id());
        let page = PageRequest { page: 1, page_size: 50 };
        match self.runtime.block_on(self.api.parent(&key, page, WITHIN)) {
            Ok(page) => {
                check_says(body, "job_id");
                check_status(&page.status);
                let summary: &RawValue = serde_json::from_str(&page.summary.0).unwrap();
                assert!(summary.get().starts_with('{'));
                for Item { raw, error, .. } in page.items.iter().flatten() {
                    let item = raw.0.as_bytes();
                    assert!(body.windows(item.len()).any(|part| part == item), "not verbatim");
                    error.iter().for_each(check_job_error);
                }
            }
            Err(error) => check_error(&error),
        }
    }

    fn jobs(&self, body: &[u8]) {
        let query = ListQuery { page: 1, page_size: 100, created_from: None, created_to: None };
        match self.runtime.block_on(Jobs::list(&self.api, Kind::Extract, &query, WITHIN)) {
            Ok(page) => {
                check_says(body, "jobs");
                page.jobs.iter().for_each(|job| check_status(&job.status));
            }
            Err(error) => check_error(&error),
        }
    }

    fn submit(&self) {
        let urls = ["https://example.com/"];
        let requests = [
            JobRequest::extract(urls[0], FetchOptions::default()),
            JobRequest::batch(urls, FetchOptions::default()),
            JobRequest::crawl(urls[0], FetchOptions::default(), 1, 1),
        ];
        for request in requests {
            let request = request.unwrap();
            check_submit(self.runtime.block_on(self.api.submit(&request, WITHIN)));
        }
    }

    fn extract_now(&self, body: &[u8]) {
        let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
        let page = self.runtime.block_on(self.api.extract_now(&request, Duration::from_secs(1)));
        if let Some(page) = check_submit(page) {
            check_whole(&page.raw, body);
        }
    }

    fn webhooks(&self) {
        let api = &self.api;
        let id = WebhookId::parse("j1").unwrap();
        let new = NewWebhook {
            url: "https://example.com/".to_owned(),
            event_type: EventType::ExtractCompleted,
            description: None,
        };
        if let Some(created) = check_submit(self.runtime.block_on(api.create(&new, WITHIN))) {
            assert!(!created.secret.expose().trim().is_empty());
        }
        self.told(Webhooks::list(api, 1, 10, WITHIN));
        if let Some(webhook) = self.told(api.get(&id, WITHIN)) {
            assert_eq!(webhook.id, id);
        }
        self.told(api.update(&id, &WebhookChange::default(), WITHIN));
        self.told(api.delete(&id, WITHIN));
        for delivery in
            self.told(api.deliveries(&id, 1, 10, WITHIN)).iter().flat_map(|page| &page.deliveries)
        {
            assert!(delivery.status.as_str().chars().count() <= 64);
            assert!(delivery.event_type.as_str().chars().count() <= 64);
        }
    }

    fn rotate(&self) {
        let id = WebhookId::parse("j1").unwrap();
        if let Some(secret) =
            check_submit(self.runtime.block_on(self.api.rotate_secret(&id, WITHIN)))
        {
            assert!(!secret.expose().trim().is_empty());
        }
    }

    fn account(&self) {
        self.told(self.api.concurrency(WITHIN));
        self.told(self.api.statistics(StatisticsWindow::default(), WITHIN));
        self.told(self.api.health(WITHIN));
    }

    fn told<T>(&self, call: impl Future<Output = Result<T, ApiError>>) -> Option<T> {
        self.runtime.block_on(call).map_err(|error| check_error(&error)).ok()
    }
}

fn serve(stream: TcpStream, answer: &Mutex<Vec<u8>>) {
    // A broken connection is the client's to notice.
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let mut bytes = 0;
        loop {
            let mut line = String::new();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(length) = line.strip_prefix("content-length:") {
                bytes = length.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        if reader.read_exact(&mut vec![0; bytes]).is_err() {
            return;
        }
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if reader.get_mut().write_all(&answer).is_err() {
            return;
        }
    }
}

fn id() -> JobId {
    JobId::parse("j1").unwrap()
}

/// The whole answer is kept byte for byte, and is JSON.
fn check_whole(raw: &RawJson, body: &[u8]) {
    assert_eq!(raw.0.as_bytes(), body);
    serde_json::from_slice::<&RawValue>(body).unwrap();
}

/// An answer is taken only if it names this field, in whatever spelling.
fn check_says(body: &[u8], field: &str) {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.contains(field) || text.contains("\\u"), "no `{field}`");
    assert!(text.trim_start().starts_with('{'));
}

fn check_status(status: &JobStatus) {
    assert!(status.as_str().chars().count() <= 64);
}

fn check_job_error(error: &JobError) {
    assert!(error.code.chars().count() <= 64 && error.message.chars().count() <= 300);
    check_text(&format!("{}{}", error.code, error.message));
    check_quiet(error);
}

fn check_error(error: &ApiError) {
    assert!(error.message.chars().count() <= 300);
    assert!(error.code.as_deref().unwrap_or_default().chars().count() <= 64);
    assert!(error.correlation_id.as_deref().unwrap_or_default().chars().count() <= 128);
    assert!(error.retry_after.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
    // Every answer here is whole and in time.
    let is_success = error.status.is_some_and(|status| (200..300).contains(&status));
    assert!(error.status.is_some(), "{error:?}");
    assert!(!is_success || error.kind != ApiErrorKind::Refused, "{error:?}");
    check_text(&error.to_string());
    check_quiet(error);
}

/// One line that no terminal obeys.
fn check_text(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

fn check_quiet(value: &impl Debug) {
    assert!(!format!("{value:?}").contains(KEY), "the key is shown");
}

/// A paid call is refused only by an answer that says so.
fn check_submit<T>(outcome: Result<T, SubmitError>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(SubmitError::Refused(error)) => {
            let status = error.status.unwrap();
            assert!((300..500).contains(&status) || status == 503, "{status} refuses nothing");
            assert!(![303, 408].contains(&status), "{status} refuses nothing");
            check_error(&error);
            None
        }
        Err(SubmitError::Unanswered(error)) => {
            check_error(&error);
            None
        }
    }
}

#[test]
fn the_seeds_of_answers_hold() {
    testkit::corpus::check("answers", 20, check);
}
