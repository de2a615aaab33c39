use std::future::{pending, ready};

use super::*;
use crate::receive::tests::bench::{WaitingClock, drive};
use crate::testing::ManualClock;
use crate::time::between;

const LIMIT: Duration = Duration::from_millis(2_500);

#[test]
fn work_that_is_done_in_time_gives_its_value() {
    let clock = WaitingClock::default();
    assert_eq!(drive(&clock, within(&clock, LIMIT, ready(7))), Some(7));
    let slow = async {
        clock.sleep(Duration::from_millis(2_450)).await;
        7
    };
    assert_eq!(drive(&clock, within(&clock, LIMIT, slow)), Some(7));
}

#[test]
fn work_that_never_ends_is_dropped_at_the_limit() {
    let clock = WaitingClock::default();
    let began_at = clock.now();
    assert_eq!(drive(&clock, within(&clock, LIMIT, pending::<u8>())), None);
    assert_eq!(between(began_at, clock.now()), LIMIT);
}

/// Of two things ready at once the result wins: what is done is not thrown away.
#[test]
fn the_result_wins_over_the_limit() {
    let clock = WaitingClock::default();
    let late = async {
        clock.sleep(LIMIT).await;
        7
    };
    assert_eq!(drive(&clock, within(&clock, LIMIT, late)), Some(7));
    assert_eq!(drive(&clock, within(&clock, Duration::ZERO, ready(7))), Some(7));
}

/// No time passes for work that never waits.
#[tokio::test]
async fn work_that_is_ready_at_once_sets_no_alarm() {
    let clock = ManualClock::default();
    assert_eq!(within(&clock, LIMIT, ready(7)).await, Some(7));
    assert!(clock.sleeps().is_empty());
    assert_eq!(within(&clock, LIMIT, pending::<u8>()).await, None);
    assert_eq!(clock.sleeps(), [LIMIT]);
}
