//! Full-jitter exponential back-off, and reading `Retry-After`.

use std::time::Duration;

use crate::time::{Timestamp, between};

/// A uniform wait between zero and `min(cap, base * 2^attempt)`.
///
/// Source of the scheme: "Exponential Backoff And Jitter", AWS Architecture Blog. `chance` is 64
/// uniform bits.
pub fn full_jitter(attempt: u32, base: Duration, cap: Duration, chance: u64) -> Duration {
    let doubled = base.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
    scale(doubled.min(cap), chance)
}

/// `chance / 2^64` of `longest`.
fn scale(longest: Duration, chance: u64) -> Duration {
    let nanos = (longest.as_nanos().min(u128::from(u64::MAX)) * u128::from(chance)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Reads a `Retry-After` value, in seconds or as an HTTP date, and clamps it.
///
/// `None` for anything else. A date in the past is zero.
pub fn parse_retry_after(value: &str, now: Timestamp, clamp: Duration) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = value.parse::<u64>().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(clamp));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    // The last day that an HTTP date can name lies beyond the end of our time.
    let at = Timestamp::try_from(date).unwrap_or(Timestamp::MAX);
    Some(between(now, at).min(clamp))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// WK-05, WK-12, CL-06: seconds and dates, clamped; nonsense is no value.
    #[test]
    fn retry_after_is_read_and_clamped() {
        let now = "2026-11-30T00:00:00Z".parse().unwrap();
        let read = |value: &str| parse_retry_after(value, now, HOUR).map(|wait| wait.as_secs());
        assert_eq!(read("30"), Some(30));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("3600"), Some(3_600));
        assert_eq!(read("50000"), Some(3_600));
        assert_eq!(read("99999999999999999999999"), Some(3_600));
        assert_eq!(read("Mon, 30 Nov 2026 00:01:00 GMT"), Some(60));
        assert_eq!(read("Monday, 30-Nov-26 00:01:00 GMT"), Some(60));
        assert_eq!(read("Mon, 30 Nov 2026 05:00:00 GMT"), Some(3_600));
        assert_eq!(read("Sun, 29 Nov 2026 00:00:00 GMT"), Some(0));
        assert_eq!(read("Fri, 31 Dec 9999 23:59:59 GMT"), Some(3_600));
        for nonsense in ["", "-1", "1.5", "1e3", "soon", "50 000", "NaN", "+5"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    proptest! {
        /// CL-05: no attempt number, base or cap overflows, and no wait passes the cap.
        #[test]
        fn no_wait_passes_the_cap(attempt: u32, base: u64, cap: u64, chance: u64) {
            let (base, cap) = (Duration::from_nanos(base), Duration::from_nanos(cap));
            prop_assert!(full_jitter(attempt, base, cap, chance) <= cap);
        }

        /// The wait is proportional to chance: uniform chance gives a uniform wait.
        #[test]
        fn the_wait_is_uniform(attempt in 0_u32..12, chance: u64) {
            let base = Duration::from_secs(1);
            let longest = base * (1 << attempt);
            let wait = full_jitter(attempt, base, Duration::MAX, chance).as_secs_f64();
            #[expect(clippy::cast_precision_loss, reason = "53 bits are enough for the comparison")]
            let share = chance as f64 / 2_f64.powi(64);
            prop_assert!((wait / longest.as_secs_f64() - share).abs() < 1e-6);
        }
    }
}
