use domain::envelope::EventType;
use domain::job::Kind;
use domain::ports::WebhookId;
use domain::signature::preset::Preset;

use super::super::finding::Outcome;
use super::*;

const TEXT: &str = "test-secret-1";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-11-30T12:00:00Z")
}

fn held(text: &str, webhook_id: Option<&str>) -> Held {
    let secret = Secret::new(text).unwrap();
    let secret = match webhook_id {
        Some(id) => secret.with_webhook_id(id).unwrap(),
        None => secret,
    };
    Held {
        place: "`secrets.json`".to_owned(),
        stage: Stage::Current,
        secret: Ok(secret),
        since: None,
        until: None,
    }
}

fn webhook(id: &str) -> Webhook {
    Webhook {
        id: WebhookId::parse(id).unwrap(),
        url: "https://hooks.example.org/".to_owned(),
        description: None,
        is_active: true,
        event_type: EventType::completed(Kind::Extract),
        created_at: Some(at("2026-11-20T12:00:00Z")),
        updated_at: None,
    }
}

fn found(held: &[Held], webhooks: Option<&[Webhook]>, preset: Preset) -> Vec<Finding> {
    let scheme = preset.scheme().unwrap();
    judge(&Judged { held, webhooks, scheme: &scheme, are_wanted: true, now: now() })
}

#[track_caller]
fn only(findings: Vec<Finding>) -> Finding {
    let [finding] = <[Finding; 1]>::try_from(findings).unwrap();
    assert!(!format!("{finding:?}").contains(TEXT), "{finding:?}");
    finding
}

/// OB-01: a secret is told by its place, stage, webhook and age, never by its text.
#[test]
fn a_usable_secret_is_told_without_its_text() {
    let listed = [webhook("w1")];
    let finding = only(found(&[held(TEXT, Some("w1"))], Some(&listed), Preset::Geonode));
    assert_eq!(finding.outcome, Outcome::Ok);
    let wanted = "the current secret in `secrets.json` is that of webhook w1, at most 10 days old";
    assert_eq!(finding.found, wanted);
    let since = Some(at("2026-11-30T09:00:00Z"));
    let known = Held { since, ..held(TEXT, Some("w1")) };
    assert!(only(found(&[known], Some(&listed), Preset::Geonode)).found.ends_with("3 hours old"));
    assert!(only(found(&[held(TEXT, None)], None, Preset::Geonode)).found.ends_with("no webhook"));
}

/// SM-07: until when the previous secret is accepted is told.
#[test]
fn stages_are_told() {
    for (until, said) in [
        ("2026-11-30T12:05:00Z", "accepted until 2026-11-30T12:05:00Z"),
        ("2026-11-30T11:55:00Z", "not accepted since 2026-11-30T11:55:00Z"),
    ] {
        let previous =
            Held { stage: Stage::Previous, until: Some(at(until)), ..held(TEXT, Some("w1")) };
        let finding = only(found(&[previous], None, Preset::Geonode));
        assert_eq!(finding.outcome, Outcome::Ok);
        assert!(finding.found.starts_with("the previous secret") && finding.found.ends_with(said));
    }
}

/// SM-04, SM-05: what is no secret fails where it is the current one, and is told beside it.
#[test]
fn what_is_no_secret_is_told_by_its_stage() {
    for (stage, outcome) in [
        (Stage::Current, Outcome::Failed),
        (Stage::Pending, Outcome::Warning),
        (Stage::Previous, Outcome::Warning),
    ] {
        let unusable = Held { stage, secret: Err("it is blank".to_owned()), ..held(TEXT, None) };
        let finding = only(found(&[unusable], None, Preset::Geonode));
        assert_eq!(finding.outcome, outcome, "{finding:?}");
        assert!(finding.found.contains("it is blank"), "{finding:?}");
    }
}

#[test]
fn a_secret_that_makes_no_key_fails() {
    let finding = only(found(&[held("not base64!", None)], None, Preset::StandardWebhooks));
    assert_eq!(finding.outcome, Outcome::Failed);
    assert!(finding.found.contains("makes no key under the signature scheme"), "{finding:?}");
}

#[test]
fn a_secret_whose_webhook_is_gone_is_told() {
    let finding = only(found(&[held(TEXT, Some("w2"))], Some(&[webhook("w1")]), Preset::Geonode));
    assert_eq!(finding.outcome, Outcome::Warning);
    assert!(finding.found.contains("w2") && finding.found.contains("does not have"));
}

#[test]
fn no_secret_fails_only_where_one_is_wanted() {
    assert_eq!(only(found(&[], None, Preset::Geonode)).outcome, Outcome::Failed);
    let scheme = Preset::Geonode.scheme().unwrap();
    let unwanted =
        Judged { held: &[], webhooks: None, scheme: &scheme, are_wanted: false, now: now() };
    assert_eq!(only(judge(&unwanted)).outcome, Outcome::Skipped);
}

#[test]
fn more_secrets_than_a_receiver_tries_fail() {
    let many: Vec<_> = (0..=SECRETS_MAX).map(|number| held(&format!("s-{number}"), None)).collect();
    let findings = found(&many, None, Preset::Geonode);
    let last = findings.last().unwrap();
    assert_eq!(last.outcome, Outcome::Failed);
    assert!(last.found.contains("31 secrets are in force"), "{last:?}");
}

#[test]
fn what_is_in_force_is_named() {
    let gone = Held { until: Some(at("2026-11-30T11:00:00Z")), ..held(TEXT, Some("w0")) };
    let (ids, is_some_unnamed) = named(&[gone, held(TEXT, Some("w1"))], now());
    assert_eq!(
        (ids.into_iter().collect::<Vec<_>>(), is_some_unnamed),
        (vec!["w1".to_owned()], false)
    );
    assert!(named(&[held(TEXT, None)], now()).1);
}
