//! The list format: one URL per line, optionally a tab and the user's own ref.

use std::fmt;

use domain::limits::{REF_BYTES_MAX, URL_BYTES_MAX};
use domain::request::{FetchOptions, JobRequest, RequestError};

use super::name::{NameError, parse_name};

/// Longest line, in bytes: the longest URL, a tab, the longest ref, and white space.
const LINE_BYTES_MAX: usize = URL_BYTES_MAX + REF_BYTES_MAX + 64;
/// Most lines, comments included.
const LINES_MAX: usize = 1_000_000;
/// Problems that are shown; further ones are counted.
const SHOWN_MAX: usize = 10;
/// Characters of a URL that are shown when it cannot be used.
const URL_CHARS_SHOWN: usize = 80;
/// Marks that some editors put before UTF-8 and UTF-16.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// One usable line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The URL as it was written.
    pub(crate) url: String,
    /// The user's own id for it.
    pub(crate) reference: Option<String>,
}

/// What is wrong with a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problems {
    shown: Vec<Problem>,
    further: usize,
}

/// What is wrong with one line, or with the list if there is no number.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    line: Option<usize>,
    fault: Fault,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("it is UTF-16; save it as UTF-8")]
    Utf16,
    #[error("it has more than {LINES_MAX} lines; split it")]
    TooManyLines,
    #[error("it holds no URL")]
    NoUrls,
    #[error("it has {bytes} bytes, at most {LINE_BYTES_MAX} are allowed")]
    LineTooLong { bytes: usize },
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it holds a control character")]
    Control,
    #[error("the URL holds white space; a tab goes between URL and ref")]
    Space,
    #[error("it has {columns} columns, at most two are allowed: URL and ref")]
    Columns { columns: usize },
    #[error("{0}")]
    Url(RequestError),
    #[error("the ref cannot be used: {0}")]
    Reference(NameError),
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Problem { line, fault }) in self.shown.iter().enumerate() {
            if position > 0 {
                out.write_str("\n    ")?;
            }
            match line {
                Some(line) => write!(out, "line {line}: {fault}")?,
                None => write!(out, "{fault}")?,
            }
        }
        match self.further {
            0 => Ok(()),
            further => write!(out, "\n    and {further} more"),
        }
    }
}

impl std::error::Error for Problems {}

impl Problems {
    fn whole(fault: Fault) -> Self {
        Self { shown: vec![Problem { line: None, fault }], further: 0 }
    }

    fn add(&mut self, line: usize, fault: Fault) {
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(Problem { line: Some(line), fault });
        } else {
            self.further += 1;
        }
    }
}

/// Reads a list. Blank lines and comments are skipped; a mark at the beginning, the line ends of
/// other systems and white space at the ends of lines are tolerated.
///
/// # Errors
/// All lines that cannot be used.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Line>, Problems> {
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(Problems::whole(Fault::Utf16));
    }
    let bytes = bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes);
    let mut lines = Vec::new();
    let mut problems = Problems { shown: Vec::new(), further: 0 };
    for (position, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if position > LINES_MAX {
            return Err(Problems::whole(Fault::TooManyLines));
        }
        match parse_line(line) {
            Ok(line) => lines.extend(line),
            Err(fault) => problems.add(position + 1, fault),
        }
    }
    if !problems.shown.is_empty() {
        return Err(problems);
    }
    if lines.is_empty() {
        return Err(Problems::whole(Fault::NoUrls));
    }
    Ok(lines)
}

fn parse_line(bytes: &[u8]) -> Result<Option<Line>, Fault> {
    if bytes.len() > LINE_BYTES_MAX {
        return Err(Fault::LineTooLong { bytes: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?;
    // A tab before the line end is an empty ref, and white space like any other.
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    if text.chars().any(|character| character.is_control() && character != '\t') {
        return Err(Fault::Control);
    }
    let mut columns = text.split('\t');
    let url = columns.next().unwrap_or_default().trim();
    let reference = columns.next().map(parse_name).transpose().map_err(Fault::Reference)?;
    let further = columns.count();
    if further > 0 {
        return Err(Fault::Columns { columns: further + 2 });
    }
    if url.chars().any(char::is_whitespace) {
        return Err(Fault::Space);
    }
    check_url(url).map_err(Fault::Url)?;
    Ok(Some(Line { url: url.to_owned(), reference }))
}

fn check_url(url: &str) -> Result<(), RequestError> {
    JobRequest::extract(url, FetchOptions::default()).map(drop).map_err(|error| match error {
        // Cut last: where a cut takes the `@` away, what stood before it is no longer told apart.
        RequestError::Url { .. } => {
            let shown = without_secrets(url.trim());
            RequestError::Url { url: shown.chars().take(URL_CHARS_SHOWN).collect() }
        }
        error => error,
    })
}

/// A text that should have been a URL as it may be shown: without query and user, which may hold
/// a token or a password.
fn without_secrets(text: &str) -> String {
    let (place, query) = match text.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (text, None),
    };
    let place = match place.rsplit_once('@') {
        // The question mark may be one of a password.
        _ if query.is_some_and(|query| query.contains('@')) => "…".to_owned(),
        Some((_, host)) => format!("…@{host}"),
        None => place.to_owned(),
    };
    let query = if query.is_some() { "?…" } else { "" };
    format!("{place}{query}")
}

/// The lines that a list of URLs on the command line stands for.
///
/// # Errors
/// Says what is wrong with the first one that cannot be used.
pub(crate) fn from_arguments(urls: &[String]) -> Result<Vec<Line>, String> {
    let line = |url: &String| {
        if url.chars().any(char::is_control) {
            let url = without_secrets(url);
            return Err(format!("`{}` holds a control character", url.escape_debug()));
        }
        if url.trim().chars().any(char::is_whitespace) {
            let url = without_secrets(url);
            return Err(format!("`{url}` holds white space, which no URL does"));
        }
        check_url(url).map_err(|error| error.to_string())?;
        Ok(Line { url: url.trim().to_owned(), reference: None })
    };
    urls.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(url: &str, reference: Option<&str>) -> Line {
        Line { url: url.to_owned(), reference: reference.map(str::to_owned) }
    }

    fn complaint(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn blank_lines_comments_marks_and_line_ends_are_tolerated() {
        let text = "\u{feff}# a list\r\nhttps://example.com/a  \r\n\r\n  \
                    https://example.com/b\tmy ref \nhttps://example.com/c\t\r\n\t\n \
                    # https://example.com/no\nhttps://example.com/#fragment";
        assert_eq!(
            parse(text.as_bytes()).unwrap(),
            [
                line("https://example.com/a", None),
                line("https://example.com/b", Some("my ref")),
                line("https://example.com/c", None),
                line("https://example.com/#fragment", None),
            ]
        );
    }

    #[test]
    fn every_line_that_cannot_be_used_is_named() {
        let mut bytes = b"https://example.com/\nexample.com\nhttps://a.example/\tx\ty\n".to_vec();
        bytes.extend(b"https://a.example/\xff\nhttps://a.example/\x1b[2J\n");
        bytes.extend(format!("https://a.example/{}\n", "a".repeat(9_000)).as_bytes());
        bytes.extend(format!("https://a.example/\t{}\n", "r".repeat(257)).as_bytes());
        insta::assert_snapshot!(complaint(&bytes), @r"
        line 2: `example.com` is not an absolute http or https URL
            line 3: it has 3 columns, at most two are allowed: URL and ref
            line 4: it is not UTF-8
            line 5: it holds a control character
            line 6: it has 9018 bytes, at most 8512 are allowed
            line 7: the ref cannot be used: it has more than 256 bytes
        ");
    }

    /// A URL parser would take the ref for a part of the URL, and the platform would be paid for it.
    #[test]
    fn white_space_is_no_part_of_a_url() {
        for text in ["https://example.com/a my-1", "https://example.com/a  my-1\tx", "https://a b/"]
        {
            assert_eq!(
                complaint(text.as_bytes()),
                "line 1: the URL holds white space; a tab goes between URL and ref"
            );
            assert!(from_arguments(&[text.replace('\t', " ")]).is_err());
        }
        assert!(from_arguments(&[" https://example.com/ ".to_owned()]).is_ok());
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (line, shown) in [
            ("example.com/a?token=t", "`example.com/a?…` is"),
            ("ftp://user:pass@example.com/", "`…@example.com/` is"),
            ("user:p@ss@example.com?a=b", "`…@example.com?…` is"),
            ("user:p@ss?word@example.com", "`…?…` is"),
        ] {
            let complaint = complaint(line.as_bytes());
            assert!(complaint.starts_with(&format!("line 1: {shown}")), "{complaint}");
        }
    }

    #[test]
    fn problems_beyond_the_tenth_are_counted() {
        let text = "nonsense\n".repeat(25);
        assert!(complaint(text.as_bytes()).ends_with("\n    and 15 more"));
    }

    #[test]
    fn lists_that_are_none_are_refused_whole() {
        assert_eq!(complaint(b""), "it holds no URL");
        assert_eq!(complaint(b"# nothing\n\n"), "it holds no URL");
        assert_eq!(complaint(b"\xff\xfeh\0t\0"), "it is UTF-16; save it as UTF-8");
        let many = "\n".repeat(LINES_MAX + 1);
        assert_eq!(complaint(many.as_bytes()), "it has more than 1000000 lines; split it");
    }

    #[test]
    fn arguments_are_checked_like_lines() {
        let urls = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            from_arguments(&urls(&["https://example.com/"])).unwrap(),
            [line("https://example.com/", None)]
        );
        assert!(from_arguments(&urls(&["https://example.com/", "ftp://x/"])).is_err());
        assert!(!from_arguments(&urls(&["\u{1b}[2J"])).unwrap_err().contains('\u{1b}'));
    }
}
