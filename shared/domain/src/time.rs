//! Instants and durations: arithmetic that cannot overflow, and lenient reading of timestamps.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
pub use jiff::{Timestamp, civil::Date};

/// The instant `duration` after `at`; the end of time when there is none.
pub fn after(at: Timestamp, duration: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| at.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

/// The instant `duration` before `at`; the beginning of time when there is none.
pub fn before(at: Timestamp, duration: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| at.checked_sub(duration).ok())
        .unwrap_or(Timestamp::MIN)
}

/// How long after `earlier` `later` is; zero when it is not.
pub fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or(Duration::ZERO)
}

/// The UTC calendar date of an instant.
pub fn utc_date(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

/// The first instant of a UTC calendar date.
pub fn start_of(day: Date) -> Timestamp {
    // UTC has no gaps; only the first and the last day that can be named reach over the end.
    TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).unwrap_or(Timestamp::MAX)
}

/// Reads a timestamp of the platform.
///
/// Accepts what such APIs were seen to send: any number of fractional digits up to nine, a
/// space for the `T`, a lower-case `z`, an offset with or without colon, second 60, and no zone
/// at all, which means UTC. Anything else is `None`, and the caller decides what an unknown age
/// means; it never aborts a run.
pub fn parse_lenient(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    let civil = text.parse::<DateTime>().ok()?;
    // A zone that jiff could not read must not be mistaken for no zone.
    let has_clock = text.contains(':') && !text.contains('[');
    if !has_clock {
        return None;
    }
    TimeZone::UTC.to_timestamp(civil).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// SC-12: the spellings seen in public, read as one instant.
    #[test]
    fn odd_timestamps_are_read() {
        let midnight = at("2026-01-01T00:00:00Z");
        for text in [
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+0000",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00z",
            "2026-01-01T02:00:00+02:00",
            "2026-01-01T00:00:00.000000+0000",
        ] {
            assert_eq!(parse_lenient(text), Some(midnight), "{text}");
        }
        assert_eq!(
            parse_lenient("2026-01-01T00:00:00.123456789Z"),
            Some(at("2026-01-01T00:00:00.123456789Z"))
        );
        assert!(parse_lenient("2025-12-31T23:59:60Z").is_some());
    }

    /// SC-12: what is no timestamp is `None`, never a panic.
    #[test]
    fn other_texts_are_none() {
        for text in ["", "null", "yesterday", "1767225600", "2026-01-01", "2026-13-01T00:00:00Z"] {
            assert_eq!(parse_lenient(text), None, "{text}");
        }
    }

    /// CL-05: huge durations saturate.
    #[test]
    fn arithmetic_saturates() {
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(after(now, Duration::MAX), Timestamp::MAX);
        assert_eq!(before(now, Duration::MAX), Timestamp::MIN);
        assert_eq!(between(after(now, Duration::from_secs(5)), now), Duration::ZERO);
        assert_eq!(between(now, after(now, Duration::from_secs(5))), Duration::from_secs(5));
    }
}
