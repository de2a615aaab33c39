//! The account's statistics, held against the books.

use super::*;

impl Rig {
    /// The platform counts so many requests, or cannot say.
    fn tell(&self, counted: Result<u64, ApiError>) {
        let counted = counted.map(|succeeded| Counted { succeeded, ..Counted::default() });
        *self.statistics.answer.lock().unwrap() = counted;
    }

    async fn outside(&self) -> (Outside, Vec<(Discrepancy, u64)>) {
        let sheet = self.audit().await;
        let found = found(&sheet);
        (sheet.outside.unwrap(), found)
    }
}

fn not_judged(outside: &Outside) -> &str {
    let OutsideVerdict::NotJudged(reason) = &outside.verdict else { panic!("{outside:?}") };
    reason
}

#[tokio::test]
async fn a_count_that_lacks_jobs_of_long_ago_is_a_discrepancy() {
    let rig = Rig::new();
    for name in ["job-1", "job-2", "job-3"] {
        rig.stored(name, 5).await;
    }
    rig.tell(Ok(2));
    let (outside, found) = rig.outside().await;
    assert_eq!((outside.finished, outside.verdict), (3, OutsideVerdict::Short));
    assert_eq!(found, [(Discrepancy::StatisticsDiffer, 1)]);
    rig.tell(Ok(3));
    let (outside, found) = rig.outside().await;
    assert_eq!((outside.verdict, found), (OutsideVerdict::Agrees, vec![]));
    // Whole days, one of them before the period, and not further back than the count reaches.
    let asked = || rig.statistics.asked.lock().unwrap().unwrap();
    assert_eq!((asked(), outside.from), (before(start(), DAY), before(start(), DAY)));
    let month = Period { from: before(start(), DAY * 60), to: after(start(), DAY) };
    rig.audit_of(month).await;
    assert_eq!(asked(), before(start(), DAY * 29));
}

/// The count may lag a day behind a job's end: such a job may be missing in it.
#[tokio::test]
async fn jobs_that_ended_lately_may_be_missing_in_the_count() {
    let rig = Rig::new();
    rig.stored("job-1", 5).await;
    // It is 01:00 of the next day.
    rig.stored("job-2", 61).await;
    rig.tell(Ok(1));
    let (outside, found) = rig.outside().await;
    assert_eq!(found, []);
    assert!(not_judged(&outside).starts_with("they are 1 short"), "{outside:?}");
    rig.tell(Ok(0));
    assert_eq!(rig.outside().await.1, [(Discrepancy::StatisticsDiffer, 1)]);
}

/// It is its end that counts: this one was created long before.
#[tokio::test]
async fn a_job_that_took_long_may_be_missing_in_the_count() {
    let rig = Rig::new();
    rig.list("job-1", 1, JobStatus::Completed);
    let object = extract_key(&key("job-1").job_id, utc_date(at(1)));
    let put = rig.results.put_new(&object, b"late").await.unwrap();
    let PutOutcome::Now(result) = put else { panic!("{put:?}") };
    let row = rig.received("job-1", 1);
    let late = at(24 * 60);
    rig.write(row.settled(State::Stored { result }, Cause::Work, late, &rig.limits)).await;
    rig.tell(Ok(0));
    let (outside, found) = rig.outside().await;
    assert_eq!(found, []);
    assert!(not_judged(&outside).starts_with("they are 1 short"), "{outside:?}");
}

/// What has ended otherwise, and what the platform does not list, is not held against it.
#[tokio::test]
async fn only_completed_extract_jobs_that_are_listed_are_held_against_the_count() {
    let rig = Rig::new();
    rig.dead("job-1", DeadReason::Failed, JobStatus::Failed).await;
    let object = extract_key(&key("job-2").job_id, utc_date(at(1)));
    let put = rig.results.put_new(&object, b"unlisted").await.unwrap();
    let PutOutcome::Now(result) = put else { panic!("{put:?}") };
    let row = rig.received("job-2", 1);
    rig.write(row.settled(State::Stored { result }, Cause::Work, at(1), &rig.limits)).await;
    rig.tell(Ok(0));
    let (outside, found) = rig.outside().await;
    assert_eq!((outside.finished, found), (0, vec![]));
    assert!(not_judged(&outside).contains("no extract job"), "{outside:?}");
}

#[tokio::test]
async fn statistics_that_cannot_be_read_are_not_judged() {
    let rig = Rig::new();
    rig.stored("job-1", 1).await;
    rig.tell(Err(ApiError::new(ApiErrorKind::Denied, "no")));
    let sheet = rig.audit().await;
    assert_eq!(sheet.verdict(), Verdict::Balances);
    let outside = sheet.outside.unwrap();
    assert_eq!(outside.counted, None);
    assert!(not_judged(&outside).starts_with("they cannot be read"), "{outside:?}");
}
