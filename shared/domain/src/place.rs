//! Where results lie: object keys in the Hive layout.
//!
//! ```text
//! kind=extract/dt=2026-11-30/<job>.json.gz
//! kind=batch/dt=2026-11-30/<job>/<run>-part-00001.ndjson.gz
//! kind=batch/dt=2026-11-30/<job>/_manifest.json
//! ```

use sha2::{Digest, Sha256};

use crate::entry::Entry;
use crate::job::{JobId, Kind};
use crate::time::{Date, utc_date};

/// Longest encoded id that is kept readable; file names may have 255 bytes.
const READABLE_MAX: usize = 200;

/// A job's name in object keys: injective, also where file names ignore case.
///
/// Lower-case letters, digits and hyphens stay; any other byte becomes `_` and two hex digits.
/// Where that is longer than 200 bytes the name is `_h` and the SHA-256 of the id: `_h` cannot
/// come from the first rule, as `h` is no hex digit.
pub fn object_name(job_id: &JobId) -> String {
    let mut name = String::with_capacity(job_id.as_str().len());
    for byte in job_id.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            other => {
                name.push('_');
                name.push_str(&hex::encode([other]));
            }
        }
    }
    if name.len() > READABLE_MAX {
        return format!("_h{}", hex::encode(Sha256::digest(job_id.as_str())));
    }
    name
}

/// Folder of all results of one kind and date.
pub(crate) fn folder(kind: Kind, dt: Date) -> String {
    format!("kind={kind}/dt={dt}")
}

/// Key of an extract job's result.
pub fn extract_key(job_id: &JobId, dt: Date) -> String {
    format!("{}/{}.json.gz", folder(Kind::Extract, dt), object_name(job_id))
}

/// Key of one part of a batch's or crawl's result; parts count from 1.
pub fn part_key(kind: Kind, job_id: &JobId, dt: Date, run: &str, part: u32) -> String {
    format!("{}/{}/{run}-part-{part:05}.ndjson.gz", folder(kind, dt), object_name(job_id))
}

/// Key of a batch's or crawl's manifest, the object that makes its parts count.
pub fn manifest_key(kind: Kind, job_id: &JobId, dt: Date) -> String {
    format!("{}/{}/_manifest.json", folder(kind, dt), object_name(job_id))
}

/// The date in an entry's result keys: the fixed one, else that of the job's creation, else that
/// of the first sight.
pub fn date_of(entry: &Entry, created_at: Option<crate::time::Timestamp>) -> Date {
    entry.dt.unwrap_or_else(|| {
        utc_date(created_at.or(entry.job_created_at).unwrap_or(entry.first_seen))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// WK-21: ids that differ give names that differ, also without regard to case.
    #[test]
    fn names_are_injective_and_bounded() {
        let long = "A".repeat(127);
        let ids = ["a_b", "a%2Fb", "A_B", "A_b", "a-b", "a.b", "_h", "...", "a_5fb", &long, "aa"];
        let names: BTreeSet<_> =
            ids.iter().map(|id| object_name(&JobId::parse(id).unwrap()).to_lowercase()).collect();
        assert_eq!(names.len(), ids.len());
        assert!(names.iter().all(|name| name.len() <= READABLE_MAX));
    }

    #[test]
    fn keys_follow_the_hive_layout() {
        let id = JobId::parse("J1").unwrap();
        let dt = jiff::civil::date(2026, 11, 30);
        assert_eq!(extract_key(&id, dt), "kind=extract/dt=2026-11-30/_4a1.json.gz");
        assert_eq!(
            part_key(Kind::Crawl, &id, dt, "r1", 7),
            "kind=crawl/dt=2026-11-30/_4a1/r1-part-00007.ndjson.gz"
        );
        assert_eq!(
            manifest_key(Kind::Batch, &id, dt),
            "kind=batch/dt=2026-11-30/_4a1/_manifest.json"
        );
    }
}
