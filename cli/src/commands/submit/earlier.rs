//! What the ledger knows of a plan's URLs under other submissions: they would be paid again.

use std::collections::{BTreeMap, BTreeSet};

use domain::intent::{Intent, Submission};
use domain::ports::{Ledger, PortError};
use domain::request::JobRequest;
use settings::{Backend, Settings};

use super::plan::Plan;
use crate::output::{note, note_unreadable};

/// Rows read at once.
const PAGE: u32 = 500;
/// Most submissions that are looked through, on this machine and on AWS: a second or two of reading.
/// Beyond them nothing is said of the rest.
const LOOKED_AT_MAX: usize = 100_000;
const LOOKED_AT_MAX_ON_AWS: usize = 5_000;
/// Runs that are named.
const NAMED_MAX: usize = 3;

/// What was submitted before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Earlier {
    /// Whether the ledger holds other runs, and nothing of this one.
    pub(super) is_new_run: bool,
    /// Submissions to be paid for whose URLs were submitted before, elsewhere.
    pub(super) submitted_before: u64,
    /// Submissions to be paid for.
    new: u64,
    /// Where they were submitted before.
    runs: BTreeSet<String>,
    run: String,
}

/// Looks through the ledger's submissions, up to a bound.
///
/// # Errors
/// Those of the ledger.
pub(super) async fn look(
    ledger: &dyn Ledger,
    settings: &Settings,
    plan: &Plan,
) -> Result<Earlier, PortError> {
    let most = match settings.backend {
        Backend::Embedded => LOOKED_AT_MAX,
        Backend::Aws(_) => LOOKED_AT_MAX_ON_AWS,
    };
    let mut intents = Vec::new();
    let mut cursor = None;
    while intents.len() < most {
        let page = ledger.list_intents(None, cursor.as_ref(), PAGE).await?;
        note_unreadable(&page.unreadable);
        intents.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(compare(plan, &intents))
}

/// Compares a plan with what was submitted before.
fn compare(plan: &Plan, intents: &[Intent]) -> Earlier {
    let ids: BTreeSet<String> = plan.submissions.iter().map(Intent::id_of).collect();
    let known: BTreeSet<&str> = intents.iter().map(|intent| intent.id.as_str()).collect();
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    for intent in intents.iter().filter(|intent| !ids.contains(&intent.id)) {
        for url in urls(&intent.request) {
            before.insert(url, &intent.run);
        }
    }
    let mut earlier = Earlier {
        is_new_run: !intents.is_empty() && intents.iter().all(|intent| intent.run != plan.run),
        run: plan.run.clone(),
        ..Earlier::default()
    };
    let is_new = |submission: &&Submission| !known.contains(Intent::id_of(submission).as_str());
    for submission in plan.submissions.iter().filter(is_new) {
        earlier.new += 1;
        let runs: Vec<_> = urls(&submission.request).filter_map(|url| before.get(url)).collect();
        earlier.submitted_before += u64::from(!runs.is_empty());
        earlier.runs.extend(runs.into_iter().map(|run| (*run).to_owned()));
    }
    earlier
}

/// The pages that a request asks for, or the seed.
fn urls(request: &JobRequest) -> impl Iterator<Item = &str> {
    let several = match request {
        JobRequest::Batch { urls, .. } => urls.as_slice(),
        JobRequest::Extract { .. } | JobRequest::Crawl { .. } => &[],
    };
    request.url().into_iter().chain(several.iter().map(String::as_str))
}

impl Earlier {
    /// Says before anything is paid what would be paid again.
    pub(super) fn warn(&self) {
        if let Some(text) = self.warning() {
            note(&text);
        }
    }

    fn warning(&self) -> Option<String> {
        let Self { submitted_before: again, new, runs, run, .. } = self;
        if *again == 0 {
            return None;
        }
        let others: Vec<_> = runs.iter().filter(|other| *other != run).collect();
        let mut places: Vec<_> =
            others.iter().take(NAMED_MAX).map(|other| format!("run {other}")).collect();
        if others.len() > NAMED_MAX {
            places.push(format!("{} more", others.len() - NAMED_MAX));
        }
        if runs.contains(run) {
            places.push("other positions or options of this run".to_owned());
        }
        let places = places.join(", ");
        Some(format!(
            "note: {again} of {new} new submissions hold URLs that were submitted before ({places}), and are paid again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::Limits;
    use domain::request::FetchOptions;
    use domain::time::Timestamp;

    use super::*;

    fn plan(run: &str, names: &[&str]) -> Plan {
        let submission = |(position, name): (u64, &&str)| Submission {
            run: run.to_owned(),
            position,
            request: JobRequest::extract(
                &format!("https://example.com/{name}"),
                FetchOptions::default(),
            )
            .unwrap(),
            reference: None,
        };
        let submissions = (0..).zip(names).map(submission).collect();
        Plan { run: run.to_owned(), submissions, repeated: 0 }
    }

    fn intents(plan: &Plan) -> Vec<Intent> {
        let open = |submission| {
            Intent::open(submission, "token".to_owned(), Timestamp::UNIX_EPOCH, &Limits::default())
        };
        plan.submissions.iter().map(open).collect()
    }

    #[test]
    fn the_same_list_again_is_nothing_new() {
        let first = plan("a", &["1", "2"]);
        let earlier = compare(&first, &intents(&first));
        assert_eq!((earlier.submitted_before, earlier.new, earlier.is_new_run), (0, 0, false));
        assert_eq!(earlier.warning(), None);
        assert!(!compare(&first, &[]).is_new_run);
        assert!(compare(&plan("b", &["3"]), &intents(&first)).is_new_run);
        assert_eq!(compare(&plan("a", &["1", "2", "3"]), &intents(&first)).warning(), None);
    }

    #[test]
    fn urls_of_other_runs_and_other_positions_are_named() {
        let first = intents(&plan("a", &["1", "2"]));
        let other = compare(&plan("b", &["0", "1", "2"]), &first);
        insta::assert_snapshot!(other.warning().unwrap(), @"note: 2 of 3 new submissions hold URLs that were submitted before (run a), and are paid again");
        let moved = compare(&plan("a", &["0", "1", "2"]), &first);
        insta::assert_snapshot!(moved.warning().unwrap(), @"note: 2 of 3 new submissions hold URLs that were submitted before (other positions or options of this run), and are paid again");
    }
}
