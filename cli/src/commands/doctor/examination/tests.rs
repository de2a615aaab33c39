use domain::testing::ManualClock;

use super::*;

/// A check that panics, or never ends, is told as failed, and the next one is made.
#[tokio::test]
async fn a_broken_check_is_its_own_trouble_alone() {
    let clock = ManualClock::at(SystemClock.now());
    let panics = async { panic!("a bug of this check") };
    let finding = bounded_by::<()>(&clock, "one", panics).await.unwrap_err();
    assert_eq!((finding.check, finding.outcome), ("one", Outcome::Failed));
    assert!(finding.found.contains("broken"), "{finding:?}");
    let finding = bounded_by::<()>(&clock, "two", std::future::pending()).await.unwrap_err();
    assert!(finding.found.contains("did not end within 45 s"), "{finding:?}");
    assert_eq!(bounded_by(&clock, "three", async { 3 }).await, Ok(3));
}
