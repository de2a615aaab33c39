//! What a job was asked for, as the platform's own answer tells it.
//!
//! A request that cannot be made exactly so again is none: nobody pays for something else.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::request::{FetchOptions, Format, JobRequest};

/// The only sort of proxy that we ask for: the platform's default.
const PROXY_TYPE: &str = "residential";

/// Options as the platform shows them; everything may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown {
    url: Option<String>,
    formats: Option<Vec<Format>>,
    render_js: Option<bool>,
    proxy: Option<Proxy>,
    headers: Option<Map<String, Value>>,
    wait_config: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Proxy {
    country: Option<String>,
    r#type: Option<String>,
}

impl Shown {
    /// The options; `None` where there are some that we cannot ask for.
    fn options(&self) -> Option<FetchOptions> {
        let is_set = |map: &Option<Map<String, Value>>| {
            map.iter().flatten().any(|(_, value)| !value.is_null())
        };
        let proxy = self.proxy.as_ref();
        let is_ours = proxy.and_then(|it| it.r#type.as_deref()).is_none_or(|it| it == PROXY_TYPE);
        if is_set(&self.headers) || is_set(&self.wait_config) || !is_ours {
            return None;
        }
        Some(FetchOptions {
            formats: self.formats.clone().unwrap_or_default(),
            render_js: self.render_js?,
            proxy_country: proxy.and_then(|proxy| proxy.country.clone()),
        })
    }
}

#[derive(Deserialize)]
struct ExtractAnswer {
    metadata: Shown,
}

/// The request that made an extract job, by the job's answer; `None` where the answer does not tell,
/// as it need not for a job that failed.
pub fn extract_request(answer: &str) -> Option<JobRequest> {
    let ExtractAnswer { metadata } = serde_json::from_str(answer).ok()?;
    JobRequest::extract(metadata.url.as_deref()?, metadata.options()?).ok()
}

#[derive(Deserialize)]
struct ParentAnswer {
    #[serde(alias = "crawl_config")]
    batch_config: Shown,
}

/// The options of a batch's or crawl's items, by the parent's answer; `None` where it does not tell.
pub fn parent_options(answer: &RawValue) -> Option<FetchOptions> {
    serde_json::from_str::<ParentAnswer>(answer.get()).ok()?.batch_config.options()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extract(metadata: &Value) -> Option<JobRequest> {
        extract_request(&json!({ "job_id": "j", "metadata": metadata }).to_string())
    }

    fn parent(answer: &Value) -> Option<FetchOptions> {
        parent_options(&RawValue::from_string(answer.to_string()).unwrap())
    }

    #[test]
    fn a_request_is_read_from_the_answer() {
        let metadata = json!({
            "url": "https://example.com/a", "render_js": true, "formats": ["markdown"],
            "processing_mode": "async", "http_status": null, "headers": null, "wait_config": {},
            "proxy": { "type": "residential", "country": "DE" },
        });
        let options = FetchOptions {
            formats: vec![Format::Markdown],
            render_js: true,
            proxy_country: Some("DE".to_owned()),
        };
        let request = JobRequest::extract("https://example.com/a", options.clone()).unwrap();
        assert_eq!(extract(&metadata), Some(request));
        for name in ["batch_config", "crawl_config"] {
            assert_eq!(
                parent(&json!({ "status": "completed", name: metadata })),
                Some(options.clone())
            );
        }
    }

    #[test]
    fn what_cannot_be_asked_for_so_again_is_no_request() {
        let plain = json!({ "url": "https://example.com/a", "render_js": false, "formats": [] });
        assert!(extract(&plain).is_some());
        for (field, value) in [
            ("url", Value::Null),
            ("url", json!("example.com")),
            ("render_js", Value::Null),
            ("formats", json!(["pdf"])),
            ("formats", json!("html")),
            ("proxy", json!({ "type": "datacenter" })),
            ("headers", json!({ "cookie": "a" })),
            ("wait_config", json!({ "wait_for": "#main" })),
        ] {
            let mut metadata = plain.clone();
            metadata[field] = value.clone();
            assert_eq!(extract(&metadata), None, "{field}: {value}");
        }
        assert_eq!(extract(&Value::Null), None);
        assert_eq!(extract_request("{}"), None);
        assert_eq!(extract_request("<html>"), None);
        assert_eq!(parent(&json!({ "status": "completed" })), None);
    }
}
