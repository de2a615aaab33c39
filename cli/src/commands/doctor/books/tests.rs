use super::super::finding::Outcome;
use super::*;

fn counts(pairs: &[(&str, u64)]) -> Counts {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn what_is_due_for_long_is_told() {
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let judged = |oldest: Option<&str>| {
        let oldest = oldest.map(|oldest| oldest.parse().unwrap());
        overdue(now, "jobs", "3", oldest).outcome
    };
    assert_eq!(judged(None), Outcome::Ok);
    assert_eq!(judged(Some("2026-11-30T11:45:00Z")), Outcome::Ok);
    assert_eq!(judged(Some("2026-11-30T11:30:00Z")), Outcome::Warning);
    assert_eq!(judged(Some("2026-11-29T11:59:00Z")), Outcome::Failed);
}

/// A function that should run by itself and does not is another matter than a server that nobody
/// has started.
#[test]
fn upkeep_that_nobody_does_is_told() {
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let lists = Upkeep { what: "job lists were compared", every: Duration::from_mins(5) };
    let judged = |keeper, last: Option<&str>| {
        lists.judge(keeper, last.map(|last| last.parse().unwrap()), now)
    };
    for (last, by_serve, by_scheduler) in [
        (None, Outcome::Ok, Outcome::Warning),
        (Some("2026-11-30T11:36:00Z"), Outcome::Ok, Outcome::Ok),
        (Some("2026-11-30T11:35:00Z"), Outcome::Warning, Outcome::Warning),
        (Some("2026-11-29T11:54:00Z"), Outcome::Warning, Outcome::Failed),
    ] {
        assert_eq!(judged(Keeper::Serve, last).outcome, by_serve, "{last:?}");
        assert_eq!(judged(Keeper::Scheduler, last).outcome, by_scheduler, "{last:?}");
    }
    assert_eq!(judged(Keeper::Serve, None).found, "job lists were compared: never");
    let found = judged(Keeper::Serve, Some("2026-11-30T09:00:00Z")).found;
    assert_eq!(found, "job lists were compared: 3 hours ago");
}

#[test]
fn dead_jobs_are_told_with_their_reasons() {
    let judged = judge_jobs(&counts(&[("stored", 5), ("received", 1), ("expected", 2)]));
    assert_eq!(judged.outcome, Outcome::Ok);
    assert_eq!(judged.found, "of all jobs 3 are open, 5 stored and 0 dead");
    let judged = judge_jobs(&counts(&[("dead", 3), ("dead:gone", 1), ("dead:failed", 2)]));
    assert_eq!(judged.outcome, Outcome::Warning);
    assert_eq!(judged.found, "of all jobs 0 are open, 0 stored and 3 dead (2 failed, 1 gone)");
}

#[test]
fn ambiguous_submissions_are_told() {
    let judged = judge_submissions(&counts(&[("open", 1), ("accepted", 9)]));
    assert_eq!(judged.outcome, Outcome::Ok);
    let judged = judge_submissions(&counts(&[("ambiguous", 1)]));
    assert_eq!(judged.outcome, Outcome::Warning);
    assert!(judged.found.ends_with("1 are ambiguous"), "{}", judged.found);
}

#[test]
fn each_pause_is_told_with_what_ends_it() {
    let until = "2026-11-30T12:00:00.5Z".parse().unwrap();
    for (why, advice) in [
        ("denied", "API key"),
        ("payment_required", "add tokens"),
        ("missing", "one account"),
        ("throttled", "ends by itself"),
    ] {
        let judged = paused(
            "all calls are",
            &Pause { until, why: why.to_owned(), unproved: why != "throttled" },
        );
        assert_eq!(judged.outcome, Outcome::Warning);
        assert!(judged.found.contains(why), "{judged:?}");
        assert!(judged.advice.unwrap().contains(advice), "{why}");
    }
}
