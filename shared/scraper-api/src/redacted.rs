use std::fmt;

/// A value that `Debug` does not show: the API key.
#[derive(Clone)]
pub(crate) struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Hides a value.
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one place that needs it.
    pub(crate) const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}
