mod answers;
mod listing;

pub use answers::{extract_answer, parent_answer};

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use self::listing::JobList;
use super::lock;
use crate::job::{JobId, JobKey, JobStatus, Kind};
use crate::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, Listed, PageRequest,
    ParentPage, SubmitError,
};
use crate::request::JobRequest;

/// The platform as a script: what it answers is laid down beforehand, what it was asked is kept.
///
/// Each job has a queue of answers; the last one stays. A job without a script answers `queued`
/// while it is in the job list, else 404.
pub struct ScriptedJobs {
    clock: Arc<dyn Clock>,
    state: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    extracts: BTreeMap<JobId, VecDeque<Result<ExtractJob, ApiError>>>,
    parents: BTreeMap<JobKey, VecDeque<Result<ParentPage, ApiError>>>,
    pages: BTreeMap<(JobKey, u32), VecDeque<Result<ParentPage, ApiError>>>,
    submits: VecDeque<ScriptedSubmit>,
    probes: VecDeque<Result<(), ApiError>>,
    list_failures: VecDeque<ApiError>,
    list: JobList,
    page_bytes_max: Option<usize>,
    invented: u32,
    calls: Vec<Call>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// [`Jobs::extract`].
    Extract(JobId),
    /// [`Jobs::parent`].
    Parent(JobKey, PageRequest),
    /// [`Jobs::submit`], the paid one.
    Submit(JobRequest),
    /// [`Jobs::list`].
    List(Kind, ListQuery),
    /// [`Jobs::probe`].
    Probe,
}

/// What becomes of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedSubmit {
    /// The job is made and answered.
    Accepted(JobId),
    /// The job is made, and its answer is lost.
    AcceptedUnanswered(JobId),
    /// No job is made, and no answer comes.
    LostUnanswered,
    /// No job is made, and the answer does not say so.
    Unanswered(ApiError),
    /// The platform refuses.
    Refused(ApiError),
}

impl ScriptedJobs {
    /// A platform without jobs that accepts every submission as `job-1`, `job-2`, ...
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Adds an answer to an extract job's queue.
    pub fn answer_extract(&self, job_id: &JobId, answer: Result<ExtractJob, ApiError>) {
        lock(&self.state).extracts.entry(job_id.clone()).or_default().push_back(answer);
    }

    /// Adds an answer to a batch's or crawl's queue. It holds **all** items; each call gets the
    /// page that it asks for, cut out of them.
    pub fn answer_parent(&self, key: &JobKey, answer: Result<ParentPage, ApiError>) {
        lock(&self.state).parents.entry(key.clone()).or_default().push_back(answer);
    }

    /// Adds an answer for one page of a batch or crawl, given as it is; goes before
    /// [`ScriptedJobs::answer_parent`].
    pub fn answer_page(&self, key: &JobKey, page: u32, answer: Result<ParentPage, ApiError>) {
        lock(&self.state).pages.entry((key.clone(), page)).or_default().push_back(answer);
    }

    /// Forgets all answers of a job that were laid down.
    pub fn clear_answers(&self, key: &JobKey) {
        let mut state = lock(&self.state);
        state.extracts.remove(&key.job_id);
        state.parents.remove(key);
        state.pages.retain(|(of, _), _| of != key);
    }

    /// Answers pages whose items are larger than this, in bytes, with `TooLarge`.
    pub fn limit_page_bytes(&self, bytes: usize) {
        lock(&self.state).page_bytes_max = Some(bytes);
    }

    /// Adds what becomes of the next submission that has no script yet.
    pub fn answer_submit(&self, submit: ScriptedSubmit) {
        lock(&self.state).submits.push_back(submit);
    }

    /// Adds an answer to the probe's queue; without one it passes.
    pub fn answer_probe(&self, answer: Result<(), ApiError>) {
        lock(&self.state).probes.push_back(answer);
    }

    /// Lets one call of a job list fail.
    pub fn fail_list(&self, error: ApiError) {
        lock(&self.state).list_failures.push_back(error);
    }

    /// Adds a job to a list, or replaces it there.
    pub fn list_job(&self, kind: Kind, job: Listed) {
        lock(&self.state).list.put(kind, job);
    }

    /// Takes a job off its list.
    pub fn unlist_job(&self, key: &JobKey) {
        lock(&self.state).list.remove(key);
    }

    /// Changes the status that the list gives.
    pub fn set_listed_status(&self, key: &JobKey, status: JobStatus) {
        lock(&self.state).list.set_status(key, status);
    }

    /// Lets jobs appear in the lists only so long after their creation.
    pub fn set_list_lag(&self, lag: Duration) {
        lock(&self.state).list.lag = lag;
    }

    /// Adds entries to the first page of each list that cannot be read.
    pub fn set_unreadable(&self, count: u32) {
        lock(&self.state).list.unreadable = count;
    }

    /// The calls that were made, in order.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state).calls.clone()
    }

    /// The paid calls that were made, in order.
    pub fn submits(&self) -> Vec<JobRequest> {
        let state = lock(&self.state);
        let submits = state.calls.iter().filter_map(|call| match call {
            Call::Submit(request) => Some(request.clone()),
            _ => None,
        });
        submits.collect()
    }

    /// Forgets the calls made so far.
    pub fn clear_calls(&self) {
        lock(&self.state).calls.clear();
    }

    /// The ids in a kind's list, newest first, lag or no lag.
    pub fn listed(&self, kind: Kind) -> Vec<JobId> {
        lock(&self.state).list.ids(kind)
    }
}

/// Takes the next answer; the last one stays.
fn next_of<T: Clone>(answers: &mut VecDeque<T>) -> Option<T> {
    if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
}

fn missing() -> ApiError {
    ApiError { status: Some(404), ..ApiError::new(ApiErrorKind::Missing, "no such job") }
}

fn lost() -> SubmitError {
    SubmitError::Unanswered(ApiError::new(ApiErrorKind::Unavailable, "the answer was lost"))
}

#[async_trait]
impl Jobs for ScriptedJobs {
    async fn extract(&self, job_id: &JobId, _within: Duration) -> Result<ExtractJob, ApiError> {
        let mut state = lock(&self.state);
        state.calls.push(Call::Extract(job_id.clone()));
        if let Some(answer) = state.extracts.get_mut(job_id).and_then(next_of) {
            return answer;
        }
        let key = JobKey::new(Kind::Extract, job_id.clone());
        let listed = state.list.get(&key).ok_or_else(missing)?;
        let mut answer = extract_answer(job_id, listed.status.clone());
        answer.created_at = listed.created_at;
        Ok(answer)
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        _within: Duration,
    ) -> Result<ParentPage, ApiError> {
        let mut state = lock(&self.state);
        state.calls.push(Call::Parent(key.clone(), page));
        if key.kind == Kind::Extract {
            return Err(ApiError::new(ApiErrorKind::Refused, "an extract job has no pages"));
        }
        if let Some(answer) = state.pages.get_mut(&(key.clone(), page.page)).and_then(next_of) {
            return answer;
        }
        let scripted = state.parents.get_mut(key).and_then(next_of);
        let whole = if let Some(answer) = scripted {
            answer?
        } else {
            let listed = state.list.get(key).ok_or_else(missing)?;
            let mut answer = parent_answer(key, listed.status.clone(), Vec::new());
            answer.created_at = listed.created_at;
            answer
        };
        cut(whole, page, state.page_bytes_max)
    }

    async fn submit(&self, request: &JobRequest, _within: Duration) -> Result<JobId, SubmitError> {
        let mut state = lock(&self.state);
        state.calls.push(Call::Submit(request.clone()));
        let (job_id, is_answered) = match state.submits.pop_front() {
            Some(ScriptedSubmit::Accepted(job_id)) => (job_id, true),
            Some(ScriptedSubmit::AcceptedUnanswered(job_id)) => (job_id, false),
            Some(ScriptedSubmit::LostUnanswered) => return Err(lost()),
            Some(ScriptedSubmit::Unanswered(error)) => return Err(SubmitError::Unanswered(error)),
            Some(ScriptedSubmit::Refused(error)) => return Err(SubmitError::Refused(error)),
            None => {
                state.invented += 1;
                let name = format!("job-{}", state.invented);
                (JobId::parse(&name).map_err(|_| lost())?, true)
            }
        };
        state.list.put(request.kind(), listing::listed(request, &job_id, self.clock.now()));
        if is_answered { Ok(job_id) } else { Err(lost()) }
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        _within: Duration,
    ) -> Result<ListPage, ApiError> {
        let mut state = lock(&self.state);
        state.calls.push(Call::List(kind, query.clone()));
        match state.list_failures.pop_front() {
            Some(error) => Err(error),
            None => Ok(state.list.page(kind, query, self.clock.now())),
        }
    }

    async fn probe(&self, _within: Duration) -> Result<(), ApiError> {
        let mut state = lock(&self.state);
        state.calls.push(Call::Probe);
        next_of(&mut state.probes).unwrap_or(Ok(()))
    }
}

/// The page that was asked for, out of an answer with all items.
fn cut(
    mut whole: ParentPage,
    page: PageRequest,
    bytes_max: Option<usize>,
) -> Result<ParentPage, ApiError> {
    let size = usize::try_from(page.page_size).unwrap_or(usize::MAX);
    let before = usize::try_from(page.page.saturating_sub(1)).unwrap_or(usize::MAX);
    let skipped = before.saturating_mul(size);
    whole.items =
        whole.items.map(|items| items.into_iter().skip(skipped).take(size).collect::<Vec<_>>());
    let bytes: usize = whole.items.iter().flatten().map(|item| item.raw.0.len()).sum();
    if bytes_max.is_some_and(|bytes_max| bytes > bytes_max) {
        return Err(ApiError::new(ApiErrorKind::TooLarge, "the page is too large"));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests;
