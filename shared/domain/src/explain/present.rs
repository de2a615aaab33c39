//! How the job stands, what comes next, and what does not fit together.

use super::{Known, ObjectSight, Sight};
use crate::entry::{DeadReason, Entry, State};
use crate::intent::{Intent, IntentState};
use crate::job::JobStatus;
use crate::ports::DeliveryStatus;
use crate::post::Post;
use crate::time::{Timestamp, after};

pub(super) struct Present {
    pub(super) sentence: String,
    pub(super) next: String,
    pub(super) next_at: Option<Timestamp>,
    pub(super) remarks: Vec<String>,
}

pub(super) fn of(known: Known<'_>) -> Present {
    let entry = known.entry.filter(|entry| !entry.is_expired(known.now));
    let (sentence, next, next_at) = match entry {
        None => unknown(known),
        Some(entry) => stands(entry, known),
    };
    let mut present = Present { sentence, next, next_at, remarks: Vec::new() };
    if let Some(entry) = entry {
        hold_up(&mut present, entry, known);
        present.remarks.extend(disagreements(entry, known));
    }
    present.remarks.extend(refused_deliveries(known));
    present
}

type Story = (String, String, Option<Timestamp>);

fn story(sentence: impl Into<String>, next: impl Into<String>, at: Option<Timestamp>) -> Story {
    (sentence.into(), next.into(), at)
}

fn unknown(known: Known<'_>) -> Story {
    let sentence = match known.sight {
        Sight::Missing => "Neither the ledger nor the platform knows this job.".to_owned(),
        Sight::Job { status, .. } => format!(
            "The ledger does not know this job; the platform says that it is {}.",
            status.as_str()
        ),
        Sight::NotAsked | Sight::Failed(_) => "The ledger does not know this job.".to_owned(),
    };
    let is_forgotten =
        |created_at: &Timestamp| after(*created_at, known.limits.retention) <= known.now;
    match known.sight {
        Sight::Job { created_at: Some(at), .. } if is_forgotten(at) => story(
            sentence,
            "Nothing: it is older than the ledger's memory, so that its row has been forgotten.",
            None,
        ),
        Sight::Job { .. } => story(
            sentence,
            "A webhook, the delivery log or the job list brings it in: `gleaner reconcile` does so \
             now.",
            None,
        ),
        _ => story(
            sentence,
            "Nothing: look whether the id and the account are the right ones.",
            None,
        ),
    }
}

fn stands(entry: &Entry, known: Known<'_>) -> Story {
    match &entry.state {
        State::Expected => story(
            "Submitted, or seen unfinished; nobody has said yet that it has settled.",
            "Word from the platform makes it received; without word the sweep sends a worker to ask.",
            entry.due_at,
        ),
        State::Received => received(entry, known),
        State::Resubmitting { post } => resubmitting(post, entry, known),
        State::Stored { result } => {
            let how = match (result.empty, result.unsettled) {
                (true, _) => " The platform called it completed and gave no data.",
                (false, true) => " It was stored although tokens were still reserved.",
                (false, false) => "",
            };
            let sentence = format!("Stored as {}, {} bytes.{how}", result.key, result.bytes);
            story(sentence, forgotten(), expiry(entry))
        }
        State::Superseded { by } => story(
            format!("It failed and was submitted again, as {by}."),
            format!("The other job goes on: `gleaner explain {by}`."),
            None,
        ),
        State::Dead { reason, error, result } => {
            let mut sentences = vec![format!("Dead ({reason}): {}.", meaning(*reason))];
            if let Some(error) = error {
                sentences.push(format!("The platform said {}: {}.", error.code, error.message));
            }
            if let Some(result) = result {
                sentences.push(format!("What there was is stored as {}.", result.key));
            }
            story(sentences.join(" "), forgotten(), expiry(entry))
        }
    }
}

fn received(entry: &Entry, known: Known<'_>) -> Story {
    let mut sentences = vec![match (&entry.run, &entry.follow_up) {
        (_, Some(parent)) => format!(
            "No job of the platform's: failed items of {parent} are to be asked for once more, in a \
             new batch."
        ),
        (Some(run), None) => format!(
            "Its result pages are being read: {} parts are stored, page {} is next.",
            run.parts.len(),
            run.next_page
        ),
        (None, None) => "Announced as settled; a worker shall ask the platform.".to_owned(),
    }];
    let counters = &entry.counters;
    let counted = [
        (counters.missing, "answers of 404 in a row"),
        (counters.put_offs, "times put off"),
        (counters.sweeps, "sweeps since the last look"),
        (counters.unusable, "answers in a row that told nothing"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    sentences.extend(counted.map(|(count, what)| format!("So far: {count} {what}.")));
    if let Some(since) = counters.settling_since {
        sentences.push(format!(
            "The platform calls it finished since {since:.0}, and its children still settle."
        ));
    }
    let sentence = sentences.join(" ");
    match entry.not_before {
        Some(not_before) if not_before > known.now => {
            story(sentence, "A worker looks again.", Some(not_before))
        }
        _ if entry.enqueued_at.is_some() => story(
            sentence,
            "A worker takes its task; if the task was lost, the sweep sends another.",
            entry.due_at,
        ),
        _ => story(sentence, "The sweep sends a task, since none is on its way.", entry.due_at),
    }
}

fn resubmitting(post: &Post, entry: &Entry, known: Known<'_>) -> Story {
    let sentence = format!(
        "It failed and is being submitted again: POST number {} of this decision.",
        post.number
    );
    let recover_from = post.recover_from(known.limits);
    let next = if post.searches > 0 {
        format!(
            "Its answer was lost: the job list is searched again ({} searches so far); nobody pays \
             meanwhile.",
            post.searches
        )
    } else {
        "If the answer was lost, the job list is searched before anybody pays again.".to_owned()
    };
    story(sentence, next, entry.due_at.or(Some(recover_from)))
}

fn forgotten() -> String {
    "Nothing; the row is forgotten after its retention.".to_owned()
}

fn expiry(entry: &Entry) -> Option<Timestamp> {
    entry.expires_at.and_then(|second| Timestamp::from_second(second).ok())
}

/// What a dead entry's reason means, and what helps.
const fn meaning(reason: DeadReason) -> &'static str {
    match reason {
        DeadReason::Failed => "it failed, and the platform says that another try would not help",
        DeadReason::ResubmitsExhausted => "it failed as often as a lineage may",
        DeadReason::UnlinkedFailure => {
            "it failed, and no submission of ours is known that could be made again"
        }
        DeadReason::ResubmitRefused => "the platform refused to take it again",
        DeadReason::Ambiguous => {
            "whether a paid POST was accepted could not be decided, so that nobody pays again"
        }
        DeadReason::Cancelled => "it was cancelled",
        DeadReason::Gone => "the platform does not know it any more",
        DeadReason::NeverSettled => "it did not finish within the longest age",
        DeadReason::Poison => "workers took its task again and again and never got to a look",
        DeadReason::TooLarge => "an answer or item is larger than may be stored",
        DeadReason::CorruptObject => {
            "an object lies under its key that is damaged or belongs to another job"
        }
        DeadReason::Inconsistent => "its pages never agreed with its own counters",
        DeadReason::Discarded => "an operator decided that it is not wanted any more",
        DeadReason::Denied => {
            "the platform refuses to answer for it although the account is in order"
        }
    }
}

/// A pause moves what comes next to its end.
fn hold_up(present: &mut Present, entry: &Entry, known: Known<'_>) {
    let Some(pause) = known.pause else { return };
    if entry.state.is_terminal() {
        return;
    }
    present.next_at = present.next_at.max(Some(pause.until));
    present.remarks.push(format!(
        "The account is paused until {:.0} ({}); everything that asks the platform waits.",
        pause.until, pause.why
    ));
}

fn disagreements(entry: &Entry, known: Known<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    match known.object {
        ObjectSight::Missing => remarks.push(
            "The stored object is not where the row says that it is: it was removed from the result \
             store, or the store is another one."
                .to_owned(),
        ),
        ObjectSight::Differs => remarks.push(
            "The stored object is not the one that was stored: its size or checksum differs."
                .to_owned(),
        ),
        ObjectSight::Failed(why) => {
            remarks.push(format!("The result store could not be asked: {why}"));
        }
        ObjectSight::NotAsked | ObjectSight::Whole => {}
    }
    let is_late = |at: Timestamp| after(at, known.limits.sweep_spacing) <= known.now;
    if entry.due_at.is_some_and(is_late) {
        remarks.push(
            "It is overdue: the sweep should have looked. See whether the scheduler runs (`gleaner \
             doctor`), or run `gleaner sweep`."
                .to_owned(),
        );
    }
    match (known.sight, &entry.state) {
        (Sight::Failed(why), _) => remarks.push(format!("The platform could not be asked: {why}")),
        (Sight::Missing, state) if !state.is_terminal() => remarks.push(
            "The platform does not know the job (any more); after a few looks it counts as gone."
                .to_owned(),
        ),
        (Sight::Job { status, .. }, State::Expected) if status.is_terminal() => {
            remarks.push(format!(
                "The platform says that it is {}, and nobody has announced it: `gleaner reconcile` \
                 does so now.",
                status.as_str()
            ));
        }
        (
            Sight::Job { status: JobStatus::Completed, .. },
            State::Dead { reason: DeadReason::Gone | DeadReason::NeverSettled, .. },
        ) => remarks.push(
            "The platform says now that it is completed: `gleaner reconcile` or a redrive brings it \
             back."
                .to_owned(),
        ),
        _ => {}
    }
    if let Some(Intent { state: IntentState::Ambiguous, .. }) = known.intent {
        remarks
            .push("Its submission is ambiguous: a second job may have been paid for.".to_owned());
    }
    remarks
}

/// Deliveries of the job that were made in vain.
fn refused_deliveries(known: Known<'_>) -> Option<String> {
    let attempts = known.deliveries.iter().map(|logged| &logged.delivery);
    let is_fine = attempts.clone().any(|delivery| delivery.status == DeliveryStatus::Success);
    let refused: Vec<_> = attempts.filter_map(|delivery| delivery.http_status).collect();
    let last = refused.last().filter(|_| !is_fine)?;
    let advice = match last {
        401 => "the signing secret here is not the webhook's: `gleaner doctor`",
        413 => {
            "the body was larger than the receiver may take; replay and reconcile are its way in"
        }
        404 | 405 => "the webhook's URL is not the receiver's: `gleaner webhooks list`",
        _ => "see the receiver's log at that time",
    };
    Some(format!("No delivery of it was taken; the last answer was {last}: {advice}."))
}
