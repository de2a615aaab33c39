//! The scripted platform, prepared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::job::{JobError, JobKey, JobStatus, Kind, item_code_is_retryable};
use domain::ports::{ApiError, ApiErrorKind, Clock, ExtractJob, Item, Jobs, ParentPage, RawJson};
use domain::request::JobRequest;
use domain::testing::{ManualClock, ScriptedJobs, ScriptedSubmit, extract_answer, parent_answer};
use futures_util::FutureExt as _;
use serde_json::json;
use testkit::conformance::{CallOf, Fate, JobsCaps, JobsPlatform, JobsSubject, Trouble};

/// An answer that was laid down for a job.
type Laid = (JobKey, Result<Result<ExtractJob, ParentPage>, ApiError>);

pub(crate) struct Scripted {
    clock: Arc<ManualClock>,
    script: Arc<ScriptedJobs>,
    jobs: Arc<dyn Jobs>,
    laid: Mutex<Vec<Laid>>,
    lost: Mutex<u32>,
    has_probe: AtomicBool,
}

impl Scripted {
    /// The scripted platform behind a wrapper.
    pub(crate) fn subject<F>(wrap: F) -> JobsSubject
    where
        F: FnOnce(Arc<dyn Jobs>, Arc<ManualClock>) -> Arc<dyn Jobs>,
    {
        let clock = Arc::new(ManualClock::default());
        let script = Arc::new(ScriptedJobs::new(clock.clone()));
        script.set_list_lag(Duration::from_secs(1));
        let jobs = wrap(script.clone(), clock.clone());
        let (laid, lost, has_probe) = Default::default();
        let platform = Self { clock, script, jobs, laid, lost, has_probe };
        let caps = JobsCaps {
            fates: Fate::ALL.to_vec(),
            troubles: vec![
                Trouble::Denied,
                Trouble::PaymentRequired,
                Trouble::Throttled,
                Trouble::ThrottledFor,
                Trouble::Unavailable,
                Trouble::BadGateway,
                Trouble::Unreadable,
                Trouble::LostAnswer,
            ],
            parent_ids_are_uuids: false,
            slack: Duration::ZERO,
        };
        JobsSubject::new(Box::new(platform), caps)
    }

    /// Puts an answer in the place of the one that stays for all probes.
    fn set_probe(&self, answer: Result<(), ApiError>) {
        self.script.answer_probe(answer);
        if self.has_probe.swap(true, Ordering::Relaxed) {
            let _ = self.script.probe(Duration::ZERO).now_or_never();
        }
    }

    fn lay(&self, (key, answer): &Laid) {
        self.script.clear_answers(key);
        match answer.clone() {
            Ok(Ok(extract)) => self.script.answer_extract(&key.job_id, Ok(extract)),
            Ok(Err(parent)) => self.script.answer_parent(key, Ok(parent)),
            Err(error) if key.kind == Kind::Extract => {
                self.script.answer_extract(&key.job_id, Err(error));
            }
            Err(error) => self.script.answer_parent(key, Err(error)),
        }
    }
}

const fn status_of(fate: Fate) -> JobStatus {
    match fate {
        Fate::Completed => JobStatus::Completed,
        Fate::FailedRetryable | Fate::FailedFinal => JobStatus::Failed,
        Fate::Cancelled => JobStatus::Cancelled,
        Fate::Unfinished | Fate::Vanished => JobStatus::Processing,
    }
}

fn error_of(fate: Fate) -> Option<JobError> {
    let code = match fate {
        Fate::FailedRetryable => "TIMEOUT",
        Fate::FailedFinal => "PERMANENT_BLOCK",
        _ => return None,
    };
    Some(JobError::new(code, "the script says so", item_code_is_retryable(code)))
}

fn item(request: &JobRequest, place: usize, fate: Fate) -> Item {
    let url = match request {
        JobRequest::Batch { urls, .. } => urls[place].clone(),
        _ => format!("https://example.com/page-{place}"),
    };
    let key = if request.kind() == Kind::Batch { place.to_string() } else { url.clone() };
    let status = status_of(fate).as_str().to_owned();
    let raw = json!({ "input_index": place, "url": url, "status": status }).to_string();
    Item { key, url, status, error: error_of(fate), raw: RawJson(raw.into_boxed_str()) }
}

fn parts(request: &JobRequest) -> usize {
    match request {
        JobRequest::Extract { .. } => 0,
        JobRequest::Batch { urls, .. } => urls.len(),
        JobRequest::Crawl { url, .. } => url.split_once("pages=").unwrap().1.parse().unwrap(),
    }
}

fn error(trouble: Trouble) -> ApiError {
    let (kind, status) = match trouble {
        Trouble::Denied => (ApiErrorKind::Denied, 401),
        Trouble::PaymentRequired => (ApiErrorKind::PaymentRequired, 402),
        Trouble::Throttled | Trouble::ThrottledFor => (ApiErrorKind::Throttled, 429),
        Trouble::Unavailable => (ApiErrorKind::Unavailable, 503),
        Trouble::BadGateway => (ApiErrorKind::Unavailable, 502),
        Trouble::Unreadable => (ApiErrorKind::Unreadable, 200),
        Trouble::LostAnswer | Trouble::Hang | Trouble::Cut | Trouble::Slow => {
            unreachable!("has no status")
        }
    };
    let wait = (trouble == Trouble::ThrottledFor).then_some(Duration::from_secs(2));
    ApiError {
        status: Some(status),
        retry_after: wait,
        ..ApiError::new(kind, "the script says so")
    }
}

impl JobsPlatform for Scripted {
    fn jobs(&self) -> &dyn Jobs {
        self.jobs.as_ref()
    }

    fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    fn decide(&self, _fate: Fate) {}

    fn finish(&self, key: &JobKey, request: &JobRequest, fate: Fate) {
        let answer = match (fate, key.kind) {
            (Fate::Vanished, _) => {
                let missing = ApiError::new(ApiErrorKind::Missing, "the job vanished");
                Err(ApiError { status: Some(404), ..missing })
            }
            (_, Kind::Extract) => {
                let error = error_of(fate);
                Ok(Ok(ExtractJob { error, ..extract_answer(&key.job_id, status_of(fate)) }))
            }
            (_, Kind::Batch | Kind::Crawl) => {
                let items = (0..parts(request)).map(|place| item(request, place, fate)).collect();
                Ok(Err(parent_answer(key, status_of(fate), items)))
            }
        };
        let laid = (key.clone(), answer);
        self.lay(&laid);
        self.laid.lock().unwrap().push(laid);
        self.script.set_listed_status(key, status_of(fate));
        self.clock.advance(Duration::from_hours(1));
    }

    fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    fn trouble(&self, call: &CallOf, trouble: Trouble) {
        if trouble == Trouble::LostAnswer {
            let mut lost = self.lost.lock().unwrap();
            *lost += 1;
            let job_id = domain::job::JobId::parse(&format!("lost-{lost}")).unwrap();
            return self.script.answer_submit(ScriptedSubmit::AcceptedUnanswered(job_id));
        }
        let error = error(trouble);
        match call {
            CallOf::Extract(job_id) => {
                self.script.clear_answers(&JobKey::new(Kind::Extract, job_id.clone()));
                self.script.answer_extract(job_id, Err(error));
            }
            CallOf::Parent(key) => {
                self.script.clear_answers(key);
                self.script.answer_parent(key, Err(error));
            }
            CallOf::Submit => self.script.answer_submit(match trouble {
                Trouble::BadGateway | Trouble::Unreadable => ScriptedSubmit::Unanswered(error),
                _ => ScriptedSubmit::Refused(error),
            }),
            CallOf::List(_) => self.script.fail_list(error),
            CallOf::Probe => self.set_probe(Err(error)),
        }
    }

    fn heal(&self) {
        for laid in self.laid.lock().unwrap().iter() {
            self.lay(laid);
        }
        self.set_probe(Ok(()));
    }

    fn limited(&self) -> Option<Arc<dyn Jobs>> {
        self.script.limit_page_bytes(500);
        Some(self.jobs.clone())
    }

    fn answer_of(&self, key: &JobKey) -> Option<String> {
        let laid = self.laid.lock().unwrap();
        let (_, answer) = laid.iter().rfind(|(of, _)| of == key)?;
        match answer {
            Ok(Ok(extract)) => Some(extract.raw.0.to_string()),
            Ok(Err(_)) | Err(_) => None,
        }
    }
}
