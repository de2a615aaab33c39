//! What is sent: bodies of paid POSTs, and the query of a job list.

use domain::ports::ListQuery;
use domain::request::{FetchOptions, JobRequest};
use domain::time::Timestamp;
use serde_json::{Value, json};

/// The body of the POST that makes a job.
pub(super) fn body(request: &JobRequest) -> Value {
    match request {
        JobRequest::Extract { url, options } => {
            with_options(json!({ "url": url, "processing_mode": "async" }), options)
        }
        JobRequest::Batch { urls, options } => with_options(json!({ "urls": urls }), options),
        JobRequest::Crawl { url, options, depth, limit } => {
            with_options(json!({ "url": url, "depth": depth, "limit": limit }), options)
        }
    }
}

fn with_options(mut body: Value, options: &FetchOptions) -> Value {
    let formats = (!options.formats.is_empty()).then(|| json!(options.formats));
    let proxy = options.proxy_country.as_ref().map(|country| json!({ "country": country }));
    let options =
        [("render_js", Some(json!(options.render_js))), ("formats", formats), ("proxy", proxy)];
    if let Some(fields) = body.as_object_mut() {
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        fields.extend(given.map(|(name, value)| (name.to_owned(), value)));
    }
    body
}

/// The query of a page of a job list.
pub(super) fn list_query(query: &ListQuery) -> String {
    let dates = [("start_date", query.created_from), ("end_date", query.created_to)];
    let dates = dates.into_iter().filter_map(|(name, at)| Some(format!("&{name}={}", date(at?))));
    let dates: String = dates.collect();
    format!("page={}&page_size={}{dates}", query.page, query.page_size)
}

fn date(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
