//! The result store's side.

use std::collections::BTreeSet;

use super::books::Books;
use super::{Discrepancy, Sheet};
use crate::entry::{Entry, StoredObject};
use crate::job::{JobId, JobKey, Kind};
use crate::limits::LIST_PAGES_MAX;
use crate::place::{date_of, extract_key, folder, manifest_key, object_name};
use crate::ports::{ErrorKind, PortError};
use crate::steps::Ports;
use crate::time::{Date, start_of, utc_date};

/// Keys listed at once.
const PAGE: u32 = 1_000;
/// End of a manifest's key.
const MANIFEST: &str = "/_manifest.json";

/// The keys under which a row's result would lie: the date of an open row may yet be fixed.
pub(super) fn keys_of(entry: &Entry) -> Vec<String> {
    let JobKey { kind, job_id } = &entry.key;
    let dates: BTreeSet<Date> =
        [date_of(entry, None), utc_date(entry.first_seen)].into_iter().collect();
    let key = |dt| match kind {
        Kind::Extract => extract_key(job_id, dt),
        Kind::Batch | Kind::Crawl => manifest_key(*kind, job_id, dt),
    };
    dates.into_iter().map(key).collect()
}

/// Reads each result back that a row of the period names, and looks for objects that none names.
pub(super) async fn read(
    ports: Ports<'_>,
    books: &Books,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    for (key, row) in books.rows() {
        let Some(object) = &row.object else { continue };
        sheet.objects.named += 1;
        check(ports, key, object, sheet).await?;
    }
    let named: BTreeSet<&str> =
        books.rows().flat_map(|(_, row)| row.keys.iter().map(String::as_str)).collect();
    for kind in Kind::ALL {
        for dt in whole_days(books) {
            find_unowned(ports, kind, dt, &named, sheet).await?;
        }
    }
    Ok(())
}

async fn check(
    ports: Ports<'_>,
    key: &JobKey,
    object: &StoredObject,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let found = match ports.results.read(&object.key).await {
        Ok(found) => found.map(|(found, _)| found),
        Err(error) if error.kind == ErrorKind::Corrupt => {
            let facts = format!("{} is damaged", object.key);
            sheet.find(Discrepancy::ObjectDiffers, Some(key), facts);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match found {
        None => {
            let facts = format!("there is no {}", object.key);
            sheet.find(Discrepancy::ObjectMissing, Some(key), facts);
        }
        Some(found) if (found.bytes, &found.sha256) == (object.bytes, &object.sha256) => {
            sheet.objects.whole += 1;
            sheet.objects.bytes += found.bytes;
        }
        Some(found) => {
            let facts = format!(
                "{} has {} bytes and SHA-256 {}; the row says {} and {}",
                object.key, found.bytes, found.sha256, object.bytes, object.sha256
            );
            sheet.find(Discrepancy::ObjectDiffers, Some(key), facts);
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
    named: &BTreeSet<&str>,
    sheet: &mut Sheet,
) -> Result<(), PortError> {
    let prefix = format!("{}/", folder(kind, dt));
    let mut after: Option<String> = None;
    for _ in 0..LIST_PAGES_MAX {
        let keys = ports.results.list(&prefix, after.as_deref(), PAGE).await?;
        for key in keys.iter().filter(|key| is_result(kind, key) && !named.contains(key.as_str())) {
            if !is_known(ports, kind, key, &prefix).await? {
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

/// Whether the job of an object's key has a row, which came after the rows were read.
async fn is_known(
    ports: Ports<'_>,
    kind: Kind,
    key: &str,
    prefix: &str,
) -> Result<bool, PortError> {
    let name = key.strip_prefix(prefix).unwrap_or_default();
    let name = name.trim_end_matches(".json.gz").trim_end_matches(MANIFEST);
    let Some(job_id) = JobId::parse(name).ok().filter(|id| object_name(id) == name) else {
        return Ok(false);
    };
    Ok(ports.ledger.load(&JobKey::new(kind, job_id)).await?.is_some())
}
