use std::collections::BTreeMap;

use super::*;

fn good() -> BTreeMap<&'static str, &'static str> {
    [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDHUSH"),
        ("AWS_SECRET_ACCESS_KEY", "hush-key"),
        ("AWS_SESSION_TOKEN", "hush-token"),
    ]
    .into()
}

fn made(variables: &BTreeMap<&str, &str>) -> Result<SdkConfig, EnvironmentError> {
    from_environment(&|name| variables.get(name).map(|value| (*value).to_owned()), Patience::WORKER)
}

/// DP-09: the message lists everything that is wrong, and no value.
#[test]
fn dp_09_all_problems_are_told_at_once() {
    let error = made(&BTreeMap::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment lacks what the AWS SDK needs: AWS_REGION is not set; \
         AWS_ACCESS_KEY_ID is not set; AWS_SECRET_ACCESS_KEY is not set"
    );
    let mut variables = good();
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", " "),
        ("AWS_ENDPOINT_URL", "hush.example.com"),
        ("AWS_ENDPOINT_URL_SQS", "http://"),
        ("AWS_USE_FIPS_ENDPOINT", "hush"),
        ("AWS_CA_BUNDLE", "/nowhere/ca.pem"),
    ] {
        variables.insert(name, value);
    }
    let text = made(&variables).unwrap_err().to_string();
    for part in [
        "AWS_ACCESS_KEY_ID is not set",
        "AWS_ENDPOINT_URL must begin with http:// or https://",
        "AWS_ENDPOINT_URL_SQS must begin with",
        "AWS_USE_FIPS_ENDPOINT must be `true` or `false`",
        "AWS_CA_BUNDLE: the certificates in /nowhere/ca.pem cannot be read",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn what_lambda_sets_is_enough() {
    let config = made(&good()).unwrap();
    assert_eq!(config.region().map(Region::as_ref), Some("eu-central-1"));
    assert_eq!(config.behavior_version(), Some(BehaviorVersion::v2026_01_12()));
    assert_eq!(config.endpoint_url(), None);
    let timeouts = config.timeout_config().unwrap();
    assert_eq!(timeouts.operation_timeout(), Some(Patience::WORKER.operation));
    assert_eq!(timeouts.operation_attempt_timeout(), Some(Patience::WORKER.attempt));
    assert_eq!(timeouts.connect_timeout(), Some(Patience::WORKER.connect));
    assert_eq!(timeouts.read_timeout(), Some(Patience::WORKER.attempt));
}

#[test]
fn places_and_flags_are_taken_over() {
    let mut variables = good();
    variables.remove("AWS_REGION");
    variables.remove("AWS_SESSION_TOKEN");
    for (name, value) in [
        ("AWS_DEFAULT_REGION", "cn-north-1"),
        ("AWS_ENDPOINT_URL", " http://127.0.0.1:4566 "),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "false"),
    ] {
        variables.insert(name, value);
    }
    let config = made(&variables).unwrap();
    assert_eq!(config.region().map(Region::as_ref), Some("cn-north-1"));
    assert_eq!(config.endpoint_url(), Some("http://127.0.0.1:4566"));
    assert_eq!((config.use_fips(), config.use_dual_stack()), (Some(true), Some(false)));
}

/// A bundle that the HTTP client would panic on is refused when the function starts.
#[test]
fn a_bundle_without_certificates_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let long = "#".repeat(1024 * 1024 + 1);
    for (text, told) in [
        ("", "is no list of certificates"),
        ("hush", "is no list of certificates"),
        (garbage, "is no list of certificates"),
        (broken, "is no list of certificates"),
        (&long, "is longer than 1 MiB"),
    ] {
        std::fs::write(&path, text).unwrap();
        let mut variables = good();
        variables.insert("AWS_CA_BUNDLE", path.to_str().unwrap());
        let error = made(&variables).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
