//! Whether what the ledger gave up was given up for a reason that the platform bears out. Of a job
//! without a result the folder tells nothing.

use std::collections::BTreeMap;

use domain::entry::{DeadReason, State, StateName};
use domain::ports::{Cursor, EntryFilter};

use super::books::Job;
use super::judge::Judgement;
use crate::error::CliError;
use crate::pipeline::Pipeline;

/// Rows read at once.
const PAGE: u32 = 500;

/// Counts those as lost that were given up for a reason that is not so.
pub(super) async fn judge(
    pipeline: &Pipeline,
    books: &[Job],
    judgement: &mut Judgement,
) -> Result<(), CliError> {
    let books: BTreeMap<_, _> = books.iter().map(|job| (job.id.as_str(), job)).collect();
    let filter = EntryFilter { state: Some(StateName::Dead), ..EntryFilter::default() };
    let mut cursor: Option<Cursor> = None;
    loop {
        let page = pipeline.ledger.list_entries(&filter, cursor.as_ref(), PAGE).await?;
        for entry in &page.items {
            let State::Dead { reason, .. } = entry.state else { continue };
            judge_row(&books, entry.key.job_id.as_str(), reason, judgement);
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Counts one job as lost if the reason for which it was given up is not so.
pub(super) fn judge_row(
    books: &BTreeMap<&str, &Job>,
    job_id: &str,
    reason: DeadReason,
    judgement: &mut Judgement,
) {
    if let Some(job) = books.get(job_id).filter(|job| !is_so(reason, job)) {
        judgement.given_up(job, reason);
    }
}

/// Whether a job stands as this reason says. The demo's platform forgets no job, denies none and
/// sends no damaged result.
fn is_so(reason: DeadReason, job: &Job) -> bool {
    match reason {
        DeadReason::NeverSettled => !job.is_terminal(),
        DeadReason::Cancelled => job.status == "cancelled",
        // Of a resubmission that could not be decided the report tells apart.
        DeadReason::Failed
        | DeadReason::ResubmitsExhausted
        | DeadReason::UnlinkedFailure
        | DeadReason::ResubmitRefused
        | DeadReason::Ambiguous => job.status == "failed",
        DeadReason::Gone
        | DeadReason::Poison
        | DeadReason::TooLarge
        | DeadReason::CorruptObject
        | DeadReason::Inconsistent
        | DeadReason::Denied
        | DeadReason::Discarded => false,
    }
}
