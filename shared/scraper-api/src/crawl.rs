//! Crawls: a site, followed from a seed.

use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiError, PageRequest, ParentPage, SubmitError};
use domain::request::{FetchOptions, Format};
use serde::Serialize;

use crate::client::ScraperApi;
use crate::parent::{ItemFields, Names, page_call, parse_parent};
use crate::submission::{Proxy, proxy_of};

/// Counters and keys of a crawl. `total_pages` counts pages discovered so far.
pub(crate) const NAMES: Names = Names {
    total: "total_pages",
    ran: ["completed_pages", "failed_pages"],
    cancelled: "cancelled_pages",
    pending: None,
    item_key,
};

/// What a crawl is asked to do.
#[derive(Serialize)]
pub(crate) struct CrawlBody<'a> {
    url: &'a str,
    depth: u32,
    limit: u32,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    formats: &'a [Format],
    render_js: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<Proxy<'a>>,
}

impl<'a> CrawlBody<'a> {
    pub(crate) fn new(url: &'a str, options: &'a FetchOptions, depth: u32, limit: u32) -> Self {
        Self {
            url,
            depth,
            limit,
            formats: &options.formats,
            render_js: options.render_js,
            proxy: proxy_of(options),
        }
    }
}

impl ScraperApi {
    pub(crate) async fn read_crawl(
        &self,
        job_id: &JobId,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        let path = ["v1", "crawl", job_id.as_str()];
        let answer = self.send(page_call(&path, page), within).await?;
        parse_parent(&answer, job_id, &NAMES)
    }

    pub(crate) async fn submit_crawl(
        &self,
        body: &CrawlBody<'_>,
        within: Duration,
    ) -> Result<JobId, SubmitError> {
        self.submit_body(&["v1", "crawl"], body, within).await
    }
}

fn item_key(item: &ItemFields) -> Option<String> {
    item.url.0.clone()
}
