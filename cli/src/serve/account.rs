//! Says what is wrong with the account: at the start, and as long as it is in trouble.

use std::convert::Infallible;
use std::time::Duration;

use domain::pause::Scope;
use domain::ports::{ApiError, ApiErrorKind};
use domain::time::{Timestamp, between};

use crate::pipeline::Pipeline;

/// Pause between two looks at the ledger's word on the account.
const LOOK_PAUSE: Duration = Duration::from_secs(10);
/// Shortest time between two questions to the platform, each of which may end in a line.
const ASK_PAUSE: Duration = Duration::from_mins(1);
/// Reasons of a pause that a person has to mend.
const MENDABLE: [&str; 2] = ["denied", "payment_required"];

/// Where the API key is, and how a new one comes into force.
#[derive(Debug, Clone)]
pub struct KeyPlace {
    /// The place, as a person reads it.
    pub place: String,
    /// What to do with a new key.
    pub how: &'static str,
}

/// Asks the platform whether the key is in order, and again while it is not or the account is
/// paused, at most once a minute.
pub async fn watch(pipeline: &Pipeline, key: &KeyPlace) -> Infallible {
    let clock = &*pipeline.clock;
    let mut in_trouble = ask(pipeline, key).await;
    let mut asked_at = clock.now();
    loop {
        clock.sleep(LOOK_PAUSE).await;
        let now = clock.now();
        if is_due(asked_at, now) && (in_trouble || is_paused(pipeline, now).await) {
            let was_in_trouble = in_trouble;
            in_trouble = ask(pipeline, key).await;
            asked_at = now;
            if was_in_trouble && !in_trouble {
                tracing::info!("the platform answers, and accepts the API key");
            }
        }
    }
}

/// Whether a minute has passed. A clock that was set back does not make it wait.
fn is_due(asked_at: Timestamp, now: Timestamp) -> bool {
    asked_at > now || between(asked_at, now) >= ASK_PAUSE
}

async fn is_paused(pipeline: &Pipeline, now: Timestamp) -> bool {
    let ports = pipeline.ports();
    let pause = ports.pauses.active(ports.ledger, Scope::All, now).await;
    pause.is_ok_and(|pause| pause.is_some_and(|pause| MENDABLE.contains(&pause.why.as_str())))
}

/// Whether there is trouble, which is told.
async fn ask(pipeline: &Pipeline, key: &KeyPlace) -> bool {
    match pipeline.jobs.probe(pipeline.limits.call_timeout).await {
        Ok(()) => false,
        Err(error) => {
            if let Some(text) = advice(&error, key) {
                tracing::warn!(%error, "{text}");
            }
            true
        }
    }
}

/// What a person should do; `None` where waiting is all.
fn advice(error: &ApiError, key: &KeyPlace) -> Option<String> {
    let KeyPlace { place, how } = key;
    match error.kind {
        ApiErrorKind::Throttled => None,
        ApiErrorKind::Denied => Some(format!(
            "the platform refuses the API key ({place}); nothing is fetched until it is mended: {how}"
        )),
        ApiErrorKind::PaymentRequired => {
            Some("the account is out of tokens; add some, and work goes on by itself".to_owned())
        }
        _ => Some(
            "the platform does not answer as it should; what is received is kept, and fetched once \
             it does; check api_url if this stays"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
