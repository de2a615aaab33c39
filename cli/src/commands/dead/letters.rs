//! The letters of the dead-letter queue, for the same verbs.

use std::collections::BTreeSet;

use domain::letters::{put_back, take};
use domain::ports::{Clock as _, DeadLetter, DeadLetterQueue};
use system::SystemClock;

use super::choice::Filter;
use super::decide::{Call, Order};
use super::report::{Letter, Outcome, Row};
use crate::backend::Store;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Output, note};
use crate::submitting::Stop;

/// Most letters that one command looks at: they are held meanwhile.
const LOOKED_AT_MAX: u32 = 1_000;

/// The queue, or `None` with a word about it.
fn queue(store: &Store) -> Option<&dyn DeadLetterQueue> {
    if store.dead_letters.is_none() && store.settings.backend != settings::Backend::Embedded {
        note("note: the dead-letter queue is not known; set `dead_letter_queue_url` or `stack`");
    }
    store.dead_letters.as_deref()
}

/// Prints the letters that a filter has, at most `most`; whether there are more.
///
/// # Errors
/// Those of the queue.
pub(super) async fn list(
    store: &Store,
    filter: &Filter,
    most: usize,
    output: Output,
) -> Result<bool, CliError> {
    let Some(queue) = queue(store) else { return Ok(false) };
    let now = SystemClock.now();
    let letters = take(queue, LOOKED_AT_MAX).await?;
    let chosen: Vec<_> = letters.iter().filter(|it| filter.has_letter(it, now)).collect();
    let printed = chosen.iter().take(most).try_for_each(|letter| output.print(&Letter::of(letter)));
    put_all_back(queue, &letters).await;
    printed?;
    Ok(chosen.len() > most)
}

/// Prints one letter.
///
/// # Errors
/// When there is none of that id, and those of the queue.
pub(super) async fn show(store: &Store, id: &str, output: Output) -> Result<(), CliError> {
    let unknown = || {
        CliError::new(Exit::NotFound, format!("there is no letter `{}`", id.escape_debug()))
            .hint("`gleaner dead list --reason letter` lists those that are there")
    };
    let Some(queue) = queue(store) else { return Err(unknown()) };
    let letters = take(queue, LOOKED_AT_MAX).await?;
    put_all_back(queue, &letters).await;
    let letter = letters.iter().find(|letter| letter.id == id).ok_or_else(unknown)?;
    output.print(&Letter::whole(letter))
}

/// Decides about the letters that the filter has.
///
/// # Errors
/// Those of the queue; letters that nothing was done to are put back.
pub(super) async fn filtered(call: &mut Call<'_>, stop: &Stop) -> Result<(), CliError> {
    if call.left == 0 {
        return Ok(());
    }
    let Some(queue) = queue(call.store) else { return Ok(()) };
    let letters = take(queue, LOOKED_AT_MAX).await?;
    let (mut chosen, others): (Vec<_>, Vec<_>) =
        letters.into_iter().partition(|letter| call.chosen.filter.has_letter(letter, call.began));
    put_all_back(queue, &others).await;
    call.summary.more |= chosen.len() > call.left;
    let beyond = chosen.split_off(call.left.min(chosen.len()));
    put_all_back(queue, &beyond).await;
    decide(call, queue, chosen, stop).await
}

/// Decides about the letters with these ids.
///
/// # Errors
/// As [`filtered`].
pub(super) async fn named(
    call: &mut Call<'_>,
    ids: &[String],
    stop: &Stop,
) -> Result<(), CliError> {
    let letters = match queue(call.store) {
        Some(queue) => take(queue, LOOKED_AT_MAX).await?,
        None => Vec::new(),
    };
    let wanted: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let (chosen, others): (Vec<_>, Vec<_>) =
        letters.into_iter().partition(|letter| wanted.contains(letter.id.as_str()));
    let found: BTreeSet<String> = chosen.iter().map(|letter| letter.id.clone()).collect();
    let mut ended = Ok(());
    if let Some(queue) = queue(call.store) {
        put_all_back(queue, &others).await;
        ended = decide(call, queue, chosen, stop).await;
    }
    for id in ids.iter().filter(|id| !found.contains(*id)) {
        let letter_id = Some(id.clone());
        call.row(&Row { letter_id, ..Row::new(call.order, Outcome::Unknown) })?;
    }
    ended
}

/// Decides about letters that are held, one after the other; those that nothing was done to are
/// put back.
async fn decide(
    call: &mut Call<'_>,
    queue: &dyn DeadLetterQueue,
    letters: Vec<DeadLetter>,
    stop: &Stop,
) -> Result<(), CliError> {
    let mut ended = Ok(());
    for letter in letters {
        let outcome = match (call.order, &letter.task) {
            _ if stop.is_set() || ended.is_err() => Outcome::NotLookedAt,
            (Order::Redrive(_), None) => Outcome::NoTask,
            _ if call.chosen.dry_run => Outcome::Planned,
            (Order::Redrive(_), Some(_)) => match queue.send_back(&letter).await {
                Ok(()) => Outcome::SentBack,
                Err(error) => {
                    ended = Err(error.into());
                    Outcome::Failed
                }
            },
            (Order::Discard, _) => match queue.remove(&letter).await {
                Ok(()) => Outcome::Removed,
                Err(error) => {
                    ended = Err(error.into());
                    Outcome::Failed
                }
            },
        };
        if !matches!(outcome, Outcome::SentBack | Outcome::Removed) {
            put_all_back(queue, std::slice::from_ref(&letter)).await;
        }
        let key = letter.task.map(|task| task.key);
        call.row(&Row {
            letter_id: Some(letter.id),
            kind: key.as_ref().map(|key| key.kind),
            job_id: key.map(|key| key.job_id),
            ..Row::new(call.order, outcome)
        })?;
    }
    ended
}

async fn put_all_back(queue: &dyn DeadLetterQueue, letters: &[DeadLetter]) {
    let kept = put_back(queue, letters).await;
    if kept > 0 {
        note(&format!("note: {kept} letters cannot be put back; they are visible in two minutes"));
    }
}
