//! Lists: of jobs under `jobs`, of webhooks and deliveries under `items`.

use std::time::Duration;

use domain::job::{JobId, JobStatus, Kind};
use domain::ports::{ApiError, ListPage, ListQuery, Listed};
use domain::request::Format;
use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{Answer, Maybe, parse_object};
use crate::client::{Call, ScraperApi};

/// The key under which a list's entries are.
#[derive(Clone, Copy)]
pub(crate) enum ListKey {
    /// Job lists.
    Jobs,
    /// Webhooks and deliveries.
    Items,
}

/// The entries of a list and what it says about itself.
pub(crate) struct Entries<T> {
    pub(crate) readable: Vec<T>,
    pub(crate) unreadable: u32,
    pub(crate) page_count: Option<u64>,
    pub(crate) is_capped: bool,
}

#[derive(Deserialize)]
struct ListAnswer<'a> {
    #[serde(borrow, default)]
    jobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
    #[serde(default)]
    page_count: Maybe<u64>,
    #[serde(default)]
    is_capped: Maybe<bool>,
}

/// Reads a list; an entry that `parse` cannot read is counted and left out.
///
/// # Errors
/// `Unreadable` when the list is not under its key: a wrong answer must not look like no entries.
pub(crate) fn parse_list<T>(
    answer: &Answer,
    key: ListKey,
    parse: impl Fn(&RawValue) -> Option<T>,
) -> Result<Entries<T>, ApiError> {
    let fields: ListAnswer<'_> = answer.read()?;
    let (name, raw) = match key {
        ListKey::Jobs => ("jobs", fields.jobs),
        ListKey::Items => ("items", fields.items),
    };
    let missing = || answer.unreadable(&format!("the answer has no list `{name}`"));
    let raw = raw.ok_or_else(missing)?;
    let entries: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| missing())?;
    let count = entries.len();
    let readable: Vec<T> = entries.into_iter().filter_map(parse).collect();
    let unreadable = u32::try_from(count.saturating_sub(readable.len())).unwrap_or(u32::MAX);
    Ok(Entries {
        readable,
        unreadable,
        page_count: fields.page_count.0,
        is_capped: fields.is_capped.0.unwrap_or(false),
    })
}

impl ScraperApi {
    pub(crate) async fn list_jobs(
        &self,
        kind: Kind,
        query: &ListQuery,
        within: Duration,
    ) -> Result<ListPage, ApiError> {
        let path = ["v1", kind.as_str(), "jobs"];
        let mut call =
            Call::get(&path).query("page", &query.page).query("page_size", &query.page_size);
        if let Some(from) = query.created_from {
            call = call.query("start_date", &date_parameter(from));
        }
        if let Some(to) = query.created_to {
            call = call.query("end_date", &date_parameter(to));
        }
        let answer = self.send(call, within).await?;
        let list = parse_list(&answer, ListKey::Jobs, parse_job)?;
        Ok(ListPage {
            jobs: list.readable,
            unreadable: list.unreadable,
            page_count: list.page_count,
            is_capped: list.is_capped,
        })
    }
}

/// An instant as the API's date parameters want it, rounded down to microseconds.
///
/// The `Z` form is the documented one; the official client's `+0000` would need its plus escaped.
pub(crate) fn date_parameter(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn parse_job(raw: &RawValue) -> Option<Listed> {
    #[derive(Deserialize)]
    struct JobFields {
        #[serde(default)]
        job_id: Maybe<String>,
        #[serde(default)]
        status: Maybe<String>,
        #[serde(default)]
        created_at: Maybe<String>,
        #[serde(default)]
        url: Maybe<String>,
        #[serde(default)]
        accepted_urls: Maybe<u64>,
        /// The formats of an extract job.
        #[serde(default)]
        output: Maybe<Vec<String>>,
        /// The options of a batch or crawl.
        #[serde(default)]
        config: Maybe<ConfigFields>,
    }

    #[derive(Deserialize)]
    struct ConfigFields {
        #[serde(default)]
        formats: Maybe<Vec<String>>,
        #[serde(default)]
        render_js: Maybe<bool>,
    }

    let fields: JobFields = parse_object(raw)?;
    let job_id = JobId::parse(fields.job_id.as_deref()?).ok()?;
    let status = JobStatus::from_api(fields.status.as_deref()?);
    let created_at = fields.created_at.timestamp();
    let (listed_formats, render_js) = match fields.config.0 {
        Some(config) => (config.formats.0, config.render_js.0),
        None => (None, None),
    };
    Some(Listed {
        job_id,
        status,
        created_at,
        url: fields.url.0,
        accepted_urls: fields.accepted_urls.0,
        formats: fields.output.0.or(listed_formats).and_then(known_formats),
        render_js,
    })
}

/// The formats, or `None` if one of them is unknown: half a list would compare as equal to less.
fn known_formats(formats: Vec<String>) -> Option<Vec<Format>> {
    let known = |text: String| {
        [Format::Html, Format::Markdown].into_iter().find(|format| format.as_str() == text)
    };
    formats.into_iter().map(known).collect()
}

#[cfg(test)]
mod tests;
