//! What is missing until each event is delivered to the receiver by one webhook whose secret is
//! known.

use std::collections::BTreeSet;

use crate::envelope::EventType;
use crate::job::Kind;
use crate::ports::{Webhook, WebhookChange};
use crate::subscriptions::is_same_url;

/// The state that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// Where deliveries shall go.
    pub url: &'a str,
    /// The kinds of job whose completion shall be delivered.
    pub kinds: &'a [Kind],
}

/// The webhooks whose secrets are kept, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those whose secret is a current one.
    pub current: BTreeSet<String>,
    /// Those whose secret is a pending or previous one: a rotation looks after them.
    pub others: BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// For each kind that is wanted, in their order.
    pub needs: Vec<(Kind, Need)>,
    /// Webhooks of the same URL and event whose secret nobody knows here: what they deliver is
    /// refused.
    pub strangers: Vec<Webhook>,
    /// Webhooks of the same URL and event beside the one that is enough.
    pub doubles: Vec<Webhook>,
}

/// What one kind needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Nothing: this webhook is as it should be.
    Nothing(Webhook),
    /// This webhook is to be changed.
    Change(Webhook, WebhookChange),
    /// A webhook.
    Webhook,
}

/// Plans what is to be done. When it is done and nothing else happened, the next plan needs nothing.
pub fn plan(wish: Wish<'_>, present: &[Webhook], kept: &Kept) -> Plan {
    let mut plan = Plan { needs: Vec::new(), strangers: Vec::new(), doubles: Vec::new() };
    for kind in wish.kinds {
        let event = EventType::completed(*kind);
        let of_event = || present.iter().filter(|webhook| webhook.event_type == event);
        let is_here = |webhook: &Webhook| is_same_url(&webhook.url, wish.url);
        let is_ours = |webhook: &&Webhook| kept.current.contains(webhook.id.as_str());
        // The best one: where it should be, and delivering.
        let mut ours: Vec<&Webhook> = of_event().filter(is_ours).collect();
        ours.sort_by_key(|webhook| (!is_here(webhook), !webhook.is_active));
        let best = ours.first().copied();
        plan.needs.push((*kind, best.map_or(Need::Webhook, |best| need(best, wish))));
        plan.doubles.extend(ours.iter().skip(1).filter(|it| is_here(it)).copied().cloned());
        let is_strange = |webhook: &&Webhook| {
            let id = webhook.id.as_str();
            is_here(webhook) && !kept.current.contains(id) && !kept.others.contains(id)
        };
        plan.strangers.extend(of_event().filter(is_strange).cloned());
    }
    plan
}

fn need(webhook: &Webhook, wish: Wish<'_>) -> Need {
    let change = WebhookChange {
        url: (!is_same_url(&webhook.url, wish.url)).then(|| wish.url.to_owned()),
        is_active: (!webhook.is_active).then_some(true),
        ..WebhookChange::default()
    };
    if change == WebhookChange::default() {
        Need::Nothing(webhook.clone())
    } else {
        Need::Change(webhook.clone(), change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::WebhookId;

    const URL: &str = "https://example.org/webhook";

    fn webhook(id: &str, kind: Kind, url: &str, is_active: bool) -> Webhook {
        Webhook {
            id: WebhookId::parse(id).unwrap(),
            url: url.to_owned(),
            description: None,
            is_active,
            event_type: EventType::completed(kind),
            created_at: None,
            updated_at: None,
        }
    }

    fn kept(current: &[&str], others: &[&str]) -> Kept {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Kept { current: set(current), others: set(others) }
    }

    fn planned(kinds: &[Kind], present: &[Webhook], kept: &Kept) -> Plan {
        plan(Wish { url: URL, kinds }, present, kept)
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_wrong_is_changed() {
        let extract = webhook("w-1", Kind::Extract, URL, true);
        let batch = webhook("w-2", Kind::Batch, "https://old.example/", false);
        let present = [extract.clone(), batch.clone()];
        let planned = planned(&Kind::ALL, &present, &kept(&["w-1", "w-2"], &[]));
        let change = WebhookChange {
            url: Some(URL.to_owned()),
            is_active: Some(true),
            ..WebhookChange::default()
        };
        assert_eq!(
            planned.needs,
            [
                (Kind::Extract, Need::Nothing(extract)),
                (Kind::Batch, Need::Change(batch, change)),
                (Kind::Crawl, Need::Webhook),
            ]
        );
        assert!(planned.strangers.is_empty() && planned.doubles.is_empty());
    }

    /// The platform may spell an address in its own way.
    #[test]
    fn another_spelling_of_the_address_is_no_other_address() {
        let spelt = webhook("w-1", Kind::Crawl, "https://EXAMPLE.org:443/webhook", true);
        let planned = planned(&[Kind::Crawl], std::slice::from_ref(&spelt), &kept(&["w-1"], &[]));
        assert_eq!(planned.needs, [(Kind::Crawl, Need::Nothing(spelt))]);
    }

    #[test]
    fn of_several_the_best_is_enough_and_the_rest_is_told() {
        let far = webhook("w-1", Kind::Extract, "https://old.example/", true);
        let idle = webhook("w-2", Kind::Extract, URL, false);
        let good = webhook("w-3", Kind::Extract, URL, true);
        let strange = webhook("w-4", Kind::Extract, URL, true);
        let elsewhere = webhook("w-5", Kind::Extract, "https://somebody.example/", true);
        let present = [far, idle.clone(), good.clone(), strange.clone(), elsewhere];
        let planned = planned(&[Kind::Extract], &present, &kept(&["w-1", "w-2", "w-3"], &[]));
        assert_eq!(planned.needs, [(Kind::Extract, Need::Nothing(good))]);
        assert_eq!(planned.doubles, [idle]);
        assert_eq!(planned.strangers, [strange]);
    }

    /// What a rotation registered, or is about to take away, is neither enough nor strange.
    #[test]
    fn a_rotation_under_way_is_left_alone() {
        let old = webhook("w-1", Kind::Extract, URL, true);
        let pending = webhook("w-2", Kind::Extract, URL, false);
        let leaving = webhook("w-3", Kind::Batch, URL, false);
        let present = [old.clone(), pending, leaving];
        let kept = kept(&["w-1"], &["w-2", "w-3"]);
        let planned = planned(&[Kind::Extract, Kind::Batch], &present, &kept);
        let needs = [(Kind::Extract, Need::Nothing(old)), (Kind::Batch, Need::Webhook)];
        assert_eq!(planned.needs, needs);
        assert!(planned.strangers.is_empty() && planned.doubles.is_empty());
    }
}
