use domain::ports::WebhookId;

use super::super::finding::Outcome;
use super::*;

const URL: &str = "https://hooks.example.org/webhook";
const OTHER: &str = "https://elsewhere.example.org/webhook";

fn webhook(id: &str, kind: Kind, url: &str) -> Webhook {
    Webhook {
        id: WebhookId::parse(id).unwrap(),
        url: url.to_owned(),
        description: None,
        is_active: true,
        event_type: EventType::completed(kind),
        created_at: None,
        updated_at: None,
    }
}

fn all() -> Vec<Webhook> {
    Kind::ALL.into_iter().map(|kind| webhook(&format!("w-{kind}"), kind, URL)).collect()
}

struct World {
    webhooks: Vec<Webhook>,
    secrets: BTreeSet<String>,
    url: Option<&'static str>,
    is_some_unnamed: bool,
    unreadable: u32,
}

impl World {
    /// Three webhooks at the right place, with their secrets.
    fn good() -> Self {
        let secrets = Kind::ALL.into_iter().map(|kind| format!("w-{kind}")).collect();
        let webhooks = all();
        Self { webhooks, secrets, url: Some(URL), is_some_unnamed: false, unreadable: 0 }
    }

    /// What is found that is not as it must be.
    fn complaints(&self) -> Vec<Finding> {
        let mut findings = judge(&Known {
            webhooks: &self.webhooks,
            unreadable: self.unreadable,
            kinds: &Kind::ALL,
            url: self.url,
            secrets: &self.secrets,
            is_some_unnamed: self.is_some_unnamed,
        });
        findings.retain(|finding| finding.outcome != Outcome::Ok);
        findings
    }

    #[track_caller]
    fn complains(&self, outcome: Outcome, found: &str, advice: &str) {
        let complaints = self.complaints();
        let [finding] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert_eq!(finding.outcome, outcome, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
        assert!(finding.advice.as_deref().unwrap_or_default().contains(advice), "{finding:?}");
    }
}

/// SM-08: each event has a webhook of its own, and each webhook's secret is here.
#[test]
fn a_webhook_for_each_event_is_as_it_must_be() {
    assert_eq!(World::good().complaints(), []);
    // Another spelling of the same URL is no other URL.
    let mut world = World::good();
    world.webhooks[0].url = "HTTPS://Hooks.Example.org:443/webhook".to_owned();
    assert_eq!(world.complaints(), []);
}

#[test]
fn an_event_without_a_webhook_fails() {
    let mut world = World::good();
    world.webhooks.remove(1);
    world.complains(
        Outcome::Failed,
        "no webhook delivers batch_completed",
        "webhooks create --event batch",
    );
    // A stranger's webhook elsewhere is no help, and none of our business.
    world.webhooks.push(webhook("stranger", Kind::Batch, OTHER));
    world.complains(Outcome::Failed, "no webhook delivers batch_completed", "create");
}

#[test]
fn a_webhook_that_is_inactive_fails() {
    let mut world = World::good();
    world.webhooks[2].is_active = false;
    world.complains(Outcome::Failed, "w-crawl of crawl_completed is inactive", "--active true");
    // Beside an active one it may be on its way out.
    world.webhooks.push(webhook("w-new", Kind::Crawl, URL));
    world.secrets.insert("w-new".to_owned());
    assert_eq!(world.complaints(), []);
}

#[test]
fn a_webhook_of_ours_that_delivers_elsewhere_fails() {
    let mut world = World::good();
    world.webhooks[0].url = OTHER.to_owned();
    world.complains(Outcome::Failed, "w-extract delivers extract_completed to", "--url https");
}

#[test]
fn a_secret_that_is_not_here_fails() {
    let mut world = World::good();
    world.secrets.remove("w-batch");
    world.complains(Outcome::Failed, "whose secret is not here", "webhooks delete w-batch");
    world.is_some_unnamed = true;
    world.complains(Outcome::Warning, "cannot be told", "doctor --capture");
}

#[test]
fn two_webhooks_of_one_event_are_told() {
    let mut world = World::good();
    world.webhooks.push(webhook("w-twin", Kind::Extract, URL));
    world.secrets.insert("w-twin".to_owned());
    world.complains(Outcome::Warning, "2 webhooks deliver extract_completed", "being rotated");
}

#[test]
fn the_limit_of_the_account_is_told_before_it_is_met() {
    let mut world = World::good();
    for number in 3..8 {
        world.webhooks.push(webhook(&format!("s{number}"), Kind::Batch, OTHER));
    }
    assert_eq!((world.webhooks.len(), world.complaints()), (8, Vec::new()));
    world.webhooks.push(webhook("s9", Kind::Batch, OTHER));
    world.complains(Outcome::Warning, "9 of at most 10 webhooks", "room for one more");
}

#[test]
fn entries_that_cannot_be_read_are_told() {
    let mut world = World::good();
    world.unreadable = 1;
    world.complains(Outcome::Warning, "cannot be read: 1", "newer");
}

#[test]
fn without_an_url_only_what_is_ours_is_looked_at() {
    let mut world = World::good();
    world.url = None;
    world.complains(Outcome::Warning, "`public_url` is not set", "set `public_url`");
    world.webhooks[0].is_active = false;
    assert_eq!(world.complaints().len(), 2, "{:?}", world.complaints());
    world.secrets.clear();
    world.complains(Outcome::Skipped, "jobs are found by polling alone", "");
}
