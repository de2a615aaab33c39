//! Reads the bodies of job-creating calls.

use serde_json::{Map, Value, json};

use crate::answer::Problem;
use crate::job::{Format, Options};

/// Most URLs of one batch (contract 1.5).
pub(crate) const BATCH_URLS_MAX: usize = 1_000;
/// Most pages of one crawl (contract 1.6).
const CRAWL_LIMIT_MAX: u64 = 10_000;
/// Deepest crawl (contract 1.6).
const CRAWL_DEPTH_MAX: u64 = 10;
/// Longest `wait_for`, in characters (contract 1.4).
const WAIT_FOR_CHARS_MAX: usize = 4_096;
/// Longest `wait_timeout`, in milliseconds (contract 1.4).
const WAIT_TIMEOUT_MS_MAX: u64 = 30_000;
/// Shortest budget of a synchronous extraction, in milliseconds (contract 1.4).
const TIMEOUT_MS_MIN: u64 = 1_000;

/// Body of POST /v1/extract.
pub(crate) struct ExtractRequest {
    pub(crate) url: String,
    pub(crate) is_async: bool,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) options: Options,
}

/// Body of POST /v1/batch.
pub(crate) struct BatchRequest {
    pub(crate) urls: Vec<String>,
    pub(crate) ignore_invalid_urls: bool,
    pub(crate) options: Options,
}

/// Body of POST /v1/crawl.
pub(crate) struct CrawlRequest {
    pub(crate) url: String,
    pub(crate) depth: u32,
    pub(crate) limit: u32,
    pub(crate) options: Options,
}

/// Says whether the platform can fetch a URL.
pub(crate) fn is_fetchable(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// The fields of a JSON object, with all rules that they break.
pub(crate) struct Fields {
    map: Map<String, Value>,
    problems: Vec<Problem>,
}

impl Fields {
    /// Reads a body; anything but a JSON object breaks a rule at once.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Vec<Problem>> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Self { map, problems: Vec::new() }),
            Ok(_) => Err(vec![Problem {
                place: vec![json!("body")],
                message: "Input should be a valid dictionary".to_owned(),
                rule: "model_attributes_type",
            }]),
            Err(error) => Err(vec![Problem {
                place: vec![json!("body"), json!(error.column())],
                message: "JSON decode error".to_owned(),
                rule: "json_invalid",
            }]),
        }
    }

    /// Ends the reading.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    fn break_rule(&mut self, name: &str, rule: &'static str, message: &str) {
        self.problems.push(Problem::body(name, rule, message));
    }

    /// Reads a required text of at least one character.
    pub(crate) fn text(&mut self, name: &str) -> String {
        match self.map.get(name) {
            Some(Value::String(text)) if !text.is_empty() => return text.clone(),
            Some(Value::String(_)) => {
                self.break_rule(
                    name,
                    "string_too_short",
                    "String should have at least 1 character",
                );
            }
            Some(_) => self.break_rule(name, "string_type", "Input should be a valid string"),
            None => self.break_rule(name, "missing", "Field required"),
        }
        String::new()
    }

    /// Reads an optional text; null counts as absent.
    pub(crate) fn optional_text(&mut self, name: &str) -> Option<String> {
        match self.map.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            None | Some(Value::Null) => None,
            Some(_) => {
                self.break_rule(name, "string_type", "Input should be a valid string");
                None
            }
        }
    }

    /// Reads a switch; null counts as absent.
    pub(crate) fn switch(&mut self, name: &str) -> Option<bool> {
        match self.map.get(name) {
            Some(Value::Bool(value)) => Some(*value),
            None | Some(Value::Null) => None,
            Some(_) => {
                self.break_rule(name, "bool_type", "Input should be a valid boolean");
                None
            }
        }
    }

    fn number(&mut self, name: &str, min: u64, max: u64) -> Option<u64> {
        match self.map.get(name) {
            None | Some(Value::Null) => return None,
            Some(value) => match value.as_u64() {
                Some(number) if (min..=max).contains(&number) => return Some(number),
                _ => {}
            },
        }
        self.break_rule(
            name,
            "int_range",
            &format!("Input should be an integer from {min} to {max}"),
        );
        None
    }

    fn one_of(&mut self, name: &str, allowed: &[&str]) -> Option<String> {
        let text = self.optional_text(name)?;
        if !allowed.contains(&text.as_str()) {
            self.break_rule(name, "enum", &format!("Input should be one of {allowed:?}"));
            return None;
        }
        Some(text)
    }

    fn formats(&mut self, default: Format) -> Vec<Format> {
        let formats = match self.map.get("formats") {
            None | Some(Value::Null) => return vec![default],
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().and_then(Format::parse))
                .collect::<Option<Vec<_>>>(),
            Some(_) => None,
        };
        formats.unwrap_or_else(|| {
            self.break_rule("formats", "enum", "Input should be a list of 'markdown' and 'html'");
            Vec::new()
        })
    }

    fn proxy(&mut self) -> Value {
        let Some(value) = self.map.get("proxy").filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        let kind = value.get("type").filter(|kind| !kind.is_null());
        let kind_is_known = kind
            .is_none_or(|kind| matches!(kind.as_str(), Some("datacenter" | "residential" | "mix")));
        let country = value.get("country").filter(|country| !country.is_null());
        let country_is_valid = country.is_none_or(|country| {
            country.as_str().is_some_and(|code| {
                code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase())
            })
        });
        let proxy = json!({ "type": kind.cloned().unwrap_or(json!("residential")),
                            "country": country });
        if !value.is_object() || !kind_is_known || !country_is_valid {
            self.break_rule(
                "proxy",
                "proxy",
                "Input should have a known type and a country like 'DE'",
            );
        }
        proxy
    }

    fn headers(&mut self) -> Value {
        match self.map.get("headers") {
            None | Some(Value::Null) => Value::Null,
            Some(Value::Object(headers)) if headers.values().all(Value::is_string) => {
                Value::Object(headers.clone())
            }
            Some(_) => {
                self.break_rule("headers", "dict_type", "Input should map names to strings");
                Value::Null
            }
        }
    }

    fn wait_config(&mut self) -> Value {
        let Some(value) = self.map.get("wait_config").filter(|value| !value.is_null()).cloned()
        else {
            return Value::Null;
        };
        let allowed = |name: &str, valid: &dyn Fn(&Value) -> bool| {
            value.get(name).is_none_or(|part| part.is_null() || valid(part))
        };
        let is_valid = value.is_object()
            && allowed("wait_until", &|part| {
                matches!(
                    part.as_str(),
                    Some("commit" | "domcontentloaded" | "load" | "networkidle")
                )
            })
            && allowed("wait_for", &|part| {
                part.as_str().is_some_and(|text| text.chars().count() <= WAIT_FOR_CHARS_MAX)
            })
            && allowed("wait_timeout", &|part| {
                part.as_u64().is_some_and(|millis| millis <= WAIT_TIMEOUT_MS_MAX)
            });
        if !is_valid {
            self.break_rule(
                "wait_config",
                "wait_config",
                "Input should be a valid wait configuration",
            );
        }
        value
    }

    fn options(&mut self, default: Format) -> Options {
        Options {
            formats: self.formats(default),
            render_js: self.switch("render_js").unwrap_or(false),
            headers: self.headers(),
            proxy: self.proxy(),
            wait_config: self.wait_config(),
            same_domain_only: self.switch("same_domain_only").unwrap_or(true),
            include_subdomains: self.switch("include_subdomains").unwrap_or(false),
        }
    }
}

impl ExtractRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Vec<Problem>> {
        let mut fields = Fields::read(body)?;
        let mode = fields.one_of("processing_mode", &["sync", "async"]);
        let request = Self {
            url: fields.text("url"),
            is_async: mode.as_deref() == Some("async"),
            timeout_ms: fields.number("timeout", TIMEOUT_MS_MIN, u64::MAX),
            options: fields.options(Format::Html),
        };
        fields.finish(request)
    }
}

impl BatchRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Vec<Problem>> {
        let mut fields = Fields::read(body)?;
        let urls = match fields.map.get("urls") {
            Some(Value::Array(items)) if (1..=BATCH_URLS_MAX).contains(&items.len()) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let urls = urls.unwrap_or_else(|| {
            fields.break_rule("urls", "list_length", "Input should be a list of 1 to 1000 strings");
            Vec::new()
        });
        let request = Self {
            urls,
            ignore_invalid_urls: fields.switch("ignore_invalid_urls").unwrap_or(true),
            options: fields.options(Format::Markdown),
        };
        fields.finish(request)
    }
}

impl CrawlRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Vec<Problem>> {
        let mut fields = Fields::read(body)?;
        let depth = fields.number("depth", 1, CRAWL_DEPTH_MAX).unwrap_or(2);
        let limit = fields.number("limit", 1, CRAWL_LIMIT_MAX).unwrap_or(50);
        let request = Self {
            url: fields.text("url"),
            depth: u32::try_from(depth).unwrap_or(1),
            limit: u32::try_from(limit).unwrap_or(1),
            options: fields.options(Format::Markdown),
        };
        fields.finish(request)
    }
}
