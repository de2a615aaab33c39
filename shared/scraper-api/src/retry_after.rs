use std::time::Duration;

use domain::time::{Timestamp, between};

/// Reads a `Retry-After` header: whole seconds or an HTTP date, never more than `at_most`.
///
/// A date that has passed means no wait. Anything else is `None`: the header is then as good as
/// absent, and the caller's own back-off decides.
pub fn parse_retry_after(text: &str, now: Timestamp, at_most: Duration) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number beyond 64 bits fails here, and that is a very long wait.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(at_most));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let date = Timestamp::try_from(date).ok()?;
    Some(between(now, date).min(at_most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WK-12: `Retry-After` in each form, and what is none of them.
    #[test]
    fn seconds_and_dates_are_read_and_clamped() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let hour = Duration::from_hours(1);
        for (text, wait) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("3601", Some(3_600)),
            ("99999999999999999999999999", Some(3_600)),
            ("Thu, 01 Jan 2026 00:00:30 GMT", Some(30)),
            ("Thursday, 01-Jan-26 00:00:30 GMT", Some(30)),
            ("Fri, 02 Jan 2026 00:00:00 GMT", Some(3_600)),
            ("Wed, 31 Dec 2025 23:59:59 GMT", Some(0)),
            ("50 000", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1e3", None),
            ("soon", None),
            ("", None),
            ("Thu, 99 Jan 2026 00:00:30 GMT", None),
        ] {
            let wait = wait.map(Duration::from_secs);
            assert_eq!(parse_retry_after(text, now, hour), wait, "{text}");
        }
    }
}
