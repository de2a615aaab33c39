//! A story, for a person and for a machine.

use std::fmt;

use domain::entry::StateName;
use domain::explain::Explanation;
use domain::job::{JobId, JobKey, Kind};
use domain::time::Timestamp;
use serde::Serialize;

/// One job's story.
#[derive(Debug, Serialize)]
pub(super) struct Told<'a> {
    version: u32,
    r#type: &'static str,
    kind: Kind,
    job_id: &'a JobId,
    /// Its state in the ledger; null if the ledger does not know it.
    state: Option<StateName>,
    /// How it stands, in one sentence.
    present: String,
    /// What comes next, in one sentence.
    next: String,
    next_at: Option<Timestamp>,
    /// What does not fit together, or needs a person.
    remarks: Vec<String>,
    timeline: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    at: Timestamp,
    source: &'static str,
    text: String,
}

impl<'a> Told<'a> {
    pub(super) fn new(key: &'a JobKey, state: Option<StateName>, story: Explanation) -> Self {
        let lines = story.timeline.into_iter().map(|moment| Line {
            at: moment.at,
            source: moment.source.as_str(),
            text: moment.text,
        });
        Self {
            version: 1,
            r#type: "explanation",
            kind: key.kind,
            job_id: &key.job_id,
            state,
            present: story.present,
            next: story.next,
            next_at: story.next_at,
            remarks: story.remarks,
            timeline: lines.collect(),
        }
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What comes from the platform keeps to its line.
        let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).collect() };
        write!(
            out,
            "{} {}\n  {}\n  next: {}",
            self.kind,
            self.job_id,
            plain(&self.present),
            self.next
        )?;
        if let Some(at) = self.next_at {
            write!(out, " ({at:.0})")?;
        }
        for remark in &self.remarks {
            write!(out, "\n  ! {}", plain(remark))?;
        }
        for Line { at, source, text } in &self.timeline {
            write!(out, "\n  {at:.3}  {source:<12}  {}", plain(text))?;
        }
        Ok(())
    }
}
