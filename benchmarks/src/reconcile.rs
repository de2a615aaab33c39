//! `reconcile`: the comparison of the platform's job lists with a ledger that knows a million jobs,
//! of which a thousand new ones lie after the watermark.

pub(crate) mod platform;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use domain::entry::{Cause, Entry, State, StoredObject};
use domain::job::{JobKey, Kind};
use domain::limits::Limits;
use domain::place::extract_key;
use domain::ports::{Clock as _, Control as _, ControlRow, Entries as _, Expected};
use domain::time::{Timestamp, after, before, utc_date};
use embedded::SqliteStore;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use system::SystemClock;

use self::platform::{Jobs, Lists};
use crate::process::Process;
use crate::served::gleaner;
use crate::table::markdown;

/// Writes that wait for one commit together.
const GROUP: u64 = 512;
/// How old the newest job is: older than the time that is left to its webhook.
pub(crate) const NEWEST: Duration = Duration::from_mins(20);
/// How far the known jobs go back.
pub(crate) const HISTORY: Duration = Duration::from_hours(60 * 24);
/// Of ten new jobs, those that are still open.
const OPEN_OF_TEN: u64 = 1;
/// Pause between two looks at the memory of a process: less than its last step takes.
const LOOK: Duration = Duration::from_millis(2);
/// What must hold: calls beside a hundredth of the new and of the open jobs, and MiB.
const CALLS: u64 = 6;
const PEAK_MIB: f64 = 64.0;

/// How much is compared.
#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    /// Jobs that the ledger knows
    #[arg(long, default_value_t = 1_000_000)]
    known: u64,
    /// Jobs after the watermark, one in ten of which is open
    #[arg(long, default_value_t = 1_000)]
    new: u64,
}

/// What one run took.
pub(crate) struct Figures {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_mib: f64,
    pub(crate) report: Value,
}

impl Reconcile {
    pub(crate) async fn run(self, folder: &Path) -> Result<()> {
        let newest = before(SystemClock.now(), NEWEST);
        let step = HISTORY / u32::try_from(self.known.max(1))?;
        let jobs = Jobs { count: self.known + self.new, newest, step, is_new_from: self.known };
        fill(&folder.join("gleaner-data"), &jobs).await?;
        let lists = Lists::start(jobs.clone()).await?;
        let mut rows = Vec::new();
        let names =
            ["1,000 of them new", "the next one, which confirms it", "and the one after it"];
        let mut first = None;
        for name in names {
            let figures = measure(folder, &lists, &["reconcile", "--json"])?;
            rows.push(figures.row(name));
            first.get_or_insert(figures);
        }
        let heading = [
            "Comparison",
            "List calls",
            "Jobs listed",
            "Announced",
            "Expected",
            "Seconds",
            "CPU seconds",
            "Peak MiB",
        ];
        println!("{}", markdown(&heading, &rows));
        let first = first.context("nothing was measured")?;
        let open = self.new * OPEN_OF_TEN / 10;
        ensure!(first.report.get("expected") == Some(&json!(open)), "{}", first.report);
        ensure!(first.report.get("announced") == Some(&json!(self.new - open)), "{}", first.report);
        let bound = self.new / 100 + open / 100 + CALLS;
        verdict("list calls", first.calls <= bound, &bound.to_string());
        verdict("peak", first.peak_mib <= PEAK_MIB, &format!("{PEAK_MIB} MiB"));
        Ok(())
    }
}

impl Figures {
    fn row(&self, name: &str) -> Vec<String> {
        let of = |field: &str| self.report.get(field).unwrap_or(&Value::Null).to_string();
        vec![
            name.to_owned(),
            self.calls.to_string(),
            of("listed"),
            of("announced"),
            of("expected"),
            format!("{:.2}", self.seconds),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.0}", self.peak_mib),
        ]
    }
}

pub(crate) fn verdict(what: &str, is_met: bool, bound: &str) {
    println!("{what}: {} (at most {bound})", if is_met { "met" } else { "MISSED" });
}

/// Runs a verb once, as a process of its own; its report is the last line of its output.
pub(crate) fn measure(folder: &Path, lists: &Lists, verb: &[&str]) -> Result<Figures> {
    let mut command: Command = gleaner(folder, verb)?;
    command.env("GLEANER_API_URL", &lists.url).env("GLEANER_API_KEY", "key");
    command.stdout(Stdio::piped());
    let before = lists.calls();
    let begun = now();
    let mut process = Process::start(&mut command)?;
    let mut out = process.child.stdout.take().context("the process has no output")?;
    // Its lines are read as they come, so that it never waits for us.
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
    });
    let (mut peak_mib, mut cpu_seconds) = (0.0, 0.0);
    while process.child.try_wait()?.is_none() {
        // The process may end between the two.
        peak_mib = process.peak_mib().unwrap_or(peak_mib).max(peak_mib);
        cpu_seconds = process.cpu_seconds().unwrap_or(cpu_seconds).max(cpu_seconds);
        std::thread::park_timeout(LOOK);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let status = process.child.wait()?;
    ensure!(status.success(), "gleaner {} ended with {status}", verb.join(" "));
    let text = reading.join().map_err(|_| anyhow::anyhow!("the output was not read"))??;
    let last = text.lines().last().context("nothing was printed")?;
    let report = serde_json::from_str(last)?;
    Ok(Figures { calls: lists.calls() - before, seconds, cpu_seconds, peak_mib, report })
}

/// A ledger that knows the jobs before the watermark, all of which are stored.
pub(crate) async fn fill(folder: &Path, jobs: &Jobs) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let clock = Arc::new(SystemClock);
    let store = SqliteStore::open(&folder.join("ledger.db"), clock, embedded::Settings::default())?;
    let (limits, now) = (Limits::default(), SystemClock.now());
    let mut made = 0;
    while made < jobs.is_new_from {
        let end = jobs.is_new_from.min(made + GROUP);
        let rows = (made..end).map(|n| stored(jobs, n, &limits)).collect::<Result<Vec<_>>>()?;
        let writes = rows.iter().map(|row| store.write(row, Expected::Absent(now)));
        try_join_all(writes).await?;
        made = end;
    }
    // As the last comparison left it: the newest job that it saw, less the overlap.
    let newest = jobs.created_at(jobs.is_new_from.saturating_sub(1));
    let just_after = after(newest, Duration::from_micros(1));
    for kind in Kind::ALL {
        let value = json!({
            "format": 1, "watermark": just_after, "candidate": null, "walk": null,
            "walked_at": null, "tried_at": null,
        });
        let (name, version) = (format!("reconcile/{kind}"), 1);
        let row = ControlRow { name, version, value: value.to_string() };
        ensure!(store.write_control(&row).await?, "the ledger is not empty");
    }
    Ok(())
}

fn stored(jobs: &Jobs, number: u64, limits: &Limits) -> Result<Entry> {
    let at: Timestamp = jobs.created_at(number);
    let key = JobKey::new(Kind::Extract, Jobs::id(number).parse()?);
    let object = StoredObject {
        key: extract_key(&key.job_id, utc_date(at)),
        bytes: 5_000,
        sha256: format!("{number:064x}"),
        empty: false,
        unsettled: false,
    };
    let row = Entry::expected(key, None, Cause::Submit, at, limits);
    let state = State::Stored { result: object };
    Ok(row.settled(state, Cause::Work, after(at, Duration::from_secs(40)), limits))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
