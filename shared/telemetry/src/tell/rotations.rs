//! Rotations of signing secrets, and the webhooks that they replaced.

use std::error::Error;

use domain::ports::PortError;
use domain::retire::Retired;

use crate::catalogue::Counter;
use crate::metrics::Metrics;
use crate::text::Chain;

/// Tells what became of a step of a rotation: a stable code, or why it did not come to its end.
pub fn rotated(
    metrics: &Metrics,
    secret: &str,
    step: &str,
    outcome: Result<&str, &(dyn Error + 'static)>,
) {
    match outcome {
        Ok(code) => {
            metrics.count(Counter::RotationSteps);
            tracing::info!(secret, step, code, "rotation step taken");
        }
        Err(error) => {
            metrics.count(Counter::RotationTroubles);
            let error = Chain(error);
            tracing::error!(secret, step, %error, "rotation step not taken");
        }
    }
}

/// Tells what became of the webhooks that were replaced.
pub fn retired(metrics: &Metrics, retired: &Result<Retired, PortError>) {
    let retired = match retired {
        Ok(retired) => retired,
        Err(error) => {
            metrics.count(Counter::TickTroubles);
            tracing::warn!(error = %Chain(error), "replaced webhooks could not be looked at");
            return;
        }
    };
    metrics.add(Counter::JobsAnnounced, u64::from(retired.announced));
    metrics.add(Counter::WebhooksRetired, u64::from(retired.deleted));
    if retired.deleted > 0 || retired.orphans > 0 {
        let (webhooks, orphans) = (retired.deleted, retired.orphans);
        tracing::info!(webhooks, orphans, "replaced webhooks were deleted");
    }
    for (webhook, why) in &retired.blocked {
        let (id, why) = (webhook.as_str(), why.as_str());
        tracing::warn!(
            webhook.id = id,
            why,
            "a replaced webhook stays until its successor is in force"
        );
    }
    for trouble in &retired.troubles {
        metrics.count(Counter::TickTroubles);
        tracing::warn!(error = %Chain(trouble), "a replaced webhook could not be taken away yet");
    }
}
