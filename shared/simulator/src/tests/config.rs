//! Settings and faults as documents.

use serde_json::json;

use crate::{Config, Faults, LogRows, SignatureEncoding};

#[test]
fn an_empty_document_means_the_defaults_and_unknown_keys_are_refused() {
    let config: Config = serde_json::from_value(json!({})).unwrap();
    assert_eq!(json!(config), json!(Config::default()));
    assert!(config.check().is_ok());
    let partial = json!({
        "speed": 50, "corpus": "pages", "faults": { "api": { "errors": 0.5 } },
        "webhooks": { "signature": "base64", "log": "row_per_delivery" },
    });
    let config: Config = serde_json::from_value(partial).unwrap();
    assert_eq!(config.webhooks.signature, SignatureEncoding::Base64);
    assert_eq!(config.webhooks.log, LogRows::RowPerDelivery);
    assert!((config.faults.api.errors - 0.5).abs() < f64::EPSILON);
    for unknown in [
        json!({ "sped": 1 }),
        json!({ "webhooks": { "retries": 1 } }),
        json!({ "faults": { "api": { "error": 1 } } }),
    ] {
        assert!(serde_json::from_value::<Config>(unknown).is_err());
    }
}

type Spoil = fn(&mut Config);

#[test]
fn settings_that_cannot_be_used_are_named() {
    let cases: [(&str, Spoil); 7] = [
        ("speed", |config| config.speed = f64::NAN),
        ("api_key", |config| config.api_key = String::new()),
        ("list_lag_secs", |config| config.list_lag_secs = -1.0),
        ("job_sigma", |config| config.job_sigma = 6.0),
        ("webhooks.concurrency", |config| config.webhooks.concurrency = 0),
        ("faults.jobs.cancelled", |config| config.faults.jobs.cancelled = 1.1),
        ("faults.lists.capped", |config| config.faults.lists.capped = f64::NAN),
    ];
    for (name, spoil) in cases {
        let mut config = Config::default();
        spoil(&mut config);
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("setting `{name}` must be ")), "{error}");
    }
}

/// `Retry-After` counts whole seconds, and a wait of none would be no throttling.
#[test]
fn a_throttled_call_is_asked_to_wait_whole_seconds() {
    for (secs, speed, asked) in
        [(2.0, 1.0, 2), (2.0, 20.0, 1), (30.0, 20.0, 2), (0.0, 1.0, 1), (60.0, 1.0, 60)]
    {
        let config = Config { retry_after_secs: secs, speed, ..Config::default() };
        assert_eq!(config.retry_after(), asked, "{secs} at {speed}");
    }
}

#[test]
fn debug_output_shows_no_key() {
    let config = Config { api_key: "very-secret".to_owned(), ..Config::default() };
    assert!(!format!("{config:?}").contains("very-secret"));
}

#[test]
fn presets_are_found_by_name() {
    for (name, expected) in [
        ("none", Some(Faults::none())),
        ("gentle", Some(Faults::gentle())),
        ("harsh", Some(Faults::harsh())),
        ("Harsh", None),
    ] {
        assert_eq!(Faults::preset(name), expected);
    }
}
