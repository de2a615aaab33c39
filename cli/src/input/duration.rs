//! Durations on the command line.

use std::time::Duration;

/// Longest duration that is taken: 30 days. No job lives as long.
const DURATION_MAX: Duration = Duration::from_hours(30 * 24);
/// Units by their suffix, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
/// What is expected.
const EXPECTED: &str = "write a whole number and a unit, such as 500ms, 30s, 5m or 2h";

/// Reads a positive duration such as `500ms`, `30s`, `5m` or `2h`.
///
/// # Errors
/// Says what is expected, or which bound is broken.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, millis)| *millis);
    let Some(scale) = scale.filter(|_| digits > 0) else { return Err(EXPECTED.to_owned()) };
    // A number that no u64 holds is far above the longest duration.
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    match millis.map(Duration::from_millis) {
        Some(duration) if duration.is_zero() => Err("it must be longer than zero".to_owned()),
        Some(duration) if duration <= DURATION_MAX => Ok(duration),
        _ => Err("it may be 30d at most".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        for (text, millis) in [
            ("1ms", 1),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("30d", 2_592_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    /// CL-05: what is no duration is refused, and nothing overflows.
    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "0",
            "0s",
            "0ms",
            "5",
            "-1",
            "-1s",
            "+1s",
            "nan",
            "inf",
            "1e30",
            "1e30s",
            "1e-9",
            "1.5s",
            " 1s",
            "1s ",
            "1 s",
            "s",
            "1S",
            "1min",
            "31d",
            "99999999999999999999h",
            "18446744073709551615d",
            "١s",
            "1s1s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
