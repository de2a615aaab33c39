//! Deliveries.

use std::time::Duration;

use domain::announce::AnnounceOutcome;
use domain::receive::{Reception, Unavailable, diagnose};
use domain::signature::Headers;
use domain::signature::verdict::{Answer, Diagnostics};

use crate::catalogue::{Counter, Timing};
use crate::metrics::Metrics;
use crate::text::{Chain, Foreign};

/// Tells what became of a delivery whose body was read. Headers and body are looked at only to say
/// what a rejected one was like: lengths, and a short hash.
pub fn delivery(
    metrics: &Metrics,
    reception: &Reception,
    headers: &dyn Headers,
    body: &[u8],
    took: Duration,
) {
    metrics.time(Timing::Delivery, took);
    metrics.count(counter(reception));
    let code = reception.code();
    match reception {
        Reception::Accepted { key, delivery_id, secret, .. } => tracing::info!(
            job.id = %key.job_id,
            job.kind = %key.kind,
            delivery.id = %Foreign(delivery_id.as_deref().unwrap_or_default()),
            secret,
            code,
            "delivery accepted"
        ),
        Reception::Ignored { event } => {
            tracing::info!(event = %Foreign(event), code, "delivery acknowledged and not owed");
        }
        Reception::Rejected { reason, keys } => {
            // Whoever reaches the receiver can send as much as they like: nothing is gathered for
            // nobody.
            if tracing::enabled!(tracing::Level::INFO) {
                rejected(&diagnose(keys, *reason, headers, body));
            }
        }
        Reception::Unusable { .. } => tracing::warn!(code, "genuine delivery is not usable"),
        Reception::Unavailable(cause) => {
            let error = Chain(cause);
            match cause {
                Unavailable::Secrets(_) | Unavailable::UnusableSecret => {
                    tracing::info!(code, %error, "delivery put off");
                }
                Unavailable::Port(_) | Unavailable::Deadline => {
                    tracing::error!(code, %error, "delivery could not be received");
                }
            }
        }
    }
}

/// Tells of a delivery whose body was not read, with the answer that it got.
pub fn delivery_unread(metrics: &Metrics, status: u16) {
    metrics.count(Counter::DeliveriesUnread);
    tracing::info!(status, "delivery not read");
}

fn counter(reception: &Reception) -> Counter {
    match reception {
        Reception::Accepted { outcome, .. } => match outcome {
            AnnounceOutcome::New | AnnounceOutcome::Sent(_) => Counter::DeliveriesAccepted,
            AnnounceOutcome::Known(_) => Counter::DeliveriesRepeated,
        },
        Reception::Ignored { .. } => Counter::DeliveriesIgnored,
        Reception::Rejected { reason, .. } => match reason.answer() {
            Answer::Unauthorized => Counter::DeliveriesRejected,
            Answer::UnsupportedCoding | Answer::TooLarge | Answer::Unusable => {
                Counter::DeliveriesUnread
            }
        },
        Reception::Unusable { .. } => Counter::DeliveriesUnusable,
        Reception::Unavailable(_) => Counter::DeliveriesUnavailable,
    }
}

fn rejected(diagnostics: &Diagnostics) {
    let lengths: Vec<String> = diagnostics.signature_bytes.iter().map(usize::to_string).collect();
    tracing::info!(
        code = diagnostics.code,
        signature_bytes = lengths.join(","),
        body_bytes = diagnostics.body_bytes,
        body_hash = diagnostics.body_hash,
        content_type = diagnostics.content_type.as_deref().unwrap_or_default(),
        encoded = diagnostics.encoded,
        secrets = diagnostics.key_labels.join(","),
        "delivery rejected"
    );
}
