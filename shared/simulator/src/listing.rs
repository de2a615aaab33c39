//! GET …/jobs: filtered, paged, newest first, and lying when told to.

use serde_json::{Value, json};

use crate::answer::{Answer, Problem};
use crate::dice::Key;
use crate::job::{Format, Job, Kind, Status};
use crate::moment::Moment;
use crate::platform::Platform;
use crate::query::{Paging, Query};

/// Largest and default page of a job list (contract 1.12).
const PAGE_SIZE_MAX: u64 = 100;

/// Farthest that a shifting page starts off its place, in items.
const SHIFT_MAX: usize = 5;

/// Which jobs a list call asks for, beyond the date range.
struct Filter<'a> {
    job_id: Option<String>,
    url: Option<&'a str>,
    status: Option<Status>,
    output: Option<Format>,
}

impl Filter<'_> {
    fn is_open(&self) -> bool {
        let Self { job_id, url, status, output } = self;
        job_id.is_none() && url.is_none() && status.is_none() && output.is_none()
    }

    fn admits(&self, job: &Job, now: Moment) -> bool {
        self.job_id.as_ref().is_none_or(|id| *job.id == **id)
            && self.url.is_none_or(|part| job.url().contains(part))
            && self.status.is_none_or(|status| job.status(now) == status)
            && self.output.is_none_or(|output| job.options.formats.contains(&output))
    }
}

impl Platform {
    /// Answers the job list of a kind. `request` draws the lies.
    pub(crate) fn list_jobs(
        &mut self,
        kind: Kind,
        query: &Query,
        request: Key,
    ) -> Result<Answer, Vec<Problem>> {
        let paging = query.paging(PAGE_SIZE_MAX, PAGE_SIZE_MAX)?;
        let start = query.date("start_date")?;
        let end = query.date("end_date")?;
        // Each kind knows its own filters; others are ignored as unknown parameters are.
        let filter = Filter {
            job_id: query
                .get("job_id")
                .filter(|_| kind == Kind::Extract)
                .map(str::to_ascii_lowercase),
            url: query.get("url").filter(|_| kind != Kind::Batch),
            status: query.choice("status", Status::parse)?,
            output: match kind {
                Kind::Extract => query.choice("output", Format::parse)?,
                Kind::Batch | Kind::Crawl => None,
            },
        };
        let range = self.listed(kind, start, end);
        let offset = self.shifted(paging, request);
        let (page, total) = if filter.is_open() {
            let page = range.iter().rev().skip(offset).take(paging.len()).copied().collect();
            (page, range.len())
        } else {
            self.scan(range, &filter, offset, paging)
        };
        let jobs: Vec<Value> = page
            .iter()
            .filter_map(|ordinal| self.job(*ordinal))
            .map(|job| self.list_item_json(job))
            .collect();
        let mut answer = json!({
            "jobs": jobs, "page": paging.page, "page_size": paging.size,
            "page_count": paging.count(total),
        });
        self.lie(kind, request, &mut answer);
        Ok(Answer::json(200, answer))
    }

    /// Finds the jobs of a kind that are in the list by now, within a range of creation.
    fn listed(&self, kind: Kind, start: Option<Moment>, end: Option<Moment>) -> &[u32] {
        let Some(all) = self.by_kind.get(&kind) else { return &[] };
        let newest = self.now.minus(self.list_lag());
        let newest = end.map_or(newest, |end| end.min(newest));
        let created =
            |ordinal: &u32| self.job(*ordinal).map_or(Moment::NEVER, |job| job.created_at);
        let from = start.map_or(0, |start| all.partition_point(|o| created(o) < start));
        let to = all.partition_point(|ordinal| created(ordinal) <= newest);
        all.get(from..to.max(from)).unwrap_or(&[])
    }

    fn scan(
        &self,
        range: &[u32],
        filter: &Filter<'_>,
        offset: usize,
        paging: Paging,
    ) -> (Vec<u32>, usize) {
        let mut page = Vec::new();
        let mut total = 0_usize;
        for ordinal in range.iter().rev() {
            if self.job(*ordinal).is_some_and(|job| filter.admits(job, self.now)) {
                if total >= offset && page.len() < paging.len() {
                    page.push(*ordinal);
                }
                total += 1;
            }
        }
        (page, total)
    }

    fn shifted(&self, paging: Paging, request: Key) -> usize {
        let offset = paging.offset();
        if !self.dice.happens("shift", request, self.config.faults.lists.shifting_pages) {
            return offset;
        }
        let shift = 1 + self.dice.index("shift_by", request, SHIFT_MAX);
        if self.dice.happens("shift_back", request, 0.5) {
            offset.saturating_sub(shift)
        } else {
            offset.saturating_add(shift)
        }
    }

    fn lie(&self, kind: Kind, request: Key, answer: &mut Value) {
        let lists = &self.config.faults.lists;
        let count = answer.get("page_count").and_then(Value::as_u64).unwrap_or(0);
        let mut set = |name: &str, value: Value| {
            if let Some(fields) = answer.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        };
        if kind == Kind::Extract {
            let capped = self.dice.happens("capped", request, lists.capped);
            set("is_capped", json!(capped));
            if capped {
                set("page_count", json!(count.div_ceil(2)));
            }
        }
        if self.dice.happens("lying_page_count", request, lists.lying_page_count) {
            let lies = [0, count / 2, count.saturating_mul(3).saturating_add(7)];
            let chosen = self.dice.index("lie", request, lies.len());
            set("page_count", json!(lies.get(chosen)));
        }
    }
}
