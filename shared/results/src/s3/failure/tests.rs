use super::*;

fn answer(status: u16, body: impl Into<Vec<u8>>) -> HttpResponse {
    let mut response = HttpResponse::new(HttpResponseBody::from(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

async fn kind(status: u16, code: &str) -> ErrorKind {
    Refusal::read(answer(status, format!("<Error><Code>{code}</Code></Error>"))).await.kind()
}

#[tokio::test]
async fn the_code_decides_what_a_caller_should_do() {
    for (status, code, expected) in [
        (503, "SlowDown", ErrorKind::Throttled),
        (429, "anything", ErrorKind::Throttled),
        (400, "ThrottlingException", ErrorKind::Throttled),
        (500, "InternalError", ErrorKind::Unavailable),
        (503, "ServiceUnavailable", ErrorKind::Unavailable),
        (502, "", ErrorKind::Unavailable),
        (400, "RequestTimeout", ErrorKind::Unavailable),
        (400, "IncompleteBody", ErrorKind::Unavailable),
        (409, "ConditionalRequestConflict", ErrorKind::Unavailable),
        (409, "OperationAborted", ErrorKind::Unavailable),
        (403, "AccessDenied", ErrorKind::Denied),
        (403, "InvalidAccessKeyId", ErrorKind::Denied),
        (403, "RequestTimeTooSkewed", ErrorKind::Denied),
        (401, "", ErrorKind::Denied),
        (404, "NoSuchBucket", ErrorKind::Denied),
        (404, "", ErrorKind::Denied),
        (307, "TemporaryRedirect", ErrorKind::Denied),
        (400, "AuthorizationHeaderMalformed", ErrorKind::Denied),
        (400, "ExpiredToken", ErrorKind::Denied),
        (400, "KMS.DisabledException", ErrorKind::Denied),
        (400, "EntityTooLarge", ErrorKind::Invalid),
        (400, "KeyTooLongError", ErrorKind::Invalid),
        (405, "MethodNotAllowed", ErrorKind::Invalid),
        (501, "NotImplemented", ErrorKind::Invalid),
    ] {
        assert_eq!(kind(status, code).await, expected, "{status} {code}");
    }
}

/// Only what the port expects is an outcome: an object that is there, or one that is not.
#[tokio::test]
async fn outcomes_are_few() {
    for (status, code, expected) in [
        (412, "PreconditionFailed", true),
        (404, "NoSuchKey", true),
        (404, "NoSuchBucket", false),
        (409, "ConditionalRequestConflict", false),
        (403, "AccessDenied", false),
        (304, "", false),
    ] {
        let refusal = Refusal::read(answer(status, format!("<Code>{code}</Code>"))).await;
        assert_eq!(refusal.is_outcome(), expected, "{status} {code}");
    }
}

/// S3's own words are kept, and neither the signature nor the keys that it repeats beside them.
#[tokio::test]
async fn what_s3_says_is_kept_and_what_it_repeats_is_not() {
    let body = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code>\
        <Message>The &lt;signature&gt; does not match &amp;amp;</Message>\
        <AWSAccessKeyId>marker-id</AWSAccessKeyId>\
        <StringToSign>marker-string</StringToSign>\
        <SignatureProvided>marker-signature</SignatureProvided>\
        <RequestId>R1</RequestId></Error>";
    let refusal = Refusal::read(answer(403, body)).await;
    let shown = format!("{refusal} {refusal:?}");
    assert!(!shown.contains("marker"), "{shown}");
    assert_eq!(
        refusal.to_string(),
        "S3 answered 403 with SignatureDoesNotMatch: \
         The <signature> does not match &amp; (request R1)"
    );
}

/// Answers that are no error of S3 are told by their status, however large or odd they are.
#[tokio::test]
async fn other_answers_are_told_by_their_status() {
    for body in [
        Vec::new(),
        b"<html>Bad gateway</html>".to_vec(),
        b"<Code>".to_vec(),
        vec![0xff; 10],
        vec![b'x'; BODY_BYTES_MAX + 1],
    ] {
        let refusal = Refusal::read(answer(502, body)).await;
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        assert!(refusal.to_string().len() < 200, "{refusal}");
    }
    let long = format!("<Code>{}</Code><Message>a\n\u{1b}b</Message>", "x".repeat(5_000));
    let refusal = Refusal::read(answer(400, long)).await;
    assert_eq!(refusal.code.len(), TEXT_CHARS_MAX);
    assert_eq!(refusal.message, "ab");
}
