//! What happens when a job is accepted: its whole course is laid out.

use std::sync::Arc;

use crate::children::{Children, Shape, fanout};
use crate::dice::Key;
use crate::fate::Fate;
use crate::job::{DeliveryBook, Job, Options, Progress, Work};
use crate::moment::Moment;
use crate::platform::{Platform, Todo};

/// Most pages of a crawl whose URL does not say how many it has.
const CRAWL_PAGES_DRAWN_MAX: usize = 60;

impl Platform {
    /// Accepts an extraction.
    pub(crate) fn accept_extract(&mut self, url: String, options: Options) -> u32 {
        let key = self.submission_key(Key::of(b"extract").with(Key::of(url.as_bytes())));
        let span = self.rules.span(key, self.now, true);
        self.accept(key, options, Work::Extract { url: url.into(), span }, None)
    }

    /// Accepts a batch of valid URLs with their places in the request.
    pub(crate) fn accept_batch(
        &mut self,
        urls: Vec<(u32, Box<str>)>,
        invalid: Vec<Box<str>>,
        options: Options,
    ) -> u32 {
        let list =
            urls.iter().fold(Key::of(b"batch"), |key, (_, url)| key.with(Key::of(url.as_bytes())));
        let key = self.submission_key(list);
        let count = u32::try_from(urls.len()).unwrap_or(u32::MAX);
        let (children, cancelled_at) = self.plan_children(key, count, Shape::List);
        let work = Work::Batch { urls: urls.into(), invalid: invalid.into(), children };
        self.accept(key, options, work, cancelled_at)
    }

    /// Accepts a crawl.
    pub(crate) fn accept_crawl(
        &mut self,
        url: String,
        depth: u32,
        limit: u32,
        options: Options,
    ) -> u32 {
        let key = self.submission_key(Key::of(b"crawl").with(Key::of(url.as_bytes())));
        let drawn = self.dice.index("pages", Key::of(url.as_bytes()), CRAWL_PAGES_DRAWN_MAX);
        let pages = pages_in_query(&url).unwrap_or(u32::try_from(drawn).unwrap_or(0) + 1);
        let count = if depth == 1 { 1 } else { pages.clamp(1, limit) };
        let shape = Shape::Tree { fanout: fanout(count, depth) };
        let (children, cancelled_at) = self.plan_children(key, count, shape);
        self.accept(key, options, Work::Crawl { url: url.into(), limit, children }, cancelled_at)
    }

    /// Lays out the children of a parent and whether the platform will cancel it by itself.
    fn plan_children(&self, key: Key, count: u32, shape: Shape) -> (Children, Option<Moment>) {
        let rules = &self.rules;
        let fate = rules.fate(key.with(Key::of(b"parent")), true);
        let never_settles = fate == Fate::NeverSettles;
        let mut children = Children::plan(key, rules, self.now, count, shape, never_settles);
        if fate != Fate::Cancelled {
            return (children, None);
        }
        let whole = children.ends.since(self.now);
        let at = self.now.plus(whole.mul_f64(self.dice.unit("cancelled_at", key)));
        if at >= children.ends {
            return (children, None);
        }
        children.cancel(key, rules, at);
        (children, Some(at))
    }

    fn accept(
        &mut self,
        key: Key,
        options: Options,
        work: Work,
        cancelled_at: Option<Moment>,
    ) -> u32 {
        let ordinal = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        let id: Box<str> = self.dice.uuid("job", key).into();
        let shared = self.jobs.last().filter(|last| *last.options == options);
        let options = shared.map_or_else(|| Arc::new(options), |last| Arc::clone(&last.options));
        let job = Job {
            ordinal,
            id: id.clone(),
            key,
            created_at: self.now,
            options,
            rules: Arc::clone(&self.rules),
            work,
            cancelled_at,
            answer_lost: false,
            progress: Progress::Open,
            holds_slot: true,
            deliveries: DeliveryBook::default(),
            gets: Vec::new(),
            gets_unlisted: 0,
            final_tally: None,
        };
        self.slots_in_use += 1;
        self.by_id.insert(id, ordinal);
        self.by_kind.entry(job.kind()).or_default().push(ordinal);
        self.schedule(job.ends_at(), Todo::End(ordinal));
        self.schedule(job.settled_at(), Todo::Settle(ordinal));
        if job.ends_at() == Moment::NEVER {
            let lease = self.config.scaled(self.config.work_lease_secs);
            self.schedule(self.now.plus(lease), Todo::ExpireLease(ordinal));
        }
        self.jobs.push(job);
        ordinal
    }
}

/// Reads `pages=N` from a seed URL, by which a test says how large the site is.
fn pages_in_query(url: &str) -> Option<u32> {
    let url = url::Url::parse(url).ok()?;
    url.query_pairs().find(|(name, _)| name == "pages").and_then(|(_, value)| value.parse().ok())
}
