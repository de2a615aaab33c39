//! The list of what is stored.

use std::fmt;

use clap::Args;
use domain::job::{JobId, JobKey, Kind};
use domain::time::Date;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;

use super::locate::{EXTRACT, MANIFEST, PAGE};
use crate::backend::Store;
use crate::commands::jobs::{ROWS_AT_ONCE, reference_of, url_of};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Limit, parse_limit};
use crate::output::{Output, note};

/// List the stored results.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Results of this kind only.
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Results of this date only: the UTC date on which the job was created.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    dt: Option<Date>,
    /// Most rows, or `all`; 100 if not given, and all with --json.
    #[arg(long, allow_negative_numbers = true, value_name = "ROWS", value_parser = parse_limit)]
    limit: Option<Limit>,
}

fn parse_date(text: &str) -> Result<Date, String> {
    // Other spellings of a date would name no folder of ours.
    match text.parse::<Date>() {
        Ok(date) if date.to_string() == text => Ok(date),
        _ => Err("write a date as 2026-11-30".to_owned()),
    }
}

/// One row.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row<'a> {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    dt: &'a str,
    /// The job's id; null where the name is a hash of it.
    job_id: Option<JobId>,
    key: &'a str,
    /// The user's own id for the job, if the ledger still knows it.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The page or seed, if the ledger still knows it; a batch has none.
    url: Option<String>,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job_id = self.job_id.as_ref().map_or("-", JobId::as_str);
        let reference = self.reference.as_deref().unwrap_or("-");
        let url = self.url.as_deref().unwrap_or("-");
        write!(out, "{}\t{}\t{job_id}\t{}\t{reference}\t{url}", self.kind, self.dt, self.key)
    }
}

impl List {
    pub(super) async fn run(self, store: &Store, output: Output) -> Result<Exit, CliError> {
        let mut left = Limit::rows(self.limit, output);
        let is_wanted = |kind: &Kind| self.kind.is_none_or(|wanted| wanted == *kind);
        for kind in Kind::ALL.into_iter().filter(is_wanted) {
            let prefix = match self.dt {
                Some(dt) => format!("kind={kind}/dt={dt}/"),
                None => format!("kind={kind}/"),
            };
            let mut after: Option<String> = None;
            loop {
                let keys = store.results.list(&prefix, after.as_deref(), PAGE).await?;
                let rows: Vec<_> = keys.iter().filter_map(|key| row(kind, key)).collect();
                let is_all = rows.len() <= left;
                let mut described = stream::iter(rows.into_iter().take(left))
                    .map(|row| row.described(store))
                    .buffered(ROWS_AT_ONCE);
                while let Some(row) = described.try_next().await? {
                    output.print(&row)?;
                    left -= 1;
                }
                if !is_all {
                    note("note: there are more; raise --limit, or name --kind and --dt");
                    return Ok(Exit::Ok);
                }
                after = keys.last().cloned();
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Exit::Ok)
    }
}

impl Row<'_> {
    /// The same row with what the ledger knows of the job.
    async fn described(self, store: &Store) -> Result<Self, CliError> {
        let Some(id) = &self.job_id else { return Ok(self) };
        let key = JobKey::new(self.kind, id.clone());
        let Some(entry) = store.ledger.load(&key).await? else { return Ok(self) };
        let url = url_of(&*store.ledger, &entry).await?;
        Ok(Self { reference: reference_of(&entry).map(str::to_owned), url, ..self })
    }
}

/// The row of an object or manifest; `None` for parts, which belong to their manifest.
fn row(kind: Kind, key: &str) -> Option<Row<'_>> {
    let path = match kind {
        Kind::Extract => key.strip_suffix(EXTRACT)?,
        Kind::Batch | Kind::Crawl => key.strip_suffix(MANIFEST)?,
    };
    let (folder, name) = path.rsplit_once('/')?;
    let (_, dt) = folder.rsplit_once("/dt=")?;
    let job_id = id_of(name);
    Some(Row { version: 1, r#type: "result", kind, dt, job_id, key, reference: None, url: None })
}

/// The id that a name stands for: `_` and two hex digits are a byte, the rest is itself.
fn id_of(name: &str) -> Option<JobId> {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'_' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    JobId::parse(&String::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use domain::place::{extract_key, manifest_key, object_name, part_key};
    use domain::time::utc_date;

    use super::*;

    /// WK-21: names are read back to the ids that they were made of.
    #[test]
    fn names_are_read_back() {
        let uuid = "0b6e1f4a-9a3e-4f5c-8d2b-7c1a6e5d4f30";
        for text in [uuid, "J1", "a_b", "a%2Fb", "_h", "...", "\"#~"] {
            let id = JobId::parse(text).unwrap();
            assert_eq!(id_of(&object_name(&id)), Some(id), "{text}");
        }
        let hashed = object_name(&JobId::parse(&"A".repeat(128)).unwrap());
        assert_eq!(id_of(&hashed), None);
    }

    #[test]
    fn parts_are_no_rows() {
        let id = JobId::parse("J1").unwrap();
        let dt = utc_date("2026-11-30T12:00:00Z".parse().unwrap());
        let key = extract_key(&id, dt);
        let found = row(Kind::Extract, &key).unwrap();
        assert_eq!((found.dt, found.job_id), ("2026-11-30", Some(id.clone())));
        let key = manifest_key(Kind::Batch, &id, dt);
        assert_eq!(row(Kind::Batch, &key).unwrap().job_id, Some(id.clone()));
        assert_eq!(row(Kind::Batch, &part_key(Kind::Batch, &id, dt, "r1", 1)), None);
    }
}
