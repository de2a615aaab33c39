//! The signing secrets in every stage: whether each can be used, whose it is, and how old.

use std::collections::BTreeSet;

use domain::ports::Webhook;
use domain::signature::scheme::Scheme;
use domain::signature::secret::{Secret, Stage};
use domain::signature::{SECRETS_MAX, Verifier};
use domain::time::{Timestamp, between};

use super::finding::Finding;
use crate::backend::Held;
use crate::output::told;

/// The name of the check.
pub(super) const SECRETS: &str = "secrets";

/// What a secret is judged by.
pub(super) struct Judged<'a> {
    /// The secrets as they are found.
    pub(super) held: &'a [Held],
    /// The account's webhooks, if they are known.
    pub(super) webhooks: Option<&'a [Webhook]>,
    /// How deliveries are signed.
    pub(super) scheme: &'a Scheme,
    /// Whether webhooks are wished for.
    pub(super) are_wanted: bool,
    pub(super) now: Timestamp,
}

/// The ids of the webhooks whose secrets are in force, and whether one that is not on its way out
/// names none.
pub(super) fn named(held: &[Held], now: Timestamp) -> (BTreeSet<String>, bool) {
    let in_force = || held.iter().filter(|held| held.is_in_force(now)).filter_map(secret);
    let ids = in_force().filter_map(Secret::webhook_id).map(str::to_owned).collect();
    let is_unnamed =
        |secret: &Secret| secret.webhook_id().is_none() && secret.stage() != Stage::Previous;
    (ids, in_force().any(is_unnamed))
}

fn secret(held: &Held) -> Option<&Secret> {
    held.secret.as_ref().ok()
}

/// Says of each secret how it is.
pub(super) fn judge(judged: &Judged<'_>) -> Vec<Finding> {
    if judged.held.is_empty() {
        return vec![if judged.are_wanted {
            Finding::failed(
                SECRETS,
                "there is no signing secret: no delivery can be verified, and each is answered 503",
                "run `gleaner webhooks create`, which keeps the secrets that the platform shows",
            )
        } else {
            Finding::skipped(SECRETS, "there is no signing secret, and nothing asks for one")
        }];
    }
    let mut findings: Vec<_> = judged.held.iter().map(|held| judge_one(judged, held)).collect();
    let in_force = judged.held.iter().filter(|held| held.is_in_force(judged.now)).count();
    if in_force > SECRETS_MAX {
        findings.push(Finding::failed(
            SECRETS,
            format!("{in_force} secrets are in force, and a receiver tries {SECRETS_MAX} at most"),
            "delete webhooks that nobody uses with `gleaner webhooks delete ID`",
        ));
    }
    findings
}

fn judge_one(judged: &Judged<'_>, held: &Held) -> Finding {
    let what = format!("the {} secret in {}", held.stage.as_str(), held.place);
    let secret = match &held.secret {
        Ok(secret) => secret,
        Err(reason) if held.stage == Stage::Current => {
            return Finding::failed(
                SECRETS,
                format!("{what} cannot be used: {reason}; deliveries are answered 503"),
                "put the secret there as the platform showed it, see docs/secrets.md, or make the \
                 webhook anew with `gleaner webhooks create`",
            );
        }
        Err(reason) => {
            return Finding::warning(
                SECRETS,
                format!("{what} cannot be used and counts as absent: {reason}"),
                "let the rotation that left it there run again, or take its label away",
            );
        }
    };
    if Verifier::new(judged.scheme.clone(), std::slice::from_ref(secret)).is_err() {
        return Finding::failed(
            SECRETS,
            format!("{what} makes no key under the signature scheme that is set"),
            "store it as the sender shows it, or set `signing.preset` right; `gleaner doctor \
             --capture` finds the settings that fit",
        );
    }
    let webhook = webhook_of(judged, secret);
    let whose = match secret.webhook_id() {
        Some(id) => format!("is that of webhook {id}"),
        None => "names no webhook".to_owned(),
    };
    let until = held.until.map(|until| {
        let is_in_force = held.is_in_force(judged.now);
        let when = if is_in_force { "accepted until" } else { "not accepted since" };
        format!("{when} {until:.0}")
    });
    let parts = [Some(format!("{what} {whose}")), age(held, webhook, judged.now), until];
    let found = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let is_gone = judged.webhooks.is_some() && secret.webhook_id().is_some() && webhook.is_none();
    if is_gone && held.stage == Stage::Current {
        return Finding::warning(
            SECRETS,
            format!("{found}, which the account does not have"),
            "whoever knows it can still sign deliveries: let go of it with `gleaner webhooks delete \
             ID`; or the API key is another account's",
        );
    }
    Finding::ok(SECRETS, found)
}

fn webhook_of<'a>(judged: &Judged<'a>, secret: &Secret) -> Option<&'a Webhook> {
    let id = secret.webhook_id()?;
    judged.webhooks?.iter().find(|webhook| webhook.id.as_str() == id)
}

/// How old a secret is, as far as anything tells: its webhook's age is the most it can be.
fn age(held: &Held, webhook: Option<&Webhook>, now: Timestamp) -> Option<String> {
    if let Some(since) = held.since {
        return Some(format!("{} old", told(between(since, now))));
    }
    let created = webhook?.created_at?;
    Some(format!("at most {} old", told(between(created, now))))
}

impl Held {
    /// Whether deliveries signed with it are accepted.
    pub(super) fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests;
