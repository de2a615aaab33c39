use std::error::Error as _;
use std::time::Duration;

use aws_client::{Patience, SdkConfig, port_error};
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::SdkError;
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use domain::ports::{ErrorKind, PortError};

use crate::wire::{Answer, Wire};

/// One attempt, so that every answer is the last.
const ONCE: Patience = Patience { attempts: 1, ..Patience::RECEIVER };

async fn call(config: &SdkConfig) -> PortError {
    let error = Client::new(config).get_secret_value().secret_id("it").send().await.unwrap_err();
    port_error("secrets", "load", error)
}

async fn answered(answer: Answer) -> PortError {
    call(&Wire::start(vec![answer]).await.config(ONCE)).await
}

/// All that an error says, wherever it may be printed.
fn said(error: &PortError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text} {error} {error:?} {error:#?}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn each_answer_says_what_to_do() {
    let codes = [
        (400, "ProvisionedThroughputExceededException", ErrorKind::Throttled),
        (400, "ThrottlingException", ErrorKind::Throttled),
        (400, "RequestLimitExceeded", ErrorKind::Throttled),
        (400, "TooManyRequestsException", ErrorKind::Throttled),
        (400, "LimitExceededException", ErrorKind::Throttled),
        (403, "KMS.ThrottlingException", ErrorKind::Throttled),
        (403, "RequestThrottled", ErrorKind::Throttled),
        (400, "OverLimit", ErrorKind::Throttled),
        (503, "SlowDown", ErrorKind::Throttled),
        (429, "Odd", ErrorKind::Throttled),
        (400, "AccessDeniedException", ErrorKind::Denied),
        (403, "AccessDenied", ErrorKind::Denied),
        (400, "UnrecognizedClientException", ErrorKind::Denied),
        (400, "InvalidSignatureException", ErrorKind::Denied),
        (400, "ExpiredTokenException", ErrorKind::Denied),
        (403, "InvalidClientTokenId", ErrorKind::Denied),
        (400, "KMS.AccessDeniedException", ErrorKind::Denied),
        (400, "KMS.DisabledException", ErrorKind::Denied),
        (400, "KmsInvalidState", ErrorKind::Denied),
        (400, "DecryptionFailure", ErrorKind::Denied),
        (403, "Odd", ErrorKind::Denied),
        (400, "ResourceNotFoundException", ErrorKind::Denied),
        (400, "AWS.SimpleQueueService.NonExistentQueue", ErrorKind::Denied),
        (400, "QueueDoesNotExist", ErrorKind::Denied),
        (400, "ValidationException", ErrorKind::Invalid),
        (400, "InvalidParameterException", ErrorKind::Invalid),
        (404, "Odd", ErrorKind::Invalid),
        (400, "InternalServiceError", ErrorKind::Unavailable),
        (500, "InternalServerError", ErrorKind::Unavailable),
        (503, "ServiceUnavailableException", ErrorKind::Unavailable),
        (500, "Odd", ErrorKind::Unavailable),
        (408, "Odd", ErrorKind::Unavailable),
    ];
    for (status, code, kind) in codes {
        let error = answered(Answer::error(status, code, "It is so.")).await;
        assert_eq!((error.port, error.operation), ("secrets", "load"));
        assert_eq!(error.kind, kind, "{status} {code}");
        let cause = error.source().unwrap().to_string();
        assert_eq!(
            cause,
            format!("AWS answered {status} with {code}: It is so. (request request-7)")
        );
    }
}

/// A load balancer or a proxy answers in its own words.
#[tokio::test]
async fn answers_that_are_none_of_the_service_are_told_by_their_status() {
    for (status, kind) in [
        (502, ErrorKind::Unavailable),
        (504, ErrorKind::Unavailable),
        (429, ErrorKind::Throttled),
        (403, ErrorKind::Denied),
    ] {
        for body in ["", "<html>hush</html>", "{\"hush\"", "{}", "null", "[\"hush\"]"] {
            let error = answered(Answer::Body { status, body: body.to_owned() }).await;
            assert_eq!(error.kind, kind, "{status} {body}: {error:?}");
            let text = said(&error);
            assert!(text.contains(&status.to_string()), "{text}");
            assert!(!text.contains("hush"), "{text}");
        }
    }
}

#[tokio::test]
async fn half_an_answer_and_none_leave_the_effect_unknown() {
    let body = |status, body: &str| Answer::Body { status, body: body.to_owned() };
    let unreadable = body(200, "{\"SecretString\":\"hush");
    for answer in [Answer::Half, Answer::Cut, unreadable, body(404, "<html>hush</html>")] {
        let error = answered(answer).await;
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
        assert!(error.is_transient());
        assert!(!said(&error).contains("hush"), "{error:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_nobody_serves_is_unavailable_and_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wire = Wire::at(&listener, vec![Answer::Cut]);
    drop(listener);
    let error = call(&wire.config(ONCE)).await;
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(format!("{error:?}").contains("the call did not get through: "), "{error:?}");
    assert!(format!("{error:?}").contains("refused"), "{error:?}");
}

#[test]
fn a_request_that_cannot_be_made_is_a_bug() {
    let error = SdkError::<GetSecretValueError, _>::construction_failure("no secret is named");
    let error = port_error("secrets", "load", error);
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(format!("{error:?}").contains("could not be made: no secret is named"), "{error:?}");
}

/// A place of credentials that has none.
#[derive(Debug)]
struct Without(fn() -> CredentialsError);

impl ProvideCredentials for Without {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err((self.0)()))
    }
}

#[tokio::test]
async fn without_credentials_it_is_denied() {
    let wire = Wire::start(vec![Answer::Cut]).await;
    let cases: [(fn() -> CredentialsError, ErrorKind); 3] = [
        (|| CredentialsError::not_loaded("none"), ErrorKind::Denied),
        (|| CredentialsError::provider_error("expired"), ErrorKind::Denied),
        (|| CredentialsError::provider_timed_out(Duration::from_secs(5)), ErrorKind::Unavailable),
    ];
    for (error, kind) in cases {
        let provider = SharedCredentialsProvider::new(Without(error));
        let config = wire.config(ONCE).into_builder().credentials_provider(provider).build();
        assert_eq!(call(&config).await.kind, kind, "{:?}", error());
    }
    assert!(wire.heads().is_empty());
}

/// OB-01: AWS tells whoever signs wrongly what it computed, the session token included.
#[tokio::test]
async fn ob_01_errors_show_nothing_of_the_request() {
    let message = "The request signature we calculated does not match the signature you provided. \
                   Check your AWS Secret Access Key and signing method.\n\nThe Canonical String \
                   for this request should have been\n'POST\nx-amz-security-token:hush-session-\
                   token\n\nAKIDHUSH'";
    let error = answered(Answer::error(403, "InvalidSignatureException", message)).await;
    let text = said(&error);
    assert!(text.contains("does not match the signature you provided"), "{text}");
    assert!(!text.to_lowercase().contains("hush"), "{text}");

    let message = "1 validation error detected: Value 'hush' at 'secretString' failed to satisfy \
                   constraint: Member must have length less than or equal to 65536; Value 'hush' \
                   at 'name' failed to satisfy constraint";
    let error = answered(Answer::error(400, "ValidationException", message)).await;
    let text = said(&error);
    assert!(text.contains("'name' failed to satisfy constraint"), "{text}");
    assert!(!text.contains("hush"), "{text}");

    let message = format!("{}\u{1f980}", "m".repeat(499));
    let error = answered(Answer::error(400, "ValidationException", &message)).await;
    let shown = error.source().unwrap().to_string();
    assert!(shown.contains(&"m".repeat(499)) && !shown.contains('\u{1f980}'), "{shown}");
}
