use super::*;
use crate::request::FetchOptions;
use crate::testing::ManualClock;

const WITHIN: Duration = Duration::from_secs(30);
const ALL: ListQuery = ListQuery { page: 1, page_size: 100, created_from: None, created_to: None };

fn id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

fn request() -> JobRequest {
    JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap()
}

fn item(key: u32) -> crate::ports::Item {
    crate::ports::Item {
        key: key.to_string(),
        url: format!("https://example.com/{key}"),
        status: "completed".into(),
        error: None,
        raw: crate::ports::RawJson(format!(r#"{{"input_index":{key}}}"#).into()),
    }
}

#[tokio::test]
async fn answers_come_in_order_and_the_last_one_stays() {
    let jobs = ScriptedJobs::new(Arc::new(ManualClock::default()));
    let job = id("a");
    assert_eq!(jobs.extract(&job, WITHIN).await.unwrap_err().kind, ApiErrorKind::Missing);
    jobs.answer_extract(&job, Err(ApiError::new(ApiErrorKind::Unavailable, "")));
    jobs.answer_extract(&job, Ok(extract_answer(&job, JobStatus::Completed)));
    assert!(jobs.extract(&job, WITHIN).await.is_err());
    for _ in 0..3 {
        assert!(jobs.extract(&job, WITHIN).await.unwrap().has_data);
    }
    assert_eq!(jobs.calls(), vec![Call::Extract(job); 5]);
}

#[tokio::test]
async fn pages_are_cut_out_of_the_whole() {
    let jobs = ScriptedJobs::new(Arc::new(ManualClock::default()));
    let key = JobKey::new(Kind::Batch, id("b"));
    let whole = parent_answer(&key, JobStatus::Completed, (0..5).map(item).collect());
    jobs.answer_parent(&key, Ok(whole));
    for (page, page_size, expected) in [
        (1, 2, vec!["0", "1"]),
        (3, 2, vec!["4"]),
        (4, 2, vec![]),
        (1, 5, vec!["0", "1", "2", "3", "4"]),
    ] {
        let answer = jobs.parent(&key, PageRequest { page, page_size }, WITHIN).await.unwrap();
        let items = answer.items.unwrap();
        assert_eq!(items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(answer.total, Some(5));
    }
    jobs.limit_page_bytes(40);
    let too_large = jobs.parent(&key, PageRequest { page: 1, page_size: 5 }, WITHIN).await;
    assert_eq!(too_large.unwrap_err().kind, ApiErrorKind::TooLarge);
    assert!(jobs.parent(&key, PageRequest { page: 1, page_size: 2 }, WITHIN).await.is_ok());
}

#[tokio::test]
async fn an_accepted_job_is_listed_also_when_its_answer_is_lost() {
    let clock = Arc::new(ManualClock::default());
    let jobs = ScriptedJobs::new(clock.clone());
    jobs.answer_submit(ScriptedSubmit::AcceptedUnanswered(id("lost")));
    jobs.answer_submit(ScriptedSubmit::LostUnanswered);
    jobs.answer_submit(ScriptedSubmit::Refused(ApiError::new(ApiErrorKind::PaymentRequired, "")));
    assert!(matches!(jobs.submit(&request(), WITHIN).await, Err(SubmitError::Unanswered(_))));
    assert!(matches!(jobs.submit(&request(), WITHIN).await, Err(SubmitError::Unanswered(_))));
    assert!(matches!(jobs.submit(&request(), WITHIN).await, Err(SubmitError::Refused(_))));
    assert_eq!(jobs.submit(&request(), WITHIN).await.unwrap(), id("job-1"));
    assert_eq!(jobs.submits().len(), 4);
    assert_eq!(jobs.listed(Kind::Extract), [id("job-1"), id("lost")]);

    jobs.set_list_lag(WITHIN);
    assert!(jobs.list(Kind::Extract, &ALL, WITHIN).await.unwrap().is_empty());
    clock.advance(WITHIN);
    let page = jobs.list(Kind::Extract, &ALL, WITHIN).await.unwrap();
    assert_eq!((page.jobs.len(), page.page_count), (2, Some(1)));
    assert_eq!(page.jobs[1].url.as_deref(), Some("https://example.com/"));
    let second = ListQuery { page: 2, page_size: 1, ..ALL };
    let page = jobs.list(Kind::Extract, &second, WITHIN).await.unwrap();
    assert_eq!(page.jobs[0].job_id, id("lost"));
    assert_eq!(jobs.extract(&id("lost"), WITHIN).await.unwrap().status, JobStatus::Queued);
    jobs.fail_list(ApiError::new(ApiErrorKind::Throttled, ""));
    assert!(jobs.list(Kind::Extract, &ALL, WITHIN).await.is_err());
    assert!(jobs.list(Kind::Extract, &ALL, WITHIN).await.is_ok());
}
