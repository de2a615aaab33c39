//! [`domain::ports::Clock`].

use std::time::Duration;

use domain::time::after;
use futures_util::future::{Either, join, select};

use super::ClockSubject;

/// Time does not go back.
pub async fn time_does_not_go_back(subject: &ClockSubject) {
    let mut last = subject.clock.now();
    for _ in 0..1_000 {
        let now = subject.clock.now();
        assert!(now >= last);
        last = now;
        subject.clock.sleep(Duration::ZERO).await;
    }
}

/// A sleep lasts as long as was asked for, at least.
pub async fn a_sleep_lasts_long_enough(subject: &ClockSubject) {
    for duration in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(20)] {
        let until = after(subject.clock.now(), duration);
        subject.clock.sleep(duration).await;
        assert!(subject.clock.now() >= until, "{duration:?}");
    }
}

/// Two may sleep at a time.
pub async fn two_sleep_at_a_time(subject: &ClockSubject) {
    let until = after(subject.clock.now(), Duration::from_millis(3));
    let short = subject.clock.sleep(Duration::from_millis(1));
    let long = subject.clock.sleep(Duration::from_millis(3));
    join(short, long).await;
    assert!(subject.clock.now() >= until);
}

/// A sleep that is dropped holds nobody up.
pub async fn a_dropped_sleep_is_over(subject: &ClockSubject) {
    let year = subject.clock.sleep(Duration::from_hours(24 * 365));
    match select(year, std::future::ready(7)).await {
        Either::Right((value, sleep)) => {
            assert_eq!(value, 7);
            drop(sleep);
        }
        Either::Left(_) => panic!("a year passed"),
    }
    subject.clock.sleep(Duration::from_millis(1)).await;
}
