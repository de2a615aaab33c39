use std::time::Duration;

use crate::job::{JobId, JobKey, JobStatus, Kind};
use crate::ports::{ListPage, ListQuery, Listed};
use crate::request::JobRequest;
use crate::time::{Timestamp, after};

/// The jobs that the platform lists, in the order of their coming.
#[derive(Default)]
pub(super) struct JobList {
    jobs: Vec<(Kind, Listed)>,
    pub(super) lag: Duration,
    pub(super) unreadable: u32,
}

impl JobList {
    pub(super) fn put(&mut self, kind: Kind, job: Listed) {
        let is_same = |(of, old): &&mut (Kind, Listed)| *of == kind && old.job_id == job.job_id;
        match self.jobs.iter_mut().find(is_same) {
            Some(old) => old.1 = job,
            None => self.jobs.push((kind, job)),
        }
    }

    pub(super) fn get(&self, key: &JobKey) -> Option<&Listed> {
        let is_same = |(kind, job): &&(Kind, Listed)| *kind == key.kind && job.job_id == key.job_id;
        self.jobs.iter().find(is_same).map(|(_, job)| job)
    }

    pub(super) fn remove(&mut self, key: &JobKey) {
        self.jobs.retain(|(kind, job)| *kind != key.kind || job.job_id != key.job_id);
    }

    pub(super) fn set_status(&mut self, key: &JobKey, status: JobStatus) {
        let is_same =
            |(kind, job): &&mut (Kind, Listed)| *kind == key.kind && job.job_id == key.job_id;
        if let Some((_, job)) = self.jobs.iter_mut().find(is_same) {
            job.status = status;
        }
    }

    pub(super) fn ids(&self, kind: Kind) -> Vec<JobId> {
        self.of(kind).map(|job| job.job_id.clone()).collect()
    }

    /// The jobs of a kind, newest first.
    fn of(&self, kind: Kind) -> impl Iterator<Item = &Listed> {
        self.jobs.iter().rev().filter(move |(of, _)| *of == kind).map(|(_, job)| job)
    }

    pub(super) fn page(&self, kind: Kind, query: &ListQuery, now: Timestamp) -> ListPage {
        let is_within = |job: &&Listed| match job.created_at {
            Some(at) => {
                after(at, self.lag) <= now
                    && query.created_from.is_none_or(|from| from <= at)
                    && query.created_to.is_none_or(|to| at <= to)
            }
            None => query.created_from.is_none() && query.created_to.is_none(),
        };
        let matching: Vec<_> = self.of(kind).filter(is_within).cloned().collect();
        let size = usize::try_from(query.page_size.max(1)).unwrap_or(usize::MAX);
        let before = usize::try_from(query.page.saturating_sub(1)).unwrap_or(usize::MAX);
        let page_count = u64::try_from(matching.len().div_ceil(size)).ok();
        ListPage {
            jobs: matching.into_iter().skip(before.saturating_mul(size)).take(size).collect(),
            unreadable: if query.page == 1 { self.unreadable } else { 0 },
            page_count,
            is_capped: false,
        }
    }
}

/// How a job that was just made appears in the list.
pub(super) fn listed(request: &JobRequest, job_id: &JobId, now: Timestamp) -> Listed {
    let accepted_urls = match request {
        JobRequest::Batch { urls, .. } => u64::try_from(urls.len()).ok(),
        JobRequest::Extract { .. } | JobRequest::Crawl { .. } => None,
    };
    Listed {
        job_id: job_id.clone(),
        status: JobStatus::Queued,
        created_at: Some(now),
        url: request.url().map(str::to_owned),
        accepted_urls,
        formats: Some(request.options().formats.clone()),
        render_js: Some(request.options().render_js),
    }
}
