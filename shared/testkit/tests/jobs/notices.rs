//! The suite notices an API that does not do what the port promises: each flaw here fails a
//! behaviour.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, Jobs, ListPage, ListQuery, PageRequest, ParentPage,
    RawJson, SubmitError,
};
use domain::request::JobRequest;
use domain::time::after;
use testkit::conformance::{jobs, jobs_lists, jobs_pages, jobs_trouble};

use crate::platform;
use crate::scripted::Scripted;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    SubmitsTwice,
    RepeatsUnanswered,
    RefusesUnanswered,
    DecodesIds,
    CutsIdsAtTheQuery,
    ForgetsKinds,
    CutsTheAnswer,
    DropsTheError,
    ListsOneTooFew,
    ListsWithoutEnd,
    ClosesTheWindow,
    IgnoresTheWindow,
    StartsPagesAtZero,
    IgnoresPageSizes,
    CountsThePage,
    SaysNullBeyondTheEnd,
    TakesThrottlingForFailure,
    ForgetsTheWait,
    TakesTroubleForAbsence,
    OutstaysDeadlines,
    ForgetsTheStatus,
}

struct Flawed(Arc<dyn Jobs>, Flaw);

macro_rules! notices {
    ($($flaw:ident in $part:ident::$behaviour:ident),+ $(,)?) => {
        /// Each flaw fails the behaviour that forbids it, which a sound API shows.
        #[test]
        fn every_flaw_is_noticed() {
            $(
                for (flaw, expected) in [(Flaw::None, false), (Flaw::$flaw, true)] {
                    let subject = Scripted::subject(|jobs, _clock| Arc::new(Flawed(jobs, flaw)));
                    let behaviour = AssertUnwindSafe(|| {
                        testkit::run($part::$behaviour(&subject));
                    });
                    assert_eq!(catch_unwind(behaviour).is_err(), expected, "{:?}", Flaw::$flaw);
                }
            )+
        }
    };
}

notices! {
    SubmitsTwice in jobs::each_submission_is_one_job,
    RepeatsUnanswered in jobs_trouble::an_unanswered_submission_is_listed,
    RefusesUnanswered in jobs_trouble::trouble_of_submitting_is_classified,
    DecodesIds in jobs::odd_ids_are_missing,
    CutsIdsAtTheQuery in jobs::odd_ids_are_missing,
    ForgetsKinds in jobs::a_job_of_another_kind_is_missing,
    CutsTheAnswer in jobs::the_raw_answer_is_verbatim,
    DropsTheError in jobs::every_end_is_told_as_it_is,
    ListsOneTooFew in jobs_lists::a_full_page_and_one_job_more,
    ListsWithoutEnd in jobs_lists::pages_hold_each_job_once,
    ClosesTheWindow in jobs_lists::both_ends_of_a_window_are_in_it,
    IgnoresTheWindow in jobs_lists::both_ends_of_a_window_are_in_it,
    StartsPagesAtZero in jobs_pages::pages_hold_each_part_once,
    IgnoresPageSizes in jobs_pages::pages_hold_each_part_once,
    CountsThePage in jobs_pages::counters_agree_with_the_parts,
    SaysNullBeyondTheEnd in jobs_pages::a_page_beyond_the_end_is_empty,
    TakesThrottlingForFailure in jobs_trouble::trouble_of_reading_is_classified,
    ForgetsTheWait in jobs_trouble::trouble_of_reading_is_classified,
    TakesTroubleForAbsence in jobs_trouble::trouble_of_reading_is_classified,
}

/// Flaws that only a platform shows which takes its time.
#[test]
fn flaws_of_time_are_noticed() {
    for (flaw, expected) in
        [(Flaw::None, false), (Flaw::OutstaysDeadlines, true), (Flaw::ForgetsTheStatus, true)]
    {
        let subject = || platform::subject(|jobs| Arc::new(Flawed(jobs, flaw)));
        let fails = |behaviour: AssertUnwindSafe<&dyn Fn()>| catch_unwind(behaviour).is_err();
        let slow = || testkit::run(jobs_trouble::a_slow_body_ends_in_time(&subject()));
        assert_eq!(fails(AssertUnwindSafe(&slow)), expected, "{flaw:?}");
        let hangs = || testkit::run(jobs_trouble::a_hanging_call_ends_in_time(&subject()));
        let expected = flaw == Flaw::OutstaysDeadlines;
        assert_eq!(fails(AssertUnwindSafe(&hangs)), expected, "{flaw:?}");
    }
}

impl Flawed {
    fn within(&self, within: Duration) -> Duration {
        if self.1 == Flaw::OutstaysDeadlines { 4 * within } else { within }
    }

    /// The id that the flaw makes of an id.
    fn id(&self, id: &JobId) -> JobId {
        let text = id.as_str();
        let text = match self.1 {
            Flaw::DecodesIds => text.rsplit("%2f").next().unwrap(),
            Flaw::CutsIdsAtTheQuery => text.split(['?', '#']).next().unwrap(),
            _ => text,
        };
        JobId::parse(text).unwrap_or_else(|_| id.clone())
    }

    fn error(&self, mut error: ApiError) -> ApiError {
        match self.1 {
            Flaw::TakesThrottlingForFailure if error.kind == ApiErrorKind::Throttled => {
                error.kind = ApiErrorKind::Unavailable;
            }
            Flaw::ForgetsTheWait => error.retry_after = None,
            Flaw::ForgetsTheStatus => error.status = None,
            Flaw::TakesTroubleForAbsence => error.kind = ApiErrorKind::Missing,
            _ => {}
        }
        error
    }
}

#[async_trait]
impl Jobs for Flawed {
    async fn extract(&self, job_id: &JobId, within: Duration) -> Result<ExtractJob, ApiError> {
        let (job_id, within) = (self.id(job_id), self.within(within));
        let mut job = self.0.extract(&job_id, within).await.map_err(|error| self.error(error))?;
        match self.1 {
            Flaw::CutsTheAnswer => job.raw = RawJson(job.raw.0.replace("<p>", "").into()),
            Flaw::DropsTheError => job.error = None,
            _ => {}
        }
        Ok(job)
    }

    async fn parent(
        &self,
        key: &JobKey,
        mut page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        match self.1 {
            Flaw::StartsPagesAtZero => page.page += 1,
            Flaw::IgnoresPageSizes => page.page_size = 10,
            _ => {}
        }
        let (key, within) = (JobKey::new(key.kind, self.id(&key.job_id)), self.within(within));
        let answer = self.0.parent(&key, page, within).await;
        let mut answer = match answer {
            Err(error) if self.1 == Flaw::ForgetsKinds && error.kind == ApiErrorKind::Missing => {
                let job = self.0.extract(&key.job_id, within).await?;
                domain::testing::parent_answer(&key, job.status, Vec::new())
            }
            answer => answer.map_err(|error| self.error(error))?,
        };
        let count = answer.items.as_ref().map_or(0, Vec::len);
        match self.1 {
            Flaw::CountsThePage => answer.total = u64::try_from(count).ok(),
            Flaw::SaysNullBeyondTheEnd if count == 0 => answer.items = None,
            _ => {}
        }
        Ok(answer)
    }

    async fn submit(&self, request: &JobRequest, within: Duration) -> Result<JobId, SubmitError> {
        let within = self.within(within);
        if self.1 == Flaw::SubmitsTwice {
            self.0.submit(request, within).await?;
        }
        match self.0.submit(request, within).await {
            Err(SubmitError::Unanswered(_)) if self.1 == Flaw::RepeatsUnanswered => {
                self.0.submit(request, within).await
            }
            Err(SubmitError::Unanswered(error)) if self.1 == Flaw::RefusesUnanswered => {
                Err(SubmitError::Refused(error))
            }
            answer => answer,
        }
    }

    async fn list(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        let mut query = query.clone();
        match self.1 {
            Flaw::ListsWithoutEnd => query.page = 1,
            Flaw::IgnoresTheWindow => (query.created_from, query.created_to) = (None, None),
            Flaw::ClosesTheWindow => {
                let later = |from| after(from, Duration::from_nanos(1));
                query.created_from = query.created_from.map(later);
            }
            _ => {}
        }
        let page = self.0.list(kind, &query, self.within(within)).await;
        let mut page = page.map_err(|error| self.error(error))?;
        if self.1 == Flaw::ListsOneTooFew {
            page.jobs.truncate(99);
        }
        Ok(page)
    }

    async fn probe(&self, within: Duration) -> Result<(), ApiError> {
        self.0.probe(self.within(within)).await.map_err(|error| self.error(error))
    }
}
