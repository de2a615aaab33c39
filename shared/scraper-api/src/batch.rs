//! Batches: up to 1,000 URLs in one job.

use std::time::Duration;

use domain::job::JobId;
use domain::ports::{ApiError, PageRequest, ParentPage, SubmitError};
use domain::request::{FetchOptions, Format};
use serde::Serialize;

use crate::client::ScraperApi;
use crate::parent::{ItemFields, Names, page_call, parse_parent};
use crate::submission::{Proxy, proxy_of};

/// Counters and keys of a batch.
pub(crate) const NAMES: Names = Names {
    total: "total_urls",
    ran: ["completed_urls", "failed_urls"],
    cancelled: "cancelled_urls",
    pending: Some("pending_urls"),
    item_key,
};

#[derive(Serialize)]
struct BatchBody<'a> {
    urls: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    formats: &'a [Format],
    render_js: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<Proxy<'a>>,
}

impl ScraperApi {
    pub(crate) async fn read_batch(
        &self,
        job_id: &JobId,
        page: PageRequest,
        within: Duration,
    ) -> Result<ParentPage, ApiError> {
        let path = ["v1", "batch", job_id.as_str()];
        let answer = self.send(page_call(&path, page), within).await?;
        parse_parent(&answer, job_id, &NAMES)
    }

    pub(crate) async fn submit_batch(
        &self,
        urls: &[String],
        options: &FetchOptions,
        within: Duration,
    ) -> Result<JobId, SubmitError> {
        let body = BatchBody {
            urls,
            formats: &options.formats,
            render_js: options.render_js,
            proxy: proxy_of(options),
        };
        self.submit_body(&["v1", "batch"], &body, within).await
    }
}

fn item_key(item: &ItemFields) -> Option<String> {
    item.input_index.0.map(|index| index.to_string())
}
