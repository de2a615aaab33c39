//! The demo's books at the end: what was submitted, what became of it, and what the judge says.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::audited::Audited;
use super::books::{Counters, Job};
use super::healing::{Healing, ways};
use super::judge::Judgement;
use super::kills::Driven;
use super::rotation::Rotated;
use super::{DemoOptions, open_entries};
use crate::error::CliError;
use crate::pipeline::Pipeline;

/// How submitting went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// The platform has the job.
    pub accepted: u64,
    /// The platform refused it for good.
    pub refused: u64,
    /// Whether the platform has it could not be found out.
    pub ambiguous: u64,
    /// The demo's patience ended first.
    pub unfinished: u64,
}

/// What the report is made of.
pub(super) struct Facts<'a> {
    pub(super) options: &'a DemoOptions,
    pub(super) wall: Duration,
    pub(super) books: &'a [Job],
    pub(super) counters: &'a Counters,
    pub(super) submitted: Submitted,
    pub(super) counted: BTreeMap<&'static str, u64>,
    pub(super) settled: bool,
    pub(super) driven: Driven,
    /// Whether the serving process panicked anywhere.
    pub(super) panicked: bool,
    pub(super) audited: Option<Audited>,
}

/// The demo's books.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this format.
    pub version: u32,
    /// Whether everything adds up.
    pub balanced: bool,
    /// The seed.
    pub seed: u64,
    /// Seconds from start to judgement.
    pub wall_secs: f64,
    /// How submitting went.
    pub submitted: Submitted,
    /// Jobs that the platform accepted, resubmissions and others' included.
    pub platform_jobs: u64,
    /// Jobs of them that the platform never finished.
    pub never_ended: u64,
    /// The ledger's rows by state, and dead ones by reason.
    pub ledger: BTreeMap<String, u64>,
    /// Rows that somebody is still owed.
    pub open: u64,
    /// Rows and submissions whose payment could not be decided.
    pub ambiguous: u64,
    /// What the judge says.
    pub judge: Judgement,
    /// API calls per platform job: submissions, webhook management, and pages of results after
    /// the first not counted, as every client needs those.
    pub calls_per_job: f64,
    /// API calls by endpoint.
    pub calls: BTreeMap<String, u64>,
    /// What the server counted, under the names of docs/logging.md.
    pub server: BTreeMap<String, u64>,
    /// Webhooks as the platform counted them.
    pub webhooks: BTreeMap<String, u64>,
    /// Seconds from the platform's finish to the stored result, median.
    pub finished_to_stored_p50_secs: f64,
    /// The same, 99th percentile.
    pub finished_to_stored_p99_secs: f64,
    /// How often the serving process was killed.
    pub kills: u32,
    /// Kills of them while the secrets were being replaced.
    pub kills_while_rotating: u32,
    /// Whether the serving process panicked anywhere.
    pub panicked: bool,
    /// How replacing the signing secrets went, if that was asked for.
    pub rotation: Option<Rotated>,
    /// Deliveries signed with their webhook's secret, by the status of the answer.
    pub genuine_answers: BTreeMap<String, u64>,
    /// Deliveries signed with another one, by the status of the answer.
    pub missigned_answers: BTreeMap<String, u64>,
    /// Jobs that have ended in the ledger, by the way on which that became known first.
    pub ways: BTreeMap<String, u64>,
    /// How long it took to store what was not told of at once.
    pub healing: Healing,
    /// What `gleaner audit` says of the demo's period, if it was asked.
    pub audit: Option<Audited>,
    /// Where the results lie; `None` if they are removed at the end.
    pub dir: Option<String>,
}

impl Report {
    pub(super) async fn new(
        pipeline: &Pipeline,
        facts: Facts<'_>,
        judge: Judgement,
    ) -> Result<Self, CliError> {
        let ledger = pipeline.ledger.count_entries().await?;
        let open = open_entries(pipeline).await?;
        let dead_ambiguous = ledger.get("dead:ambiguous").copied().unwrap_or_default();
        let calls = calls(facts.counters);
        let platform_jobs = count(facts.books, |_| true);
        let latencies = super::view::latencies(pipeline, facts.books).await?;
        let Driven { kills, kills_while_rotating, rotated } = facts.driven;
        let counted = &facts.counters.counters;
        let healing = Healing::of(facts.books, &judge.stored_at);
        let ways = ways(pipeline).await?;
        let is_rotated = rotated.as_ref().is_none_or(|rotated| rotated.webhooks == rotated.of);
        let was_done = kills == facts.options.kills
            && facts.options.rotate == rotated.is_some()
            && is_rotated
            && !facts.panicked
            && facts.audited.as_ref().is_none_or(|audited| audited.clean)
            // A delivery that somebody else signed is never taken.
            && !counted.missigned_answers.keys().any(|status| status.starts_with('2'));
        let balanced = judge.is_clean()
            && open == 0
            && facts.settled
            && facts.submitted.unfinished == 0
            && was_done;
        Ok(Self {
            version: 1,
            balanced,
            seed: facts.options.seed,
            wall_secs: facts.wall.as_secs_f64(),
            submitted: facts.submitted,
            platform_jobs,
            never_ended: count(facts.books, |job| !job.is_terminal()),
            ambiguous: dead_ambiguous + facts.submitted.ambiguous,
            open,
            ledger,
            judge,
            calls_per_job: calls_per_job(facts.counters, facts.books),
            calls,
            server: facts
                .counted
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
            webhooks: counted.webhooks.clone(),
            genuine_answers: counted.genuine_answers.clone(),
            missigned_answers: counted.missigned_answers.clone(),
            kills,
            kills_while_rotating,
            panicked: facts.panicked,
            rotation: rotated,
            ways,
            healing,
            audit: facts.audited,
            finished_to_stored_p50_secs: percentile(&latencies, 50),
            finished_to_stored_p99_secs: percentile(&latencies, 99),
            dir: Some(facts.options.dir.display().to_string()),
        })
    }
}

fn count(books: &[Job], is_meant: impl Fn(&&Job) -> bool) -> u64 {
    u64::try_from(books.iter().filter(is_meant).count()).unwrap_or(u64::MAX)
}

/// Calls by endpoint, the simulator's own control plane left out.
fn calls(counters: &Counters) -> BTreeMap<String, u64> {
    counters
        .counters
        .calls
        .iter()
        .filter(|(endpoint, _)| !endpoint.contains("/sim"))
        .map(|(endpoint, by_status)| (endpoint.clone(), by_status.values().sum()))
        .collect()
}

/// Whether an endpoint is neither a submission nor about webhooks.
fn is_look(endpoint: &str) -> bool {
    !endpoint.starts_with("POST") && !endpoint.contains("webhook")
}

/// API calls per platform job: submissions, webhook management and later pages not counted.
pub(super) fn calls_per_job(counters: &Counters, books: &[Job]) -> f64 {
    let looks: u64 =
        calls(counters).iter().filter(|(endpoint, _)| is_look(endpoint)).map(|(_, n)| n).sum();
    let looks = looks.saturating_sub(counters.counters.later_result_pages);
    ratio(looks, u64::try_from(books.len()).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a demo are far below 2^53")]
fn ratio(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

/// The value below which `percent` of the sorted values lie; 0 for none.
pub(super) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

/// A line of the table for people: name, value, and what there is to say about it.
type Line = (String, String, &'static str);

impl Report {
    fn jobs(&self) -> Vec<Line> {
        let count = |name: &str, count: u64, note| (name.to_owned(), count.to_string(), note);
        let mut lines = vec![
            count("submitted", self.submitted.accepted, ""),
            count("platform's jobs", self.platform_jobs, "resubmissions and others' included"),
            count("never ended", self.never_ended, "of the platform's jobs"),
            count("stored", self.judge.stored, ""),
        ];
        let dead = self.ledger.iter().filter(|(state, _)| state.contains(':'));
        lines.extend(dead.map(|(state, dead)| count(&state.replace(':', ": "), *dead, "")));
        let superseded = self.ledger.get("superseded").copied().unwrap_or_default();
        lines.extend([
            count("superseded", superseded, ""),
            count("open", self.open, ""),
            count("not submitted", self.submitted.unfinished + self.submitted.refused, ""),
            count("ambiguous", self.ambiguous, ""),
            count("lost", self.judge.lost, ""),
            count("stored twice", self.judge.stored_twice, ""),
            count("paid twice", self.judge.paid_twice, ""),
            count("wrong content", self.judge.wrong, ""),
        ]);
        lines
    }

    fn effort(&self) -> Vec<Line> {
        let of = |name: &str, value: String, note| (name.to_owned(), value, note);
        let mut lines = vec![
            of("answers lost", self.judge.answers_lost.to_string(), ""),
            of(
                "API calls a job",
                format!("{:.3}", self.calls_per_job),
                "submissions and later pages not counted",
            ),
            of("finish to stored", format!("{:.2} s", self.finished_to_stored_p50_secs), "median"),
            of("", format!("{:.2} s", self.finished_to_stored_p99_secs), "99 of 100 within"),
        ];
        let healing = &self.healing;
        lines.extend([
            of("healed", healing.jobs.to_string(), "stored, and not told of at once"),
            of("finish to healed", format!("{:.2} s", healing.p50_secs), "median"),
            of("", format!("{:.2} s", healing.p99_secs), "99 of 100 within"),
        ]);
        lines.extend(self.ways.iter().map(|(way, jobs)| {
            of(&format!("known by {way}"), jobs.to_string(), "jobs that have ended")
        }));
        lines
    }

    fn deliveries(&self) -> Vec<Line> {
        let answers = [
            (&self.genuine_answers, "deliveries"),
            (&self.missigned_answers, "deliveries, signed with another secret"),
        ];
        let mut lines = Vec::new();
        for (answers, note) in answers {
            for (status, count) in answers {
                lines.push((format!("answered {status}"), count.to_string(), note));
            }
        }
        let unanswered = self.webhooks.get("unanswered").copied().unwrap_or_default();
        lines.push(("not answered".to_owned(), unanswered.to_string(), "deliveries"));
        lines
    }

    /// What was done to the server, and what the audit says.
    fn trials(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.kills > 0 {
            let (kills, within) = (self.kills, self.kills_while_rotating);
            lines.push(format!("server killed {kills} times, {within} in the rotation"));
        }
        if self.panicked {
            lines.push("THE SERVER PANICKED, see server.log in the folder".to_owned());
        }
        if let Some(Rotated { webhooks, of, runs, secs, trouble }) = &self.rotation {
            let done = format!("{webhooks} of {of} secrets replaced in {secs:.1} s, {runs} runs");
            let trouble = trouble.as_ref().filter(|_| webhooks < of);
            lines.push(match trouble {
                Some(trouble) => format!("{done}; the last one said: {trouble}"),
                None => done,
            });
        }
        if let Some(audit) = &self.audit {
            let verdict = if audit.clean { "clean" } else { "NOT CLEAN" };
            let Audited { listed, whole, secs, .. } = audit;
            lines.push(format!(
                "audit {verdict}: {listed} jobs listed, {whole} objects whole, {secs:.1} s"
            ));
            lines.extend(audit.findings.iter().map(|finding| format!("audit: {finding}")));
        }
        lines
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.balanced { "the books balance" } else { "THE BOOKS DO NOT BALANCE" };
        writeln!(out, "{verdict} (seed {}, {:.1} s)", self.seed, self.wall_secs)?;
        let (jobs, effort, deliveries) = (self.jobs(), self.effort(), self.deliveries());
        // A long reason moves the column of all.
        let names = jobs.iter().chain(&effort).chain(&deliveries).map(|(name, ..)| name.len());
        let width = names.max().unwrap_or_default();
        for block in [&jobs, &effort, &deliveries] {
            writeln!(out)?;
            for (name, value, note) in block {
                let line = format!("{name:<width$} {value:>8}  {note}");
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        let trials = self.trials();
        if !trials.is_empty() {
            writeln!(out)?;
        }
        for line in trials {
            writeln!(out, "{line}")?;
        }
        for finding in &self.judge.findings {
            writeln!(out, "finding: {finding}")?;
        }
        match &self.dir {
            Some(dir) => write!(out, "{:<width$}  {dir}", "results"),
            None => write!(out, "{:<width$}  (removed; --dir keeps them)", "results"),
        }
    }
}

#[cfg(test)]
mod tests;
