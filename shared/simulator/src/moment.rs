//! Points in time as the platform prints them: UTC, millisecond precision.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

/// Milliseconds of one UTC day.
const DAY_MS: i64 = 86_400_000;

impl Moment {
    /// Later than every moment the simulator computes with.
    pub const NEVER: Self = Self(i64::MAX);

    /// Makes a moment from milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the moment `duration` later, at most [`Moment::NEVER`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the moment `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the time from `earlier` to `self`, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the number of the UTC day, counted from the Unix epoch.
    pub(crate) fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// Returns the first moment of the given UTC day.
    pub(crate) fn of_day(day: i64) -> Self {
        Self(day.saturating_mul(DAY_MS))
    }

    /// Reads the date forms met in query strings.
    ///
    /// The official client sends `+0000` without a colon, and the plus sign arrives as a space
    /// when a client did not escape it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().replace(' ', "+");
        if let Ok(timestamp) = text.parse::<Timestamp>() {
            return Some(Self::from(timestamp));
        }
        if let Ok(timestamp) = Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%z", &text) {
            return Some(Self::from(timestamp));
        }
        let zulu =
            if text.contains('T') { format!("{text}Z") } else { format!("{text}T00:00:00Z") };
        zulu.parse::<Timestamp>().ok().map(Self::from)
    }

    /// Returns the date form of HTTP headers (RFC 9110, 5.6.7).
    pub(crate) fn to_http_date(self) -> String {
        Timestamp::from_millisecond(self.0).map_or_else(
            |_| String::new(),
            |at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        )
    }

    /// Returns ISO 8601 text in UTC with three decimals and `Z`.
    pub fn to_text(self) -> String {
        Timestamp::from_millisecond(self.0)
            .map_or_else(|_| self.0.to_string(), |at| format!("{at:.3}"))
    }
}

impl From<Timestamp> for Moment {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_millisecond())
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_form_of_the_clients_is_read() {
        let expected = Some(Moment::from_millis(1_780_000_000_123));
        for text in [
            "2026-05-28T20:26:40.123Z",
            "2026-05-28T20:26:40.123000+0000",
            "2026-05-28T20:26:40.123000 0000",
            "2026-05-28T22:26:40.123+02:00",
            "2026-05-28T20:26:40.123",
        ] {
            assert_eq!(Moment::parse(text), expected, "{text}");
        }
        assert_eq!(Moment::parse("1970-01-02"), Some(Moment::of_day(1)));
        assert_eq!(Moment::parse("yesterday"), None);
    }

    #[test]
    fn text_has_three_decimals_and_a_zulu_mark() {
        assert_eq!(Moment::from_millis(0).to_text(), "1970-01-01T00:00:00.000Z");
        let moment = Moment::from_millis(1_780_000_000_123);
        assert_eq!(moment.to_text(), "2026-05-28T20:26:40.123Z");
        assert_eq!(moment.to_http_date(), "Thu, 28 May 2026 20:26:40 GMT");
    }
}
