//! Lists and words of strangers: read as they were written, or refused without a word that should
//! not be shown; see `fuzz/README.md`.
//!
//! An input is a list.

use domain::request::{FetchOptions, JobRequest};

use super::duration::parse_duration;
use super::lines::{Line, from_arguments, parse};
use super::name::parse_name;

/// Part of a URL that no error may show where it is a password or in a query.
const MARKER: &str = "marker-word";

pub(crate) fn check(input: &[u8]) {
    match parse(input) {
        Ok(lines) => {
            lines.iter().for_each(check_line);
            // Written again in the one way there is, the list is read as the same.
            let again: String = lines.iter().map(written).collect();
            assert_eq!(parse(again.as_bytes()).unwrap(), lines);
        }
        Err(problems) => {
            let told = problems.to_string();
            assert!(told.lines().count() <= 11, "{told}");
            assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
            // Of a line, the URL alone is quoted.
            let text = String::from_utf8_lossy(input);
            let urls: Vec<_> =
                text.split('\n').filter_map(|line| line.trim().split('\t').next()).collect();
            check_secrets(&urls.join("\n"), &told);
        }
    }
    let text = String::from_utf8_lossy(input);
    let arguments: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match from_arguments(&arguments) {
        Ok(lines) => {
            assert_eq!(lines.len(), arguments.len());
            lines.iter().for_each(check_line);
        }
        Err(told) => {
            assert!(!told.chars().any(char::is_control), "{told:?}");
            check_secrets(&text, &told);
        }
    }
    if let Ok(duration) = parse_duration(&text) {
        assert!(!duration.is_zero());
        let again = parse_duration(&format!("{}ms", duration.as_millis()));
        assert_eq!(again, Ok(duration));
    }
}

fn check_line(Line { url, reference }: &Line) {
    assert!(JobRequest::extract(url, FetchOptions::default()).is_ok());
    assert!(!url.chars().any(|c| c.is_control() || c.is_whitespace()), "{url:?}");
    if let Some(reference) = reference {
        assert_eq!(parse_name(reference).as_ref(), Ok(reference));
    }
}

fn written(Line { url, reference }: &Line) -> String {
    match reference {
        Some(reference) => format!("{url}\t{reference}\n"),
        None => format!("{url}\n"),
    }
}

/// A word before an `@` or after a `?` may be a password or a token.
fn check_secrets(text: &str, told: &str) {
    let is_secret = |line: &str| {
        let parts: Vec<&str> = line.split(MARKER).collect();
        (1..parts.len()).all(|at| {
            let (before, after) = parts.split_at(at);
            before.concat().contains('?') || after.concat().contains('@')
        })
    };
    if text.split('\n').all(is_secret) {
        assert!(!told.contains(MARKER), "{told}");
    }
}

#[test]
fn the_seeds_of_lists_hold() {
    testkit::corpus::check("lines", 8, check);
}
