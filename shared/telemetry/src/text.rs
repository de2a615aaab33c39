//! Texts of others, and errors with their causes, as a log line may show them.

use std::error::Error;
use std::fmt::{self, Write as _};

/// Longest text of others that is shown, in characters.
const FOREIGN_CHARS_MAX: usize = 200;
/// Longest chain of errors that is shown, in characters.
const CHAIN_CHARS_MAX: usize = 1_000;
/// Most causes of one error that are shown.
const CAUSES_MAX: usize = 16;

/// A text of others: cut between two characters, and without control characters, so that it neither
/// fills the log nor looks like another line of it.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a>(pub &'a str);

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = Cut { out, left: FOREIGN_CHARS_MAX, has_ended: false };
        cut.write_str(self.0)
    }
}

/// Shows an error, and after colons what caused it.
#[derive(Clone, Copy)]
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = Cut { out, left: CHAIN_CHARS_MAX, has_ended: false };
        write!(cut, "{}", self.0)?;
        let mut cause = self.0.source();
        for _ in 0..CAUSES_MAX {
            let Some(error) = cause else { break };
            write!(cut, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Passes a bounded number of characters on.
struct Cut<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    left: usize,
    has_ended: bool,
}

impl fmt::Write for Cut<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.left == 0 {
                if !std::mem::replace(&mut self.has_ended, true) {
                    self.out.write_char('…')?;
                }
                return Ok(());
            }
            self.left -= 1;
            let shown =
                if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
            self.out.write_char(shown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::keyring::NoKeys;
    use domain::ports::{ErrorKind, PortError};
    use domain::receive::Unavailable;

    use super::*;

    /// PL-06: no cut falls into a character, whatever the length before it.
    #[test]
    fn foreign_text_is_cut_between_characters() {
        for plain in [31, 63, 79, 127, 198, 199, 200, 255, 4_095] {
            let text = format!("{}é€😀", "a".repeat(plain));
            let shown = Foreign(&text).to_string();
            let whole = plain + 3 <= FOREIGN_CHARS_MAX;
            assert_eq!(
                shown.chars().count(),
                if whole { plain + 3 } else { FOREIGN_CHARS_MAX + 1 }
            );
            assert_eq!(shown.ends_with('…'), !whole, "{plain}");
            let error = std::io::Error::other("x".repeat(1_000 - plain.min(999)) + &text);
            assert!(Chain(&error).to_string().chars().count() <= CHAIN_CHARS_MAX + 1);
        }
        assert_eq!(Foreign("").to_string(), "");
    }

    #[test]
    fn foreign_text_is_one_line() {
        let text = "a\r\n2026-11-30 ERROR \u{1b}[31mnothing\u{7f}\u{85}";
        assert!(!Foreign(text).to_string().contains(char::is_control));
        let error = std::io::Error::other(text);
        assert!(!Chain(&error).to_string().contains(char::is_control));
    }

    #[test]
    fn causes_follow_and_nothing_of_rusts_own_words() {
        let error = PortError::new("secrets", "load", ErrorKind::Denied)
            .with_source(std::io::Error::other("no entry"));
        let error = Unavailable::Secrets(NoKeys::Load(error));
        let shown = Chain(&error).to_string();
        assert_eq!(shown, "cannot load the signing secrets: secrets load: denied: no entry");
    }

    #[test]
    fn an_endless_chain_has_an_end() {
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("again")
            }
        }
        impl Error for Endless {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&Self)
            }
        }
        assert_eq!(Chain(&Endless).to_string().matches("again").count(), CAUSES_MAX + 1);
    }
}
