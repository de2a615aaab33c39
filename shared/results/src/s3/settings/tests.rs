use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_types::region::Region;
use aws_types::service_config::LoadServiceConfig;
use domain::limits::Limits;
use domain::testing::ManualClock;

use super::*;
use crate::ObjectResults;
use crate::testing::FakeS3;

/// The defaults leave the caller time to act before the domain's own time-out.
#[test]
fn a_call_ends_before_its_caller_gives_up() {
    assert!(S3Tempo::default().call_max() < Limits::default().call_timeout);
}

/// DP-09: settings that cannot be right are refused before anything is asked of S3.
#[tokio::test]
async fn settings_that_cannot_be_right_are_refused() {
    let s3 = FakeS3::start().await.unwrap();
    let refuse = |change: &dyn Fn(&mut S3Settings)| {
        let mut settings = s3.settings();
        change(&mut settings);
        ObjectResults::on_s3(&settings, Arc::new(ManualClock::default())).err()
    };
    for bucket in ["", "ab", "A-Bucket", "a_bucket", "a/bucket", "a bucket", &"x".repeat(64)] {
        let error = refuse(&|settings| bucket.clone_into(&mut settings.bucket));
        assert!(matches!(error, Some(S3Error::Bucket { .. })), "{bucket}");
    }
    for region in ["", "eu central", "eu-central-1/", "EU", "a.example"] {
        let error = refuse(&|settings| region.clone_into(&mut settings.region));
        assert!(matches!(error, Some(S3Error::Region { .. })), "{region}");
    }
    for prefix in ["//", "a//b", "../a", "a b", "a\n", "caf\u{e9}", &"x/".repeat(200)] {
        let error = refuse(&|settings| prefix.clone_into(&mut settings.prefix));
        assert!(matches!(error, Some(S3Error::Prefix { .. })), "{prefix}");
    }
    for endpoint in ["", "127.0.0.1:1", "ftp://a", "http://", "http://u:p@a", "http://a/?b", "a#b"]
    {
        let error = refuse(&|settings| settings.endpoint = Some(endpoint.to_owned()));
        assert!(matches!(error, Some(S3Error::Endpoint)), "{endpoint}");
        assert!(!error.unwrap().to_string().contains("u:p"));
    }
    for prefix in ["", "/", "a", "/a/", "Data/a=b"] {
        assert!(refuse(&|settings| prefix.clone_into(&mut settings.prefix)).is_none(), "{prefix}");
    }
    assert!(refuse(&|settings| settings.endpoint = None).is_none());
    assert!(s3.seen().is_empty());
}

/// Without an endpoint S3 itself is asked, by TLS and under the bucket's own name where a
/// certificate can be for it.
#[tokio::test]
async fn without_an_endpoint_s3_itself_is_asked() {
    let s3 = FakeS3::start().await.unwrap();
    for (bucket, region, fips, dual_stack, url) in [
        ("abc", "eu-central-1", false, false, "https://abc.s3.eu-central-1.amazonaws.com"),
        ("a.b", "eu-central-1", false, false, "https://s3.eu-central-1.amazonaws.com"),
        ("abc", "us-east-1", true, false, "https://abc.s3-fips.us-east-1.amazonaws.com"),
        ("abc", "us-east-1", true, true, "https://abc.s3-fips.dualstack.us-east-1.amazonaws.com"),
        ("abc", "cn-north-1", false, true, "https://abc.s3.dualstack.cn-north-1.amazonaws.com.cn"),
    ] {
        let (bucket, region) = (bucket.to_owned(), region.to_owned());
        let settings =
            S3Settings { bucket, region, endpoint: None, fips, dual_stack, ..s3.settings() };
        assert_eq!(settings.url(), (url.to_owned(), !settings.bucket.contains('.')));
    }
}

/// Endpoints of single services.
#[derive(Debug)]
struct Endpoints;

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        (key.service_id() == "S3" && key.env() == "AWS_ENDPOINT_URL")
            .then(|| "http://127.0.0.1:2".to_owned())
    }
}

/// The region, the credentials and the endpoint are those of all clients of AWS; S3's own endpoint
/// goes before the one for all.
#[test]
fn the_shared_configuration_is_enough() {
    let keys = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, ""));
    let common = SdkConfig::builder()
        .region(Region::new("eu-west-1"))
        .credentials_provider(keys.clone())
        .use_fips(true)
        .build();
    let settings = S3Settings::new(&common, "abc", "p").unwrap();
    assert_eq!((settings.region.as_str(), settings.endpoint), ("eu-west-1", None));
    assert!(settings.fips && !settings.dual_stack);
    let for_all = common.clone().into_builder().endpoint_url("http://127.0.0.1:1").build();
    let settings = S3Settings::new(&for_all, "abc", "p").unwrap();
    assert_eq!(settings.endpoint.as_deref(), Some("http://127.0.0.1:1"));
    let own = for_all.into_builder().service_config(Endpoints).build();
    let settings = S3Settings::new(&own, "abc", "p").unwrap();
    assert_eq!(settings.endpoint.as_deref(), Some("http://127.0.0.1:2"));

    let no_region = SdkConfig::builder().credentials_provider(keys).build();
    let no_keys = SdkConfig::builder().region(Region::new("eu-west-1")).build();
    assert!(matches!(S3Settings::new(&no_region, "abc", ""), Err(S3Error::NoRegion)));
    assert!(matches!(S3Settings::new(&no_keys, "abc", ""), Err(S3Error::NoCredentials)));
}
