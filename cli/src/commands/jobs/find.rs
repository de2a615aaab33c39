//! Finding a job's row by its id, or by the user's own id for it.

use std::fmt;

use domain::entry::{Entry, State};
use domain::job::{JobId, JobKey, Kind};
use domain::ports::{EntryFilter, Ledger};

use super::PAGE;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{NameError, parse_name};
use crate::output::note_unreadable;

/// What says of a name that it is a ref.
const REF: &str = "ref:";
/// Most jobs with one ref that are looked at.
const LOOKED_AT_MAX: usize = 100_000;
/// Rows that are named when a ref is that of several jobs.
const NAMED_MAX: usize = 10;

/// A job as a person names it: by its id or, where no job has that id, by its ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// The text as an id; `None` where it cannot be one.
    pub(crate) id: Option<JobId>,
    reference: String,
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => id.fmt(out),
            None => out.write_str(&self.reference),
        }
    }
}

/// Reads a job's id or ref; `ref:` before it says that it is a ref.
///
/// # Errors
/// When it can be neither.
pub(crate) fn parse_job(text: &str) -> Result<Name, NameError> {
    match text.strip_prefix(REF) {
        Some(reference) => Ok(Name { id: None, reference: parse_name(reference)? }),
        None => Ok(Name { id: JobId::parse(text).ok(), reference: parse_name(text)? }),
    }
}

/// All rows that a name may mean, of one kind or of every kind: those of the id or, if there are
/// none, those with the ref that nothing replaced.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn find_all(
    ledger: &dyn Ledger,
    name: &Name,
    kind: Option<Kind>,
) -> Result<Vec<Entry>, CliError> {
    let mut found = Vec::new();
    if let Some(id) = &name.id {
        for kind in Kind::ALL.into_iter().filter(|known| kind.is_none_or(|kind| kind == *known)) {
            found.extend(ledger.load(&JobKey::new(kind, id.clone())).await?);
        }
    }
    if found.is_empty() {
        found = with_ref(ledger, &name.reference, kind).await?;
    }
    Ok(found)
}

/// The rows with a ref, up to a bound.
async fn with_ref(
    ledger: &dyn Ledger,
    reference: &str,
    kind: Option<Kind>,
) -> Result<Vec<Entry>, CliError> {
    let filter = EntryFilter { state: None, kind, reference: Some(reference.to_owned()) };
    let (mut found, mut cursor) = (Vec::new(), None);
    while found.len() < LOOKED_AT_MAX {
        let page = ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
        note_unreadable(&page.unreadable);
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    // A job that was replaced passed its ref on.
    let is_replaced = |entry: &Entry| matches!(entry.state, State::Superseded { .. });
    if !found.iter().all(is_replaced) {
        found.retain(|entry| !is_replaced(entry));
    }
    Ok(found)
}

/// The user's own id for a job.
pub(crate) fn reference_of(entry: &Entry) -> Option<&str> {
    entry.link.as_ref()?.reference.as_deref()
}

/// The page or seed of a job that was submitted from here; a batch has none.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn url_of(ledger: &dyn Ledger, entry: &Entry) -> Result<Option<String>, CliError> {
    let Some(link) = &entry.link else { return Ok(None) };
    if let Some(request) = &link.request {
        return Ok(request.url().map(str::to_owned));
    }
    let intent = ledger.load_intent(&link.submission).await?;
    Ok(intent.and_then(|intent| intent.request.url().map(str::to_owned)))
}

/// The one row that is meant.
///
/// # Errors
/// When there is none, or more than one, and those of the ledger.
pub(crate) async fn find(
    ledger: &dyn Ledger,
    name: &Name,
    kind: Option<Kind>,
) -> Result<Entry, CliError> {
    only(name, find_all(ledger, name, kind).await?)?.ok_or_else(|| unknown(name))
}

/// The one row, if there is any.
///
/// # Errors
/// When there are several.
pub(crate) fn only(name: &Name, mut found: Vec<Entry>) -> Result<Option<Entry>, CliError> {
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let line =
        |Entry { key, state, .. }: &Entry| format!("{} {} {}", key.kind, key.job_id, state.name());
    let mut lines: Vec<_> = found.iter().take(NAMED_MAX).map(line).collect();
    if found.len() > NAMED_MAX {
        lines.push(format!("and {} more", found.len() - NAMED_MAX));
    }
    let lines = lines.join("\n    ");
    Err(CliError::new(Exit::Usage, format!("several jobs are called `{name}`:\n    {lines}"))
        .hint("name one by its id, or its kind with --kind"))
}

/// The error for a name that nobody has.
pub(crate) fn unknown(name: &Name) -> CliError {
    CliError::new(Exit::NotFound, format!("the ledger knows no job with the id or ref `{name}`"))
        .hint("`gleaner jobs` lists those that it knows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_id_or_a_ref() {
        let name = parse_job("my-3").unwrap();
        assert_eq!((name.id.is_some(), name.reference.as_str()), (true, "my-3"));
        let name = parse_job("ref:my-3").unwrap();
        assert_eq!((name.id.is_some(), name.reference.as_str()), (false, "my-3"));
        let name = parse_job("my 3/4").unwrap();
        assert_eq!((name.id.is_some(), name.to_string().as_str()), (false, "my 3/4"));
        assert!(parse_job("").is_err());
        assert!(parse_job("ref:").is_err());
        assert!(parse_job("a\u{1b}").is_err());
    }
}
