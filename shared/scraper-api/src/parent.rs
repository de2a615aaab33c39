//! What batches and crawls share: counters, and one page of results.

use domain::job::{JobId, item_code_is_retryable};
use domain::ports::{ApiError, Item, PageRequest, ParentPage, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{Answer, Fields, Maybe, parse_object};
use crate::client::Call;
use crate::config::ApiKey;
use crate::error_body::job_error;

/// The code of an item's error that has a message only.
const NO_CODE: &str = "UNKNOWN";

/// The names of a kind's counters, and what makes its items unique.
pub(crate) struct Names {
    pub(crate) total: &'static str,
    pub(crate) ran: [&'static str; 2],
    pub(crate) cancelled: &'static str,
    pub(crate) pending: Option<&'static str>,
    pub(crate) item_key: fn(&ItemFields) -> Option<String>,
}

/// The fields of an item that decide something.
#[derive(Deserialize)]
pub(crate) struct ItemFields {
    #[serde(default)]
    pub(crate) input_index: Maybe<u64>,
    #[serde(default)]
    pub(crate) url: Maybe<String>,
    #[serde(default)]
    status: Maybe<String>,
    #[serde(default)]
    error_code: Maybe<String>,
    #[serde(default)]
    error_message: Maybe<String>,
}

#[derive(Default, Deserialize)]
struct TokenSummary {
    #[serde(default)]
    tokens_reserved: Maybe<u64>,
}

/// The call that reads one page of a parent.
pub(crate) fn page_call<'a>(path: &'a [&'a str], page: PageRequest) -> Call<'a> {
    Call::get(path).query("page", &page.page).query("page_size", &page.page_size)
}

/// Reads a parent's answer.
pub(crate) fn parse_parent(
    answer: &Answer,
    job_id: &JobId,
    names: &Names,
) -> Result<ParentPage, ApiError> {
    let fields: Fields<'_> = answer.read()?;
    let field =
        |name: &str| fields.0.iter().find(|(field, _)| field == name).map(|(_, raw)| raw.get());
    let text = |name: &str| field(name).and_then(|raw| serde_json::from_str::<String>(raw).ok());
    let count = |name: &str| field(name).and_then(|raw| serde_json::from_str::<u64>(raw).ok());

    answer.check_job_id(text("job_id").as_deref(), job_id)?;
    let status = answer.job_status(text("status").as_deref())?;
    let tokens: TokenSummary =
        field("token_summary").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let ran = names.ran.iter().filter_map(|name| count(name));
    Ok(ParentPage {
        status,
        created_at: text("created_at").as_deref().and_then(domain::time::parse_lenient),
        tokens_reserved: tokens.tokens_reserved.0.unwrap_or(0),
        total: count(names.total),
        ran: ran.fold(0, u64::saturating_add),
        cancelled: count(names.cancelled).unwrap_or(0),
        pending: names.pending.and_then(count).unwrap_or(0),
        items: parse_items(answer, field("results"), names)?,
        summary: summary(&fields),
    })
}

fn parse_items(
    answer: &Answer,
    results: Option<&str>,
    names: &Names,
) -> Result<Option<Vec<Item>>, ApiError> {
    let Some(results) = results else { return Ok(None) };
    let results: Option<Vec<&RawValue>> = serde_json::from_str(results)
        .map_err(|_| answer.unreadable("the answer's `results` is not an array"))?;
    let Some(results) = results else { return Ok(None) };
    // An item without its key cannot be told from its neighbours. Leaving it out would make the
    // job look incomplete for ever, so the page is refused.
    let item = |(position, raw): (usize, &&RawValue)| {
        parse_item(&answer.key, raw, names).ok_or_else(|| {
            answer.unreadable(&format!("entry {position} of the answer's `results` has no key"))
        })
    };
    results.iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
}

fn parse_item(key: &ApiKey, raw: &RawValue, names: &Names) -> Option<Item> {
    let fields: ItemFields = parse_object(raw)?;
    let item_key = (names.item_key)(&fields)?;
    let code = fields.error_code.as_deref().filter(|code| !code.is_empty());
    let message = fields.error_message.as_deref().filter(|message| !message.is_empty());
    let error = (code.is_some() || message.is_some()).then(|| {
        let code = code.unwrap_or(NO_CODE);
        job_error(key, code, message.unwrap_or_default(), item_code_is_retryable(code))
    });
    Some(Item {
        key: item_key,
        url: fields.url.0.unwrap_or_default(),
        status: fields.status.0.unwrap_or_default(),
        error,
        raw: RawJson(raw.get().into()),
    })
}

/// The answer without its `results`; every value stays as it came.
fn summary(fields: &Fields<'_>) -> RawJson {
    let fields = fields.0.iter().filter(|(name, _)| name != "results").map(|(name, raw)| {
        // A text is always writable as JSON, so the key is never empty here.
        let name = serde_json::to_string(name).unwrap_or_default();
        format!("{name}:{}", raw.get())
    });
    let fields = fields.collect::<Vec<_>>().join(",");
    RawJson(format!("{{{fields}}}").into_boxed_str())
}

#[cfg(test)]
mod tests;
