//! A platform whose lists behave as a test says.

use async_trait::async_trait;
use std::sync::Mutex;

use super::*;
use crate::job::JobId;
use crate::ports::{ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage, SubmitError};
use crate::request::JobRequest;

type Script<'a> = dyn FnMut(u32, &ListQuery) -> Answer + Send + 'a;
pub(super) type Answer = Result<ListPage, ApiError>;

/// The list of extract jobs by a script, which is told how many calls there were before; the other
/// lists are empty, and everything else is as the rig has it.
pub(super) struct Lists<'a> {
    rig: &'a Rig,
    script: Mutex<(u32, Box<Script<'a>>)>,
    queries: Mutex<Vec<ListQuery>>,
}

impl<'a> Lists<'a> {
    pub(super) fn new(
        rig: &'a Rig,
        script: impl FnMut(u32, &ListQuery) -> Answer + Send + 'a,
    ) -> Self {
        Self { rig, script: Mutex::new((0, Box::new(script))), queries: Mutex::default() }
    }

    pub(super) fn ports(&self) -> Ports<'_> {
        Ports { jobs: self, ..self.rig.ports() }
    }

    /// What was asked of the list of extract jobs.
    pub(super) fn queries(&self) -> Vec<ListQuery> {
        self.queries.lock().unwrap().clone()
    }

    /// The pages that were asked for since the last look.
    pub(super) fn take_pages(&self) -> Vec<u32> {
        self.queries.lock().unwrap().drain(..).map(|query| query.page).collect()
    }
}

/// A page without lies.
pub(super) fn page(jobs: impl IntoIterator<Item = Listed>) -> ListPage {
    let jobs = jobs.into_iter().collect();
    ListPage { jobs, unreadable: 0, page_count: None, is_capped: false }
}

/// The jobs that the query's window holds.
pub(super) fn within(jobs: &[Listed], query: &ListQuery) -> Vec<Listed> {
    let is_within = |listed: &&Listed| {
        listed.created_at.is_none_or(|at| {
            query.created_from.is_none_or(|from| from <= at)
                && query.created_to.is_none_or(|to| at <= to)
        })
    };
    jobs.iter().filter(is_within).cloned().collect()
}

/// The page of so many entries that the query asks for, out of the jobs of its window.
pub(super) fn cut(jobs: &[Listed], query: &ListQuery, size: usize) -> ListPage {
    let skipped = usize::try_from(query.page - 1).unwrap() * size;
    page(within(jobs, query).into_iter().skip(skipped).take(size))
}

#[async_trait]
impl Jobs for Lists<'_> {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        self.rig.jobs.extract(job_id, within).await
    }

    async fn parent(
        &self,
        key: &JobKey,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        self.rig.jobs.parent(key, page, within).await
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        self.rig.jobs.submit(request, within).await
    }

    async fn list(&self, kind: Kind, query: &ListQuery, _within: Duration) -> Answer {
        if kind != Kind::Extract {
            return Ok(page([]));
        }
        self.queries.lock().unwrap().push(query.clone());
        let mut script = self.script.lock().unwrap();
        script.0 += 1;
        let before = script.0 - 1;
        (script.1)(before, query)
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.rig.jobs.probe(within).await
    }
}
