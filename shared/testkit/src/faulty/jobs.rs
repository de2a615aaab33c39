use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;

use super::plan::Surroundings;

/// The API failing by a plan. A submission that fails is always unanswered, as its caller cannot
/// know whether it had its effect.
pub struct FaultyJobs {
    inner: Arc<dyn Jobs>,
    surroundings: Surroundings,
}

impl FaultyJobs {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn Jobs>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl Jobs for FaultyJobs {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.surroundings
            .around("jobs.extract", unavailable, self.inner.extract(job_id, within))
            .await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.surroundings
            .around("jobs.parent", unavailable, self.inner.parent(key, page, within))
            .await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.surroundings
            .around("jobs.submit", unanswered, self.inner.submit(request, within))
            .await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.surroundings
            .around("jobs.list", unavailable, self.inner.list(kind, query, within))
            .await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.surroundings.around("jobs.probe", unavailable, self.inner.probe(within)).await
    }
}

pub(super) fn unavailable() -> ApiError {
    ApiError::new(ApiErrorKind::Unavailable, "the plan says so")
}

pub(super) fn unanswered() -> SubmitError {
    SubmitError::Unanswered(unavailable())
}
