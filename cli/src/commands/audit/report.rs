//! The balance sheet, for a person and for a machine.

use std::collections::BTreeMap;
use std::fmt;

use domain::audit::{DeliverySheet, Finding, KindSheet, ObjectSheet, Period, Sheet, Unproved};
use domain::job::Kind;
use domain::time::Timestamp;
use serde::Serialize;

use crate::exit::Exit;

/// How the process ends.
pub(super) fn exit(sheet: &Sheet) -> Exit {
    match (sheet.balances(), sheet.is_troubled()) {
        (false, _) => Exit::CheckFailed,
        (true, true) => Exit::Unavailable,
        (true, false) => Exit::Ok,
    }
}

/// The platform's own count of requests, as an outside check.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Counted {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
}

/// The sheet.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    r#type: &'static str,
    from: Timestamp,
    to: Timestamp,
    /// Whether nothing disagrees.
    balances: bool,
    /// What of the period is not proved, and why; empty if all of it is.
    unproved: Vec<Part>,
    /// By kind.
    jobs: BTreeMap<&'static str, Jobs>,
    objects: Objects,
    deliveries: Deliveries,
    /// All submissions by state.
    submissions: BTreeMap<&'static str, u64>,
    /// The platform's count of requests in the period; null if it cannot be had.
    statistics: Option<Counted>,
    /// How many things disagree, by the way in which they do.
    discrepancies: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct Jobs {
    /// Listed by the platform: the sum of `ledger` and `unknown`.
    listed: u64,
    platform: BTreeMap<String, u64>,
    ledger: BTreeMap<&'static str, u64>,
    unknown: u64,
    /// In the ledger, and not listed by the platform.
    unlisted: u64,
    /// Entries of the list that cannot be read.
    unreadable: u64,
}

#[derive(Debug, Serialize)]
struct Objects {
    named: u64,
    whole: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Deliveries {
    taken: u64,
    not_taken: u64,
    unreadable: u64,
}

/// A part of the period that is not proved.
#[derive(Debug, Serialize)]
struct Part {
    /// `forgotten`, `too_fresh`, `unsure` or `trouble`.
    because: &'static str,
    kind: Option<Kind>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    text: String,
}

impl Part {
    fn of(unproved: &Unproved) -> Self {
        let span = |because, kind, period: &Period, text: &str| Self {
            because,
            kind,
            from: Some(period.from),
            to: Some(period.to),
            text: text.to_owned(),
        };
        match unproved {
            Unproved::Forgotten(period) => {
                span("forgotten", None, period, "the ledger may have forgotten rows of this time")
            }
            Unproved::TooFresh(period) => {
                span("too_fresh", None, period, "lists may not yet hold all jobs of this time")
            }
            Unproved::Unsure(kind, period) => {
                span("unsure", Some(*kind), period, "the list could not be read whole")
            }
            Unproved::Trouble(text) => {
                Self { because: "trouble", kind: None, from: None, to: None, text: text.clone() }
            }
        }
    }
}

impl Report {
    pub(super) fn new(sheet: &Sheet, statistics: Option<Counted>) -> Self {
        let ObjectSheet { named, whole, bytes } = sheet.objects;
        let DeliverySheet { taken, not_taken, unreadable } = sheet.deliveries;
        let discrepancies = sheet.discrepancies.iter();
        Self {
            version: 1,
            r#type: "audit",
            from: sheet.period.from,
            to: sheet.period.to,
            balances: sheet.balances(),
            unproved: sheet.unproved.iter().map(Part::of).collect(),
            jobs: sheet.kinds.iter().map(|(kind, sheet)| (kind.as_str(), jobs(sheet))).collect(),
            objects: Objects { named, whole, bytes },
            deliveries: Deliveries { taken, not_taken, unreadable },
            submissions: sheet.submissions.clone(),
            statistics,
            discrepancies: discrepancies.map(|(name, count)| (name.as_str(), *count)).collect(),
        }
    }
}

fn jobs(sheet: &KindSheet) -> Jobs {
    Jobs {
        listed: sheet.listed,
        platform: sheet.statuses.clone(),
        ledger: sheet.ledger.iter().map(|(state, count)| (state.as_str(), *count)).collect(),
        unknown: sheet.unknown,
        unlisted: sheet.unlisted,
        unreadable: sheet.unreadable,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "jobs created from {:.0} to {:.0}", self.from, self.to)?;
        for (kind, jobs) in &self.jobs {
            write!(out, "\n  {kind:<8} {:>9} listed", jobs.listed)?;
            for (status, count) in &jobs.platform {
                let status: String = status.chars().filter(|c| !c.is_control()).collect();
                write!(out, "\n    platform: {status:<14} {count:>9}")?;
            }
            for (state, count) in &jobs.ledger {
                write!(out, "\n    ledger:   {state:<14} {count:>9}")?;
            }
            for (name, count) in [
                ("not in the ledger", jobs.unknown),
                ("in the ledger only", jobs.unlisted),
                ("unreadable", jobs.unreadable),
            ] {
                if count > 0 {
                    write!(out, "\n    {name:<24} {count:>9}")?;
                }
            }
        }
        let Objects { named, whole, bytes } = &self.objects;
        write!(out, "\nresults: {whole} of {named} read back whole, {bytes} bytes")?;
        let Deliveries { taken, not_taken, .. } = &self.deliveries;
        write!(out, "\ndeliveries: {taken} events taken, {not_taken} not taken")?;
        if let Some(Counted { succeeded, failed }) = self.statistics {
            write!(
                out,
                "\nthe platform's statistics: {succeeded} requests succeeded, {failed} failed"
            )?;
        }
        for part in &self.unproved {
            write!(out, "\nnot proved: {}", part.text)?;
            if let (Some(from), Some(to)) = (part.from, part.to) {
                let kind = part.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
                write!(out, " ({from:.0} to {to:.0}{kind})")?;
            }
        }
        if self.balances {
            return out.write_str("\nthe books balance");
        }
        for (name, count) in &self.discrepancies {
            write!(out, "\n{name:<20} {count:>9}")?;
        }
        out.write_str("\nthe books do not balance")
    }
}

/// One thing that disagrees.
#[derive(Debug, Serialize)]
pub(super) struct Difference<'a> {
    version: u32,
    r#type: &'static str,
    discrepancy: &'static str,
    kind: Option<Kind>,
    job_id: Option<&'a str>,
    facts: &'a str,
    advice: &'static str,
}

impl<'a> Difference<'a> {
    pub(super) fn of(finding: &'a Finding) -> Self {
        Self {
            version: 1,
            r#type: "discrepancy",
            discrepancy: finding.discrepancy.as_str(),
            kind: finding.key.as_ref().map(|key| key.kind),
            job_id: finding.key.as_ref().map(|key| key.job_id.as_str()),
            facts: &finding.facts,
            advice: finding.discrepancy.advice(),
        }
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts: String = self.facts.chars().filter(|c| !c.is_control()).collect();
        write!(out, "{}", self.discrepancy)?;
        if let (Some(kind), Some(job_id)) = (self.kind, self.job_id) {
            write!(out, "\t{kind} {job_id}")?;
        }
        write!(out, "\t{facts}\t{}", self.advice)
    }
}
