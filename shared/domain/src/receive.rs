//! Receiving a delivery: verify, read the ids, announce, and only then say 2xx.

use std::sync::Arc;

use crate::announce::{AnnounceOutcome, AnnouncePorts, announce};
use crate::entry::Cause;
use crate::envelope::{Envelope, EnvelopeFormat};
use crate::job::JobKey;
use crate::keyring::{Keyring, NoKeys};
use crate::ports::PortError;
use crate::signature::verdict::{Answer, Diagnostics, Reason, Verdict, Verified};
use crate::signature::{Headers, Verifier};
use crate::within::within;

/// What receiving needs.
#[derive(Clone, Copy)]
pub struct ReceivePorts<'a> {
    /// Ledger, queue, time, chance and bounds.
    pub announcing: AnnouncePorts<'a>,
    /// The signing secrets.
    pub keyring: &'a Keyring,
    /// Where the ids are in the body.
    pub format: &'a EnvelopeFormat,
}

/// What became of a delivery. [`Reception::status`] is what the sender sees.
#[derive(Debug)]
pub enum Reception {
    /// The job is owed durably.
    Accepted {
        /// The job.
        key: JobKey,
        /// What the ledger knew of it.
        outcome: AnnounceOutcome,
        /// The delivery's own id, as evidence.
        delivery_id: Option<String>,
        /// Label of the secret that matched.
        secret: String,
    },
    /// Genuine, and of no kind that we owe: acknowledged and counted.
    Ignored {
        /// Its event type, cut to a bounded length.
        event: String,
    },
    /// Not genuine.
    Rejected {
        /// Why.
        reason: Reason,
        /// The secrets that were tried, for [`diagnose`].
        keys: Arc<Verifier>,
    },
    /// Genuine and not usable: it would never be.
    Unusable {
        /// Why, as a stable code.
        code: &'static str,
    },
    /// Nothing was decided: the sender shall come again.
    Unavailable(Unavailable),
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// There are no usable secrets.
    #[error(transparent)]
    Secrets(NoKeys),
    /// A secret is configured that cannot be used, and no other matched.
    #[error("a signing secret that cannot be used is configured, and no other one matched")]
    UnusableSecret,
    /// The ledger or the queue failed.
    #[error(transparent)]
    Port(PortError),
    /// The receiver's own deadline passed.
    #[error("the receiver's deadline passed")]
    Deadline,
}

impl Reception {
    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Accepted { .. } | Self::Ignored { .. } => 202,
            Self::Rejected { reason, .. } => match reason.answer() {
                Answer::Unauthorized => 401,
                Answer::UnsupportedCoding => 415,
                Answer::TooLarge => 413,
                Answer::Unusable => 400,
            },
            Self::Unusable { .. } => 400,
            Self::Unavailable(_) => 503,
        }
    }

    /// A stable code for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Accepted { outcome: AnnounceOutcome::New, .. } => "accepted_new",
            Self::Accepted { outcome: AnnounceOutcome::Sent(_), .. } => "accepted_sent",
            Self::Accepted { outcome: AnnounceOutcome::Known(_), .. } => "accepted_known",
            Self::Ignored { .. } => "ignored_event",
            Self::Rejected { reason, .. } => reason.code(),
            Self::Unusable { code } => code,
            Self::Unavailable(Unavailable::Secrets(cause)) => cause.code(),
            Self::Unavailable(Unavailable::UnusableSecret) => "unusable_secret",
            Self::Unavailable(Unavailable::Port(error)) => error.kind.as_str(),
            Self::Unavailable(Unavailable::Deadline) => "deadline",
        }
    }
}

/// Receives one delivery within the receiver's deadline.
///
/// Nothing of the body is used but the ids, and those only after the signature was verified.
pub async fn receive(ports: ReceivePorts<'_>, headers: &dyn Headers, body: &[u8]) -> Reception {
    let limit = ports.announcing.limits.receive_deadline;
    let clock = ports.announcing.clock;
    within(clock, limit, decide(ports, headers, body))
        .await
        .unwrap_or(Reception::Unavailable(Unavailable::Deadline))
}

async fn decide(ports: ReceivePorts<'_>, headers: &dyn Headers, body: &[u8]) -> Reception {
    let verified = match verify(ports, headers, body).await {
        Ok(verified) => verified,
        Err(reception) => return reception,
    };
    let envelope = match Envelope::parse(ports.format, &verified.body) {
        Ok(envelope) => envelope,
        Err(error) => return Reception::Unusable { code: error.code() },
    };
    let Some(kind) = envelope.event.kind() else {
        return Reception::Ignored { event: envelope.event.as_str().to_owned() };
    };
    let key = JobKey::new(kind, envelope.job_id);
    let delivery_id = envelope.delivery_id;
    match announce(ports.announcing, &key, Cause::Delivery, delivery_id.as_deref()).await {
        Ok(outcome) => Reception::Accepted { key, outcome, delivery_id, secret: verified.label },
        Err(error) => Reception::Unavailable(Unavailable::Port(error)),
    }
}

/// Verifies under the secrets in force and, if none matches, under newer ones.
async fn verify<'b>(
    ports: ReceivePorts<'_>,
    headers: &dyn Headers,
    body: &'b [u8],
) -> Result<Verified<'b>, Reception> {
    let unavailable = |cause| Reception::Unavailable(Unavailable::Secrets(cause));
    let clock = ports.announcing.clock;
    let now = clock.now();
    let mut keys = ports.keyring.current(clock).await.map_err(unavailable)?;
    let mut verdict = keys.verify(headers, body, now);
    let may_be_new = match &verdict {
        Verdict::Rejected(reason) => reason.may_be_new_secret(),
        Verdict::Unconfigured(_) => true,
        Verdict::Verified(_) => false,
    };
    if may_be_new
        && let Some(newer) = ports.keyring.newer_than(&keys, clock).await.map_err(unavailable)?
    {
        verdict = newer.verify(headers, body, now);
        keys = newer;
    }
    match verdict {
        Verdict::Verified(verified) => Ok(verified),
        Verdict::Rejected(reason) => Err(Reception::Rejected { reason, keys }),
        Verdict::Unconfigured(_) => Err(Reception::Unavailable(Unavailable::UnusableSecret)),
    }
}

/// What may be logged about a refusal. A body that nobody hashed so far is not hashed for the log.
///
/// Hashes the body after a mismatch, so it is to be called only where somebody reads the log:
/// strangers may send as many forged deliveries as they like.
pub fn diagnose(
    keys: &Verifier,
    reason: Reason,
    headers: &dyn Headers,
    body: &[u8],
) -> Diagnostics {
    if reason == Reason::Mismatch {
        return keys.diagnose(reason.code(), headers, body);
    }
    let unhashed = keys.diagnose(reason.code(), headers, &[]);
    Diagnostics { body_bytes: body.len(), body_hash: String::new(), ..unhashed }
}

#[cfg(test)]
pub(crate) mod tests;
