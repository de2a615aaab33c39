//! Names: of runs, and refs.

use domain::limits::REF_BYTES_MAX;

/// Why a text is no name: a run's, or a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// Too long.
    #[error("it has more than {REF_BYTES_MAX} bytes")]
    TooLong,
    /// It would change what a terminal or a table shows.
    #[error("it holds a control character")]
    Control,
}

/// Checks a run's name or a ref; white space around it is dropped.
///
/// # Errors
/// Names the rule that the text breaks.
pub(crate) fn parse_name(text: &str) -> Result<String, NameError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > REF_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(NameError::Control);
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_printable() {
        assert_eq!(parse_name(" a b "), Ok("a b".to_owned()));
        assert_eq!(parse_name(" "), Err(NameError::Empty));
        assert_eq!(parse_name("a\u{1b}[31m"), Err(NameError::Control));
        assert!(parse_name(&"x".repeat(256)).is_ok());
        assert_eq!(parse_name(&"x".repeat(257)), Err(NameError::TooLong));
    }
}
