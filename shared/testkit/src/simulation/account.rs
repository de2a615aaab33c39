//! The platform's jobs, whose account may be in trouble for a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, Clock, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    SubmitError,
};
use domain::request::JobRequest;
use domain::time::{Timestamp, after};

use crate::platform::PlatformJobs;

/// What the account's trouble is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Its key is refused by every call.
    Denied,
    /// It cannot pay.
    PaymentRequired,
}

/// The account through which the product calls the platform.
pub(super) struct Account {
    platform: Arc<PlatformJobs>,
    clock: Arc<dyn Clock>,
    trouble: Mutex<Option<(Trouble, Timestamp)>>,
}

impl Account {
    pub(super) fn new(platform: Arc<PlatformJobs>, clock: Arc<dyn Clock>) -> Self {
        Self { platform, clock, trouble: Mutex::default() }
    }

    /// Begins trouble, which ends by itself.
    pub(super) fn be_in(&self, trouble: Trouble, lasts: Duration) {
        *self.trouble() = Some((trouble, after(self.clock.now(), lasts)));
    }

    /// Ends it now.
    pub(super) fn be_in_order(&self) {
        *self.trouble() = None;
    }

    fn admit(&self, pays: bool) -> Result<(), ApiError> {
        let now = self.clock.now();
        let trouble = self.trouble().filter(|(_, until)| now < *until);
        match trouble {
            Some((Trouble::Denied, _)) => {
                Err(ApiError { status: Some(403), ..ApiError::new(ApiErrorKind::Denied, "") })
            }
            Some((Trouble::PaymentRequired, _)) if pays => Err(ApiError {
                status: Some(402),
                ..ApiError::new(ApiErrorKind::PaymentRequired, "")
            }),
            _ => Ok(()),
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<(Trouble, Timestamp)>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Jobs for Account {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.admit(false)?;
        self.platform.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.admit(false)?;
        self.platform.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.admit(true).map_err(SubmitError::Refused)?;
        self.platform.submit(request, within).await
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        self.admit(false)?;
        Jobs::list(&*self.platform, kind, query, within).await
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.admit(false)?;
        self.platform.probe(within).await
    }
}
