use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::redacted::Redacted;

/// Largest answer read, in bytes after decompression. Default; a page of 50 items of 1 MiB fits.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024; // 64 MiB
/// Longest wait for a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Below the idle time-outs of common front doors (60 s
/// at AWS load balancers, 75 s at nginx), with room for smaller ones.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest `Retry-After` that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// Longest wait for the body of an error, whose status is known already.
const ERROR_BODY_WITHIN: Duration = Duration::from_secs(2);
/// Longest API key, in bytes; a longer text is a file or a command line pasted by mistake.
const API_KEY_BYTES_MAX: usize = 1_024;

/// The account's API key.
#[derive(Debug, Clone)]
pub struct ApiKey(Redacted<Box<str>>);

/// Why a text is not an API key. Never contains any of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// Nothing but white space.
    #[error("the API key is empty; set it to the value that the platform's dashboard shows")]
    Empty,
    /// Too long for a key.
    #[error("the API key is longer than {API_KEY_BYTES_MAX} bytes")]
    TooLong,
    /// It could not be sent in a header.
    #[error("the API key may hold visible ASCII characters only")]
    Character,
}

impl ApiKey {
    /// Reads a key; white space around it, as files and consoles append, is dropped.
    ///
    /// # Errors
    /// Names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, ApiKeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ApiKeyError::Empty);
        }
        if text.len() > API_KEY_BYTES_MAX {
            return Err(ApiKeyError::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ApiKeyError::Character);
        }
        Ok(Self(Redacted::new(text.into())))
    }

    /// The key as a header that neither logs nor `Debug` show.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::from_str(self.0.expose()).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The text with every occurrence of the key blotted out.
    pub(crate) fn blot(&self, text: &str) -> String {
        text.replace(&**self.0.expose(), "[redacted]")
    }
}

/// How the API is reached. Fields are the tunable bounds.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) base_url: Url,
    pub(crate) key: Option<ApiKey>,
    /// Largest answer read, in bytes after decompression.
    pub body_bytes_max: usize,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept.
    pub pool_idle_timeout: Duration,
    /// Longest `Retry-After` that is believed.
    pub retry_after_max: Duration,
    /// Longest wait for the body of an error, whose status is known already.
    pub error_body_within: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The base URL cannot be used.
    #[error(
        "the API's base URL must be an absolute http or https URL without user, query or fragment, such as `https://scraper.geonode.io`"
    )]
    BaseUrl,
    /// TLS or its root certificates are not to be had.
    #[error("the HTTP client could not be set up; check the system's root certificates")]
    Client(#[source] reqwest::Error),
}

impl Config {
    /// The defaults for a base URL and a key. A path in the URL is kept as a prefix. Without a key
    /// every call is `Denied` and nothing is sent, until one is set.
    ///
    /// # Errors
    /// [`BuildError::BaseUrl`].
    pub fn new(base_url: &str, key: impl Into<Option<ApiKey>>) -> Result<Self, BuildError> {
        let base_url = Url::parse(base_url.trim()).map_err(|_| BuildError::BaseUrl)?;
        let is_usable = matches!(base_url.scheme(), "http" | "https")
            && base_url.has_host()
            && base_url.username().is_empty()
            && base_url.password().is_none()
            && base_url.query().is_none()
            && base_url.fragment().is_none();
        if !is_usable {
            return Err(BuildError::BaseUrl);
        }
        Ok(Self {
            base_url,
            key: key.into(),
            body_bytes_max: BODY_BYTES_MAX,
            connect_timeout: CONNECT_TIMEOUT,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            retry_after_max: RETRY_AFTER_MAX,
            error_body_within: ERROR_BODY_WITHIN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_trimmed_and_checked() {
        assert!(ApiKey::parse(" key-1\n").is_ok());
        for (text, error) in [
            ("", ApiKeyError::Empty),
            (" \n", ApiKeyError::Empty),
            ("a b", ApiKeyError::Character),
            ("schlüssel", ApiKeyError::Character),
            (&"k".repeat(1_025), ApiKeyError::TooLong),
        ] {
            assert_eq!(ApiKey::parse(text).map(drop), Err(error), "{text}");
        }
    }

    #[test]
    fn base_urls_are_checked() {
        let key = || ApiKey::parse("key-1").unwrap();
        for text in ["https://scraper.geonode.io", "http://127.0.0.1:8080/prefix/"] {
            assert!(Config::new(text, key()).is_ok(), "{text}");
        }
        for text in
            ["", "scraper.geonode.io", "ftp://a.b", "https://u:p@a.b", "https://a.b/?x=1", "data:x"]
        {
            assert!(matches!(Config::new(text, key()), Err(BuildError::BaseUrl)), "{text}");
        }
    }
}
