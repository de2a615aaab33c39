//! The balance sheet, for a person and for a machine.

use std::collections::BTreeMap;
use std::fmt;

use domain::audit::{
    DeliverySheet, Finding, KindSheet, ObjectSheet, Outside, OutsideVerdict, Period, Sheet,
    Unproved, Verdict,
};
use domain::job::Kind;
use domain::time::Timestamp;
use serde::Serialize;

use crate::exit::Exit;

/// How the process ends.
pub(super) fn exit(sheet: &Sheet) -> Exit {
    match sheet.verdict() {
        Verdict::Balances => Exit::Ok,
        Verdict::Differs => Exit::CheckFailed,
        Verdict::Troubled => Exit::Unavailable,
        Verdict::NothingProved => Exit::Unproved,
    }
}

/// The platform's own count of requests, as an outside check.
#[derive(Debug, Serialize)]
struct Counted {
    /// It counts from here to the present.
    since: Timestamp,
    succeeded: Option<u64>,
    failed: Option<u64>,
    extractions: Option<u64>,
    /// Completed extract jobs of the period, which it is held against.
    finished: u64,
    /// `agrees`, `short` or `not_judged`.
    verdict: &'static str,
    /// Why it is not judged.
    because: Option<String>,
}

impl Counted {
    fn of(outside: &Outside) -> Self {
        let (verdict, because) = match &outside.verdict {
            OutsideVerdict::Agrees => ("agrees", None),
            OutsideVerdict::Short => ("short", None),
            OutsideVerdict::NotJudged(reason) => ("not_judged", Some(reason.clone())),
        };
        Self {
            since: outside.from,
            succeeded: outside.counted.map(|counted| counted.succeeded),
            failed: outside.counted.map(|counted| counted.failed),
            extractions: outside.counted.and_then(|counted| counted.extractions),
            finished: outside.finished,
            verdict,
            because,
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the platform's statistics: ")?;
        if let (Some(succeeded), Some(failed)) = (self.succeeded, self.failed) {
            let since = self.since;
            write!(out, "{succeeded} requests succeeded and {failed} failed since {since:.0}; ")?;
        }
        match &self.because {
            Some(because) => {
                let because: String = because.chars().filter(|c| !c.is_control()).collect();
                write!(out, "not judged: {because}")
            }
            None if self.verdict == "agrees" => {
                write!(out, "enough for the {} extract jobs that completed", self.finished)
            }
            None => write!(out, "too few for the {} extract jobs that completed", self.finished),
        }
    }
}

/// The sheet.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    r#type: &'static str,
    from: Timestamp,
    to: Timestamp,
    /// `balances`, `differs`, `troubled` or `nothing_proved`.
    verdict: &'static str,
    /// Whether something was compared, all of it that can be proved, and nothing disagrees.
    balances: bool,
    /// The part of the period that was compared; null if nothing was.
    proved: Option<Span>,
    /// What of the period is not proved, and why; empty if all of it is.
    unproved: Vec<Part>,
    /// By kind.
    jobs: BTreeMap<&'static str, Jobs>,
    objects: Objects,
    deliveries: Deliveries,
    /// All submissions by state.
    submissions: BTreeMap<&'static str, u64>,
    /// The platform's own count; null if nothing was compared.
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

#[derive(Debug, Serialize)]
struct Span {
    from: Timestamp,
    to: Timestamp,
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
    pub(super) fn new(sheet: &Sheet) -> Self {
        let ObjectSheet { named, whole, bytes } = sheet.objects;
        let DeliverySheet { taken, not_taken, unreadable } = sheet.deliveries;
        let discrepancies = sheet.discrepancies.iter();
        Self {
            version: 1,
            r#type: "audit",
            from: sheet.period.from,
            to: sheet.period.to,
            verdict: sheet.verdict().as_str(),
            balances: sheet.balances(),
            proved: sheet.proved.map(|Period { from, to }| Span { from, to }),
            unproved: sheet.unproved.iter().map(Part::of).collect(),
            jobs: sheet.kinds.iter().map(|(kind, sheet)| (kind.as_str(), jobs(sheet))).collect(),
            objects: Objects { named, whole, bytes },
            deliveries: Deliveries { taken, not_taken, unreadable },
            submissions: sheet.submissions.clone(),
            statistics: sheet.outside.as_ref().map(Counted::of),
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
        if let Some(statistics) = &self.statistics {
            write!(out, "\n{statistics}")?;
        }
        for part in &self.unproved {
            write!(out, "\nnot proved: {}", part.text)?;
            if let (Some(from), Some(to)) = (part.from, part.to) {
                let kind = part.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
                write!(out, " ({from:.0} to {to:.0}{kind})")?;
            }
        }
        for (name, count) in &self.discrepancies {
            write!(out, "\n{name:<20} {count:>9}")?;
        }
        let verdict = match (&self.proved, self.balances, self.discrepancies.is_empty()) {
            (None, ..) => "nothing could be proved: nothing was compared",
            (_, true, _) => "the books balance",
            (_, false, true) => "nothing disagrees, but not all of it could be looked at",
            (_, false, false) => "the books do not balance",
        };
        write!(out, "\n{verdict}")
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
