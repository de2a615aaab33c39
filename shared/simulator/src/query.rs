//! Query strings and their rules.

use crate::answer::Problem;
use crate::moment::Moment;

/// Decoded query parameters.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

/// Which page of a list is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paging {
    /// From 1.
    pub(crate) page: u64,
    pub(crate) size: u64,
}

impl Paging {
    /// Items before the page.
    pub(crate) fn offset(self) -> usize {
        usize::try_from((self.page - 1).saturating_mul(self.size)).unwrap_or(usize::MAX)
    }

    pub(crate) fn len(self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    /// Pages that `total` items need; none for an empty list.
    pub(crate) fn count(self, total: usize) -> u64 {
        u64::try_from(total).unwrap_or(u64::MAX).div_ceil(self.size)
    }
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Finds a parameter; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn date(&self, name: &str) -> Result<Option<Moment>, Vec<Problem>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let message = "Input should be a valid datetime";
        let problem = || vec![Problem::query(name, "datetime_from_date_parsing", message)];
        Moment::parse(text).map(Some).ok_or_else(problem)
    }

    pub(crate) fn paging(&self, default: u64, max: u64) -> Result<Paging, Vec<Problem>> {
        let page = self.number("page", 1, 1, u64::MAX)?;
        let size = self.number("page_size", default, 1, max)?;
        Ok(Paging { page, size })
    }

    pub(crate) fn number(
        &self,
        name: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, Vec<Problem>> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let parsed = text.parse::<u64>().ok().filter(|number| (min..=max).contains(number));
        let message = format!("Input should be an integer from {min} to {max}");
        parsed.ok_or_else(|| vec![Problem::query(name, "int_range", message)])
    }

    /// Reads a parameter with a fixed set of values.
    pub(crate) fn choice<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Vec<Problem>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let problem = || vec![Problem::query(name, "enum", "Input is not one of the known values")];
        parse(text).map(Some).ok_or_else(problem)
    }
}
