//! How jobs look in answers, lists and events.

use serde_json::{Map, Value, json};

use crate::answer::error_json;
use crate::children::Children;
use crate::content::result_text;
use crate::dice::Key;
use crate::fate::Span;
use crate::job::{Format, Job, Kind, Options, Status, Work};
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::Paging;

impl Platform {
    /// Makes the answer to a GET of one job; `paging` is about the parts of a batch or crawl.
    pub(crate) fn job_json(&self, job: &Job, paging: Paging) -> Value {
        match &job.work {
            Work::Extract { span, .. } => self.extract_json(job, span),
            Work::Batch { invalid, children, .. } => {
                let mut answer = self.parent_json(job, "urls");
                answer.insert("batch_config".to_owned(), batch_config(&job.options));
                answer.insert("invalid_urls".to_owned(), json!(invalid));
                answer.insert("results".to_owned(), self.batch_results(job, children, paging));
                Value::Object(answer)
            }
            Work::Crawl { url, children, .. } => {
                let mut answer = self.parent_json(job, "pages");
                answer.insert("url".to_owned(), json!(url));
                answer.insert("crawl_config".to_owned(), crawl_config(&job.options));
                answer.insert("results".to_owned(), self.crawl_results(job, children, paging));
                Value::Object(answer)
            }
        }
    }

    /// Makes the `data` of an event: the whole job of an extraction, a summary of the others.
    pub(crate) fn event_json(&self, job: &Job) -> Value {
        match &job.work {
            Work::Extract { span, .. } => self.extract_json(job, span),
            Work::Batch { .. } => Value::Object(self.parent_json(job, "urls")),
            Work::Crawl { url, .. } => {
                let mut summary = self.parent_json(job, "pages");
                summary.insert("url".to_owned(), json!(url));
                Value::Object(summary)
            }
        }
    }

    fn extract_json(&self, job: &Job, span: &Span) -> Value {
        let status = job.status(self.now);
        let (dice, faults) = (job.rules.dice, &job.rules.faults);
        let is_blank = dice.happens("null_fields", job.key, faults.null_fields);
        let done = status.is_terminal() && !is_blank;
        let failure = job.failure(self.now).filter(|_| done);
        let completed = status == Status::Completed && done;
        // A failed job's metadata may be null; here it is for every second one.
        let has_metadata = completed || (done && dice.happens("failed_metadata", job.key, 0.5));
        json!({
            "job_id": job.id,
            "status": status,
            "created_at": job.created_at,
            "completed_at": job.completed_at(self.now),
            "data": completed.then(|| self.data_json(job, job.key, job.url())),
            "metadata": has_metadata.then(|| metadata_json(job, span, completed)),
            "error": failure.map(error_json),
            "tokens_charged": status.is_terminal().then(|| u32::from(status == Status::Completed)),
        })
    }

    /// Makes the answer to a synchronous extraction that succeeded.
    pub(crate) fn sync_json(&self, key: Key, url: &str, options: &Options, span: &Span) -> Value {
        json!({
            "data": self.texts(&options.formats, &self.rules, key, url),
            "metadata": metadata_of(url, options, "sync", span, Some(200)),
            "tokens_charged": 1,
        })
    }

    fn data_json(&self, job: &Job, key: Key, url: &str) -> Value {
        self.texts(&job.options.formats, &job.rules, key, url)
    }

    fn texts(&self, formats: &[Format], rules: &crate::fate::Rules, key: Key, url: &str) -> Value {
        let text = |format: Format| {
            formats.contains(&format).then(|| result_text(&self.corpus, rules, key, url, format))
        };
        json!({ "html": text(Format::Html), "markdown": text(Format::Markdown) })
    }

    /// The fields that batches and crawls share; `noun` is the suffix of their counters.
    fn parent_json(&self, job: &Job, noun: &str) -> Map<String, Value> {
        let tally = job.tally(self.now);
        let mut answer = Map::new();
        let mut put = |name: &str, value: Value| answer.insert(name.to_owned(), value);
        put("job_id", json!(job.id));
        put("status", json!(job.status(self.now)));
        put("created_at", json!(job.created_at));
        put("completed_at", json!(job.completed_at(self.now)));
        put(
            "token_summary",
            json!({ "tokens_charged_total": tally.completed, "tokens_reserved": tally.reserved }),
        );
        for (word, count) in [
            ("total", tally.total),
            ("completed", tally.completed),
            ("failed", tally.failed),
            ("cancelled", tally.cancelled),
        ] {
            put(&format!("{word}_{noun}"), json!(count));
        }
        if job.kind() == Kind::Batch {
            put("pending_urls", json!(tally.pending));
        }
        answer
    }

    /// Collects one page of finished parts.
    fn finished(
        &self,
        job: &Job,
        children: &Children,
        paging: Paging,
        mut item: impl FnMut(u32, Map<String, Value>) -> Value,
    ) -> Value {
        let looks = (0..children.count).filter_map(|index| {
            let child = children.look(job.key, &job.rules, index, job.cancelled_at, self.now);
            child.state.finished().map(|(status, failure)| (index, child.span, status, failure))
        });
        let page = looks.skip(paging.offset()).take(paging.len());
        page.map(|(index, span, status, failure)| {
            let completed = status == "completed";
            let took = u64::try_from(span.ends.since(span.starts).as_millis()).unwrap_or(0);
            let mut fields = Map::new();
            let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
            put("status", json!(status));
            put("error_code", json!(failure.map(|failure| failure.code)));
            put("error_message", json!(failure.map(|failure| failure.message)));
            put(
                "metadata",
                json!({ "http_status": completed.then_some(200), "duration_ms": took,
                        "tokens_charged": u32::from(completed) }),
            );
            put("data", Value::Null);
            item(index, fields)
        })
        .collect()
    }

    fn batch_results(&self, job: &Job, children: &Children, paging: Paging) -> Value {
        self.finished(job, children, paging, |index, mut fields| {
            let (place, url) = job.batch_url(index);
            if fields.get("status") == Some(&json!("completed")) {
                let key = job.key.child(u64::from(index));
                fields.insert("data".to_owned(), self.data_json(job, key, url));
            }
            fields.insert("input_index".to_owned(), json!(place));
            fields.insert("url".to_owned(), json!(url));
            Value::Object(fields)
        })
    }

    fn crawl_results(&self, job: &Job, children: &Children, paging: Paging) -> Value {
        self.finished(job, children, paging, |index, mut fields| {
            let url = job.page_url(index);
            let (parent, depth) = children.place(job.key, &job.rules, index);
            if fields.get("status") == Some(&json!("completed")) {
                let key = job.key.child(u64::from(index));
                let links: Vec<String> =
                    children.links(index).map(|page| job.page_url(page)).collect();
                fields.insert("data".to_owned(), self.data_json(job, key, &url));
                fields.insert("links".to_owned(), json!(links));
            } else {
                fields.insert("links".to_owned(), Value::Null);
            }
            fields.insert("url".to_owned(), json!(url));
            fields.insert("depth".to_owned(), json!(depth));
            fields.insert("parent_url".to_owned(), json!(parent.map(|page| job.page_url(page))));
            Value::Object(fields)
        })
    }

    /// Makes a job's item in its list.
    pub(crate) fn list_item_json(&self, job: &Job) -> Value {
        let now = self.now;
        let completed_at: Option<Moment> = job.completed_at(now);
        let mut item = json!({
            "job_id": job.id, "status": job.status(now), "created_at": job.created_at,
        });
        let Some(fields) = item.as_object_mut() else { return item };
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        match &job.work {
            Work::Extract { url, .. } => {
                let took = completed_at.map(|at| at.since(job.created_at).as_millis());
                put("url", json!(url));
                put("execution_time", json!(took.and_then(|ms| u64::try_from(ms).ok())));
                put("output", json!(job.options.formats));
            }
            Work::Batch { urls, .. } => {
                let tally = job.tally(now);
                put("accepted_urls", json!(urls.len()));
                put("config", batch_config(&job.options));
                put("completed_urls", json!(tally.completed));
                put("failed_urls", json!(tally.failed));
                put("completed_at", json!(completed_at));
            }
            Work::Crawl { url, .. } => {
                let tally = job.tally(now);
                put("url", json!(url));
                put("config", crawl_config(&job.options));
                put("completed_pages", json!(tally.completed));
                put("failed_pages", json!(tally.failed));
                put("total_pages", json!(tally.total));
                put("completed_at", json!(completed_at));
            }
        }
        item
    }
}

fn metadata_json(job: &Job, span: &Span, completed: bool) -> Value {
    metadata_of(job.url(), &job.options, "async", span, completed.then_some(200))
}

fn metadata_of(
    url: &str,
    options: &Options,
    mode: &str,
    span: &Span,
    http_status: Option<u16>,
) -> Value {
    // The platform shows the URL that it fetched, which need not be the submitted text.
    let fetched = url::Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.to_string());
    json!({
        "url": fetched,
        "render_js": options.render_js,
        "formats": options.formats,
        "processing_mode": mode,
        "http_status": http_status,
        "duration_ms": u64::try_from(span.ends.since(span.starts).as_millis()).unwrap_or(0),
        "headers": options.headers,
        "proxy": options.proxy,
        "wait_config": options.wait_config,
    })
}

fn batch_config(options: &Options) -> Value {
    let proxy = match &options.proxy {
        Value::Null => json!({ "type": "residential", "country": null }),
        proxy => proxy.clone(),
    };
    json!({ "formats": options.formats, "proxy": proxy, "render_js": options.render_js,
            "headers": options.headers, "wait_config": options.wait_config })
}

fn crawl_config(options: &Options) -> Value {
    json!({ "formats": options.formats, "include_subdomains": options.include_subdomains,
            "render_js": options.render_js, "same_domain_only": options.same_domain_only,
            "proxy": options.proxy, "wait_config": options.wait_config })
}
