//! Memory of large crawls: one of 10,000 pages, once in one go and once killed in the middle, and
//! eight at once.

mod proof;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use self::proof::Proof;
use crate::platform::Platform;
use crate::served::Served;
use crate::site::{Site, files, pause, until_stored};
use crate::table::markdown;

/// Pages of the large crawl: the platform's most.
const PAGES: u32 = 10_000;
/// Average bytes of one page's text.
const PAGE_BYTES: u32 = 50_000;
/// Items of one page of results: the platform's most.
const RESULT_PAGE: u32 = 50;
/// Crawls at once, and the pages of each.
const CRAWLS: u32 = 8;
const CRAWL_PAGES: u32 = 1_000;
/// Pages of results of a crawl of large pages, and the average bytes of each item.
const LARGE_PAGES: u32 = 200;
const LARGE_BYTES: u32 = 1_000_000;

/// What must hold: peak in MiB, calls for 10,000 pages, pages fetched again.
const PEAK_MIB: f64 = 128.0;
const CALLS: u64 = 210;
const AGAIN: u64 = 2;

const READ: &str = "GET /v1/crawl/{job_id}";
/// Pause between two looks at how far a crawl is that is to be killed.
const LOOK: Duration = Duration::from_millis(20);

/// One scenario's figures.
struct Figures {
    name: String,
    peak_mib: f64,
    calls: u64,
    reads: u64,
    seconds: f64,
    cpu_seconds: f64,
    stored: Proof,
}

impl Figures {
    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            format!("{:.0}", self.peak_mib),
            self.reads.to_string(),
            self.calls.to_string(),
            self.stored.items.to_string(),
            format!("{:.0} MB", self.stored.megabytes()),
            format!("{:.1}", self.seconds),
            format!("{:.1}", self.cpu_seconds),
        ]
    }
}

/// Runs all scenarios, each with a platform and a server of its own.
pub(crate) async fn run(folder: &Path) -> Result<()> {
    let whole = whole(&folder.join("whole"), "one crawl", &[PAGES], PAGE_BYTES).await?;
    let killed = killed(&folder.join("killed")).await?;
    let many = [CRAWL_PAGES; CRAWLS as usize];
    let name = format!("{CRAWLS} crawls of {CRAWL_PAGES} at once");
    let many = self::whole(&folder.join("many"), &name, &many, PAGE_BYTES).await?;
    let name = format!("{CRAWLS} crawls of {LARGE_PAGES} pages of 1 MB at once");
    let large = [LARGE_PAGES; CRAWLS as usize];
    let large = self::whole(&folder.join("large"), &name, &large, LARGE_BYTES).await?;
    let heading = [
        "Scenario",
        "Peak MiB",
        "Result pages read",
        "API calls",
        "Items",
        "Content",
        "Seconds",
        "CPU seconds",
    ];
    let rows: Vec<_> = [&whole, &killed, &many, &large].map(Figures::row).to_vec();
    println!("{}", markdown(&heading, &rows));
    let pages = u64::from(PAGES.div_ceil(RESULT_PAGE));
    let again = killed.reads.saturating_sub(pages);
    verdict("peak", whole.peak_mib.max(killed.peak_mib) <= PEAK_MIB, &format!("{PEAK_MIB} MiB"));
    verdict("API calls", whole.calls <= CALLS, &format!("{CALLS}"));
    verdict(&format!("pages fetched again: {again}"), again <= AGAIN, &AGAIN.to_string());
    Ok(())
}

fn verdict(what: &str, is_met: bool, bound: &str) {
    println!("{what}: {} (at most {bound})", if is_met { "met" } else { "MISSED" });
}

/// Stores crawls of so many pages each, all at once.
async fn whole(folder: &Path, name: &str, crawls: &[u32], page_bytes: u32) -> Result<Figures> {
    std::fs::create_dir_all(folder)?;
    let platform = Platform::start(folder, page_bytes)?;
    let site = Site::new(folder.join("site"), &platform)?;
    let served = site.serve_webhooks()?;
    let before = served.process.cpu_seconds()?;
    let begun = now();
    let mut ids = Vec::new();
    for (number, pages) in (0_u32..).zip(crawls) {
        ids.push(submit(&platform, number, *pages).await?);
    }
    until_stored(&site.ledger()?, u64::try_from(crawls.len())?).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_seconds = served.process.cpu_seconds()? - before;
    let figures = (name, served.process.peak_mib()?, seconds, cpu_seconds);
    finish(&site, &platform, &ids, crawls, figures).await
}

/// Stores one crawl with a server that is killed in the middle and started again.
async fn killed(folder: &Path) -> Result<Figures> {
    std::fs::create_dir_all(folder)?;
    let platform = Platform::start(folder, PAGE_BYTES)?;
    let site = Site::new(folder.join("site"), &platform)?;
    let mut served = site.serve_webhooks()?;
    let begun = now();
    let ids = [submit(&platform, 0, PAGES).await?];
    let half = usize::try_from(PAGES.div_ceil(RESULT_PAGE) / 2)?;
    while files(&site.results(), ".ndjson.gz").len() < half {
        pause(LOOK).await;
    }
    let (peak_before, cpu_before) = used(&served)?;
    served.process.kill()?;
    let killed_at = now();
    let served = site.serve(&["--without-webhooks"])?;
    until_stored(&site.ledger()?, 1).await?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("after the kill: {:.1} s to the end\n", killed_at.elapsed().as_secs_f64());
    let (peak, cpu) = used(&served)?;
    let name = "one crawl, killed in the middle";
    let figures = (name, peak.max(peak_before), seconds, cpu + cpu_before);
    finish(&site, &platform, &ids, &[PAGES], figures).await
}

fn used(served: &Served) -> Result<(f64, f64)> {
    Ok((served.process.peak_mib()?, served.process.cpu_seconds()?))
}

async fn submit(platform: &Platform, number: u32, pages: u32) -> Result<String> {
    let url = format!("https://crawl-{number}.example.com/?pages={pages}");
    let body = json!({ "url": url, "limit": pages, "depth": 10, "formats": ["html"] });
    platform.submit("crawl", &body).await
}

/// Checks what was stored, and counts the calls: all but those that submit and register.
async fn finish(
    site: &Site<'_>,
    platform: &Platform,
    ids: &[String],
    crawls: &[u32],
    (name, peak_mib, seconds, cpu_seconds): (&str, f64, f64, f64),
) -> Result<Figures> {
    let mut stored = Proof::default();
    for (id, pages) in ids.iter().zip(crawls) {
        let proof = proof::of_crawl(&site.results(), id, *pages);
        stored = stored.and(proof.with_context(|| format!("crawl {id}"))?);
    }
    let calls = platform.calls().await?;
    let is_ours = |name: &&String| !name.starts_with("POST ") && !name.contains("/webhooks");
    let ours = calls.iter().filter(|(name, _)| is_ours(name)).map(|(_, count)| *count).sum();
    let reads = calls.get(READ).copied().unwrap_or_default();
    println!("{name}: {peak_mib:.0} MiB after {seconds:.0} s\n");
    let name = name.to_owned();
    Ok(Figures { name, peak_mib, calls: ours, reads, seconds, cpu_seconds, stored })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
