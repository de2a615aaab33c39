//! Errors with their causes, as one readable field of a log line.

use std::error::Error;
use std::fmt;

/// Shows an error, and after colons what caused it.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::keyring::NoKeys;
    use domain::ports::{ErrorKind, PortError};
    use domain::receive::Unavailable;

    use super::Chain;

    #[test]
    fn causes_follow_and_nothing_of_rusts_own_words() {
        let error = PortError::new("secrets", "load", ErrorKind::Denied)
            .with_source(std::io::Error::other("no entry"));
        let error = Unavailable::Secrets(NoKeys::Load(error));
        let shown = Chain(&error).to_string();
        assert_eq!(shown, "cannot load the signing secrets: secrets load: denied: no entry");
    }
}
