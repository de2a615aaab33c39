//! The subscription check: whether each event that is owed is delivered to the receiver.
//!
//! It tells, and changes nothing: which webhooks there should be is an operator's decision.

use std::fmt;

use crate::envelope::EventType;
use crate::job::Kind;
use crate::ports::Webhook;

/// How the events stand that shall be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriptions {
    /// By kind of job.
    pub standings: Vec<(Kind, Standing)>,
}

/// How one event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// An active webhook delivers it to the receiver.
    Delivered,
    /// More than one does, as while a secret is being rotated: each job is delivered as often.
    Twice,
    /// Its webhook is switched off.
    Inactive,
    /// Its webhook delivers to another address.
    Elsewhere,
    /// No webhook delivers it.
    Missing,
}

impl Standing {
    /// The standing in logs and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Twice => "delivered_twice",
            Self::Inactive => "inactive",
            Self::Elsewhere => "elsewhere",
            Self::Missing => "missing",
        }
    }

    /// Whether deliveries come.
    pub const fn is_right(self) -> bool {
        matches!(self, Self::Delivered | Self::Twice)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Subscriptions {
    /// Checks the account's webhooks for these kinds of job. Where the receiver's URL is not known,
    /// any address counts as its own, and nobody can say how many webhooks there should be.
    pub fn of(kinds: &[Kind], url: Option<&str>, webhooks: &[Webhook]) -> Self {
        let standing = |kind: &Kind| (*kind, standing(*kind, url, webhooks));
        Self { standings: kinds.iter().map(standing).collect() }
    }

    /// The events that are not delivered.
    pub fn wrong(&self) -> impl Iterator<Item = (Kind, Standing)> {
        self.standings.iter().copied().filter(|(_, standing)| !standing.is_right())
    }
}

fn standing(kind: Kind, url: Option<&str>, webhooks: &[Webhook]) -> Standing {
    let event = EventType::completed(kind);
    let of_event = || webhooks.iter().filter(|webhook| webhook.event_type == event);
    let is_here = |webhook: &&Webhook| url.is_none_or(|url| is_same_url(url, &webhook.url));
    let here = || of_event().filter(is_here);
    let active = here().filter(|webhook| webhook.is_active).count();
    match active {
        0 if here().next().is_some() => Standing::Inactive,
        0 if of_event().next().is_some() => Standing::Elsewhere,
        0 => Standing::Missing,
        2.. if url.is_some() => Standing::Twice,
        _ => Standing::Delivered,
    }
}

/// Whether two addresses are one: spelt alike, or alike once they are in normal form.
pub(crate) fn is_same_url(one: &str, other: &str) -> bool {
    let parse = |text: &str| url::Url::parse(text).ok();
    one == other || parse(one).is_some_and(|url| Some(url) == parse(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::WebhookId;

    const URL: &str = "https://example.com/webhook";

    fn webhook(kind: Kind, url: &str, is_active: bool) -> Webhook {
        Webhook {
            id: WebhookId::parse("w").unwrap(),
            url: url.to_owned(),
            description: None,
            is_active,
            event_type: EventType::completed(kind),
            created_at: None,
            updated_at: None,
        }
    }

    fn of_extract(url: Option<&str>, webhooks: &[Webhook]) -> Standing {
        Subscriptions::of(&Kind::ALL, url, webhooks).standings[0].1
    }

    #[test]
    fn each_event_has_its_webhook_active_and_at_the_right_address() {
        let [here, paused, there] = [(URL, true), (URL, false), ("https://other.example", true)]
            .map(|(url, is_active)| webhook(Kind::Extract, url, is_active));
        let batch = webhook(Kind::Batch, URL, true);
        for (webhooks, known, unknown) in [
            (vec![], Standing::Missing, Standing::Missing),
            (vec![batch.clone()], Standing::Missing, Standing::Missing),
            (vec![here.clone()], Standing::Delivered, Standing::Delivered),
            (vec![here.clone(), here.clone()], Standing::Twice, Standing::Delivered),
            (vec![here.clone(), paused.clone()], Standing::Delivered, Standing::Delivered),
            (vec![paused.clone(), there.clone()], Standing::Inactive, Standing::Delivered),
            (vec![paused], Standing::Inactive, Standing::Inactive),
            (vec![there.clone()], Standing::Elsewhere, Standing::Delivered),
            (vec![there, here], Standing::Delivered, Standing::Delivered),
        ] {
            assert_eq!(of_extract(Some(URL), &webhooks), known, "{webhooks:?}");
            assert_eq!(of_extract(None, &webhooks), unknown, "{webhooks:?}");
        }
        let checked = Subscriptions::of(&Kind::ALL, Some(URL), &[batch]);
        let wrong: Vec<_> = checked.wrong().collect();
        assert_eq!(wrong, [(Kind::Extract, Standing::Missing), (Kind::Crawl, Standing::Missing)]);
        // An event that nobody wants is not missed.
        assert!(Subscriptions::of(&[], Some(URL), &[]).standings.is_empty());
    }

    #[test]
    fn an_address_is_the_same_however_it_is_spelt() {
        assert!(is_same_url(URL, "HTTPS://Example.com:443/webhook"));
        assert!(is_same_url("https://example.com", "https://example.com/"));
        assert!(!is_same_url(URL, "https://example.com/webhook/"));
        assert!(!is_same_url("nonsense", "rubbish"));
        assert!(is_same_url("nonsense", "nonsense"));
    }
}
