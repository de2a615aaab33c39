//! Where the result of a job lies.

use domain::entry::Entry;
use domain::job::{JobId, JobKey, Kind};
use domain::place::object_name;
use domain::ports::PortError;

use crate::backend::Store;
use crate::commands::jobs::{Name, find_all, only, reason, result_key};
use crate::error::CliError;
use crate::exit::Exit;

/// Keys read at once.
pub(super) const PAGE: u32 = 1_000;
/// File name of a manifest.
pub(super) const MANIFEST: &str = "/_manifest.json";
/// How the key of an extract result ends.
pub(super) const EXTRACT: &str = ".json.gz";

/// A stored result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// The job's kind.
    pub(super) kind: Kind,
    /// The job's id.
    pub(super) job_id: JobId,
    /// Key of the object, or of the manifest.
    pub(super) key: String,
}

/// Finds a result: through the ledger, or by its name where the ledger has forgotten the job.
///
/// # Errors
/// When there is none, with what is known of the job.
pub(super) async fn locate(
    store: &Store,
    name: &Name,
    kind: Option<Kind>,
) -> Result<Located, CliError> {
    let entries = find_all(&*store.ledger, name, kind).await?;
    let mut stored = entries.clone();
    stored.retain(|entry| result_key(&entry.state).is_some());
    if let Some(Entry { key: JobKey { kind, job_id }, state, .. }) = only(name, stored)?
        && let Some(key) = result_key(&state)
    {
        return Ok(Located { kind, job_id, key: key.to_owned() });
    }
    let mut found = Vec::new();
    if let (Some(id), true) = (&name.id, entries.is_empty()) {
        found = search(store, id, kind).await?;
    }
    match (found.pop(), found.is_empty()) {
        (Some(located), true) => Ok(located),
        (Some(_), false) => {
            Err(CliError::new(Exit::Usage, format!("several kinds of job have the id `{name}`"))
                .hint("name one with --kind"))
        }
        (None, _) => Err(match entries.first() {
            None => CliError::new(Exit::NotFound, format!("there is no result of a job `{name}`"))
                .hint("`gleaner results list` shows what is stored, with ids and refs"),
            Some(entry) if entry.state.is_terminal() => {
                let state = entry.state.name();
                let reason = reason(&entry.state).map(|why| format!(" ({why})"));
                let reason = reason.unwrap_or_default();
                CliError::new(Exit::JobFailed, format!("the job `{name}` is {state}{reason}"))
                    .hint(format!("`gleaner jobs show {}` tells more", entry.key.job_id))
            }
            Some(entry) => {
                CliError::new(Exit::NotFound, format!("the job `{name}` has no result yet"))
                    .hint(format!("`gleaner poll {}` waits for it", entry.key.job_id))
            }
        }),
    }
}

/// Walks the results; the name says whose an object is.
async fn search(store: &Store, id: &JobId, kind: Option<Kind>) -> Result<Vec<Located>, PortError> {
    let name = object_name(id);
    let mut found = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|known| kind.is_none_or(|kind| kind == *known)) {
        let ending = match kind {
            Kind::Extract => format!("/{name}{EXTRACT}"),
            Kind::Batch | Kind::Crawl => format!("/{name}{MANIFEST}"),
        };
        let prefix = format!("kind={kind}/");
        let mut after: Option<String> = None;
        loop {
            let keys = store.results.list(&prefix, after.as_deref(), PAGE).await?;
            if let Some(key) = keys.iter().find(|key| key.ends_with(&ending)) {
                found.push(Located { kind, job_id: id.clone(), key: key.clone() });
                break;
            }
            after = keys.last().cloned();
            if after.is_none() {
                break;
            }
        }
    }
    Ok(found)
}
