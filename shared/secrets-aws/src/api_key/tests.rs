use std::sync::Arc;

use aws_client::Patience;
use domain::testing::ManualClock;

use super::*;
use crate::testing::{FakeSecretsManager, SecretsTrouble, Value};

async fn scene() -> (FakeSecretsManager, ApiKeySource) {
    let fake = FakeSecretsManager::start(Arc::new(ManualClock::default())).await.unwrap();
    let source = ApiKeySource::new(&fake.config(Patience::RECEIVER).unwrap(), "key");
    (fake, source)
}

/// SG-07, SM-04: the forms in which a key may be stored.
#[tokio::test]
async fn the_key_is_read_in_each_of_its_forms() {
    let (fake, source) = scene().await;
    for text in [
        "key-1",
        " key-1\r\n",
        "\"key-1\"",
        "{\"api_key\":\"key-1\"}",
        "{ \"api_key\" : \" key-1\\n\" }\n",
    ] {
        fake.put("key", text).unwrap();
        assert_eq!(source.load().await.unwrap().expose(), "key-1", "{text}");
        fake.put("key", text.as_bytes()).unwrap();
        assert_eq!(source.load().await.unwrap().expose(), "key-1", "{text}");
    }
    fake.put_staged("key", "key-2", &[Stage::Pending]).unwrap();
    assert_eq!(source.load().await.unwrap().expose(), "key-1");
    assert!(fake.seen().iter().all(|call| call == "GetSecretValue key AWSCURRENT"));
}

#[tokio::test]
async fn what_is_no_key_is_corrupt_and_not_shown() {
    let (fake, source) = scene().await;
    let long = "hush".repeat(1_025);
    let texts = [
        "",
        " \n",
        "\"\"",
        "{\"api_key\":\" \"}",
        "{\"other\":\"hush\"}",
        "{hush",
        "\"hush",
        "[\"hush\"]",
        "null",
        "{\"api_key\":\"hush\",\"other\":\"hush\"}",
        &long,
    ];
    let values = texts.map(Value::from).into_iter();
    for value in values.chain([Value::Neither, Value::Bytes(b"hush\xff".to_vec())]) {
        fake.hold("key", value.clone());
        let error = source.load().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{value:?}");
        let text = format!("{error:?}");
        assert!(
            text.contains("the secret `key` (AWSCURRENT) cannot be read at http://127.0.0.1:"),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_says_what_to_do() {
    let (fake, source) = scene().await;
    assert_eq!(source.load().await.unwrap_err().kind, ErrorKind::Denied);
    fake.create("key");
    assert_eq!(source.load().await.unwrap_err().kind, ErrorKind::Denied);
    fake.put("key", "key-1").unwrap();
    for (trouble, kind) in [
        (SecretsTrouble::EXPIRED, ErrorKind::Denied),
        (SecretsTrouble::THROTTLED, ErrorKind::Throttled),
        (SecretsTrouble::INTERNAL, ErrorKind::Unavailable),
    ] {
        fake.always(Some(trouble));
        assert_eq!(source.load().await.unwrap_err().kind, kind);
    }
    fake.always(None);
    let key = source.load().await.unwrap();
    assert_eq!(format!("{key:?} {source:?}"), "[redacted] ApiKeySource { id: \"key\", .. }");
    fake.delete("key");
    assert_eq!(source.load().await.unwrap_err().kind, ErrorKind::Denied);
}
