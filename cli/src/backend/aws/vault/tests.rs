use std::sync::Arc;

use aws_client::Patience;
use domain::envelope::EventType;
use domain::ports::WebhookId;
use secrets_aws::testing::FakeSecretsManager;
use system::SystemClock;

use super::slot::kind_of;
use super::*;

const NAME: &str = "ExtractWebhookSecret-a1B2c3D4e5F6";

fn vault(fake: &FakeSecretsManager, ids: &[&str]) -> Vault {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    Vault::new(&fake.config(Patience::WORKER).unwrap(), ids)
}

fn webhook(id: &str) -> (Webhook, Secret) {
    let webhook = Webhook {
        id: WebhookId::parse(id).unwrap(),
        url: "https://example.org/".to_owned(),
        event_type: EventType::completed(Kind::Extract),
        is_active: true,
        description: None,
        created_at: None,
        updated_at: None,
    };
    let secret = Secret::new(&format!("whsec-of-{id}")).unwrap().with_webhook_id(id).unwrap();
    (webhook, secret)
}

/// SM-10: of two people who create a webhook at once, one keeps its secret and the other is told so.
#[tokio::test]
async fn of_two_that_meet_one_is_kept() {
    let fake = FakeSecretsManager::start(Arc::new(SystemClock)).await.unwrap();
    fake.create(NAME);
    for round in ["first", "second"] {
        let (one, other) = (vault(&fake, &[NAME]), vault(&fake, &[NAME]));
        for vault in [&one, &other] {
            vault.make_room(&[Kind::Extract], &[]).await.unwrap();
        }
        let (kept, secret) = webhook(&format!("{round}-one"));
        one.keep(Kind::Extract, &kept, &secret).await.unwrap();
        // The same once more changes nothing.
        one.keep(Kind::Extract, &kept, &secret).await.unwrap();
        let (late, its) = webhook(&format!("{round}-other"));
        let error = other.keep(Kind::Extract, &late, &its).await.unwrap_err();
        assert_eq!(error.exit, Exit::TryAgain, "{error:?}");
        let known = vault(&fake, &[NAME]).known().await.unwrap();
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [kept.id.as_str()]);
    }
}

/// A secret that was made for a kind is never taken for another one; others are for any.
#[tokio::test]
async fn each_kind_has_its_own_secret() {
    let fake = FakeSecretsManager::start(Arc::new(SystemClock)).await.unwrap();
    let ids: Vec<String> =
        ["any", "BatchWebhookSecret-x", NAME].map(|name| fake.create(name)).into();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let all = vault(&fake, &ids);
    assert_eq!(all.kinds().await.unwrap(), Kind::ALL);
    all.make_room(&Kind::ALL, &[]).await.unwrap();
    let chosen: Vec<_> =
        locked(&all.chosen).iter().map(|(kind, slot)| (*kind, slot.name().to_owned())).collect();
    let end = |name: &str, end: &str| name.starts_with(end);
    for (kind, name) in chosen {
        let expected = match kind {
            Kind::Extract => "ExtractWebhookSecret",
            Kind::Batch => "BatchWebhookSecret",
            Kind::Crawl => "any",
        };
        assert!(end(&name, expected), "{kind}: {name}");
    }
    let two = vault(&fake, &ids[1..]);
    assert_eq!(two.kinds().await.unwrap(), [Kind::Extract, Kind::Batch]);
    let error = two.make_room(&Kind::ALL, &[]).await.unwrap_err();
    assert!(error.to_string().contains("crawl"), "{error:?}");
}

#[test]
fn a_name_tells_the_kind() {
    for (id, kind) in [
        (NAME, Some(Kind::Extract)),
        (
            "arn:aws:secretsmanager:eu-central-1:1:secret:CrawlWebhookSecret-aB3-xYz",
            Some(Kind::Crawl),
        ),
        ("gleaner/batch", Some(Kind::Batch)),
        // A stack that is called after a kind makes all names alike.
        ("crawl-prod-BatchWebhookSecret-1", Some(Kind::Batch)),
        ("webhooks", None),
        ("extract-and-batch", None),
    ] {
        assert_eq!(kind_of(id), kind, "{id}");
    }
}
