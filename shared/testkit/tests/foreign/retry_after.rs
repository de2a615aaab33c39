//! Times that others name: `Retry-After`, and timestamps.
//!
//! An input is the second of now, a line end, and the value.

use std::time::{Duration, UNIX_EPOCH};

use domain::backoff::{full_jitter, parse_retry_after};
use domain::time::{Timestamp, after, before, between, parse_lenient, utc_date};

/// The longest wait in whole seconds.
const LONGEST: Duration = Duration::from_secs(u64::MAX);
const CLAMPS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_hours(1), LONGEST];

pub(crate) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (second, value) = text.split_once('\n').unwrap_or(("1796000000", &text));
    let second = second.trim().parse().unwrap_or(1_796_000_000_i64);
    let now = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    for clamp in CLAMPS {
        check_retry_after(value, now, clamp);
    }
    if let Some(at) = parse_lenient(value) {
        check_instant(at, now);
    }
    check_instant(now, now);
    for (attempt, clamp) in [0, 1, 31, 32, u32::MAX].into_iter().zip(CLAMPS.into_iter().cycle()) {
        let base = Duration::from_secs(second.unsigned_abs());
        assert!(full_jitter(attempt, base, clamp, second.unsigned_abs()) <= clamp);
    }
}

fn check_retry_after(value: &str, now: Timestamp, clamp: Duration) {
    let wait = parse_retry_after(value, now, clamp);
    assert!(wait.is_none_or(|wait| wait <= clamp));
    let value = value.trim();
    let is_seconds = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let expected = if is_seconds {
        // What no `u64` holds is longer than anything.
        Some(value.parse().map_or(LONGEST, Duration::from_secs))
    } else {
        httpdate::parse_http_date(value).ok().map(|date| {
            let since_epoch = date.duration_since(UNIX_EPOCH).unwrap();
            // A day that an instant cannot name is as good as the last one that it can.
            let nanos = i128::try_from(since_epoch.as_nanos()).unwrap();
            let nanos = nanos.min(Timestamp::MAX.as_nanosecond()) - now.as_nanosecond();
            Duration::from_nanos_u128(u128::try_from(nanos).unwrap_or(0))
        })
    };
    assert_eq!(wait, expected.map(|wait| wait.min(clamp)), "{value:?} at {now}");
}

fn check_instant(at: Timestamp, now: Timestamp) {
    assert_eq!(parse_lenient(&at.to_string()), Some(at));
    let _ = utc_date(at);
    for duration in [Duration::ZERO, Duration::from_nanos(1), between(at, now), Duration::MAX] {
        assert!(after(at, duration) >= at && before(at, duration) <= at);
    }
    let (earlier, later) = (at.min(now), at.max(now));
    assert_eq!(after(earlier, between(earlier, later)), later);
    assert_eq!(between(later, earlier), Duration::ZERO);
}

#[test]
fn the_seeds_of_times_hold() {
    testkit::corpus::check("retry_after", 12, check);
}
