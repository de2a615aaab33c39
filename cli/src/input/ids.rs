//! A list of ids: one per line.

use super::name::NameError;

/// Longest line, in bytes: a ref in its longest form, and white space.
const LINE_BYTES_MAX: usize = 512;
/// Most lines, comments included.
const LINES_MAX: usize = 1_000_000;

/// What is wrong with a list of ids.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdsError {
    /// A line cannot be an id.
    #[error("line {line}: {why}")]
    Line {
        /// Its number.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Too long to be read.
    #[error("it has more than {LINES_MAX} lines; split it")]
    TooManyLines,
    /// None is named.
    #[error("it holds no id")]
    NoIds,
}

/// Reads a list. Blank lines and lines that begin with `#` are skipped; what comes after a tab is
/// no part of an id.
///
/// # Errors
/// Names the first line that cannot be used.
pub(super) fn parse<T>(
    bytes: &[u8],
    one: impl Fn(&str) -> Result<T, NameError>,
) -> Result<Vec<T>, IdsError> {
    let mut names = Vec::new();
    for (position, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if position >= LINES_MAX {
            return Err(IdsError::TooManyLines);
        }
        let wrong = |why: String| IdsError::Line { line: position + 1, why };
        if line.len() > LINE_BYTES_MAX {
            return Err(wrong(format!("it has {} bytes, {LINE_BYTES_MAX} at most", line.len())));
        }
        let text = std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let name = text.split('\t').next().unwrap_or_default().trim();
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        names.push(one(name).map_err(|error| wrong(error.to_string()))?);
    }
    if names.is_empty() { Err(IdsError::NoIds) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    use super::super::parse_name;
    use super::*;

    #[test]
    fn ids_stand_one_on_a_line() {
        let list = b"# dead ones\nj1\r\n\n j2\tfailed\nref:my 3\n";
        assert_eq!(parse(list, parse_name).unwrap(), ["j1", "j2", "ref:my 3"]);
    }

    #[test]
    fn what_cannot_be_an_id_is_named_by_its_line() {
        let why = |bytes: &[u8]| parse(bytes, parse_name).unwrap_err().to_string();
        assert_eq!(why(b"j1\n\xff\n"), "line 2: it is not UTF-8");
        assert_eq!(why(b"j1\na\x1bb\n"), "line 2: it holds a control character");
        assert_eq!(why(&[b'a'; 600]), "line 1: it has 600 bytes, 512 at most");
        assert_eq!(why(b"\n# nothing\n"), "it holds no id");
        assert_eq!(
            why("\n".repeat(LINES_MAX).as_bytes()),
            "it has more than 1000000 lines; split it"
        );
    }
}
