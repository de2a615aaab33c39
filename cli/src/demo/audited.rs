//! `gleaner audit` over the demo's period, at its end.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ports::Clock as _;
use domain::time::{Timestamp, between};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use system::SystemClock;

use super::folder::Folder;
use crate::error::CliError;

/// Most runs: one that could not ask the platform about everything proves nothing.
const RUNS_MAX: u32 = 5;
/// Pause between two runs.
const RUN_PAUSE: Duration = Duration::from_secs(2);
/// Exit code of a run that could not ask about everything.
const UNPROVED: i32 = 69;
/// Discrepancies and troubles that are shown.
const SHOWN_MAX: usize = 10;

/// What `gleaner audit` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Audited {
    /// Whether nothing disagrees, and all was looked at.
    pub clean: bool,
    /// Runs that it took.
    pub runs: u32,
    /// Seconds of the last run.
    pub secs: f64,
    /// Jobs that it found in the platform's lists.
    pub listed: u64,
    /// Stored objects that it read and found whole.
    pub whole: u64,
    /// The first things that disagree, or that could not be looked at.
    pub findings: Vec<String>,
}

/// What is read of the balance sheet.
#[derive(Deserialize)]
struct Sheet {
    jobs: BTreeMap<String, Listed>,
    objects: Objects,
    unproved: Vec<Value>,
}

#[derive(Deserialize)]
struct Listed {
    listed: u64,
}

#[derive(Deserialize)]
struct Objects {
    whole: u64,
}

/// Audits the time up to the present, when the platform's lists hold it for sure: they lag by
/// `margin` at most.
pub(super) async fn audit(
    folder: &Folder,
    from: Timestamp,
    margin: Duration,
) -> Result<Audited, CliError> {
    let mut audited = Audited::default();
    let (from, to) = (from.to_string(), SystemClock.now().to_string());
    SystemClock.sleep(margin).await;
    while audited.runs < RUNS_MAX {
        let started = SystemClock.now();
        let ran = folder.run(&["audit", "--json", "--from", &from, "--to", &to]).await?;
        audited.runs += 1;
        audited.secs = between(started, SystemClock.now()).as_secs_f64();
        audited.clean = ran.code == Some(0);
        audited.findings = vec![ran.talk.trim().to_owned()];
        // The sheet comes first, and what disagrees after it.
        if let [sheet, discrepancies @ ..] = ran.rows.as_slice()
            && let Ok(sheet) = Sheet::deserialize(sheet)
        {
            audited.listed = sheet.jobs.values().map(|kind| kind.listed).sum();
            audited.whole = sheet.objects.whole;
            let found = discrepancies.iter().chain(&sheet.unproved);
            audited.findings = found.take(SHOWN_MAX).map(Value::to_string).collect();
        }
        if ran.code != Some(UNPROVED) {
            break;
        }
        SystemClock.sleep(RUN_PAUSE).await;
    }
    Ok(audited)
}
