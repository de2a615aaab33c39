//! What we ask the platform for: the body of a paid POST, and what makes two of them the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::Kind;
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_URLS_MAX, CRAWL_DEPTH_MAX, CRAWL_PAGES_MAX, URL_BYTES_MAX,
};

/// The options that extract, batch and crawl share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetchOptions {
    /// `html`, `markdown`, or both; empty leaves the choice to the platform.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<Format>,
    /// Whether the page's scripts are run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub render_js: bool,
    /// Two capital letters: where the proxy stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_country: Option<String>,
}

/// A format that a result can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The page as it was served or rendered.
    Html,
    /// The page's content as Markdown.
    Markdown,
}

impl Format {
    /// The API's spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
        }
    }
}

/// A job that we ask for. Built by [`JobRequest::extract`] and its siblings, which validate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum JobRequest {
    /// One URL.
    Extract {
        /// The page.
        url: String,
        /// How it is fetched.
        options: FetchOptions,
    },
    /// Several URLs in one job.
    Batch {
        /// The pages, in order.
        urls: Vec<String>,
        /// How they are fetched.
        options: FetchOptions,
    },
    /// A site.
    Crawl {
        /// The seed.
        url: String,
        /// How the pages are fetched.
        options: FetchOptions,
        /// Levels, 1 = the seed only.
        depth: u32,
        /// Most pages.
        limit: u32,
    },
}

/// Why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Not an absolute `http` or `https` URL.
    #[error("`{url}` is not an absolute http or https URL")]
    Url {
        /// The text, cut to 80 characters.
        url: String,
    },
    /// The URL is too long.
    #[error("the URL has {bytes} bytes, at most {URL_BYTES_MAX} are allowed")]
    UrlTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The batch is empty or too large.
    #[error("a batch holds 1 to {BATCH_URLS_MAX} URLs, not {urls}")]
    BatchSize {
        /// How many there are.
        urls: usize,
    },
    /// The batch's URLs are too long together.
    #[error(
        "the URLs of one batch have at most {BATCH_BYTES_MAX} bytes together, not {bytes}; make \
         several batches"
    )]
    BatchBytes {
        /// Their length, as [`batch_bytes`] counts.
        bytes: usize,
    },
    /// The crawl's depth is out of range.
    #[error("a crawl's depth is 1 to {CRAWL_DEPTH_MAX}, not {depth}")]
    Depth {
        /// The depth asked for.
        depth: u32,
    },
    /// The crawl's page limit is out of range.
    #[error("a crawl's limit is 1 to {CRAWL_PAGES_MAX} pages, not {limit}")]
    Limit {
        /// The limit asked for.
        limit: u32,
    },
}

impl JobRequest {
    /// A request for one URL.
    ///
    /// # Errors
    /// When the URL is not absolute `http(s)` or too long.
    pub fn extract(url: &str, options: FetchOptions) -> Result<Self, RequestError> {
        Ok(Self::Extract { url: checked_url(url)?, options })
    }

    /// A request for several URLs in one job.
    ///
    /// # Errors
    /// When there are none or too many, when they are too long together, or when one of them is
    /// not usable.
    pub fn batch<'a>(
        urls: impl IntoIterator<Item = &'a str>,
        options: FetchOptions,
    ) -> Result<Self, RequestError> {
        let urls = urls.into_iter().map(checked_url).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() || urls.len() > BATCH_URLS_MAX {
            return Err(RequestError::BatchSize { urls: urls.len() });
        }
        let bytes = urls.iter().map(|url| batch_bytes(url)).fold(0, usize::saturating_add);
        if bytes > BATCH_BYTES_MAX {
            return Err(RequestError::BatchBytes { bytes });
        }
        Ok(Self::Batch { urls, options })
    }

    /// A request for a site.
    ///
    /// # Errors
    /// When the seed, the depth or the limit is not usable.
    pub fn crawl(
        url: &str,
        options: FetchOptions,
        depth: u32,
        limit: u32,
    ) -> Result<Self, RequestError> {
        if !(1..=CRAWL_DEPTH_MAX).contains(&depth) {
            return Err(RequestError::Depth { depth });
        }
        if !(1..=CRAWL_PAGES_MAX).contains(&limit) {
            return Err(RequestError::Limit { limit });
        }
        Ok(Self::Crawl { url: checked_url(url)?, options, depth, limit })
    }

    /// The kind of job that the request makes.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Extract { .. } => Kind::Extract,
            Self::Batch { .. } => Kind::Batch,
            Self::Crawl { .. } => Kind::Crawl,
        }
    }

    /// The options shared by all kinds.
    pub const fn options(&self) -> &FetchOptions {
        match self {
            Self::Extract { options, .. }
            | Self::Batch { options, .. }
            | Self::Crawl { options, .. } => options,
        }
    }

    /// The most that the job can cost, in tokens: one per page (docs/contract.md, "Tokens").
    pub fn tokens_max(&self) -> u64 {
        match self {
            Self::Extract { .. } => 1,
            Self::Batch { urls, .. } => u64::try_from(urls.len()).unwrap_or(u64::MAX),
            Self::Crawl { limit, .. } => u64::from(*limit),
        }
    }

    /// The seed of a crawl or the URL of an extract job.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Extract { url, .. } | Self::Crawl { url, .. } => Some(url),
            Self::Batch { .. } => None,
        }
    }

    /// SHA-256 over the canonical JSON form, in lower-case hex: equal requests, equal hashes.
    pub fn hash(&self) -> String {
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        hex::encode(Sha256::digest(canonical))
    }
}

/// What a URL takes of [`BATCH_BYTES_MAX`]: its length as a JSON string, and a comma.
pub fn batch_bytes(url: &str) -> usize {
    serde_json::to_string(url).map_or(usize::MAX, |json| json.len().saturating_add(1))
}

fn checked_url(text: &str) -> Result<String, RequestError> {
    let text = text.trim();
    if text.len() > URL_BYTES_MAX {
        return Err(RequestError::UrlTooLong { bytes: text.len() });
    }
    match normalised_url(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(RequestError::Url { url: text.chars().take(80).collect() }),
    }
}

/// A URL in the form in which two spellings of one address are equal; `None` if it is not an
/// absolute `http` or `https` URL. The fragment, which no server sees, is dropped.
pub fn normalised_url(text: &str) -> Option<String> {
    let mut url = url::Url::parse(text.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_in_normal_form() {
        assert_eq!(normalised_url("HTTP://Example.com"), normalised_url("http://example.com/#x"));
        assert_ne!(normalised_url("http://example.com/a"), normalised_url("http://example.com/A"));
        for text in ["", "example.com", "ftp://example.com/", "http://", "/a", "mailto:a@b.c"] {
            assert_eq!(normalised_url(text), None, "{text}");
        }
    }

    #[test]
    fn requests_are_validated() {
        let options = FetchOptions::default;
        let url = |count| vec!["https://example.com/"; count];
        assert!(JobRequest::batch(url(1_000), options()).is_ok());
        for count in [0, 1_001] {
            assert_eq!(
                JobRequest::batch(url(count), options()),
                Err(RequestError::BatchSize { urls: count })
            );
        }
        let crawl = |depth, limit| JobRequest::crawl("https://e.com/", options(), depth, limit);
        assert_eq!(crawl(0, 1), Err(RequestError::Depth { depth: 0 }));
        assert_eq!(crawl(11, 1), Err(RequestError::Depth { depth: 11 }));
        assert_eq!(crawl(1, 0), Err(RequestError::Limit { limit: 0 }));
        assert_eq!(crawl(1, 10_001), Err(RequestError::Limit { limit: 10_001 }));
        assert!(crawl(10, 10_000).is_ok());
    }

    /// A batch that is accepted fits the ledger's row with its longest names, whatever its URLs
    /// are made of.
    #[test]
    fn a_batch_that_is_accepted_fits_its_row() {
        let batch = |filling: &str, count| {
            let urls: Vec<_> = (10_000..10_000 + count)
                .map(|number| format!("https://example.com/?{filling}{number}"))
                .collect();
            JobRequest::batch(urls.iter().map(String::as_str), FetchOptions::default())
        };
        for filling in ["a".repeat(232), "\"".repeat(116), "\u{1}".repeat(38), "\u{e9}".repeat(116)]
        {
            let request = batch(&filling, 1_000).unwrap();
            let submission = crate::intent::Submission {
                run: "\u{1}".repeat(crate::limits::REF_BYTES_MAX),
                position: u64::MAX,
                request,
                reference: Some("\u{1}".repeat(crate::limits::REF_BYTES_MAX)),
            };
            let limits = crate::limits::Limits::default();
            let now = crate::time::Timestamp::MAX;
            let intent = crate::intent::Intent::open(&submission, "t".repeat(64), now, &limits);
            let bytes = serde_json::to_string(&intent).unwrap().len();
            assert!((250_000..300_000).contains(&bytes), "{bytes}");
        }
        let long = "a".repeat(450);
        let error = batch(&long, 1_000).unwrap_err();
        assert_eq!(error, RequestError::BatchBytes { bytes: 479_000 });
        assert_eq!(
            error.to_string(),
            "the URLs of one batch have at most 262144 bytes together, not 479000; make several \
             batches"
        );
        assert!(batch(&long, 547).is_ok());
        assert_eq!(batch(&long, 548), Err(RequestError::BatchBytes { bytes: 548 * 479 }));
    }

    #[test]
    fn the_hash_tells_requests_apart() {
        let plain = JobRequest::extract("https://e.com/", FetchOptions::default()).unwrap();
        let rendered = FetchOptions { render_js: true, ..FetchOptions::default() };
        let rendered = JobRequest::extract("https://e.com/", rendered).unwrap();
        assert_eq!(plain.hash(), plain.clone().hash());
        assert_ne!(plain.hash(), rendered.hash());
        assert_eq!(plain.hash().len(), 64);
    }
}
