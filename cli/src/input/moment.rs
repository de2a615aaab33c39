//! Instants on the command line.

use std::time::Duration;

use domain::time::{Date, Timestamp, start_of};

use super::parse_duration;

/// What is expected.
const EXPECTED: &str = "write a UTC date such as 2026-11-30, a time such as 2026-11-30T12:00:00Z, \
                        or how long ago, such as 24h";

/// An instant, or how long before the present it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Timestamp),
    Ago(Duration),
}

/// Reads a date (its first instant in UTC), a time, or a duration ago.
///
/// # Errors
/// Says what is expected.
pub(crate) fn parse_moment(text: &str) -> Result<Moment, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Moment::At(at));
    }
    // A date alone: a longer text that begins with one is something else.
    if let Some(day) = text.parse::<Date>().ok().filter(|day| day.to_string() == text) {
        return Ok(Moment::At(start_of(day)));
    }
    parse_duration(text).map(Moment::Ago).map_err(|_| EXPECTED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_durations_are_moments() {
        let at = |text: &str| Ok(Moment::At(text.parse().unwrap()));
        assert_eq!(parse_moment("2026-11-30"), at("2026-11-30T00:00:00Z"));
        assert_eq!(parse_moment("2026-11-30T12:30:00Z"), at("2026-11-30T12:30:00Z"));
        assert_eq!(parse_moment("2026-11-30T12:30:00+02:00"), at("2026-11-30T10:30:00Z"));
        assert_eq!(parse_moment("24h"), Ok(Moment::Ago(Duration::from_hours(24))));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "yesterday", "2026-13-01", "24", "-1h", "2026-11-30T12:00", "20261130"] {
            assert_eq!(parse_moment(text), Err(EXPECTED.to_owned()), "{text}");
        }
    }
}
