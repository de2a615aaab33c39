//! The judge for a run that took place elsewhere, with another ledger than the demo's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::entry::DeadReason;
use serde::Deserialize;

use super::books::{Job, Page, VERSION};
use super::judge::Judgement;
use super::{given_up, judge};
use crate::error::CliError;
use crate::exit::Exit;

/// What a run left behind, besides its folder of results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remains {
    /// The simulator's books with their parts, page by page as it served them.
    books: Vec<Page>,
    /// What the ledger gave up.
    given_up: Vec<GivenUp>,
    /// Objects that changed after they appeared.
    changed: Vec<PathBuf>,
}

/// A job that the ledger gave up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenUp {
    job_id: String,
    reason: DeadReason,
}

impl Remains {
    /// Compares them with the folder of results.
    ///
    /// # Errors
    /// When the books have another version than is read.
    pub fn judge(self, results: &Path) -> Result<Judgement, CliError> {
        if self.books.iter().any(|page| page.version != VERSION) {
            return Err(CliError::new(Exit::Bug, "the simulator's books have another version"));
        }
        let jobs: Vec<Job> = self.books.into_iter().flat_map(|page| page.jobs).collect();
        let mut judgement = judge::judge(&jobs, results, self.changed);
        let jobs: BTreeMap<_, _> = jobs.iter().map(|job| (job.id.as_str(), job)).collect();
        for row in &self.given_up {
            given_up::judge_row(&jobs, &row.job_id, row.reason, &mut judgement);
        }
        Ok(judgement)
    }
}
