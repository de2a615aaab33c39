//! One job with its history, for a person and for a machine.

use std::fmt;

use domain::entry::{Entry, State};
use serde::Serialize;

/// One job.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    version: u32,
    r#type: &'static str,
    /// The page or seed, if it is known.
    url: Option<String>,
    entry: Entry,
}

impl Shown {
    /// The row as it is, and its URL.
    pub(crate) fn new(entry: Entry, url: Option<String>) -> Self {
        Self { version: 1, r#type: "job_details", url, entry }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.entry;
        let state = entry.state.name();
        write!(out, "{} {}\n  state        {state}", entry.key.kind, entry.key.job_id)?;
        if let State::Dead { reason, error, .. } = &entry.state {
            write!(out, ": {reason}")?;
            if let Some(before) = entry.discarded {
                write!(out, ", which was {before}")?;
            }
            if let Some(error) = error {
                let again = if error.retryable { ", retryable" } else { "" };
                write!(out, " ({}: {}{again})", error.code, error.message)?;
            }
        }
        if let State::Superseded { by } = &entry.state {
            write!(out, " by {by}")?;
        }
        field(out, "url", self.url.as_ref())?;
        field(out, "follow-up of", entry.follow_up.as_ref())?;
        field(out, "generation", Some(entry.generation))?;
        field(out, "version", Some(entry.version))?;
        field(out, "first seen", Some(entry.first_seen))?;
        field(out, "created", entry.job_created_at)?;
        field(out, "date", entry.dt)?;
        field(out, "not before", entry.not_before)?;
        field(out, "due", entry.due_at)?;
        field(out, "task sent", entry.enqueued_at)?;
        if let Some(link) = &entry.link {
            field(out, "ref", link.reference.as_ref())?;
            field(out, "submission", Some(&link.submission))?;
            field(
                out,
                "lineage",
                Some(format_args!("{}, attempt {}", link.lineage, link.attempt)),
            )?;
        }
        let counters = &entry.counters;
        for (name, count) in [
            ("404s", counters.missing),
            ("put off", counters.put_offs),
            ("sweeps", counters.sweeps),
            ("reopened", counters.reopens),
        ] {
            field(out, name, Some(count).filter(|count| *count > 0))?;
        }
        if let Some(run) = &entry.run {
            let stored: u64 = run.parts.iter().map(|part| part.items).sum();
            let progress = format_args!(
                "{} (number {}), next page {}, {stored} items stored",
                run.id, run.number, run.next_page
            );
            field(out, "run", Some(progress))?;
        }
        if let State::Stored { result } | State::Dead { result: Some(result), .. } = &entry.state {
            field(out, "result", Some(&result.key))?;
            field(out, "bytes", Some(result.bytes))?;
            field(out, "sha256", Some(&result.sha256))?;
        }
        out.write_str("\n  history")?;
        for line in &entry.history {
            let cause = cause_name(line.cause);
            let from = line.from.map_or("(none)", domain::entry::StateName::as_str);
            write!(out, "\n    {:.3}  {from} -> {}  {cause}", line.at, line.to)?;
            if let Some(delivery) = &line.delivery_id {
                write!(out, " {}", delivery.escape_debug())?;
            }
            if let Some(note) = &line.note {
                write!(out, " ({})", note.as_str().escape_debug())?;
            }
        }
        Ok(())
    }
}

fn field(
    out: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<impl fmt::Display>,
) -> fmt::Result {
    match value {
        Some(value) => write!(out, "\n  {name:<12} {value}"),
        None => Ok(()),
    }
}

fn cause_name(cause: domain::entry::Cause) -> String {
    let json = serde_json::to_value(cause).ok();
    json.and_then(|json| json.as_str().map(str::to_owned)).unwrap_or_default()
}
