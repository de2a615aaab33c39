//! The result store's side.

use super::books::Books;
use super::rows::{Fresh, once_more};
use super::{Discrepancy, Sheet};
use crate::entry::{Entry, State, StoredObject};
use crate::job::{JobId, JobKey, Kind};
use crate::limits::LIST_PAGES_MAX;
use crate::place::{folder, object_name};
use crate::ports::{ErrorKind, PortError};
use crate::steps::Ports;
use crate::time::{Date, start_of, utc_date};
use crate::together::{Part, together};

/// Results read at once: their content is in memory until they are compared.
pub(super) const AT_ONCE: usize = 8;
/// Keys listed at once.
const PAGE: u32 = 1_000;
/// End of a manifest's key.
const MANIFEST: &str = "/_manifest.json";

/// Reads each result back that a row names.
pub(super) async fn read(
    ports: Ports<'_>,
    rows: &[&Entry],
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let named: Vec<_> = rows.iter().filter_map(|row| Some((&row.key, object_of(row)?))).collect();
    for some in named.chunks(AT_ONCE) {
        let reads = some.iter().map(|(_, object)| -> Part<'_, _> {
            // Its content goes at once.
            Box::pin(async { ports.results.read(&object.key).await.map(|it| it.map(|it| it.0)) })
        });
        for ((key, object), found) in some.iter().zip(together(reads.collect()).await) {
            sheet.objects.named += 1;
            compare(key, object, found, sheet)?;
        }
    }
    Ok(())
}

/// The result that a row names.
const fn object_of(row: &Entry) -> Option<&StoredObject> {
    match &row.state {
        State::Stored { result } => Some(result),
        State::Dead { result, .. } => result.as_ref(),
        _ => None,
    }
}

fn compare(
    key: &JobKey,
    object: &StoredObject,
    found: Result<Option<StoredObject>, PortError>,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    match found {
        Err(error) if error.kind == ErrorKind::Corrupt => {
            let facts = format!("{} is damaged", object.key);
            sheet.find(Discrepancy::ObjectDiffers, Some(key), facts);
        }
        Err(error) => return Err(error),
        Ok(None) => {
            let facts = format!("there is no {}", object.key);
            sheet.find(Discrepancy::ObjectMissing, Some(key), facts);
        }
        Ok(Some(found)) if (found.bytes, &found.sha256) == (object.bytes, &object.sha256) => {
            sheet.objects.whole += 1;
            sheet.objects.bytes += found.bytes;
        }
        Ok(Some(found)) => {
            let facts = format!(
                "{} has {} bytes and SHA-256 {}; the row says {} and {}",
                object.key, found.bytes, found.sha256, object.bytes, object.sha256
            );
            sheet.find(Discrepancy::ObjectDiffers, Some(key), facts);
        }
    }
    Ok(())
}

/// Looks for results that no row could have put where they lie.
pub(super) async fn strays(
    ports: Ports<'_>,
    books: &Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    for kind in Kind::ALL {
        for dt in whole_days(books) {
            find_unowned(ports, kind, dt, books, sheet).await?;
        }
    }
    Ok(())
}

/// The days that lie in the period from their first to their last instant: on others, objects of
/// jobs outside of the period lie beside.
fn whole_days(books: &Books) -> Vec<Date> {
    let period = books.period;
    let mut day = utc_date(period.from);
    let mut days = Vec::new();
    while let Ok(next) = day.tomorrow() {
        if start_of(next) > period.to {
            break;
        }
        days.extend((period.from <= start_of(day)).then_some(day));
        day = next;
    }
    days
}

async fn find_unowned(
    ports: Ports<'_>,
    kind: Kind,
    dt: Date,
    books: &Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let prefix = format!("{}/", folder(kind, dt));
    let mut after: Option<String> = None;
    for _ in 0..LIST_PAGES_MAX {
        let keys = ports.results.list(&prefix, after.as_deref(), PAGE).await?;
        for key in keys.iter().filter(|key| is_result(kind, key)) {
            if !is_owned(ports, kind, key, &prefix, books).await? {
                let facts = format!("no row could have put {key} there");
                sheet.find(Discrepancy::UnownedObject, None, facts);
            }
        }
        if keys.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            break;
        }
        after = keys.last().cloned();
    }
    Ok(())
}

/// Whether a key is that of a whole result. Parts count by their manifest, and those that none
/// names are nobody's.
fn is_result(kind: Kind, key: &str) -> bool {
    kind == Kind::Extract || key.ends_with(MANIFEST)
}

/// Whether the job of an object's key has a row: one of the period, or one that is of another or
/// came after the rows were read.
async fn is_owned(
    ports: Ports<'_>,
    kind: Kind,
    key: &str,
    prefix: &str,
    books: &Books,
) -> Result<bool, PortError> {
    let name = key.strip_prefix(prefix).unwrap_or_default();
    let name = name.trim_end_matches(".json.gz").trim_end_matches(MANIFEST);
    let Some(job_id) = JobId::parse(name).ok().filter(|id| object_name(id) == name) else {
        return Ok(false);
    };
    let key = JobKey::new(kind, job_id);
    if books.row(&key).is_some() {
        return Ok(true);
    }
    let fresh = once_more(ports, &[key]).await?;
    Ok(!matches!(fresh.as_slice(), [Fresh::Read(None)]))
}
