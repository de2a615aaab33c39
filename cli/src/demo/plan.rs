//! What the demo submits: four fifths extract jobs, the rest batches and crawls.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::intent::Submission;
use domain::request::{FetchOptions, Format, JobRequest};

use super::{DemoOptions, RUN};

/// Of a hundred jobs, how many are batches and how many are crawls.
const BATCHES: u64 = 15;
const CRAWLS: u64 = 5;
/// Sizes of a batch, in URLs.
const BATCH_URLS: (u64, u64) = (2, 50);
/// Sizes of a crawl, in pages.
const CRAWL_PAGES: (u64, u64) = (5, 200);
/// One job in so many is submitted past Gleaner.
const FOREIGN_SHARE: u32 = 25;

/// A small, seeded generator (SplitMix64): the plan depends on the seed alone.
pub(super) struct Dice(AtomicU64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn roll(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of this range, both ends included.
    pub(super) fn between(&self, (low, high): (u64, u64)) -> u64 {
        low + self.roll() % (high - low + 1)
    }
}

/// The submissions, in order. Every URL of a plan is its own.
pub(super) fn plan(options: &DemoOptions) -> Vec<Submission> {
    let dice = Dice::new(options.seed);
    (0..u64::from(options.jobs))
        .filter_map(|position| {
            let request = request(&dice, options.seed, position)?;
            let reference = Some(format!("demo-{position}"));
            Some(Submission { run: RUN.to_owned(), position, request, reference })
        })
        .collect()
}

fn request(dice: &Dice, seed: u64, position: u64) -> Option<JobRequest> {
    let fetch =
        FetchOptions { formats: vec![Format::Html, Format::Markdown], ..FetchOptions::default() };
    let share = dice.roll() % 100;
    let request = if share < CRAWLS {
        let pages = dice.between(CRAWL_PAGES);
        let url = format!("https://site-{position}.demo.example/{seed}/?pages={pages}");
        JobRequest::crawl(&url, fetch, 3, u32::try_from(pages).ok()?)
    } else if share < CRAWLS + BATCHES {
        let urls: Vec<_> = (0..dice.between(BATCH_URLS))
            .map(|item| format!("https://demo.example/{seed}/batch-{position}/{item}"))
            .collect();
        JobRequest::batch(urls.iter().map(String::as_str), fetch)
    } else {
        JobRequest::extract(&format!("https://demo.example/{seed}/page-{position}"), fetch)
    };
    request.ok()
}

/// The URLs of the jobs that Gleaner is told of by webhooks alone.
pub(super) fn foreign_urls(options: &DemoOptions) -> Vec<String> {
    (0..options.jobs / FOREIGN_SHARE)
        .map(|position| format!("https://elsewhere.example/{}/{position}", options.seed))
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::job::Kind;

    use super::*;

    fn options(seed: u64) -> DemoOptions {
        DemoOptions { seed, ..DemoOptions::calm(2_000) }
    }

    #[test]
    fn the_plan_follows_the_seed_and_the_shares() {
        let plan_1 = plan(&options(1));
        assert_eq!(plan_1, plan(&options(1)));
        assert_ne!(plan_1, plan(&options(2)));
        let count = |kind| plan_1.iter().filter(|job| job.request.kind() == kind).count();
        assert_eq!(plan_1.len(), 2_000);
        assert!((1_500..1_700).contains(&count(Kind::Extract)));
        assert!((230..370).contains(&count(Kind::Batch)));
        assert!((60..140).contains(&count(Kind::Crawl)));
    }
}
