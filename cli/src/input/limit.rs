//! How many rows a list shows.

use std::fmt;

use crate::output::Output;

/// Rows that a person is shown without asking for more.
const SHOWN: usize = 100;

/// A bound on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// So many.
    Rows(u32),
    /// All that there are.
    All,
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => rows.fmt(out),
            Self::All => out.write_str("all"),
        }
    }
}

impl Limit {
    /// The rows to print; a person gets a screenful and a machine everything, unless told
    /// otherwise.
    pub(crate) fn rows(limit: Option<Self>, output: Output) -> usize {
        match (limit, output) {
            (Some(Self::Rows(rows)), _) => usize::try_from(rows).unwrap_or(usize::MAX),
            (Some(Self::All), _) | (None, Output::Json) => usize::MAX,
            (None, Output::Text) => SHOWN,
        }
    }
}

/// Reads a positive number, or `all`.
///
/// # Errors
/// Says what is expected.
pub(crate) fn parse_limit(text: &str) -> Result<Limit, &'static str> {
    match (text, text.parse::<u32>()) {
        ("all", _) => Ok(Limit::All),
        (_, Ok(rows)) if rows > 0 => Ok(Limit::Rows(rows)),
        _ => Err("write a whole number from 1 on, or `all`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_positive_or_all() {
        assert_eq!(parse_limit("all"), Ok(Limit::All));
        assert_eq!(parse_limit("7"), Ok(Limit::Rows(7)));
        for text in ["", "0", "-1", "ALL", "1.5", "4294967296"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
        assert_eq!(Limit::rows(None, Output::Text), SHOWN);
        assert_eq!(Limit::rows(None, Output::Json), usize::MAX);
        assert_eq!(Limit::rows(Some(Limit::Rows(3)), Output::Json), 3);
    }
}
