//! The dead-letter queue, read and emptied by an operator: bounded, and nothing goes round.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::ports::{DeadLetter, DeadLetterQueue, PortError};

/// How long letters are held while an operator's command is at work with them: longer than a
/// thousand calls take.
pub const LETTER_HOLD: Duration = Duration::from_mins(2);
/// Letters asked for by one call.
const TAKEN_AT_ONCE: u32 = 100;

/// Takes letters until there are none, at most `most` of them, and no letter twice.
///
/// When a call fails, the letters that were taken before it are put back as far as that can be done;
/// the others become visible when their hold ends.
///
/// # Errors
/// Those of the queue.
pub async fn take(queue: &dyn DeadLetterQueue, most: u32) -> Result<Vec<DeadLetter>, PortError> {
    let mut letters: Vec<DeadLetter> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut left = most;
    while left > 0 {
        let taken = match queue.take(left.min(TAKEN_AT_ONCE), LETTER_HOLD).await {
            Ok(taken) => taken,
            Err(error) => {
                put_back(queue, &letters).await;
                return Err(error);
            }
        };
        // One that comes again goes round: its hold has ended, or the queue gives some twice.
        let before = letters.len();
        letters.extend(taken.into_iter().filter(|letter| ids.insert(letter.id.clone())));
        let news = u32::try_from(letters.len() - before).unwrap_or(left);
        if news == 0 {
            break;
        }
        left = left.saturating_sub(news);
    }
    Ok(letters)
}

/// Makes letters visible again, each as far as that can be done: those that cannot be put back
/// become visible when their hold ends. How many could not.
pub async fn put_back(queue: &dyn DeadLetterQueue, letters: &[DeadLetter]) -> usize {
    let mut kept = 0;
    for letter in letters {
        kept += usize::from(queue.put_back(letter).await.is_err());
    }
    kept
}

#[cfg(test)]
mod tests;
