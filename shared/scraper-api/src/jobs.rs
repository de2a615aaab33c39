//! The port, as the steps see it.

use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;

use crate::account::Usage as _;
use crate::client::ScraperApi;
use crate::crawl::CrawlBody;

#[async_trait]
impl Jobs for ScraperApi {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.read_extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        match key.kind {
            Kind::Batch => self.read_batch(&key.job_id, page, within).await,
            Kind::Crawl => self.read_crawl(&key.job_id, page, within).await,
            Kind::Extract => {
                Err(ApiError::new(ApiErrorKind::Refused, "an extract job has no pages"))
            }
        }
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        match request {
            JobRequest::Extract { url, options } => self.submit_extract(url, options, within).await,
            JobRequest::Batch { urls, options } => self.submit_batch(urls, options, within).await,
            JobRequest::Crawl { url, options, depth, limit } => {
                let body = CrawlBody::new(url, options, *depth, *limit);
                self.submit_crawl(&body, within).await
            }
        }
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.list_jobs(kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.concurrency(within).await.map(drop)
    }
}
