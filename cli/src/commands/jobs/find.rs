//! Finding a job's row by its id alone.

use domain::entry::Entry;
use domain::job::{JobId, JobKey, Kind};
use domain::ports::Entries;

use crate::error::CliError;
use crate::exit::Exit;

/// All rows of an id: of one kind, or of every kind that knows it.
///
/// # Errors
/// Those of the ledger.
pub(crate) async fn find_all(
    entries: &dyn Entries,
    id: &JobId,
    kind: Option<Kind>,
) -> Result<Vec<Entry>, CliError> {
    let mut found = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|known| kind.is_none_or(|kind| kind == *known)) {
        found.extend(entries.load(&JobKey::new(kind, id.clone())).await?);
    }
    Ok(found)
}

/// The one row of an id.
///
/// # Errors
/// When there is none, or more than one, and those of the ledger.
pub(crate) async fn find(
    entries: &dyn Entries,
    id: &JobId,
    kind: Option<Kind>,
) -> Result<Entry, CliError> {
    let mut found = find_all(entries, id, kind).await?;
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => {
            Err(CliError::new(Exit::Usage, format!("several kinds of job have the id `{id}`"))
                .hint("name one with --kind"))
        }
        (None, _) => {
            Err(CliError::new(Exit::NotFound, format!("the ledger does not know the job `{id}`"))
                .hint("`gleaner jobs` lists those that it knows"))
        }
    }
}
