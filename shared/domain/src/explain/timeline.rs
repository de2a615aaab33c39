//! What happened, in order.

use super::{Known, Logged, Moment, Sight, Source};
use crate::entry::{Cause, State, Transition};
use crate::intent::{Intent, IntentState};

pub(super) fn of(known: Known<'_>) -> Vec<Moment> {
    let mut moments = Vec::new();
    if let Some(intent) = known.intent {
        moments.extend(submitted(intent));
    }
    if let Sight::Job { created_at: Some(at), .. } = known.sight {
        moments.push(Moment { at: *at, source: Source::Platform, text: "job created".to_owned() });
    }
    moments.extend(known.deliveries.iter().filter_map(logged));
    if let Some(entry) = known.entry {
        moments.extend(entry.history.iter().map(moved));
        if let Some(at) = entry.enqueued_at {
            let text = "task sent to the workers".to_owned();
            moments.push(Moment { at, source: Source::Ledger, text });
        }
        if let State::Resubmitting { post } = &entry.state {
            let text = format!("POST number {} intended", post.number);
            moments.push(Moment { at: post.intended_at, source: Source::Ledger, text });
        }
    }
    // Stable: what one source says at one instant stays in its order.
    moments.sort_by_key(|moment| (moment.at, moment.source));
    moments
}

fn submitted(intent: &Intent) -> Option<Moment> {
    let post = match &intent.state {
        IntentState::Open { post } | IntentState::Deferred { post } => post,
        // A closed intent keeps no time: the row's history begins with it.
        IntentState::Accepted { .. } | IntentState::Refused { .. } | IntentState::Ambiguous => {
            return None;
        }
    };
    let text = format!("POST number {} intended", post.number);
    Some(Moment { at: post.intended_at, source: Source::Intent, text })
}

fn logged(logged: &Logged) -> Option<Moment> {
    let Logged { webhook, delivery } = logged;
    let at = delivery.delivered_at.or(delivery.created_at)?;
    let attempt = delivery.attempt_number.map(|number| format!(" {number}")).unwrap_or_default();
    let answer = match delivery.http_status {
        Some(status) => format!("answered {status}"),
        None => "not answered".to_owned(),
    };
    let text = format!(
        "delivery attempt{attempt} by webhook {}: {}, {answer}",
        webhook.as_str(),
        delivery.status.as_str(),
    );
    Some(Moment { at, source: Source::DeliveryLog, text })
}

fn moved(line: &Transition) -> Moment {
    let why = match line.cause {
        Cause::Submit => "submitted by us",
        Cause::Adopt => "found in the job list after its answer was lost",
        Cause::Delivery => "a webhook was delivered",
        Cause::Poll => "polling saw that it settled",
        Cause::Replay => "the delivery log names it",
        Cause::Reconcile => "the job list names it",
        Cause::Work => "a worker looked at it",
        Cause::Sweep => "the sweep found it overdue",
        Cause::Operator => "an operator decided",
    };
    let delivery = line.delivery_id.as_deref();
    let delivery = delivery.map(|id| format!(" ({})", id.escape_debug())).unwrap_or_default();
    let note = line.note.as_ref();
    let note = note.map(|note| format!(" ({})", note.as_str())).unwrap_or_default();
    let text = match line.from {
        Some(from) if from != line.to => format!("{from} -> {}: {why}{delivery}{note}", line.to),
        _ => format!("{}: {why}{delivery}{note}", line.to),
    };
    Moment { at: line.at, source: Source::Ledger, text }
}
