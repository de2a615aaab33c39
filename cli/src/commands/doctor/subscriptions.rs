//! Webhooks at the platform against the receiver that shall hear of jobs.

use std::collections::BTreeSet;

use domain::envelope::EventType;
use domain::job::Kind;
use domain::limits::WEBHOOKS_MAX;
use domain::ports::Webhook;
use reqwest::Url;

use super::finding::Finding;

/// The name of the check.
pub(super) const WEBHOOKS: &str = "webhooks";

/// What is known about webhooks.
pub(super) struct Known<'a> {
    /// Those of the account.
    pub(super) webhooks: &'a [Webhook],
    /// Entries of the account's list that could not be read.
    pub(super) unreadable: u32,
    /// The kinds of job of which the receiver shall hear.
    pub(super) kinds: &'a [Kind],
    /// Where the receiver is, if that is set.
    pub(super) url: Option<&'a str>,
    /// The ids of the webhooks whose secrets are here.
    pub(super) secrets: &'a BTreeSet<String>,
    /// Whether a secret is here that names no webhook.
    pub(super) is_some_unnamed: bool,
}

/// Says of each event whether it is delivered, and of the account whether there is room.
pub(super) fn judge(known: &Known<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match known.url {
        Some(url) => {
            findings.extend(known.kinds.iter().flat_map(|kind| of_kind(known, url, *kind)));
        }
        None => findings.extend(without_url(known)),
    }
    findings.extend(room(known));
    findings
}

/// What is said where nothing tells where the receiver is.
fn without_url(known: &Known<'_>) -> Vec<Finding> {
    let ours: Vec<_> = known.webhooks.iter().filter(|webhook| known.holds(webhook)).collect();
    if ours.is_empty() {
        let found = "no `public_url` is set and no webhook's secret is here: jobs are found by \
                     polling alone, only later";
        return vec![Finding::skipped(WEBHOOKS, found)];
    }
    let unset = Finding::warning(
        WEBHOOKS,
        "`public_url` is not set, so that nobody can tell whether webhooks lead to the receiver",
        "set `public_url` to the URL under which the platform reaches `gleaner serve`",
    );
    let paused = ours.into_iter().filter(|webhook| !webhook.is_active).map(inactive);
    std::iter::once(unset).chain(paused).collect()
}

/// What is said of one event.
fn of_kind(known: &Known<'_>, url: &str, kind: Kind) -> Vec<Finding> {
    let event = EventType::completed(kind);
    let of_event = known.webhooks.iter().filter(|webhook| webhook.event_type == event);
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        of_event.partition(|webhook| is_same(&webhook.url, url));
    let moved: Vec<_> = elsewhere.into_iter().filter(|webhook| known.holds(webhook)).collect();
    let (active, paused): (Vec<&Webhook>, Vec<&Webhook>) =
        here.into_iter().partition(|webhook| webhook.is_active);
    let mut findings = Vec::new();
    findings.extend(active.iter().map(|webhook| delivering(known, webhook)));
    if active.is_empty() {
        findings.extend(paused.iter().copied().map(inactive));
        findings.extend(moved.iter().map(|webhook| misled(webhook, url)));
    }
    if findings.is_empty() {
        findings.push(Finding::failed(
            WEBHOOKS,
            format!("no webhook delivers {} to {url}", event.as_str()),
            format!(
                "run `gleaner webhooks create --event {kind}`; until then such jobs are found by \
                 polling, only later"
            ),
        ));
    }
    if active.len() > 1 {
        findings.push(Finding::warning(
            WEBHOOKS,
            format!(
                "{} webhooks deliver {} to {url}, so that each job is delivered as often",
                active.len(),
                event.as_str()
            ),
            "unless a secret is being rotated, delete all but one with `gleaner webhooks delete ID`",
        ));
    }
    findings
}

/// An active webhook of the right event at the right URL.
fn delivering(known: &Known<'_>, webhook: &Webhook) -> Finding {
    let (id, event) = (webhook.id.as_str(), webhook.event_type.as_str());
    if known.holds(webhook) {
        let found = format!("{event} is delivered by webhook {id}, whose secret is here");
        return Finding::ok(WEBHOOKS, found);
    }
    if known.is_some_unnamed {
        return Finding::warning(
            WEBHOOKS,
            format!(
                "{event} is delivered by webhook {id}; whether its secret is here cannot be told, \
                 because a secret that is here names no webhook"
            ),
            "keep that secret as JSON with `secret` and `webhook_id`, or see one delivery through \
             `gleaner doctor --capture`",
        );
    }
    Finding::failed(
        WEBHOOKS,
        format!(
            "{event} is delivered by webhook {id}, whose secret is not here: its deliveries are \
             answered 401"
        ),
        format!(
            "delete it with `gleaner webhooks delete {id}` and make it anew with `gleaner webhooks \
             create`"
        ),
    )
}

fn inactive(webhook: &Webhook) -> Finding {
    let (id, event) = (webhook.id.as_str(), webhook.event_type.as_str());
    Finding::failed(
        WEBHOOKS,
        format!("webhook {id} of {event} is inactive: nothing is delivered"),
        format!("run `gleaner webhooks update {id} --active true`"),
    )
}

fn misled(webhook: &Webhook, url: &str) -> Finding {
    let (id, event) = (webhook.id.as_str(), webhook.event_type.as_str());
    Finding::failed(
        WEBHOOKS,
        format!("webhook {id} delivers {event} to {}, and the receiver is {url}", webhook.url),
        format!("run `gleaner webhooks update {id} --url {url}`, or set `public_url` right"),
    )
}

/// Whether one more webhook would find room, which a rotation needs.
fn room(known: &Known<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if known.unreadable > 0 {
        findings.push(Finding::warning(
            WEBHOOKS,
            format!("webhooks of the account that cannot be read: {}", known.unreadable),
            "see whether there is a newer gleaner",
        ));
    }
    let unreadable = usize::try_from(known.unreadable).unwrap_or(usize::MAX);
    let count = known.webhooks.len().saturating_add(unreadable);
    let found = format!("the account has {count} of at most {WEBHOOKS_MAX} webhooks");
    let advice = "a rotation that loses no delivery needs room for one more: delete those that \
                  nobody uses, see `gleaner webhooks list`";
    if count.saturating_add(1) >= WEBHOOKS_MAX {
        findings.push(Finding::warning(WEBHOOKS, found, advice));
    } else {
        findings.push(Finding::ok(WEBHOOKS, found));
    }
    findings
}

impl Known<'_> {
    /// Whether a webhook's secret is here.
    fn holds(&self, webhook: &Webhook) -> bool {
        self.secrets.contains(webhook.id.as_str())
    }
}

/// Whether two texts are one URL.
fn is_same(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
