//! Which of the dead are meant.

use std::fmt;
use std::time::Duration;

use clap::Args;
use domain::entry::{DeadReason, Entry, Note, State, StateName};
use domain::job::Kind;
use domain::ports::{DeadLetter, EntryFilter};
use domain::time::{Timestamp, before};

use crate::commands::jobs::{Name, parse_job};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Limit, NameError, Source, parse_duration, parse_limit, parse_name};

/// What says of a name that it is a letter's id.
const LETTER: &str = "letter:";
/// Rows that one command decides about, unless told otherwise.
const DECIDED: u32 = 1_000;

/// What one of the dead is named by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A job.
    Job(Name),
    /// A letter of the dead-letter queue, by its id.
    Letter(String),
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(name) => name.fmt(out),
            Self::Letter(id) => write!(out, "{LETTER}{id}"),
        }
    }
}

/// Reads a job's id or ref, or `letter:` and a letter's id.
///
/// # Errors
/// When it can be neither.
pub(super) fn parse_target(text: &str) -> Result<Target, NameError> {
    match text.strip_prefix(LETTER) {
        Some(id) => parse_name(id).map(Target::Letter),
        None => parse_job(text).map(Target::Job),
    }
}

/// A reason on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Of an entry.
    Reason(DeadReason),
    /// A letter.
    Letter,
}

/// Reads a reason.
///
/// # Errors
/// Names all that there are.
fn parse_why(text: &str) -> Result<Why, String> {
    let known = DeadReason::ALL.into_iter().find(|reason| reason.as_str() == text);
    match (known, text) {
        (Some(reason), _) => Ok(Why::Reason(reason)),
        (None, "letter") => Ok(Why::Letter),
        (None, _) => {
            let all: Vec<_> = DeadReason::ALL.iter().map(|reason| reason.as_str()).collect();
            Err(format!("write one of {}, letter", all.join(", ")))
        }
    }
}

/// What narrows the dead down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct Filter {
    /// Dead for this reason only, or `letter` for letters; may be given several times.
    #[arg(long = "reason", value_name = "REASON", value_parser = parse_why)]
    reasons: Vec<Why>,
    /// Jobs of this kind only.
    #[arg(long, value_name = "KIND")]
    pub(super) kind: Option<Kind>,
    /// Jobs with this ref only, your own id for them.
    #[arg(long = "ref", value_name = "REF", value_parser = parse_name)]
    reference: Option<String>,
    /// Dead for at least so long, such as 30m, 12h or 7d.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_duration)]
    older: Option<Duration>,
    /// Dead for at most so long.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_duration)]
    newer: Option<Duration>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of it the ledger can tell.
    pub(super) fn of_entries(&self) -> EntryFilter {
        EntryFilter {
            state: Some(StateName::Dead),
            kind: self.kind,
            reference: self.reference.clone(),
        }
    }

    /// Whether entries are meant at all.
    pub(super) fn wants_entries(&self) -> bool {
        self.reasons.is_empty() || self.reasons.iter().any(|why| *why != Why::Letter)
    }

    /// Whether letters are meant at all: a letter has neither ref nor reason.
    pub(super) fn wants_letters(&self) -> bool {
        self.reference.is_none() && (self.reasons.is_empty() || self.reasons.contains(&Why::Letter))
    }

    /// Whether an entry is meant, as it stood at this instant. What was discarded is meant only
    /// where it is asked for by its reason.
    pub(super) fn has(&self, entry: &Entry, now: Timestamp) -> bool {
        let State::Dead { reason, .. } = entry.state else { return false };
        let is_wanted = match self.reasons.as_slice() {
            [] => reason != DeadReason::Discarded,
            reasons => reasons.contains(&Why::Reason(reason)),
        };
        is_wanted
            && !entry.is_expired(now)
            && self.kind.is_none_or(|kind| kind == entry.key.kind)
            && self.fits(dead_since(entry), now)
    }

    /// Whether a letter is meant.
    pub(super) fn has_letter(&self, letter: &DeadLetter, now: Timestamp) -> bool {
        let kind = letter.task.as_ref().map(|task| task.key.kind);
        self.wants_letters()
            && (self.kind.is_none() || self.kind == kind)
            && letter.sent_at.is_none_or(|sent_at| self.fits(sent_at, now))
    }

    fn fits(&self, since: Timestamp, now: Timestamp) -> bool {
        self.older.is_none_or(|older| since <= before(now, older))
            && self.newer.is_none_or(|newer| since >= before(now, newer))
    }
}

/// Since when an entry is dead as it is: its last line tells.
pub(super) fn dead_since(entry: &Entry) -> Timestamp {
    entry.history.last().map_or(entry.first_seen, |line| line.at)
}

/// Those that a decision is about.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// Ids or refs, or `letter:ID`; `-` alone reads them from standard input, one per line.
    #[arg(value_name = "ID", value_parser = parse_argument)]
    ids: Vec<Argument>,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// All that are dead and not discarded, letters among them.
    #[arg(long)]
    all: bool,
    /// Most that are decided about, or `all`.
    #[arg(
        long, allow_negative_numbers = true, default_value_t = Limit::Rows(DECIDED),
        value_name = "ROWS", value_parser = parse_limit
    )]
    limit: Limit,
    /// Show what would be done; change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Why, for the history.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Who, for the history.
    #[arg(long, env = "USER", hide_env_values = true, value_name = "NAME")]
    by: Option<String>,
}

/// An argument of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    Stdin,
    Target(Target),
}

fn parse_argument(text: &str) -> Result<Argument, NameError> {
    if text == "-" { Ok(Argument::Stdin) } else { parse_target(text).map(Argument::Target) }
}

/// What was chosen.
pub(super) enum Selection {
    /// By name, in this order.
    Named(Vec<Target>),
    /// By the filter.
    Filtered,
}

impl Chosen {
    /// What was chosen.
    ///
    /// # Errors
    /// When nothing was, or names and filters are mixed, or the list cannot be used.
    pub(super) fn selection(&self) -> Result<Selection, CliError> {
        let usage = |text: &str| Err(CliError::new(Exit::Usage, text));
        let has_names = !self.ids.is_empty();
        let narrow = Filter { kind: None, ..self.filter.clone() };
        match (has_names, self.all, self.filter.is_empty()) {
            (true, true, _) => usage("`--all` goes without ids"),
            (true, false, _) if !narrow.is_empty() => usage("ids go without filters but --kind"),
            (false, true, false) => usage("`--all` goes without filters"),
            (false, false, true) => Err(CliError::new(Exit::Usage, "nothing is chosen")
                .hint("name ids, a filter such as `--reason gone`, or `--all`")),
            (false, ..) => Ok(Selection::Filtered),
            (true, false, _) => self.targets().map(Selection::Named),
        }
    }

    fn targets(&self) -> Result<Vec<Target>, CliError> {
        if self.ids == [Argument::Stdin] {
            return Source::Stdin.read_ids(parse_target);
        }
        let targets = self.ids.iter().map(|argument| match argument {
            Argument::Target(target) => Ok(target.clone()),
            Argument::Stdin => Err(CliError::new(Exit::Usage, "`-` goes without ids")),
        });
        targets.collect()
    }

    /// How many are decided about at most.
    pub(super) fn most(&self) -> usize {
        match self.limit {
            Limit::Rows(rows) => usize::try_from(rows).unwrap_or(usize::MAX),
            Limit::All => usize::MAX,
        }
    }

    /// The line of the history.
    pub(super) fn note(&self) -> Option<Note> {
        Note::new(self.by.as_deref(), self.why.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use domain::entry::Cause;
    use domain::job::{JobId, JobKey};
    use domain::limits::Limits;
    use domain::time::after;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn dead(reason: DeadReason) -> Entry {
        let (key, limits) =
            (JobKey::new(Kind::Batch, JobId::parse("j").unwrap()), Limits::default());
        let entry = Entry::expected(key, None, Cause::Submit, now(), &limits);
        let state = State::Dead { reason, error: None, result: None };
        entry.settled(state, Cause::Work, now(), &limits)
    }

    #[test]
    fn a_filter_has_what_it_names() {
        let (entry, later) = (dead(DeadReason::Gone), after(now(), HOUR));
        let has = |filter: Filter| filter.has(&entry, later);
        assert!(has(Filter::default()));
        let reasons = |why: &[Why]| Filter { reasons: why.to_vec(), ..Filter::default() };
        assert!(has(reasons(&[Why::Reason(DeadReason::Failed), Why::Reason(DeadReason::Gone)])));
        assert!(!has(reasons(&[Why::Reason(DeadReason::Failed)])));
        assert!(!has(Filter { kind: Some(Kind::Crawl), ..Filter::default() }));
        for (duration, older, newer) in
            [(HOUR / 2, true, false), (HOUR, true, true), (2 * HOUR, false, true)]
        {
            assert_eq!(has(Filter { older: Some(duration), ..Filter::default() }), older);
            assert_eq!(has(Filter { newer: Some(duration), ..Filter::default() }), newer);
        }
        let discarded = entry.discarded(None, later, &Limits::default()).unwrap();
        assert!(!Filter::default().has(&discarded, later));
        assert!(reasons(&[Why::Reason(DeadReason::Discarded)]).has(&discarded, later));
        let letters = reasons(&[Why::Letter]);
        assert!(!letters.wants_entries() && letters.wants_letters());
        assert!(!Filter { reference: Some("r".to_owned()), ..Filter::default() }.wants_letters());
    }

    #[test]
    fn reasons_are_those_of_the_ledger_and_letters() {
        assert_eq!(parse_why("gone"), Ok(Why::Reason(DeadReason::Gone)));
        assert_eq!(parse_why("letter"), Ok(Why::Letter));
        assert!(parse_why("GONE").unwrap_err().contains("never_settled"));
    }

    #[test]
    fn letters_are_named_by_their_prefix() {
        assert_eq!(parse_target("letter:1-2"), Ok(Target::Letter("1-2".to_owned())));
        assert!(matches!(parse_target("my-1"), Ok(Target::Job(_))));
        assert!(parse_target("letter:").is_err());
    }
}
