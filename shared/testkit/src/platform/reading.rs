//! Answers of the platform as domain values.

use domain::job::{JobError, JobId, JobStatus, Kind, item_code_is_retryable};
use domain::ports::{
    ApiError, ApiErrorKind, ExtractJob, Item, ListPage, Listed, ParentPage, RawJson,
};
use domain::request::Format;
use domain::signature::secret::Secret;
use domain::time::{Timestamp, parse_lenient};
use serde_json::Value;

pub(super) fn unreadable(message: &str) -> ApiError {
    ApiError { status: Some(200), ..ApiError::new(ApiErrorKind::Unreadable, message) }
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn count(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

fn created_at(value: &Value) -> Option<Timestamp> {
    text(value, "created_at").and_then(parse_lenient)
}

fn raw(value: &Value) -> RawJson {
    RawJson(value.to_string().into_boxed_str())
}

fn job_id(value: &Value) -> Option<JobId> {
    text(value, "job_id").and_then(|text| JobId::parse(text).ok())
}

/// Checks that an answer is about the job that was asked for, and reads its status.
fn status_of(answer: &Value, asked: &JobId) -> Result<JobStatus, ApiError> {
    if job_id(answer).as_ref() != Some(asked) {
        return Err(unreadable("the answer speaks of another job"));
    }
    let status = text(answer, "status").map(JobStatus::from_api);
    status.ok_or_else(|| unreadable("the answer has no `status`"))
}

/// The id of an accepted job.
pub(super) fn accepted(answer: &Value) -> Result<JobId, ApiError> {
    job_id(answer).ok_or_else(|| unreadable("the answer has no usable `job_id`"))
}

/// The signing secret of a created webhook.
pub(super) fn secret(created: &Value) -> Result<Secret, ApiError> {
    let parts = text(created, "secret").zip(text(created, "id"));
    let secret = parts.and_then(|(secret, id)| Secret::new(secret).ok()?.with_webhook_id(id).ok());
    secret.ok_or_else(|| unreadable("the answer has no usable `secret`"))
}

/// An extract job.
pub(super) fn extract(answer: &Value, asked: &JobId) -> Result<ExtractJob, ApiError> {
    let status = status_of(answer, asked)?;
    let error = answer.get("error").filter(|error| !error.is_null()).map(|error| {
        JobError::new(
            text(error, "code").unwrap_or_default(),
            text(error, "message").unwrap_or_default(),
            error.get("retryable").and_then(Value::as_bool).unwrap_or(false),
        )
    });
    let data = answer.get("data").unwrap_or(&Value::Null);
    let has_data =
        ["html", "markdown"].iter().any(|name| text(data, name).is_some_and(|it| !it.is_empty()));
    Ok(ExtractJob { status, created_at: created_at(answer), error, has_data, raw: raw(answer) })
}

/// The names of a kind's counters, and what makes its items unique.
pub(super) struct Names {
    total: &'static str,
    ran: [&'static str; 2],
    cancelled: &'static str,
    pending: &'static str,
    key: fn(&Value) -> Option<String>,
}

impl Names {
    /// Those of a kind that has parts.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Extract => None,
            Kind::Batch => Some(Self {
                total: "total_urls",
                ran: ["completed_urls", "failed_urls"],
                cancelled: "cancelled_urls",
                pending: "pending_urls",
                key: |item| count(item, "input_index").map(|index| index.to_string()),
            }),
            Kind::Crawl => Some(Self {
                total: "total_pages",
                ran: ["completed_pages", "failed_pages"],
                cancelled: "cancelled_pages",
                pending: "pending_pages",
                key: |item| text(item, "url").map(ToOwned::to_owned),
            }),
        }
    }
}

/// A batch or crawl with a page of its parts.
pub(super) fn parent(
    mut answer: Value,
    asked: &JobId,
    names: &Names,
) -> Result<ParentPage, ApiError> {
    let status = status_of(&answer, asked)?;
    let results = answer.as_object_mut().and_then(|fields| fields.remove("results"));
    let items = match results {
        Some(Value::Array(items)) => {
            let items = items.iter().map(|value| item(value, names)).collect::<Option<_>>();
            Some(items.ok_or_else(|| unreadable("an entry of `results` has no key"))?)
        }
        _ => None,
    };
    let tokens = answer.get("token_summary").and_then(|tokens| count(tokens, "tokens_reserved"));
    let ran = names.ran.iter().filter_map(|name| count(&answer, name));
    Ok(ParentPage {
        status,
        created_at: created_at(&answer),
        tokens_reserved: tokens.unwrap_or(0),
        total: count(&answer, names.total),
        ran: ran.fold(0, u64::saturating_add),
        cancelled: count(&answer, names.cancelled).unwrap_or(0),
        pending: count(&answer, names.pending).unwrap_or(0),
        items,
        summary: raw(&answer),
    })
}

fn item(value: &Value, names: &Names) -> Option<Item> {
    let error = text(value, "error_code").map(|code| {
        let message = text(value, "error_message").unwrap_or_default();
        JobError::new(code, message, item_code_is_retryable(code))
    });
    Some(Item {
        key: (names.key)(value)?,
        url: text(value, "url").unwrap_or_default().to_owned(),
        status: text(value, "status").unwrap_or_default().to_owned(),
        error,
        raw: raw(value),
    })
}

/// A page of a job list.
pub(super) fn list(answer: &Value) -> Result<ListPage, ApiError> {
    let (jobs, unreadable) = rows(answer, "jobs", listed)?;
    Ok(ListPage {
        jobs,
        unreadable,
        page_count: count(answer, "page_count"),
        is_capped: answer.get("is_capped").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// The entries of a list that can be read, and how many cannot.
pub(super) fn rows<T>(
    answer: &Value,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<(Vec<T>, u32), ApiError> {
    let entries = answer.get(name).and_then(Value::as_array);
    let entries = entries.ok_or_else(|| unreadable("the answer has no list"))?;
    let rows: Vec<T> = entries.iter().filter_map(read).collect();
    let unread = u32::try_from(entries.len() - rows.len()).unwrap_or(u32::MAX);
    Ok((rows, unread))
}

fn listed(value: &Value) -> Option<Listed> {
    let config = value.get("config").unwrap_or(&Value::Null);
    let formats = value.get("output").or_else(|| config.get("formats"));
    Some(Listed {
        job_id: job_id(value)?,
        status: text(value, "status").map(JobStatus::from_api)?,
        created_at: created_at(value),
        url: text(value, "url").map(ToOwned::to_owned),
        accepted_urls: count(value, "accepted_urls"),
        // Half a list would compare as equal to less, so an unknown format leaves it out.
        formats: formats
            .and_then(|formats| serde_json::from_value::<Vec<Format>>(formats.clone()).ok()),
        render_js: config.get("render_js").and_then(Value::as_bool),
    })
}
