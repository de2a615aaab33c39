use serde_json::json;

use crate::job::{JobError, JobId, JobKey, JobStatus};
use crate::ports::{ExtractJob, Item, ParentPage, RawJson};

/// An answer for an extract job: with data if it is completed, with a retryable error if it
/// failed. Its `created_at` is unknown.
pub fn extract_answer(job_id: &JobId, status: JobStatus) -> ExtractJob {
    let has_data = status == JobStatus::Completed;
    let error = (status == JobStatus::Failed)
        .then(|| JobError::new("target_timeout", "the page took too long", true));
    let mut raw = json!({ "job_id": job_id.as_str(), "status": status.as_str() });
    if let (true, Some(fields)) = (has_data, raw.as_object_mut()) {
        fields.insert("data".to_owned(), json!({ "html": "<p>page</p>" }));
    }
    ExtractJob {
        status,
        created_at: None,
        error,
        has_data,
        raw: RawJson(raw.to_string().into_boxed_str()),
    }
}

/// An answer for a batch or crawl with all its items, all of which ran, and nothing reserved.
/// Its `created_at` is unknown.
pub fn parent_answer(key: &JobKey, status: JobStatus, items: Vec<Item>) -> ParentPage {
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    let summary =
        json!({ "job_id": key.job_id.as_str(), "status": status.as_str(), "total": count });
    ParentPage {
        status,
        created_at: None,
        tokens_reserved: 0,
        total: Some(count),
        ran: count,
        cancelled: 0,
        pending: 0,
        items: Some(items),
        summary: RawJson(summary.to_string().into_boxed_str()),
    }
}
