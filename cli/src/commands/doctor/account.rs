//! The platform: whether it answers, what time it has, and whether it takes the API key.

use std::time::Duration;

use domain::ports::{ApiErrorKind, Clock as _};
use domain::time::{Timestamp, between};
use scraper_api::{Health, HealthStatus, Usage as _};
use settings::Settings;

use super::finding::{AGAIN, Finding};
use crate::backend::Site;
use crate::error::CliError;
use system::SystemClock;

/// The names of the checks.
pub(super) const API: &str = "api";
pub(super) const CLOCK: &str = "clock";
pub(super) const KEY: &str = "key";

/// Longest time of one call.
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(10);
/// An answer that takes longer is slow: polling asks for many.
const SLOW: Duration = Duration::from_secs(2);
/// The platform writes whole seconds in places.
const GRAIN: Duration = Duration::from_secs(1);
/// Difference of clocks up to which nobody need look.
const SKEW_UNNOTICED: Duration = Duration::from_secs(5);

/// What the platform said of itself, and when it was asked and answered.
pub(super) struct Asked {
    health: Health,
    sent: Timestamp,
    answered: Timestamp,
}

/// Asks the platform how it is. The call needs no key and sends none.
pub(super) async fn reach(site: &Site) -> (Vec<Finding>, Option<Asked>) {
    let api = match site.keyless_api() {
        Ok(api) => api,
        Err(error) => return (vec![Finding::trouble(API, &error, AGAIN)], None),
    };
    let within = CALL_WITHIN.min(site.settings.limits.call_timeout);
    let sent = SystemClock.now();
    match api.health(within).await {
        Ok(health) => {
            let asked = Asked { health, sent, answered: SystemClock.now() };
            (vec![judge_health(&site.settings.api_url, &asked)], Some(asked))
        }
        Err(error) => {
            let is_missing = error.kind == ApiErrorKind::Missing;
            let error = CliError::from(error);
            let found =
                format!("no usable answer from {}: {}", site.settings.api_url, error.told());
            let advice = if is_missing {
                "check the setting `api_url`: something answers there that is not the platform's API"
            } else {
                "check the setting `api_url`, the network, and whether a proxy or firewall is in \
                 between; until it answers nothing is fetched, and nothing is lost"
            };
            (vec![Finding::failed(API, found, advice)], None)
        }
    }
}

fn judge_health(url: &str, asked: &Asked) -> Finding {
    let took = between(asked.sent, asked.answered);
    let millis = took.as_millis();
    let version = asked.health.version.as_deref().unwrap_or("unknown");
    let found = format!("{url} answered within {millis} ms (version {version})");
    match &asked.health.status {
        HealthStatus::Ok if took > SLOW => Finding::warning(
            API,
            format!("{found}, which is slow"),
            "look for a proxy or a long way in between; time-outs of calls are \
             `limits.call_timeout` and `api_connect_timeout`",
        ),
        HealthStatus::Ok => Finding::ok(API, found),
        HealthStatus::Unavailable => Finding::failed(
            API,
            format!("{found} that it is unavailable"),
            "wait: what is owed is kept, and is fetched when the platform works again",
        ),
        HealthStatus::Degraded => Finding::warning(
            API,
            format!("{found} that it is degraded"),
            "expect slow jobs and refused calls; both are tried again",
        ),
        HealthStatus::Unknown(word) => Finding::warning(
            API,
            format!("{found}, in words that this version does not know: `{word}`"),
            "see whether there is a newer gleaner",
        ),
    }
}

/// Compares this machine's clock with the platform's.
pub(super) fn judge_clock(asked: &Asked, settings: &Settings) -> Finding {
    let Some(theirs) = asked.health.timestamp else {
        return Finding::skipped(CLOCK, "the platform's answer holds no time to compare with");
    };
    let Asked { sent, answered, .. } = *asked;
    // Between the two lies the moment at which the platform looked at its clock, which it may have
    // cut to whole seconds.
    let ahead = between(after_grain(theirs), sent);
    let behind = between(answered, theirs);
    let (skew, way) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    let seconds = skew.as_secs();
    let slack = settings.limits.clock_slack();
    let tolerance = settings.scheme.tolerance();
    if skew <= SKEW_UNNOTICED {
        return Finding::ok(CLOCK, "this clock and the platform's agree");
    }
    let found = format!("this clock is {seconds} s {way} the platform's");
    let advice = "set this machine's clock by NTP, then run this again";
    let mut broken = Vec::new();
    if skew >= slack {
        broken.push(format!(
            "a submission whose answer is lost is looked for at the wrong time \
             (`limits.adoption_margin` is {} s)",
            slack.as_secs()
        ));
    }
    if let Some(tolerance) = tolerance.filter(|tolerance| skew >= *tolerance) {
        broken.push(format!(
            "signed deliveries are refused as stale or early (the tolerance is {} s)",
            tolerance.as_secs()
        ));
    }
    if broken.is_empty() {
        Finding::warning(CLOCK, format!("{found}; nothing breaks yet"), advice)
    } else {
        Finding::failed(CLOCK, format!("{found}: {}", broken.join("; ")), advice)
    }
}

fn after_grain(at: Timestamp) -> Timestamp {
    domain::time::after(at, GRAIN)
}

/// Asks for something that needs the key, and costs nothing.
pub(super) async fn key(site: &Site) -> Finding {
    let api = match site.api().await {
        Ok(api) => api,
        Err(error) => return Finding::trouble(KEY, &error, AGAIN),
    };
    let within = CALL_WITHIN.min(site.settings.limits.call_timeout);
    match api.concurrency(within).await {
        Ok(slots) if slots.in_use >= slots.limit => Finding::warning(
            KEY,
            format!("it is accepted; all {} of the account's slots are in use", slots.limit),
            "further submissions wait for a slot, which `submit` does by itself",
        ),
        Ok(slots) => Finding::ok(
            KEY,
            format!("it is accepted; {} of {} slots are in use", slots.in_use, slots.limit),
        ),
        Err(error) => match error.kind {
            ApiErrorKind::Denied | ApiErrorKind::PaymentRequired => {
                Finding::trouble(KEY, &crate::backend::advised(error.into(), &site.settings), AGAIN)
            }
            _ => Finding::warning(
                KEY,
                format!("whether it is accepted is not known: {}", CliError::from(error).told()),
                "run this again",
            ),
        },
    }
}
