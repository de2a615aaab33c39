//! The ledger's health: what is overdue, paused, unresolved or dead.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::pause::{Pause, Pauses, Scope};
use domain::ports::{Ledger, Page};
use domain::reconcile::compared_at;
use domain::replay::read_at;
use domain::time::{Timestamp, between};
use settings::{Backend, Settings};

use super::finding::{AGAIN, Finding};
use crate::error::CliError;
use crate::output::told;

/// The names of the checks.
pub(super) const DUE: &str = "due";
pub(super) const PAUSES: &str = "pauses";
pub(super) const UPKEEP: &str = "upkeep";
pub(super) const JOBS: &str = "jobs";
/// All of them, in their order.
pub(super) const ALL: [&str; 4] = [DUE, UPKEEP, PAUSES, JOBS];

/// Rows looked at.
const ROWS: u32 = 100;
/// What is overdue for less is somebody's next look: ticks are minutes apart on AWS.
const LATE: Duration = Duration::from_mins(20);
/// What is overdue for longer is looked at by nobody.
const FORGOTTEN: Duration = Duration::from_hours(24);

/// What should have been looked at by now.
pub(super) async fn due(ledger: &dyn Ledger, now: Timestamp) -> Vec<Finding> {
    let read = async {
        let rows = ledger.list_due(now, None, ROWS).await?;
        let intents = ledger.list_due_intents(now, None, ROWS).await?;
        Ok::<_, CliError>((rows, intents))
    };
    let (rows, intents) = match read.await {
        Ok(read) => read,
        Err(error) => return vec![Finding::trouble(DUE, &error, AGAIN)],
    };
    let oldest_row = rows.items.iter().filter_map(|entry| entry.due_at).min();
    let oldest_intent = intents.items.iter().filter_map(|intent| intent.due_at).min();
    vec![
        overdue(now, "jobs", &count(&rows), oldest_row),
        overdue(now, "submissions", &count(&intents), oldest_intent),
    ]
    .into_iter()
    .chain(unreadable(&rows.unreadable, &intents.unreadable))
    .collect()
}

/// How many, as far as they were read.
fn count<T>(page: &Page<T>) -> String {
    let more = if page.next.is_some() { " and more" } else { "" };
    format!("{}{more}", page.items.len())
}

fn overdue(now: Timestamp, what: &str, count: &str, oldest: Option<Timestamp>) -> Finding {
    let Some(oldest) = oldest else {
        return Finding::ok(DUE, format!("{what} are due: none"));
    };
    let age = between(oldest, now);
    let found = format!("{what} are due: {count}, the oldest since {}", told(age));
    let advice = "somebody must look: run `gleaner poll`, or let `gleaner serve` or the scheduler's \
                  function run; while calls are paused this is as it must be";
    if age < LATE {
        Finding::ok(DUE, found)
    } else if age < FORGOTTEN {
        Finding::warning(DUE, found, advice)
    } else {
        Finding::failed(DUE, found, advice)
    }
}

fn unreadable(entries: &[String], intents: &[String]) -> Option<Finding> {
    let first = entries.first().or(intents.first())?;
    let count = entries.len().saturating_add(intents.len());
    Some(Finding::failed(
        DUE,
        format!("rows of the ledger that do not decode: {count}, the first: {first}"),
        "see whether a newer gleaner wrote them; otherwise the ledger is damaged: restore it",
    ))
}

/// Whether anybody looks for jobs that no webhook told of.
pub(super) async fn upkeep(
    ledger: &dyn Ledger,
    settings: &Settings,
    now: Timestamp,
) -> Vec<Finding> {
    let rules = &settings.upkeep;
    let read = async {
        let compared = compared_at(ledger).await?;
        let logs = match &rules.replay {
            Some(rules) => Some((rules.every, read_at(ledger).await?)),
            None => None,
        };
        Ok::<_, CliError>((compared, logs))
    };
    let (compared, logs) = match read.await {
        Ok(read) => read,
        Err(error) => return vec![Finding::trouble(UPKEEP, &error, AGAIN)],
    };
    let keeper = Keeper::of(&settings.backend);
    let lists = Upkeep { what: "job lists were compared", every: rules.reconcile.every };
    let logs = logs.map(|(every, at)| {
        Upkeep { what: "delivery logs were read", every }.judge(keeper, at, now)
    });
    [lists.judge(keeper, compared, now)].into_iter().chain(logs).collect()
}

/// Who does the upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// `serve`, while somebody lets it run.
    Serve,
    /// The scheduler's function, by itself.
    Scheduler,
}

impl Keeper {
    const fn of(backend: &Backend) -> Self {
        match backend {
            Backend::Embedded => Self::Serve,
            Backend::Aws(_) => Self::Scheduler,
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Serve => {
                "let `gleaner serve` run, or run `gleaner reconcile` and `gleaner replay` now and then"
            }
            Self::Scheduler => {
                "see the scheduler's log, and docs/alarms.md on `heartbeat` and `lists`"
            }
        }
    }
}

/// Something that is to be done again and again.
struct Upkeep {
    what: &'static str,
    every: Duration,
}

impl Upkeep {
    fn judge(&self, keeper: Keeper, last: Option<Timestamp>, now: Timestamp) -> Finding {
        let Some(last) = last else {
            let found = format!("{}: never", self.what);
            return match keeper {
                // A folder may be new, and all its jobs polled.
                Keeper::Serve => Finding::ok(UPKEEP, found),
                Keeper::Scheduler => Finding::warning(UPKEEP, found, keeper.advice()),
            };
        };
        let age = between(last, now);
        let found = format!("{}: {} ago", self.what, told(age));
        if age < LATE.saturating_add(self.every) {
            Finding::ok(UPKEEP, found)
        } else if keeper == Keeper::Serve || age < FORGOTTEN.saturating_add(self.every) {
            Finding::warning(UPKEEP, found, keeper.advice())
        } else {
            Finding::failed(UPKEEP, found, keeper.advice())
        }
    }
}

/// What keeps calls from being made.
pub(super) async fn pauses(ledger: &dyn Ledger, now: Timestamp) -> Finding {
    let pauses = Pauses::default();
    let read = async {
        let all = pauses.active(ledger, Scope::All, now).await?;
        let paying = pauses.active(ledger, Scope::Paying, now).await?;
        Ok::<_, CliError>((all, paying))
    };
    match read.await {
        Err(error) => Finding::trouble(PAUSES, &error, AGAIN),
        Ok((None, None)) => Finding::ok(PAUSES, "no calls are paused"),
        Ok((Some(pause), _)) => paused("all calls are", &pause),
        Ok((None, Some(pause))) => paused("submissions are", &pause),
    }
}

fn paused(what: &str, pause: &Pause) -> Finding {
    let advice = match pause.why.as_str() {
        "denied" => "put the right API key in its place; it is tried again by itself",
        "payment_required" => "add tokens to the account; it is tried again by itself",
        "missing" => {
            "many jobs are not known to the platform: see that key and ledger are of one account"
        }
        _ => "wait: it ends by itself",
    };
    let found = format!("{what} paused until {:.0}: {}", pause.until, pause.why);
    Finding::warning(PAUSES, found, advice)
}

/// What the ledger's rows come to.
pub(super) async fn jobs(ledger: &dyn Ledger) -> Vec<Finding> {
    let read = async {
        let entries = ledger.count_entries().await?;
        let intents = ledger.count_intents().await?;
        Ok::<_, CliError>((entries, intents))
    };
    match read.await {
        Ok((entries, intents)) => vec![judge_jobs(&entries), judge_submissions(&intents)],
        Err(error) => vec![Finding::trouble(JOBS, &error, AGAIN)],
    }
}

type Counts = BTreeMap<String, u64>;

fn sum(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

fn judge_jobs(counts: &Counts) -> Finding {
    let open = sum(counts, &["expected", "received", "resubmitting"]);
    let (stored, dead) = (sum(counts, &["stored"]), sum(counts, &["dead"]));
    let found = format!("of all jobs {open} are open, {stored} stored and {dead} dead");
    if dead == 0 {
        return Finding::ok(JOBS, found);
    }
    let reasons: Vec<_> = counts
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix("dead:")?, count)))
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    Finding::warning(
        JOBS,
        format!("{found} ({})", reasons.join(", ")),
        "see them with `gleaner dead list`, and try some again with `gleaner dead redrive`",
    )
}

fn judge_submissions(counts: &Counts) -> Finding {
    let unanswered = sum(counts, &["open"]);
    let (deferred, ambiguous) = (sum(counts, &["deferred"]), sum(counts, &["ambiguous"]));
    let found = format!(
        "of all submissions {unanswered} have no answer yet, {deferred} wait and {ambiguous} are \
         ambiguous"
    );
    if ambiguous == 0 {
        return Finding::ok(JOBS, found);
    }
    Finding::warning(
        JOBS,
        found,
        "whether an ambiguous one was paid nobody can tell from outside: look at the account's jobs \
         before you submit it again under another run name",
    )
}

#[cfg(test)]
mod tests;
